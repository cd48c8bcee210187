# SPDX-License-Identifier: Apache-2.0
"""What a change of the package decides, from two packages and what is live; no cluster."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from container_update.model.errors import PlanError
from container_update.model.objects import INSTANCE_LABEL, Json, Manifest, ObjectKey, Source
from container_update.model.plan import Action, FieldChange, Plan, Reason
from container_update.planning.blue_green import BlueGreenPlanner
from container_update.planning.comparison.live_objects import NAME_ANNOTATION
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.release_labels import RELEASE_LABEL
from container_update.planning.rolling import RollingPlanner
from container_update.planning.steps.manifest import with_recorded_digest
from container_update.planning.strategy import Strategy
from container_update.workloads.registry import is_workload

INSTANCE = "i"


def deployment(name: str = "web", image: str = "a:1", **labels: str) -> Json:
    """A Deployment's manifest."""
    labels = labels or {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": labels["app"]}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    }


def service(name: str = "web", **selector: str) -> Json:
    """A Service's manifest."""
    spec = {"selector": selector or {"app": "web"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def config(name: str = "cm", **data: str) -> Json:
    """A ConfigMap's manifest."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def manifests(bodies: Sequence[Json]) -> dict[ObjectKey, Manifest]:
    """As a package has them."""
    found = [Manifest(ObjectKey.of(b, "n"), b, Source(f"{b['kind']}.yaml", 1)) for b in bodies]
    return {manifest.key: manifest for manifest in found}


def live(bodies: Sequence[Json], label: str | None = INSTANCE) -> dict[ObjectKey, Json]:
    """As the cluster has them, with a pod for each Deployment."""
    found: dict[ObjectKey, Json] = {}
    for number, body in enumerate(bodies):
        there = copy.deepcopy(body)
        metadata = {"namespace": "n", "uid": f"u{number}", "resourceVersion": str(number)}
        there["metadata"].update(metadata)
        if label:
            there["metadata"].setdefault("labels", {})[INSTANCE_LABEL] = label
        found[ObjectKey.of(there)] = there
        if body["kind"] == "Deployment":
            pod_labels = {**body["spec"]["template"]["metadata"]["labels"]}
            pod_labels["pod-template-hash"] = f"hash{number}"
            name = f"{body['metadata']['name']}-pod"
            pod: Json = {"namespace": "n", "name": name, "labels": pod_labels, "uid": f"p{number}"}
            pod["ownerReferences"] = [{"controller": True, "uid": f"rs{number}"}]
            found[ObjectKey("", "Pod", "n", name)] = {
                "apiVersion": "v1", "kind": "Pod", "metadata": pod, "status": {}
            }  # fmt: skip
    return found


def planner(
    kind: type[Strategy],
    old: Sequence[Json],
    new: Sequence[Json],
    there: dict[ObjectKey, Json] | None = None,
    **more: Any,
) -> Strategy:
    """What plans the way from one package to another."""
    vdus = {"VDU1": "web", "VDU2": "other"}
    packages = Packages(
        **{
            "old": manifests(old),
            "new": manifests(new),
            "old_vdus": vdus,
            "new_vdus": vdus,
            "vnfd_id": "new",
            "def_files": (),
            **more,
        }
    )
    return kind(packages, live(old) if there is None else there, "n", INSTANCE)


def plan(kind: type[Strategy], *packages: Any, **more: Any) -> Plan:
    """The plan from one package to another."""
    return planner(kind, *packages, **more).plan()


def told(planned: Plan) -> list[str]:
    """A plan's steps on a line each."""
    return [f"{step.action.name} {step.key.kind} {step.key.name}" for step in planned.steps]


def solo(image: str) -> Json:
    """A Pod of no workload."""
    spec = {"containers": [{"name": "main", "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "solo"}, "spec": spec}


OLD, NEW = deployment(), deployment(image="a:2")

ROLLING: list[tuple[str, list[Json], list[Json], list[str]]] = [
    ("nothing differs", [OLD, service(), config(a="b")], [OLD, service(), config(a="b")], []),
    ("an image", [OLD], [NEW], ["ROLL Deployment web"]),
    ("a Pod's image", [solo("a:1")], [solo("a:2")], ["RESTART_CONTAINERS Pod solo"]),
    ("replicas alone", [OLD], [{**OLD, "spec": {**OLD["spec"], "replicas": 9}}], [
        "ROLL Deployment web",  # the manifest's digest; no pod restarts for it
    ]),
    ("an object appears", [OLD], [OLD, service()], ["CREATE Service web"]),
    ("an object disappears", [OLD, service()], [OLD], ["DELETE Service web"]),
    ("configuration", [config(a="b")], [config(a="c")], ["REPLACE ConfigMap cm"]),
    ("a Service", [OLD, service()], [OLD, service(app="web", x="y")], ["SWITCH Service web"]),
    ("a Service's label alone", [OLD, service()], [
        NEW, {**service(), "metadata": {"name": "web", "labels": {"x": "y"}}}
    ], ["REPLACE Service web", "ROLL Deployment web"]),
    (
        "everything",
        [OLD, service(), config("gone"), deployment("other", app="other")],
        [NEW, service(app="web", x="y"), config("new", a="b")],
        [
            "CREATE ConfigMap new",
            "ROLL Deployment web",
            "SWITCH Service web",
            "DELETE Deployment other",
            "DELETE ConfigMap gone",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "steps"), [case[1:] for case in ROLLING], ids=[case[0] for case in ROLLING]
)
def test_a_rolling_update_does_this(old: list[Json], new: list[Json], steps: list[str]) -> None:
    assert told(plan(RollingPlanner, old, new)) == steps


BLUE_GREEN: list[tuple[str, list[Json], list[Json], list[str]]] = [
    ("nothing differs", [OLD, service()], [OLD, service()], []),
    (
        "one name, no label to tell them apart",
        [OLD, service()],
        [NEW, service()],
        [
            "HOLD Service web",
            "CREATE Deployment web-*",
            "SWITCH Service web",
            "DELETE Deployment web",
            "HAND_OVER Deployment web",
        ],
    ),
    (
        "one name, a label with the version",
        [deployment(app="web", v="1"), service(app="web", v="1")],
        [deployment(image="a:2", app="web", v="2"), service(app="web", v="2")],
        [
            "CREATE Deployment web-*",
            "SWITCH Service web",
            "DELETE Deployment web",
            "HAND_OVER Deployment web",
        ],
    ),
    (
        "no Service",
        [OLD],
        [NEW],
        ["CREATE Deployment web-*", "DELETE Deployment web", "HAND_OVER Deployment web"],
    ),
    (
        "one of two Deployments",
        [OLD, deployment("other", app="other")],
        [NEW, deployment("other", app="other")],
        ["CREATE Deployment web-*", "DELETE Deployment web", "HAND_OVER Deployment web"],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "steps"), [case[1:] for case in BLUE_GREEN], ids=[case[0] for case in BLUE_GREEN]
)
def test_a_blue_green_change_does_this(old: list[Json], new: list[Json], steps: list[str]) -> None:
    found = told(plan(BlueGreenPlanner, old, new))
    assert [
        "CREATE Deployment web-*" if line.startswith("CREATE Deployment web-") else line
        for line in found
    ] == steps


def created(planned: Plan) -> Json:
    """The new Deployment."""
    (step,) = [s for s in planned.steps if s.action is Action.CREATE and is_workload(s.key)]
    assert step.content is not None
    return step.content


def test_the_new_deployment_shares_no_pods_with_the_old_one() -> None:
    body = created(plan(BlueGreenPlanner, [OLD], [NEW]))
    label = body["spec"]["selector"]["matchLabels"][RELEASE_LABEL]
    assert body["spec"]["template"]["metadata"]["labels"] == {"app": "web", RELEASE_LABEL: label}
    assert body["metadata"]["name"] == f"web-{label}"
    assert body["metadata"]["annotations"][NAME_ANNOTATION] == "web"


def test_a_derived_name_is_cut_to_what_a_label_can_hold() -> None:
    name = "w" * 63
    body = created(plan(BlueGreenPlanner, [deployment(name)], [deployment(name, "a:2")]))
    assert len(body["metadata"]["name"]) == 63
    assert body["metadata"]["name"] != name


def test_a_name_of_the_new_package_is_taken_as_it_is() -> None:
    new = deployment("web-2", "a:2", app="web-2")
    planned = plan(
        BlueGreenPlanner,
        [OLD, service()],
        [new, service(app="web-2")],
        new_vdus={"VDU1": "web-2"},
    )
    assert told(planned) == [
        "CREATE Deployment web-2",
        "SWITCH Service web",
        "DELETE Deployment web",
    ]
    assert RELEASE_LABEL not in created(planned)["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize("kind", [RollingPlanner, BlueGreenPlanner])
@pytest.mark.parametrize(("number", "is_noted"), [(2, False), (9, True), (3, False)])
def test_another_number_of_replicas_is_noted(
    kind: type[Strategy], number: int, is_noted: bool
) -> None:
    """Of a VNF that was scaled to 3; its packages have 2 and another number."""
    there = live([OLD])
    there[ObjectKey("apps", "Deployment", "n", "web")]["spec"]["replicas"] = 3
    new = {**NEW, "spec": {**NEW["spec"], "replicas": number}}
    notes = [note.text for note in plan(kind, [OLD], [new], there).notes]
    told = [text for text in notes if "keeps its 3 replicas: 9 in" in text]
    assert bool(told) is is_noted


def test_as_many_replicas_as_there_are_now() -> None:
    there = live([OLD])
    there[ObjectKey("apps", "Deployment", "n", "web")]["spec"]["replicas"] = 0
    assert created(plan(BlueGreenPlanner, [OLD], [NEW], there))["spec"]["replicas"] == 0


def test_a_hold_is_kept_where_no_deployment_is_known_to_take_the_place_of_another_one() -> None:
    new = deployment("another", app="another")
    held = planner(BlueGreenPlanner, [OLD, service()], [new, service(app="another")])
    held.params = {"hold": True}
    assert told(held.plan())[:3] == [
        "CREATE Deployment another",
        "WAIT Hold before the switch",
        "SWITCH Service web",
    ]


def test_a_held_service_is_switched_from_where_it_is_held() -> None:
    planned = plan(BlueGreenPlanner, [OLD, service()], [NEW, service()])
    hold, switch = (s for s in planned.steps if s.key.kind == "Service")
    assert hold.content is not None
    assert switch.before is not None
    held = {"app": "web", "pod-template-hash": "hash0"}
    assert hold.content["spec"]["selector"] == held
    assert switch.before["spec"]["selector"] == held


def test_a_script_is_told_of_the_services_that_are_switched() -> None:
    made = planner(BlueGreenPlanner, [OLD, service()], [NEW, service()])
    (change,) = made._changes(made.plan().steps)
    assert [each["name"] for each in change.details["services"]] == ["web"]


def test_a_claim_takes_the_place_of_another_one_of_the_same_volume() -> None:
    def claiming(image: str, **claims: str) -> Json:
        body = deployment(image=image)
        body["spec"]["template"]["spec"]["volumes"] = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
            for volume, claim in claims.items()
        ]
        return body

    old = claiming("a:1", data="one", same="kept", gone="three")
    new = claiming("a:2", data="two", same="kept", more="four")
    made = planner(BlueGreenPlanner, [old], [new])
    assert made.claims(made.plan()) == {"one": "two"}


def test_a_service_that_stays_as_it_is_has_no_gap() -> None:
    packages = [OLD, service()], [NEW, service()]
    changed = plan(BlueGreenPlanner, *packages)
    (switch,) = (step for step in changed.steps if step.action is Action.SWITCH)
    (given,) = (step for step in changed.steps if step.action is Action.HAND_OVER)
    there = live([given.content, switch.content])
    planned = plan(RollingPlanner, packages[1], packages[1], there)
    assert (planned.steps, planned.notes) == ((), ())


def test_a_single_replica_is_counted_as_one() -> None:
    old, new = deployment(), deployment(image="a:2")
    for body in (old, new):
        body["spec"]["replicas"] = 1
    planned = plan(BlueGreenPlanner, [old], [new])
    created = next(step for step in planned.steps if step.action.name == "CREATE")
    assert str(created.reasons[0]).endswith(", with 1 replica")


def test_only_chosen_vdus_change_and_the_others_are_told_of() -> None:
    old = [OLD, deployment("other", app="other")]
    new = [NEW, deployment("other", "a:2", app="other"), deployment("third", app="third")]
    for kind in (RollingPlanner, BlueGreenPlanner):
        planned = plan(kind, old, new, chosen=frozenset({"VDU1"}))
        assert {s.key.name.partition("-")[0] for s in planned.steps} == {"web"}
        assert [note.key.name for note in planned.notes if "vdu_params" in note.text] == ["third"]


REFUSED: list[tuple[str, type[Strategy], list[Json], list[Json], dict[str, Any], str]] = [
    (
        "a selector that changes in place",
        RollingPlanner,
        [OLD],
        [deployment(app="else")],
        {},
        "a selector cannot change, give the workload another name or use Blue-Green",
    ),
    (
        "a Service that would select no new pod",
        BlueGreenPlanner,
        [OLD, service()],
        [deployment(image="a:2", app="web"), service(app="nobody")],
        {},
        "all traffic would be lost",
    ),
    (
        "a Service whose old pods are of two kinds",
        BlueGreenPlanner,
        [deployment(app="web", t="x"), deployment("other", app="other", t="x"), service(t="x")],
        [
            deployment(image="a:2", app="web", t="x"),
            deployment("other", "a:2", app="other", t="x"),
            service(t="x"),
        ],
        {},
        "give the pod templates a label",
    ),
    (
        "a Service shared with a Deployment that stays",
        BlueGreenPlanner,
        [deployment(app="web", t="x"), deployment("other", app="other", t="x"), service(t="x")],
        [
            deployment(image="a:2", app="web", t="x"),
            deployment("other", app="other", t="x"),
            service(t="x"),
        ],
        {},
        "which does not change",
    ),
]


@pytest.mark.parametrize(
    ("kind", "old", "new", "more", "says"),
    [case[1:] for case in REFUSED],
    ids=[case[0] for case in REFUSED],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    kind: type[Strategy], old: list[Json], new: list[Json], more: dict[str, Any], says: str
) -> None:
    with pytest.raises(PlanError, match=says):
        plan(kind, old, new, **more)


@pytest.mark.parametrize(
    ("label", "goes"), [(INSTANCE, True), (None, False)], ids=["this VNF's", "nobody's"]
)
def test_only_what_bears_this_vnf_s_label_is_deleted(label: str | None, goes: bool) -> None:
    planned = plan(RollingPlanner, [config()], [], live([config()], label))
    assert told(planned) == (["DELETE ConfigMap cm"] if goes else [])
    assert [each.key.name for each in planned.manifests] == ([] if goes else ["cm"]), "in force"


def test_another_vnf_s_object_is_refused() -> None:
    with pytest.raises(PlanError, match="another instance"):
        plan(RollingPlanner, [OLD], [NEW], live([OLD], "other"))


def test_the_groups_are_in_order_and_what_goes_goes_last() -> None:
    old, new = ROLLING[-1][1:3]
    planned = plan(RollingPlanner, old, new)
    numbers = [step.group for step in planned.steps]
    assert numbers == sorted(numbers)
    assert planned.steps[-1].is_removal


def test_an_object_that_was_made_of_another_manifest_since_is_written_again() -> None:
    """The last update left out what it does not touch; now all of the manifest takes effect."""
    there = live([with_recorded_digest(NEW, "of another manifest")])
    assert told(plan(RollingPlanner, [NEW], [NEW], there)) == ["ROLL Deployment web"]


@pytest.mark.parametrize("kind", [BlueGreenPlanner, RollingPlanner])
@pytest.mark.parametrize(("key", "is_told"), [("a", True), ("b", False)])
def test_an_object_of_an_unknown_kind_that_uses_a_changed_key_is_told(
    kind: type[Strategy], key: str, is_told: bool
) -> None:
    reference = {"configMapKeyRef": {"name": "cm", "key": key}}
    other = {**deployment(), "apiVersion": "example.org/v1", "kind": "Rollout"}
    (container,) = other["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "E", "valueFrom": reference}]
    planned = plan(kind, [config(a="1", b="1"), other], [config(a="2", b="1"), other])
    assert told(planned) == ["REPLACE ConfigMap cm"]
    expected = (
        "Rollout n/web: env E of container main uses key a of ConfigMap n/cm, which changed; the "
        "kind Rollout is not known: restart it yourself, or install a plugin for "
        "container_update.workloads"
    )
    assert [str(note) for note in planned.notes] == [expected] * is_told


def labelled(label: str, **data: str) -> Json:
    """A ConfigMap with a label."""
    body = config(**data)
    return {**body, "metadata": {**body["metadata"], "labels": {"l": label}}}


REASONS: list[tuple[str, Json, Json, list[str]]] = [
    (
        "a Service's port",
        service(), {**service(), "spec": {**service()["spec"], "type": "NodePort"}},
        ['spec.type: none -> "NodePort" (Service.yaml:1)'],
    ),
    (
        "an image, and a field beside it",
        OLD, {**NEW, "spec": {**NEW["spec"], "minReadySeconds": 5}},
        [
            "container main: image a:1 -> a:2",
            "spec.minReadySeconds: none -> 5 (Deployment.yaml:1)",
        ],
    ),
    (
        "a label of configuration",
        labelled("x", a="b"), labelled("y", a="b"),
        ['metadata.labels.l: "x" -> "y" (ConfigMap.yaml:1)'],
    ),
    (
        "a key and a label of configuration",
        labelled("x", a="b"), labelled("y", a="c"),
        ["key a: changed", 'metadata.labels.l: "x" -> "y" (ConfigMap.yaml:1)'],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "reasons"), [case[1:] for case in REASONS], ids=[case[0] for case in REASONS]
)
def test_a_step_says_of_every_field_what_it_was_and_what_it_becomes(
    old: Json, new: Json, reasons: list[str]
) -> None:
    (step,) = plan(RollingPlanner, [old], [new]).steps
    assert [
        str(reason.cause if is_of_a_field(reason) else reason) for reason in step.reasons
    ] == reasons
    sentences = str([reason.text for reason in step.reasons])
    assert "NodePort" not in sentences, "they are kept in journals and logs"


def is_of_a_field(reason: Reason) -> bool:
    """Whether it is about a field that differs."""
    return isinstance(reason.cause, FieldChange)


OTHER_SELECTOR = {
    "now, its new selector the new ones": ({"app": "web"}, {"tier": "new"}, True),
    "now, its new selector nobody": ({"app": "web"}, {"tier": "none"}, False),
    "never, its new selector the new ones": ({"app": "none"}, {"tier": "new"}, False),
    "now and then": ({"app": "web"}, {"app": "web"}, False),
}
"""Whom a Service selects; its selectors, and whether there is a gap."""


@pytest.mark.parametrize("case", OTHER_SELECTOR)
def test_a_rolling_update_notes_a_gap_where_selector_and_pods_change_together(case: str) -> None:
    now, then, has_gap = OTHER_SELECTOR[case]
    old = [deployment(app="web", tier="old"), service(**now)]
    new = [deployment(app="web", tier="new"), service(**then)]
    notes = [note.text for note in plan(RollingPlanner, old, new).notes]
    assert any("no endpoints" in text for text in notes) is has_gap
