# SPDX-License-Identifier: Apache-2.0
"""Validation and defaults of the server, beyond the recordings."""

import copy
import re
from typing import Any

import pytest

from container_update.emulator.json_type import compact
from container_update.emulator.kubernetes import ApiError, Registry
from container_update.emulator.kubernetes.eviction import evict
from container_update.emulator.kubernetes.rules import shape


@pytest.fixture
def registry() -> Registry:
    """A registry without controllers."""
    created = Registry()
    created.create("namespaces", "", {"metadata": {"name": "n"}})
    return created


CONTAINER = {"name": "a", "image": "app:1"}
SELECTOR = {"matchLabels": {"app": "x"}}


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"containers": [CONTAINER]} | spec}


def workload(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [CONTAINER]}}
    return {"metadata": {"name": "x"}, "spec": {"selector": SELECTOR, "template": template} | spec}


def container(**fields: Any) -> dict[str, Any]:
    return pod(containers=[CONTAINER | fields])


def service(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]} | spec}


def job(**pod_spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [CONTAINER], **pod_spec}}
    return {"metadata": {"name": "x"}, "spec": {"template": template}}


REFUSED = [
    ("pods", pod(containers=[]), "spec.containers: Required value"),
    ("pods", container(image=""), "spec.containers[0].image: Required value"),
    ("pods", container(name=""), "spec.containers[0].name: Required value"),
    ("pods", container(name="A_b"), 'spec.containers[0].name: Invalid value: "A_b"'),
    (
        "pods",
        pod(containers=[CONTAINER, CONTAINER]),
        'spec.containers[1].name: Duplicate value: "a"',
    ),
    (
        "pods",
        container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        'spec.containers[0].volumeMounts[0].name: Not found: "v"',
    ),
    (
        "pods",
        container(volumeMounts=[{"name": n, "mountPath": f"/{n}"} for n in "vw"]),
        'spec.containers[0].volumeMounts[1].name: Not found: "w"',
    ),
    (
        "pods",
        container(env=[{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "c"}}}]),
        "spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Required value",
    ),
    (
        "pods",
        container(env=[{"name": "E", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
        "may not be specified when `value` is not empty",
    ),
    (
        "pods",
        pod(restartPolicy="Sometimes"),
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
        '"OnFailure", "Never"',
    ),
    (
        "pods",
        container(imagePullPolicy="Perhaps"),
        'spec.containers[0].imagePullPolicy: Unsupported value: "Perhaps"',
    ),
    ("deployments", workload(selector=None), "spec.selector: Required value"),
    ("deployments", workload(replicas=-1), "must be greater than or equal to 0"),
    (
        "deployments",
        workload(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
        "spec.strategy.rollingUpdate: Forbidden",
    ),
    (
        "daemonsets",
        workload(selector={"matchLabels": {"app": "y"}}),
        "`selector` does not match template `labels`",
    ),
    (
        "statefulsets",
        workload(
            template={
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [CONTAINER], "restartPolicy": "Never"},
            }
        ),
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ),
    ("jobs", job(), 'restartPolicy: Required value: valid values: "OnFailure", "Never"'),
    ("jobs", job(restartPolicy="Always"), 'restartPolicy: Required value: valid values: "On'),
    (
        "cronjobs",
        {
            "metadata": {"name": "x"},
            "spec": {"jobTemplate": {"spec": job(restartPolicy="Never")["spec"]}},
        },
        "spec.schedule: Required value",
    ),
    (
        "configmaps",
        {"metadata": {"name": "x"}, "data": {"a/b": "c"}},
        'data[a/b]: Invalid value: "a/b": a valid config key must consist of',
    ),
    (
        "secrets",
        {"metadata": {"name": "x"}, "type": "kubernetes.io/tls", "data": {"tls.crt": ""}},
        "data[tls.key]: Required value",
    ),
    (
        "poddisruptionbudgets",
        {"metadata": {"name": "x"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}},
        "minAvailable and maxUnavailable cannot be both set",
    ),
    ("services", service(ports=[]), "spec.ports: Required value"),
    ("services", service(ports=[{"port": 0}]), "must be between 1 and 65535, inclusive"),
    (
        "services",
        service(ports=[{"port": 1, "name": "a"}, {"port": 2}]),
        "spec.ports[1].name: Required value",
    ),
    ("services", service() | {"metadata": {"name": "X"}}, "a lowercase RFC 1123 label must"),
    ("services", service() | {"metadata": {"name": "x.y"}}, "must not contain dots"),
    ("configmaps", {"metadata": {"name": "x" * 254}}, "must be no more than 253 bytes"),
    ("configmaps", {"metadata": {}}, "name or generateName is required"),
    (
        "configmaps",
        {"metadata": {"name": "x", "labels": {"a": "b c"}}},
        'metadata.labels: Invalid value: "b c": a valid label must be',
    ),
    (
        "configmaps",
        {
            "metadata": {
                "name": "x",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}],
            }
        },
        'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
    ),
]


