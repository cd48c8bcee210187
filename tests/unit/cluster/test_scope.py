# SPDX-License-Identifier: Apache-2.0
"""What is kept of the live objects, and what the server is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from container_update.cluster.scope import Scope, scope_of
from container_update.model.objects import INSTANCE_LABEL, Collection, Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.comparison.live_objects import NAME_ANNOTATION
from container_update.planning.steps import ManifestStep

WEB = ObjectKey("apps", "Deployment", "n", "web")
STORE = ObjectKey("apps", "StatefulSet", "n", "store")
BARE = ObjectKey("", "Pod", "n", "bare")
SETTINGS = ObjectKey("", "ConfigMap", "n", "settings")
PODS, REPLICA_SETS = Collection("", "Pod", "n"), Collection("apps", "ReplicaSet", "n")
CLAIM = {"claimName": "data"}
DEPLOYMENTS = Collection("apps", "Deployment", "n")


def body(key: ObjectKey, uid: str, owner: Json | None = None, **metadata: Any) -> Json:
    """An object as the server sends it."""
    owners = [{**owner, "controller": True}] if owner else []
    return {
        "apiVersion": f"{key.group}/v1".lstrip("/"),
        "kind": key.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "uid": uid,
            "managedFields": [{"manager": "kubelet"}],
            "ownerReferences": owners,
            **metadata,
        },
    }


CONFIGURATION = {"configMap": {"name": "settings"}}
ENV = {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "b"}}}


def owner(kind: str, name: str, uid: str) -> Json:
    """A reference to a controller."""
    return {"kind": kind, "name": name, "uid": uid}


CONDITIONS = [
    {"type": "Ready", "status": "True"},
    {"type": "PodScheduled", "status": "True"},
    {"type": "Initialized", "status": "False", "message": "not yet"},
    {"type": "ContainersReady", "status": "True"},
]


def pod(of: Json | None, name: str = "p") -> Json:
    """A pod with more fields than are judged."""
    sent = body(ObjectKey("", "Pod", "n", name), f"uid-of-{name}", of, labels={"app": "web"})
    sent["spec"] = {
        "containers": [{"name": "main", "image": "web:1", "env": [{"name": "A"}, ENV]}],
        "volumes": [
            {"name": "a", "emptyDir": {}},
            {"name": "b", "persistentVolumeClaim": CLAIM},
            {"name": "c", "configMap": {"name": "settings"}},
            {"name": "d", "image": {"reference": "models:1"}},
            {"name": "kube-api-access-x", "projected": {"sources": [CONFIGURATION]}},
        ],
        "tolerations": [{"operator": "Exists"}],
    }
    sent["status"] = {"phase": "Running", "podIP": "10.0.0.1", "conditions": CONDITIONS}
    return sent


def replica_set(name: str, uid: str, of: Json) -> Json:
    """A ReplicaSet of a Deployment."""
    return body(ObjectKey("apps", "ReplicaSet", "n", name), uid, of)


OWN = replica_set("web-1f", "uid-rs", owner("Deployment", "web", "uid-web"))
FOREIGN = replica_set("web-0d", "uid-other-rs", owner("Deployment", "other", "uid-other"))


@pytest.mark.parametrize(
    ("sent", "is_kept"),
    [
        pytest.param(pod(owner("ReplicaSet", "web-1f", "uid-rs")), True, id="its workload's"),
        pytest.param(pod(owner("ReplicaSet", "web-0d", "uid-other-rs")), False, id="another's"),
        pytest.param(pod(None, "bare"), True, id="named"),
        pytest.param(pod(None), False, id="nobody's"),
        pytest.param(pod(owner("ReplicaSet", "web-2e", "new")), True, id="of a new ReplicaSet"),
        pytest.param(pod(owner("ReplicaSet", "odd", "new")), False, id="of an unknown ReplicaSet"),
        pytest.param(pod(owner("Job", "web-1f", "new")), False, id="of an unknown Job"),
        pytest.param(OWN, True, id="ReplicaSet"),
        pytest.param(FOREIGN, False, id="another's ReplicaSet"),
        pytest.param(body(SETTINGS, "c"), True, id="named ConfigMap"),
        pytest.param(
            body(ObjectKey("", "ConfigMap", "n", "other"), "d"), False, id="other ConfigMap"
        ),
        pytest.param(
            body(
                ObjectKey("apps", "Deployment", "n", "web-b"),
                "b",
                annotations={NAME_ANNOTATION: "web"},
            ),
            True,
            id="in the place of a named one",
        ),
    ],
)
def test_what_an_operation_is_about_is_kept(sent: Json, is_kept: bool) -> None:
    scope = Scope([WEB, BARE, SETTINGS])
    scope.keep(body(WEB, "uid-web"))
    scope.keep(body(ObjectKey("apps", "Deployment", "n", "other"), "uid-other"))
    scope.keep({**OWN, "metadata": {**OWN["metadata"]}})
    scope.keep({**FOREIGN, "metadata": {**FOREIGN["metadata"]}})
    kept = scope.keep(sent)
    assert (kept is not None) is is_kept
    is_described = sent["kind"] in ("ConfigMap", "Deployment")
    assert kept is None or ("managedFields" in kept["metadata"]) is is_described


def test_who_wrote_the_status_is_not_kept_and_the_same_fields_are_kept_once() -> None:
    scope = Scope([WEB, STORE])
    of_status = {"manager": "controller", "subresource": "status", "fieldsV1": {"f:status": {}}}
    kept = [
        scope.keep(
            body(
                key,
                key.name,
                managedFields=[
                    {"manager": key.name, "fieldsV1": {"f:spec": {"f:a": {}}}},
                    of_status,
                ],
            )
        )
        for key in (WEB, STORE)
    ]
    (web,), (store,) = (sent["metadata"]["managedFields"] for sent in kept if sent)
    assert (web["manager"], store["manager"]) == (WEB.name, STORE.name)
    assert web["fieldsV1"] is store["fieldsV1"]


def test_a_replica_set_by_hand_that_a_deployment_has_adopted_counts_by_its_uid() -> None:
    scope = Scope([WEB])
    scope.keep(body(WEB, "uid-web"))
    scope.keep(replica_set("odd", "uid-odd", owner("Deployment", "web", "uid-web")))
    assert scope.keep(pod(owner("ReplicaSet", "odd", "uid-odd"))) is not None


def test_of_a_pod_with_a_controller_what_is_judged_is_kept_and_a_named_one_as_it_is() -> None:
    scope = Scope([STORE, BARE])
    scope.keep(body(STORE, "uid-store"))
    owned = scope.keep(pod(owner("StatefulSet", "store", "uid-store")))
    assert owned is not None
    assert owned["metadata"]["labels"] == {"app": "web"}
    assert owned["spec"] == {
        "containers": [{"name": "main", "image": "web:1", "env": [ENV]}],
        "volumes": [
            {"name": "b", "persistentVolumeClaim": CLAIM},
            {"name": "c", "configMap": {"name": "settings"}},
            {"name": "d", "image": {"reference": "models:1"}},
        ],
    }
    unmet_or_ready = [CONDITIONS[0], *CONDITIONS[2:]]
    status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": unmet_or_ready}
    assert owned["status"] == status
    named = scope.keep(pod(None, "bare"))
    assert named is not None
    assert named["spec"] == pod(None, "bare")["spec"]


SERVICE = ObjectKey("", "Service", "n", "front")
SLICE = ObjectKey("discovery.k8s.io", "EndpointSlice", "n", "front-x")
OTHER = ObjectKey("apps", "Deployment", "n", "other")


def service(**selector: str) -> Json:
    """A Service that sends its traffic to the pods with these labels."""
    return {**body(SERVICE, "uid-service"), "spec": {"selector": selector}}


def of_others(**labels: str) -> Json:
    """A Deployment of others whose pods have these labels."""
    template = {"metadata": {"labels": labels}, "spec": {}}
    return {**body(OTHER, "uid-other"), "spec": {"template": template}}


@pytest.mark.parametrize(
    ("sent", "is_kept"),
    [
        pytest.param(pod(None), True, id="a pod that it sends traffic to"),
        pytest.param(pod(owner("ReplicaSet", "odd", "uid-odd")), True, id="one of a workload"),
        pytest.param(of_others(app="web", tier="x"), True, id="a workload that it sends it to"),
        pytest.param(of_others(app="odd"), False, id="another workload"),
        pytest.param(of_others(), False, id="a workload whose pods have no labels"),
        pytest.param(
            body(SLICE, "s", labels={"kubernetes.io/service-name": "front"}), True, id="its slice"
        ),
        pytest.param(
            body(SLICE, "s", labels={"kubernetes.io/service-name": "odd"}), False, id="another's"
        ),
        pytest.param(body(SLICE, "s"), False, id="a slice of nobody"),
    ],
)
@pytest.mark.parametrize("is_live", [True, False])
def test_what_gets_traffic_of_a_service_is_kept(sent: Json, is_kept: bool, is_live: bool) -> None:
    scope = Scope()
    scope.include([WEB, SERVICE], [] if is_live else [(SERVICE, service(app="web"))])
    if is_live:
        scope.keep(service(app="web"))
    kept = scope.keep({**sent, "metadata": {**sent["metadata"]}})
    assert (kept is not None) is is_kept
    assert kept is None or kept["kind"] != "Pod" or "tolerations" not in kept["spec"]


def test_a_service_without_a_selector_sends_no_traffic_to_anything() -> None:
    scope = Scope([SERVICE])
    scope.keep(service())
    assert scope.keep(pod(None)) is None
    assert scope.keep(of_others()) is None


def test_what_is_included_later_is_kept_with_what_a_controller_of_it_creates_at_once() -> None:
    scope = Scope([WEB])
    scope.include([replace(WEB, name="web-b")])
    created = replica_set("web-b-1f", "uid-b-rs", owner("Deployment", "web-b", "uid-b"))
    assert scope.keep(created) is not None
    assert scope.keep(pod(owner("ReplicaSet", "web-b-1f", "uid-b-rs"))) is not None


def test_services_are_read_first_and_controllers_before_what_they_control() -> None:
    services = Collection("", "Service", "n")
    rounds = Scope([WEB]).rounds({PODS, REPLICA_SETS, DEPLOYMENTS, services})
    assert rounds == [[services], [DEPLOYMENTS], [REPLICA_SETS], [PODS]]


def test_where_a_manifest_says_what_is_selected_all_but_services_is_read_at_once() -> None:
    services, scope = Collection("", "Service", "n"), Scope([WEB, BARE])
    scope.include((), [workload(WEB, app="web")])
    rounds = scope.rounds({PODS, REPLICA_SETS, DEPLOYMENTS, services})
    assert rounds == [[services], [PODS, DEPLOYMENTS, REPLICA_SETS]]


def test_what_was_dropped_before_its_controller_was_known_is_missed_until_read_again() -> None:
    scope = Scope([WEB])
    assert scope.keep(replica_set("shop-1f", "rs", owner("Deployment", "shop", "uid-b"))) is None
    assert not scope.has_missed
    annotations = {NAME_ANNOTATION: "web"}
    stand_in = body(replace(WEB, name="shop"), "uid-b", annotations=annotations)
    assert scope.keep(stand_in) is not None
    assert scope.has_missed
    scope.forget_missed()
    assert not scope.has_missed


def workload(key: ObjectKey, **labels: str) -> tuple[ObjectKey, Json]:
    """A live workload that selects its pods by these labels."""
    return key, {**body(key, "u"), "spec": {"selector": {"matchLabels": labels}}}


@pytest.mark.parametrize(
    ("keys", "live", "selector"),
    [
        pytest.param(
            [WEB, STORE],
            [workload(WEB, app="web", a="1"), workload(STORE, app="store")],
            "app in (store,web)",
            id="a label that all select by",
        ),
        pytest.param(
            [WEB], [workload(WEB, app="web", tier="x")], "app in (web),tier in (x)", id="all labels"
        ),
        pytest.param(
            [WEB, STORE], [workload(WEB, app="web"), workload(STORE, b="1")], "", id="no common one"
        ),
        pytest.param([WEB, STORE], [workload(WEB, app="web")], "", id="one is not there"),
        pytest.param([WEB, BARE], [workload(WEB, app="web")], "", id="a pod that is named"),
        pytest.param(
            [WEB, SETTINGS], [workload(WEB, app="web")], "app in (web)", id="beside configuration"
        ),
        pytest.param([WEB], [workload(WEB, app="w" * 2001)], "", id="too long for a URL"),
        pytest.param(
            [WEB], [workload(WEB, app="web", a="")], "app in (web)", id="a label without a value"
        ),
        pytest.param([SETTINGS], [], "", id="no workload"),
    ],
)
def test_the_server_is_asked_for_the_pods_of_the_workloads_where_labels_can_say_so(
    keys: list[ObjectKey], live: list[tuple[ObjectKey, Json]], selector: str
) -> None:
    assert Scope(keys).select(PODS, dict(live))[0] == selector
    assert Scope(keys).select(DEPLOYMENTS, dict(live))[0] == ""


JOB = ObjectKey("batch", "Job", "n", "job")


@pytest.mark.parametrize(
    ("manifests", "live", "selector"),
    [
        pytest.param([(WEB, {"app": "web"})], [], "app in (web)", id="not there yet"),
        pytest.param(
            [(WEB, {"app": "web"}), (WEB, {"app": "web-2"})],
            [workload(WEB, app="old")],
            "app in (old,web,web-2)",
            id="there, and in both packages",
        ),
        pytest.param(
            [(WEB, {"app": "web"}), (SERVICE, {"app": "front"})],
            [],
            "app in (front,web)",
            id="a Service too",
        ),
        pytest.param(
            [(WEB, {"app": "web"}), (SERVICE, {"tier": "x"})], [], "", id="other labels of it"
        ),
        pytest.param([(WEB, {"app": "web"}), (JOB, None)], [], "", id="a Job selects by its UID"),
        pytest.param([(WEB, {"app": "web"}), (SETTINGS, None)], [], "app in (web)", id="no pods"),
        pytest.param(
            [(WEB, {"app": "web"})],
            [
                (
                    replace(WEB, name="web-b"),
                    {
                        **body(WEB, "b", annotations={NAME_ANNOTATION: "web"}),
                        "spec": {"selector": {"matchLabels": {"app": "b"}}},
                    },
                )
            ],
            "app in (b,web)",
            id="one that stands in for it",
        ),
    ],
)
def test_the_server_is_asked_for_the_pods_that_the_manifests_will_have_too(
    manifests: list[tuple[ObjectKey, Any]], live: list[tuple[ObjectKey, Json]], selector: str
) -> None:
    scope = Scope()
    for key, labels in manifests:
        selects = labels if key == SERVICE else {"matchLabels": labels} if labels else None
        scope.include([key], [(key, {"spec": {"selector": selects}})])
    assert scope.select(PODS, dict(live))[0] == selector


INSTANCE = {INSTANCE_LABEL: "vnf-1"}


@pytest.mark.parametrize(
    ("sent", "is_kept"),
    [
        pytest.param(body(SETTINGS, "c", labels=INSTANCE), True, id="one with its label"),
        pytest.param(body(SETTINGS, "c", labels={INSTANCE_LABEL: "vnf-2"}), False, id="another's"),
        pytest.param(body(SETTINGS, "c"), False, id="nobody's"),
        pytest.param(pod(owner("ReplicaSet", "web-1f", "uid-rs")), True, id="a workload's pod"),
        pytest.param(pod(owner("ReplicaSet", "other-1f", "x")), False, id="another workload's"),
        pytest.param(pod(None), False, id="a pod without the label"),
        pytest.param(body(BARE, "b", labels=INSTANCE), True, id="a pod with the label"),
    ],
)
def test_what_has_the_label_of_an_instance_is_kept_with_what_it_controls(
    sent: Json, is_kept: bool
) -> None:
    scope = Scope(instance_id="vnf-1")
    scope.keep(body(WEB, "uid-web", labels=INSTANCE))
    scope.keep(replica_set("web-1f", "uid-rs", owner("Deployment", "web", "uid-web")))
    assert (scope.keep(sent) is not None) is is_kept


LABEL = f"{INSTANCE_LABEL}=vnf-1"


def labelled(key: ObjectKey, **labels: str) -> tuple[ObjectKey, Json]:
    """A live workload with the label of the instance."""
    found = body(key, "u", labels=INSTANCE)
    return key, {**found, "spec": {"selector": {"matchLabels": labels}} if labels else {}}


@pytest.mark.parametrize(
    ("live", "parts"),
    [
        pytest.param([labelled(WEB, app="web")], ["app in (web)", LABEL], id="a workload"),
        pytest.param(
            [labelled(JOB, uid="1"), labelled(STORE, app="store")],
            ["app in (store)", "uid in (1)", LABEL],
            id="a Job too",
        ),
        pytest.param(
            [labelled(WEB, app="web"), labelled(replace(JOB, kind="CronJob"))],
            ["app in (web)", LABEL],
            id="a CronJob, which has no pods",
        ),
        pytest.param([labelled(BARE)], [LABEL], id="a pod"),
        pytest.param([labelled(WEB)], [], id="a workload without labels to select by"),
    ],
)
def test_the_server_is_asked_for_what_has_the_label_of_an_instance_and_for_its_pods(
    live: list[tuple[ObjectKey, Json]], parts: list[str]
) -> None:
    scope = Scope(instance_id="vnf-1")
    assert scope.select(DEPLOYMENTS, dict(live))[0] == LABEL
    assert scope.select(PODS, dict(live))[0] == ""
    assert [each.labels for each in scope.select(PODS, dict(live))[1]] == parts


def test_an_id_that_no_label_can_have_is_not_sent_to_the_server() -> None:
    assert Scope(instance_id="vnf 1").select(DEPLOYMENTS, {})[0] == ""


def test_an_operation_is_about_what_its_steps_change_and_all_that_gets_traffic_then() -> None:
    before, after = service(app="web"), service(app="web-2")
    steps = [
        ManifestStep(SERVICE, Action.SWITCH, before, after),
        ManifestStep(WEB, Action.CREATE, None, workload(WEB, app="web-2")[1]),
    ]
    scope = scope_of(steps)
    kept = {"web": True, "web-2": True, "odd": False}
    for app, is_kept in kept.items():
        sent = {**pod(None), "metadata": {**pod(None)["metadata"], "labels": {"app": app}}}
        assert (scope.keep(sent) is not None) is is_kept
    assert scope.select(PODS, {})[0] == "app in (web,web-2)"


@pytest.mark.parametrize(
    ("keys", "live", "parts"),
    [
        pytest.param(
            [WEB, STORE, BARE],
            [workload(WEB, app="web"), workload(STORE, app="store")],
            ["app in (store,web)", "metadata.name=bare"],
            id="a label that all select by, and a pod",
        ),
        pytest.param(
            [WEB, STORE],
            [workload(WEB, app="web"), workload(STORE, b="1")],
            ["app in (web)", "b in (1)"],
            id="no common label",
        ),
        pytest.param([BARE], [], ["metadata.name=bare"], id="a pod alone"),
        pytest.param([WEB], [workload(WEB, app="web")], [], id="a selector says it already"),
        pytest.param([WEB, BARE], [], [], id="a workload is not there"),
        pytest.param(
            [WEB, STORE, BARE],
            [workload(WEB, app="web"), workload(STORE)],
            [],
            id="a workload without labels to select by",
        ),
        pytest.param(
            [replace(BARE, name=f"p{number}") for number in range(17)], [], [], id="too many"
        ),
        pytest.param([SETTINGS], [], [], id="no workload"),
    ],
)
def test_a_crowded_collection_is_read_in_parts_where_they_hold_all_that_is_kept(
    keys: list[ObjectKey], live: list[tuple[ObjectKey, Json]], parts: list[str]
) -> None:
    found = Scope(keys).select(PODS, dict(live))[1]
    assert [each.labels + each.fields for each in found] == parts
    assert not Scope(keys).select(DEPLOYMENTS, dict(live))[1]
