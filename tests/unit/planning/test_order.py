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

KINDS = (
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("", "ResourceQuota"),
    ("rbac.authorization.k8s.io", "Role"),
    ("", "PersistentVolumeClaim"),
    ("", "Secret"),
    ("", "Service"),
    ("example.org", "Thing"),
    ("apps", "Deployment"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
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
    lost = ["PersistentVolumeClaim", "CustomResourceDefinition", "Namespace"]
    others = [kind for _, kind in KINDS[::-1] if kind not in lost]
    assert ordered(*removed) == [[kind] for kind in (*others, *lost)]
    switched = step(("", "Service"), Action.SWITCH)
    assert ordered(*removed, switched, step(("apps", "Deployment")))[:2] == [
        ["Deployment"],
        ["Service"],
    ]


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