@pytest.mark.parametrize(("resource", "body", "message"), REFUSED)
def test_a_field_that_is_wrong_is_named(
    registry: Registry, resource: str, body: dict[str, Any], message: str
) -> None:
    before = copy.deepcopy(body)
    with pytest.raises(ApiError) as caught:
        registry.create(resource, "n", body)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert message in caught.value.message
    assert caught.value.details
    assert caught.value.details["causes"][0]["field"] in caught.value.message
    assert body == before


@pytest.mark.parametrize(
    ("resource", "body", "message"),
    [
        ("deployments", workload(replicas="2"),
         "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ("deployments", workload(paused="no"), "DeploymentSpec.spec.paused of type bool"),
        ("pods", container(env=[{"name": "E", "value": 1}]),
         "cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type "
         "string"),
        ("pods", container(env={"E": "1"}),
         "cannot unmarshal object into Go struct field Container.spec.containers.env of type "
         "[]v1.EnvVar"),
        ("configmaps", {"metadata": {"name": "x"}, "data": ["a"]},
         "cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
        ("configmaps", {"metadata": {"name": "x", "labels": {"a": True}}},
         "cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string"),
        ("configmaps", {"metadata": {"name": "x"}, "immutable": "yes"}, "of type bool"),
        ("secrets", {"metadata": {"name": "x"}, "data": {"a": 1}}, "of type []uint8"),
        ("pods", {"metadata": {"name": "x"}, "spec": []}, "Pod.spec of type v1.PodSpec"),
        ("pods", container(securityContext={"runAsUser": "root"}),
         "SecurityContext.spec.containers.securityContext.runAsUser of type int64"),
    ],
)  # fmt: skip
def test_a_type_that_is_wrong_is_a_bad_request(
    registry: Registry, resource: str, body: dict[str, Any], message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        registry.create(resource, "n", body)
    assert caught.value.code == 400
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ""),
        ("cQ==", ""),
        ("cQ\n==\n", ""),
        ("not base64!", "illegal base64 data at input byte 3"),
        ("abc", "illegal base64 data at input byte 0"),
        ("abcde", "illegal base64 data at input byte 4"),
    ],
)
def test_base64_is_checked_as_the_server_checks_it(text: str, problem: str) -> None:
    assert shape.base64_problem(text) == problem


@pytest.mark.parametrize(
    ("fields", "filled"),
    [
        ({"image": "app"}, {"imagePullPolicy": "Always"}),
        ({"image": "app:latest"}, {"imagePullPolicy": "Always"}),
        ({"image": "host:5000/app"}, {"imagePullPolicy": "Always"}),
        ({"image": "host:5000/app:1"}, {"imagePullPolicy": "IfNotPresent"}),
        ({"image": "app@sha256:0"}, {"imagePullPolicy": "IfNotPresent"}),
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
        (
            {"readinessProbe": {"httpGet": {"port": 80}}},
            {
                "readinessProbe": {
                    "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                    "timeoutSeconds": 1,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                }
            },
        ),
        (
            {"resources": {"limits": {"cpu": "1"}}},
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}},
        ),
        ({"command": [], "env": None}, {}),
    ],
)
def test_a_container_is_completed(
    registry: Registry, fields: dict[str, Any], filled: dict[str, Any]
) -> None:
    stored = registry.create("pods", "n", container(**fields))["spec"]["containers"][0]
    assert {key: stored[key] for key in filled} == filled
    assert not {"command", "env"} & set(stored)


