# SPDX-License-Identifier: Apache-2.0
"""Plans and outcomes as people and programs read them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from container_update.model.objects import Json, ObjectKey, Source
from container_update.model.outcome import Outcome, StepResult, StepState, Vnfc
from container_update.model.plan import Action, FieldChange, KeyChange, Note, Plan, Reason, Step
from container_update.planning import plan_json
from container_update.planning.steps import ConfigStep, ManifestStep, RestartStep
from container_update.reports import (
    json_report,
    markdown_report,
    outcome_report,
    plan_report,
)
from container_update.reports.lines import text_of

CM = ObjectKey("", "ConfigMap", "ns", "cm")
SECRET = ObjectKey("", "Secret", "ns", "s")
DEPLOYMENT = ObjectKey("apps", "Deployment", "ns", "d")
POD = ObjectKey("", "Pod", "ns", "p")

CANARY = "Y2FuYXJ5"
BODY = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": CANARY}}
AFTER: Json = {"kind": "ConfigMap", "metadata": {"name": "cm"}}
BEFORE = {**AFTER, "data": {"a": "1"}}
REPLACE = ConfigStep(
    CM,
    Action.REPLACE,
    BEFORE,
    AFTER,
    removed=("a",),
    reasons=(Reason("key a: removed", KeyChange("a", "removed")),),
)
RECREATE = ConfigStep(SECRET, Action.RECREATE, BODY, BODY, reasons=(Reason("is immutable"),))
CREATE = ConfigStep(ObjectKey("", "Secret", "ns", "n"), Action.CREATE, None, BODY)
GREETING = FieldChange("spec.x[E].value", '"<hello>"', '"hi"', Source("f", 23))
REPLICAS = FieldChange("spec.replicas", "1", None, Source("f", 6))
IGNORED = Note(DEPLOYMENT, "spec.replicas differs and does not take effect (f:6)", REPLICAS)
ROLL = RestartStep(
    DEPLOYMENT, Action.ROLL, {}, images={"c": "app:2"}, digest="d",
    reasons=(
        Reason("container c: image app:1 -> app:2"),
        Reason("spec.x[E].value differs (f:23)", GREETING),
    ),
)  # fmt: skip
RESTART = RestartStep(POD, Action.RESTART_CONTAINERS, {}, reasons=(Reason("container c"),))
PLAN = Plan(
    namespace="ns",
    instance_id="i-1",
    steps=(REPLACE, RECREATE, CREATE, ROLL, RESTART),
    unchanged=(ObjectKey("", "Service", "ns", "svc"),),
    ignored=(IGNORED, IGNORED),
    notes=(Note(POD, "drift: x"), Note(CM, "left alone"), Note(POD, "drift: x")),
    def_files=("f", "g"),
)  # fmt: skip


def test_a_plan_reads_from_configuration_to_restarts_to_what_is_left_alone() -> None:
    assert text_of(plan_report.plan_lines(PLAN)).splitlines() == [
        "Configuration:",
        "  ~ ConfigMap ns/cm: replace",
        "      key a: removed",
        "        @@ -1 +0,0 @@",
        "        -1",
        "  ± Secret ns/s: recreate",
        "      is immutable",
        "  + Secret ns/n: create",
        "      key k: new",
        "Restarts:",
        "  ↻ Deployment ns/d: roll",
        "      because container c: image app:1 -> app:2",
        '      because spec.x[E].value: "<hello>" -> "hi" (f:23)',
        "  ↻ Pod ns/p: restart in place",
        "      because container c",
        "Not applied (a change of the package would apply it):",
        "    Deployment ns/d: spec.replicas: 1 -> none (f:6 of the old package)",
        "Notes:",
        "    Pod ns/p: drift: x",
        "    ConfigMap ns/cm: left alone",
        "Unchanged:",
        "    Service ns/svc",
        "Plan: 1 to replace, 1 to recreate, 1 to create, 2 to restart (2 pods), 1 unchanged.",
    ]


def test_a_workload_whose_pods_stay_is_not_below_the_restarts() -> None:
    """As where its labels change: its pods are not counted either."""
    live = {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2}}
    step = ManifestStep(DEPLOYMENT, Action.REPLACE, live, live)
    lines = text_of(plan_report.plan_lines(Plan("ns", None, (step,)))).splitlines()
    assert lines == ["Workloads:", "  ~ Deployment ns/d: replace", "Plan: 1 to replace."]


def test_a_plan_with_nothing_to_do_says_so_with_its_notes() -> None:
    plan = Plan("ns", None, (), notes=(Note(CM, "left alone"),))
    assert text_of(plan_report.plan_lines(plan)).splitlines() == [
        "Nothing to do: no changes; the notes say what differs and stays.",
        "Notes:",
        "    ConfigMap ns/cm: left alone",
    ]


def test_a_plan_with_nothing_to_do_names_what_is_not_applied_as_no_match() -> None:
    plan = Plan("ns", None, (), ignored=(Note(DEPLOYMENT, "spec.replicas: 1 -> 2"),))
    first = text_of(plan_report.plan_lines(plan)).splitlines()[0]
    assert first == "Nothing to do: images and configuration already match the new package."
    drift = replace(plan, notes=(Note(DEPLOYMENT, "drift: container c has image a"),))
    first = text_of(plan_report.plan_lines(drift)).splitlines()[0]
    assert first.startswith("Nothing to do: no changes; the notes")


def outcome(*results: StepResult) -> Outcome:
    return Outcome(
        PLAN, results, (Vnfc("VDU1", "d-1", "ns", "Deployment", "d", {"l": "1"}),),
        {DEPLOYMENT: ("d-1", "d-2")}, requests=17, seconds=1.2345,
    )  # fmt: skip


DONE, FAILED = StepState.DONE, StepState.FAILED


def test_an_outcome_has_a_line_for_each_step_and_the_sum() -> None:
    done = outcome(
        StepResult(REPLACE, DONE, seconds=0.12),
        StepResult(ROLL, DONE, seconds=1.06),
        StepResult(RESTART, DONE, "was so already", 0.5),
    )
    assert text_of(outcome_report.outcome_lines(done)).splitlines() == [
        "  done: ConfigMap ns/cm: replace (0.1 s)",
        "  done: Deployment ns/d: roll (1.1 s)",
        "      pods: d-1, d-2",
        "  done: Pod ns/p: restart in place (0.5 s): was so already",
        "Updated in 1.2 s with 17 requests: 1 configuration object written, 2 workloads restarted, "
        "1 object unchanged.",
    ]


def test_a_template_for_later_is_no_restart() -> None:
    cron = RestartStep(ObjectKey("batch", "CronJob", "ns", "c"), Action.TEMPLATE, {})
    plan = replace(PLAN, steps=(cron, ROLL))
    done = outcome(StepResult(cron, DONE), StepResult(ROLL, DONE))
    text = outcome_report.summary_text(replace(done, plan=plan))
    assert "1 workload restarted, 1 template replaced, 1 object" in text


@pytest.mark.parametrize("state", [state for state in StepState if state is not DONE])
def test_an_outcome_that_failed_has_no_sum(state: StepState) -> None:
    text = text_of(
        outcome_report.outcome_lines(
            outcome(StepResult(RESTART, DONE), StepResult(ROLL, state, "why"))
        )
    )
    assert f"  {state.value}: Deployment ns/d: roll: why" in text
    assert "Updated" not in text


def test_the_sum_is_of_the_plan_and_not_of_what_an_interrupted_update_had_left() -> None:
    left = replace(REPLACE, key=replace(CM, name="left"))
    done = outcome(StepResult(left, StepState.UNDONE), StepResult(ROLL, DONE))
    text = outcome_report.summary_text(done)
    assert text.startswith("Updated in 1.2 s with 17 requests: 1 workload restarted, ")


CREATED = ManifestStep(ObjectKey("", "Service", "ns", "s"), Action.CREATE, None, BODY)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ((REPLACE, ROLL), " 1 configuration object written, 1 workload restarted."),
        ((REPLACE, CREATED), " 1 object created, 1 changed."),
        ((CREATED,), ": 1 object created."),
    ],
    ids=["an update", "a change", "a creation alone"],
)
def test_a_sum_has_only_what_is_known(steps: tuple[Step, ...], text: str) -> None:
    """A journal does not say what its update left alone, nor how many requests it sent."""
    plan = replace(PLAN, steps=steps, unchanged=())
    said = outcome_report.summary_text(Outcome(plan, tuple(StepResult(s, DONE) for s in steps)))
    assert "request" not in said
    assert "unchanged" not in said
    assert said.endswith(text)


def test_an_outcome_of_nothing_says_so() -> None:
    nothing = replace(outcome(), plan=replace(PLAN, ignored=(), notes=()))
    assert text_of(outcome_report.outcome_lines(nothing)) == (
        "Nothing to do: the cluster already matches the new package."
    )


def test_a_plan_as_json_has_what_happens_and_why_and_no_content() -> None:
    text = json.dumps(plan_json.plan_dict(PLAN))
    assert CANARY not in text
    document = json.loads(text)
    assert document["namespace"] == "ns"
    assert document["instanceId"] == "i-1"
    assert document["steps"][3] == {
        "object": {"group": "apps", "kind": "Deployment", "namespace": "ns", "name": "d"},
        "action": "roll",
        "images": {"c": "app:2"},
        "pods": 1,
        "reasons": [
            {"text": "container c: image app:1 -> app:2"},
            {
                "text": "spec.x[E].value differs (f:23)",
                "path": "spec.x[E].value",
                "old": '"<hello>"',
                "new": '"hi"',
                "file": "f",
                "line": 23,
            },
        ],
        "diff": [],
    }
    assert [step["action"] for step in document["steps"]] == [
        "replace", "recreate", "create", "roll", "restart in place",
    ]  # fmt: skip
    (unchanged,) = document["unchanged"]
    assert unchanged == {"group": "", "kind": "Service", "namespace": "ns", "name": "svc"}
    assert document["ignored"][0] == {
        "object": {"group": "apps", "kind": "Deployment", "namespace": "ns", "name": "d"},
        "text": "spec.replicas differs and does not take effect (f:6)",
        "path": "spec.replicas", "old": "1", "new": None, "file": "f", "line": 6,
    }  # fmt: skip
    assert document["notes"][1] == {
        "object": {"group": "", "kind": "ConfigMap", "namespace": "ns", "name": "cm"},
        "text": "left alone",
    }
    assert document["defFiles"] == ["f", "g"]


def test_an_outcome_as_json_has_each_result_and_each_vnfc() -> None:
    results = StepResult(CREATE, DONE), StepResult(ROLL, FAILED, "why", 2.71828)
    text = json.dumps(json_report.outcome_dict(outcome(*results)))
    assert CANARY not in text
    document = json.loads(text)
    assert document["plan"] == plan_json.plan_dict(PLAN)
    assert document["results"] == [
        {
            "object": CREATE.key.as_dict(), "state": "done", "message": "", "seconds": 0.0,
            "pods": [], "diagnosis": None,
        },
        {
            "object": ROLL.key.as_dict(), "state": "failed", "message": "why", "seconds": 2.718,
            "pods": ["d-1", "d-2"], "diagnosis": None,
        },
    ]  # fmt: skip
    assert document["vnfcs"] == [
        {"vduId": "VDU1", "pod": "d-1", "namespace": "ns", "workload": "Deployment d"}
    ]
    assert (document["requests"], document["seconds"]) == (17, 1.234)


def test_no_content_of_a_secret_is_in_any_text() -> None:
    done = outcome(*(StepResult(step, DONE) for step in PLAN.steps))
    assert CANARY not in text_of(plan_report.plan_lines(PLAN)) + text_of(
        outcome_report.outcome_lines(done)
    )


def test_a_field_that_changes_is_one_line_of_every_report() -> None:
    assert (
        '  - spec.x\\[E\\].value: "\\<hello\\>" -\\> "hi" (f:23)'
        in markdown_report.plan_markdown(PLAN).splitlines()
    )


def test_workloads_whose_fields_get_other_values_are_not_one_group() -> None:
    """In a list that is one line of JSON all their fields are on the same line."""
    steps = tuple(
        replace(
            ROLL,
            key=replace(DEPLOYMENT, name=f"d{number}"),
            reasons=(Reason("spec.x differs (f:1)", replace(GREETING, new=str(number))),),
        )
        for number in range(5)
    )
    text = text_of(plan_report.plan_lines(replace(PLAN, steps=steps)))
    assert text.count("roll") == text.count("(f:23)") == 5


def test_an_object_that_differs_in_many_fields_leaves_the_rest_of_a_plan_to_be_seen() -> None:
    """Two versions of a CustomResourceDefinition may differ in a thousand of them."""
    changes = [FieldChange(f"spec.f{n}", None, "1", Source("f", n)) for n in range(1, 26)]
    step = replace(ROLL, reasons=tuple(Reason(change.path, change) for change in changes))
    notes = tuple(Note(CM, change.path, change) for change in changes)
    plan = replace(PLAN, steps=(step,), ignored=(IGNORED, *notes))
    shown = text_of(plan_report.plan_lines(plan)).splitlines()
    assert "      because spec.f20: none -> 1 (f:20)" in shown
    assert "      5 more (--all)" in shown
    assert "    Deployment ns/d: spec.replicas: 1 -> none (f:6 of the old package)" in shown
    assert "    ConfigMap ns/cm: spec.f20: none -> 1 (f:20)" in shown
    assert "    ConfigMap ns/cm: 5 more (--all)" in shown
    assert not any("spec.f21" in line for line in shown)
    whole = text_of(plan_report.plan_lines(plan, every=True)).splitlines()
    assert "      because spec.f25: none -> 1 (f:25)" in whole
    assert "    ConfigMap ns/cm: spec.f25: none -> 1 (f:25)" in whole
    assert "--all" not in str(whole)


KINDS = {
    "Deployment": "Deployments",
    "NetworkPolicy": "NetworkPolicies",
    "Gateway": "Gateways",
    "Ingress": "Ingresses",
    "Endpoints": "Endpoints",
}


@pytest.mark.parametrize(("kind", "kinds"), KINDS.items())
def test_objects_of_a_kind_are_counted_in_its_plural(kind: str, kinds: str) -> None:
    unchanged = tuple(ObjectKey("", kind, "ns", f"n{number}") for number in range(11))
    text = text_of(plan_report.plan_lines(replace(PLAN, unchanged=unchanged)))
    assert f"    11 {kinds} (--all lists them)\n" in text
