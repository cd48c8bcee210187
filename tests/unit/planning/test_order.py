# SPDX-License-Identifier: Apache-2.0
"""The order of the steps of a plan: by kind, and in waves."""

from __future__ import annotations

import pytest

from container_update.model.errors import PackageError
from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.model.plan import Action
from container_update.planning import order
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep
from container_update.planning.stored_writes import needed_first

RBAC, STORAGE = "rbac.authorization.k8s.io", "storage.k8s.io"
ADMISSION, NETWORKING = "admissionregistration.k8s.io", "networking.k8s.io"

KINDS = (
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("", "ResourceQuota"),
    (RBAC, "Role"),
    (RBAC, "RoleBinding"),
    (STORAGE, "StorageClass"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Secret"),
    ("", "Service"),
    ("example.org", "Thing"),
    ("apps", "Deployment"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("apiregistration.k8s.io", "APIService"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
)
"""One of each rank, first to last."""


def body(kind: tuple[str, str], wave: str = "") -> Json:
    group, name = kind
    annotations = {order.ORDER_ANNOTATION: wave} if wave else {}
    metadata = {"name": name.lower(), "namespace": "ns", "annotations": annotations}
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": name, "metadata": metadata}


def step(kind: tuple[str, str], action: Action = Action.CREATE, wave: str = "") -> ObjectStep:
    content = body(kind, wave)
    key, before = ObjectKey.of(content), None if action is Action.CREATE else content
    if kind == ("", "Secret") and action is not Action.DELETE:
        return ConfigStep(key, action, before, content)
    return ManifestStep(key, action, before, None if action is Action.DELETE else content)


def ordered(*steps: ObjectStep) -> list[list[str]]:
    return [[each.key.kind for each in group] for group in order.groups(steps)]


def test_what_others_need_comes_first_and_what_judges_them_last() -> None:
    assert ordered(*map(step, reversed(KINDS))) == [[kind] for _, kind in KINDS]


def test_to_remove_it_is_the_other_way_round_after_all_else() -> None:
    removed = [step(kind, Action.DELETE) for kind in KINDS]
    lost = [
        *("PersistentVolumeClaim", "PersistentVolume", "StorageClass"),
        *("CustomResourceDefinition", "Namespace"),
    ]
    others = [kind for _, kind in KINDS[::-1] if kind not in lost]
    assert ordered(*removed) == [[kind] for kind in (*others, *lost)]
    switched = step(("", "Service"), Action.SWITCH)
    assert ordered(*removed, switched, step(("apps", "Deployment")))[:2] == [
        ["Deployment"],
        ["Service"],
    ]


NAMED_BY: list[tuple[tuple[str, str], tuple[str, str]]] = [
    (("", "ServiceAccount"), (RBAC, "RoleBinding")),
    ((RBAC, "Role"), (RBAC, "RoleBinding")),
    ((RBAC, "ClusterRole"), (RBAC, "RoleBinding")),
    ((RBAC, "ClusterRole"), (RBAC, "ClusterRoleBinding")),
    (("", "ServiceAccount"), ("", "Secret")),  # of its token
    (("", "ServiceAccount"), ("", "Pod")),
    (("scheduling.k8s.io", "PriorityClass"), ("", "Pod")),
    (("node.k8s.io", "RuntimeClass"), ("apps", "Deployment")),
    (("resource.k8s.io", "DeviceClass"), ("resource.k8s.io", "ResourceClaim")),
    ((STORAGE, "StorageClass"), ("", "PersistentVolumeClaim")),
    ((STORAGE, "StorageClass"), ("", "PersistentVolume")),
    ((STORAGE, "CSIDriver"), ("", "PersistentVolume")),
    ((STORAGE, "VolumeAttributesClass"), ("", "PersistentVolumeClaim")),
    (("", "PersistentVolume"), ("", "PersistentVolumeClaim")),
    ((NETWORKING, "IngressClass"), (NETWORKING, "Ingress")),
    ((NETWORKING, "ServiceCIDR"), ("", "Service")),
    (("", "Service"), (NETWORKING, "Ingress")),
    (("", "Service"), ("discovery.k8s.io", "EndpointSlice")),
    (
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ),
    (("apps", "StatefulSet"), ("autoscaling", "HorizontalPodAutoscaler")),
    (("apps", "Deployment"), ("apiregistration.k8s.io", "APIService")),
    (("", "Service"), ("apiregistration.k8s.io", "APIService")),
    (("apiregistration.k8s.io", "APIService"), (ADMISSION, "MutatingWebhookConfiguration")),
    (("apps", "Deployment"), (ADMISSION, "MutatingWebhookConfiguration")),
    (
        (ADMISSION, "ValidatingAdmissionPolicy"),
        (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    ),
    ((ADMISSION, "MutatingAdmissionPolicy"), (ADMISSION, "MutatingAdmissionPolicyBinding")),
]
"""What an object names, and a kind of objects that name it."""


@pytest.mark.parametrize(("named", "naming"), NAMED_BY, ids=[f"{n[1]}-{o[1]}" for n, o in NAMED_BY])
def test_an_object_comes_after_those_that_it_names_and_goes_before_them(
    named: tuple[str, str], naming: tuple[str, str]
) -> None:
    assert ordered(step(naming), step(named)) == [[named[1]], [naming[1]]]
    removals = step(named, Action.DELETE), step(naming, Action.DELETE)
    assert ordered(*removals) == [[naming[1]], [named[1]]]


def crd(*, service: str = "converter") -> Json:
    """A definition of Things, which a webhook converts."""
    address = {"namespace": "ns", "name": service}
    webhook = {"clientConfig": {"service": address}, "conversionReviewVersions": ["v1"]}
    spec = {
        "group": "example.org",
        "names": {"kind": "Thing"},
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    return {**body(("apiextensions.k8s.io", "CustomResourceDefinition")), "spec": spec}


@pytest.mark.parametrize(
    ("service", "first"),
    [("converter", "Deployment"), ("of-another", "Thing")],
    ids=["the VNF's", "another one's"],
)
def test_what_a_webhook_of_the_vnf_converts_comes_after_its_pods(service: str, first: str) -> None:
    steps = [step(("example.org", "Thing")), step(("apps", "Deployment"))]
    among = {
        ObjectKey.of(crd()): crd(service=service),
        ObjectKey("", "Service", "ns", "converter"): body(("", "Service")),
    }
    names = [[each.key.kind for each in group] for group in order.groups(steps, among)]
    assert names[0] == [first]


def finalized(kind: tuple[str, str], finalizer: str = "example.org/cleanup") -> ObjectStep:
    content = body(kind)
    metadata = {**content["metadata"], "finalizers": [finalizer]}
    key = ObjectKey.of(content)
    return ManifestStep(key, Action.DELETE, {**content, "metadata": metadata})


@pytest.mark.parametrize(
    ("removal", "among", "first"),
    [
        (finalized(("example.org", "Thing")), {}, "Thing"),
        (finalized((NETWORKING, "Ingress")), {}, "Ingress"),
        (step(("example.org", "Thing"), Action.DELETE), {}, "Deployment"),
        (step(("example.org", "Thing"), Action.DELETE), {ObjectKey.of(crd()): crd()}, "Thing"),
        (finalized(("", "Service")), {}, "Service"),
        (finalized(("", "ConfigMap")), {}, "ConfigMap"),
        (finalized(("", "Service"), "service.kubernetes.io/cleanup"), {}, "Deployment"),
        (finalized(("", "PersistentVolumeClaim")), {}, "Deployment"),
        (finalized((RBAC, "ClusterRole")), {}, "Deployment"),
    ],
    ids=[
        "a custom resource that its controller has to let go",
        "an Ingress that its controller has to let go",
        "a custom resource",
        "a custom resource of a kind that the VNF defines",
        "a Service that a controller has to let go",
        "a ConfigMap that a controller has to let go",
        "a Service that the cloud has to let go",
        "a claim, which the server holds while pods use it",
        "a role, which the controller needs",
    ],
)
def test_what_a_controller_has_to_let_go_goes_before_the_workloads(
    removal: ObjectStep, among: dict[ObjectKey, Json], first: str
) -> None:
    steps = [step(("apps", "Deployment"), Action.DELETE), removal]
    (gone, *_), *_ = order.groups(steps, among)
    assert gone.key.kind == first


def test_steps_of_one_rank_are_one_group() -> None:
    assert ordered(step(("", "ConfigMap"), Action.REPLACE), step(("", "Secret"))) == [
        ["ConfigMap", "Secret"]
    ]


def test_a_wave_is_done_before_the_next_begins() -> None:
    deployment, late, early = ("apps", "Deployment"), "1", "-1"
    steps = [
        step(("", "ConfigMap"), wave=late),
        step(deployment),
        step(("", "Service"), wave=early),
        step(deployment, wave=late),
    ]
    assert ordered(*steps) == [["Service"], ["Deployment"], ["ConfigMap"], ["Deployment"]]


def test_manifests_of_one_kind_keep_their_order() -> None:
    manifests = [
        Manifest(
            ObjectKey("apps", "Deployment", "ns", name),
            body(("apps", "Deployment")),
            Source(name, 1),
        )
        for name in ("b", "a")
    ]
    secret = Manifest(ObjectKey("", "Secret", "ns", "s"), body(("", "Secret")), Source("s", 1))
    assert [each.key.name for each in order.in_order([*manifests, secret])] == ["s", "b", "a"]


@pytest.mark.parametrize("wave", ["first", "1.5", "", "--1"])
def test_a_wave_that_is_no_number_is_the_packages_error(wave: str) -> None:
    manifest = body(("apps", "Deployment"))
    manifest["metadata"]["annotations"] = {order.ORDER_ANNOTATION: wave}
    with pytest.raises(PackageError, match="expected a whole number in the annotation"):
        order.wave(manifest)


@pytest.mark.parametrize(
    ("kind", "needs_it"), [(("", "Pod"), True), (("example.org", "Thing"), False)]
)
def test_only_of_a_pod_it_is_known_that_its_account_comes_first(
    kind: tuple[str, str], needs_it: bool
) -> None:
    account = step(("", "ServiceAccount"))
    content = {**body(kind), "spec": {"serviceAccountName": account.key.name}}
    using = ManifestStep(ObjectKey.of(content), Action.CREATE, None, content)
    assert needed_first(using, [account, using]) == (account.key if needs_it else None)