@pytest.mark.parametrize(
    ("volume", "filled"),
    [
        ({}, {"emptyDir": {}}),
        ({"configMap": {"name": "c"}}, {"configMap": {"name": "c", "defaultMode": 420}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 420,
                }
            },
        ),
    ],
)
def test_a_volume_is_completed(
    registry: Registry, volume: dict[str, Any], filled: dict[str, Any]
) -> None:
    spec = registry.create("pods", "n", pod(volumes=[{"name": "v", **volume}]))["spec"]
    assert spec["volumes"][0] == {"name": "v", **filled}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "0.5"}}, "Burstable"),
    ],
)
def test_a_pods_quality_of_service(
    registry: Registry, resources: dict[str, Any], quality: str
) -> None:
    created = registry.create("pods", "n", container(resources=resources))
    assert created["status"]["qosClass"] == quality


def test_a_pod_needs_its_service_account_unless_it_is_the_default_one(registry: Registry) -> None:
    with pytest.raises(ApiError, match='serviceaccount "robot" not found') as caught:
        registry.create("pods", "n", pod(serviceAccountName="robot"))
    assert caught.value.code == 403
    account = {"metadata": {"name": "robot"}, "imagePullSecrets": [{"name": "key"}]}
    registry.create("serviceaccounts", "n", account)
    created = registry.create("pods", "n", pod(serviceAccountName="robot"))
    assert created["spec"]["imagePullSecrets"] == [{"name": "key"}]


def test_a_pod_without_a_token_gets_no_volume(registry: Registry) -> None:
    created = registry.create("pods", "n", pod(automountServiceAccountToken=False))
    assert "volumes" not in created["spec"]


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        (lambda spec: spec["containers"][0].update(image="app:2"), True),
        (lambda spec: spec.update(activeDeadlineSeconds=5), True),
        (lambda spec: spec["tolerations"].append({"key": "more", "operator": "Exists"}), True),
        (lambda spec: spec["tolerations"].pop(), False),
        (lambda spec: spec["containers"][0].update(image="app:2", command=["x"]), False),
        (lambda spec: spec["containers"].append({"name": "b", "image": "b:1"}), False),
        (lambda spec: spec.update(terminationGracePeriodSeconds=1), False),
        (lambda spec: spec.update(nodeName="elsewhere"), False),
    ],
)
def test_a_running_pod_changes_only_images_deadline_and_tolerations(
    registry: Registry, change: Any, allowed: bool
) -> None:
    stored = registry.create("pods", "n", pod())
    body = copy.deepcopy(stored)
    change(body["spec"])
    if allowed:
        created = registry.update("pods", "n", "x", body)
        assert created["metadata"]["generation"] == 2
        return
    with pytest.raises(ApiError, match="Forbidden: pod updates may not") as caught:
        registry.update("pods", "n", "x", body)
    assert caught.value.code == 422


def test_a_service_keeps_its_address_when_a_put_leaves_it_out(registry: Registry) -> None:
    created = registry.create("services", "n", service(type="NodePort"))
    repeated = registry.update("services", "n", "x", service(type="NodePort"))
    assert repeated is created
    with pytest.raises(ApiError, match="may not change once set"):
        registry.update("services", "n", "x", service(clusterIP="10.96.0.99"))


def test_an_object_in_no_namespace_loses_the_one_that_it_states(registry: Registry) -> None:
    stated = {"metadata": {"name": "x", "namespace": "n"}, "value": 1}
    created = registry.create("priorityclasses", "", stated)
    assert "namespace" not in created["metadata"]
    assert registry.update("priorityclasses", "", "x", stated) is created
    with pytest.raises(ApiError, match="does not match the namespace sent on the request"):
        registry.create("configmaps", "n", {"metadata": {"name": "x", "namespace": "other"}})


def role_ref(name: str, kind: str = "Role") -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "roleRef": {"kind": kind, "name": name}}


def named(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, **fields}


CHANGED_ROLE = {"APIGroup": "rbac.authorization.k8s.io", "Kind": "Role", "Name": "q"}
FIXED = [
    ("rolebindings", role_ref("r"), role_ref("q"), f"{compact(CHANGED_ROLE)}: cannot change"),
    (
        "clusterrolebindings",
        role_ref("r", "ClusterRole"),
        role_ref("q", "ClusterRole"),
        "roleRef: Invalid value: {",
    ),
    ("storageclasses", named(provisioner="a"), named(provisioner="b"), "updates to provisioner"),
    ("priorityclasses", named(value=1), named(value=2), "may not be changed in an update"),
    ("runtimeclasses", named(handler="a"), named(handler="b"), 'Invalid value: "b": field is imm'),
    (
        "ingressclasses",
        named(spec={"controller": "e.io/a"}),
        named(spec={"controller": "e.io/b"}),
        "spec.controller: Invalid value",
    ),
    ("services", service(), service(type="NodePort", clusterIP="None"), "may not be set to 'None'"),
]


@pytest.mark.parametrize(("resource", "old", "new", "words"), FIXED)
def test_what_never_changes_is_refused(
    registry: Registry, resource: str, old: dict[str, Any], new: dict[str, Any], words: str
) -> None:
    space = "n" if registry.catalogue[resource].namespaced else ""
    registry.create(resource, space, old)
    registry.update(resource, space, "x", old)
    with pytest.raises(ApiError, match=re.escape(words)) as caught:
        registry.update(resource, space, "x", new, dry_run=True)
    assert caught.value.code == 422


def test_subscribers_see_writes_in_order_even_those_of_other_subscribers() -> None:
    registry = Registry()
    events: list[tuple[str, str]] = []

    def answer(event: str, resource: str, item: Any, _previous: Any) -> None:
        if resource == "namespaces" and event == "ADDED":
            registry.create("configmaps", item["metadata"]["name"], {"metadata": {"name": "m"}})

    registry.subscribe(answer)
    registry.subscribe(lambda event, resource, *_: events.append((event, resource)))
    registry.create("namespaces", "", {"metadata": {"name": "n"}})
    assert events == [("ADDED", "namespaces"), ("ADDED", "configmaps")]


def on_a_node(registry: Registry) -> None:
    bound = {"spec": {"nodeName": "node-1"}}
    registry.update("pods", "n", "x", bound, subresource="binding")


@pytest.mark.parametrize(
    ("bound", "phase", "grace", "remains", "seconds"),
    [
        (False, "Pending", None, False, 0),
        (True, "Running", None, True, 30),
        (True, "Running", 5, True, 5),
        (True, "Running", 0, False, 0),
        (True, "Succeeded", None, False, 0),
    ],
)
def test_a_pod_on_a_node_is_given_time_to_end(
    registry: Registry, bound: bool, phase: str, grace: int | None, remains: bool, seconds: int
) -> None:
    registry.create("pods", "n", pod())
    if bound:
        on_a_node(registry)
    status = {"status": {"phase": phase}}
    registry.update("pods", "n", "x", status, subresource="status")
    last = registry.delete("pods", "n", "x", grace_seconds=grace)
    assert last["metadata"]["deletionGracePeriodSeconds"] == seconds
    assert (registry.get("pods", "n", "x") is not None) is remains


@pytest.mark.parametrize(
    ("resource", "body", "propagation", "finalizers"),
    [
        ("deployments", workload(), "Foreground", ["foregroundDeletion"]),
        ("deployments", workload(), "Orphan", ["orphan"]),
        ("jobs", job(restartPolicy="Never"), None, ["orphan"]),
    ],
)
def test_a_propagation_policy_holds_the_object_for_the_collector(
    registry: Registry,
    resource: str,
    body: dict[str, Any],
    propagation: str | None,
    finalizers: list[str],
) -> None:
    registry.create(resource, "n", body)
    last = registry.delete(resource, "n", "x", propagation=propagation)
    assert last["metadata"]["finalizers"] == finalizers
    assert registry.get(resource, "n", "x") == last


# --- quotas ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "body", "name", "whole"),
    [
        ("pods", pod(), "pods", "pods"),
        ("pods", pod(), "count/pods", "pods"),
        ("secrets", {}, "secrets", "secrets"),
        ("deployments", workload(), "count/deployments.apps", "deployments.apps"),
    ],
)
def test_a_quota_limits_the_number_of_objects(
    registry: Registry, resource: str, body: dict[str, Any], name: str, whole: str
) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {name: "2"}}}
    registry.create("resourcequotas", "n", quota)
    for each in ("a", "b"):
        registry.create(resource, "n", {**body, "metadata": {"name": each}})
    with pytest.raises(ApiError) as raised:
        registry.create(resource, "n", {**body, "metadata": {"name": "c"}})
    assert (raised.value.code, raised.value.reason) == (403, "Forbidden")
    assert raised.value.message == (
        f'{whole} "c" is forbidden: exceeded quota: q, requested: {name}=1, used: {name}=2, '
        f"limited: {name}=2"
    )
    with pytest.raises(ApiError) as again:
        registry.create(resource, "n", {**body, "metadata": {"name": "a"}})
    assert again.value.code == 403  # the quota is asked before the store


def test_a_pod_that_has_ended_leaves_room_in_the_quota_of_pods(registry: Registry) -> None:
    hard = {"pods": "1", "count/pods": "2"}
    registry.create("resourcequotas", "n", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    for name in ("a", "b"):
        registry.create("pods", "n", pod() | {"metadata": {"name": name}})
        ended = {"metadata": {"name": name}, "status": {"phase": "Succeeded"}}
        registry.update("pods", "n", name, ended, subresource="status")
    with pytest.raises(ApiError, match="count/pods=2"):
        registry.create("pods", "n", pod() | {"metadata": {"name": "c"}})


BUDGET = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": SELECTOR}}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
OBSERVED = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1,
            "desiredHealthy": 1, "expectedPods": 1}  # fmt: skip


@pytest.mark.parametrize(
    ("pod_status", "budget_status", "code", "cause"),
    [
        (READY, OBSERVED | {"disruptionsAllowed": 1}, 201, ""),
        (READY, OBSERVED, 429, "needs 1 healthy pods and has 1 currently"),
        (READY, {}, 429, "still being processed"),
        (UNREADY, OBSERVED, 201, ""),
        (UNREADY, OBSERVED | {"currentHealthy": 0}, 429, "needs 1 healthy pods and has 0"),
        ({"phase": "Pending"}, OBSERVED, 201, ""),
        ({"phase": "Failed"}, OBSERVED, 201, ""),
    ],
)
def test_an_eviction_asks_the_disruption_budget(
    registry: Registry,
    pod_status: dict[str, Any],
    budget_status: dict[str, Any],
    code: int,
    cause: str,
) -> None:
    body = pod() | {"metadata": {"name": "x", "labels": {"app": "x"}}}
    registry.create("pods", "n", body)
    registry.update("pods", "n", "x", {"status": pod_status}, subresource="status")
    registry.create("poddisruptionbudgets", "n", BUDGET)
    registry.update(
        "poddisruptionbudgets", "n", "b", {"status": budget_status}, subresource="status"
    )
    if code == 201:
        assert evict(registry, "n", "x", {})["status"] == "Success"
        assert registry.get("pods", "n", "x") is None
        return
    with pytest.raises(ApiError) as caught:
        evict(registry, "n", "x", {})
    assert caught.value.code == code
    assert caught.value.details
    assert cause in caught.value.details["causes"][0]["message"]
    assert registry.get("pods", "n", "x") is not None


def test_two_budgets_for_one_pod_are_an_error(registry: Registry) -> None:
    body = pod() | {"metadata": {"name": "x", "labels": {"app": "x"}}}
    registry.create("pods", "n", body)
    registry.update("pods", "n", "x", {"status": READY}, subresource="status")
    for name in ("b", "c"):
        registry.create("poddisruptionbudgets", "n", BUDGET | {"metadata": {"name": name}})
    with pytest.raises(ApiError, match="more than one PodDisruptionBudget") as caught:
        evict(registry, "n", "x", {})
    assert caught.value.code == 500
