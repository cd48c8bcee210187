# SPDX-License-Identifier: Apache-2.0
"""Plans and outcomes for a ticket, and what a command writes in each of its formats."""

from __future__ import annotations

import argparse
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from container_update.cli.terminal import output
from container_update.model.cluster import ClusterContext
from container_update.model.errors import ContainerUpdateError, PackageError, UpdateFailedError
from container_update.model.objects import ObjectKey
from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.plan import Action, Note, Plan, Reason
from container_update.model.requests import PackageIdentity
from container_update.planning.steps import ConfigStep
from container_update.planning.summary import plan_sum
from container_update.reports import markdown_report, outcome_report, plan_report
from container_update.reports.lines import Header
from tests.unit.reports.test_plan_report import CANARY, PLAN, POD, RESTART, ROLL

HOSTILE = "<script>alert('x')</script>|```# *x*"
DONE = Outcome(PLAN, (StepResult(ROLL, StepState.DONE),), restarted={ROLL.key: ("d-1", "d-2")})
HEADER = Header.of_cluster(
    ClusterContext("https://api:6443", name="prod", cluster="prod-eu1", user="ann"),
    "core",
)
PACKAGES = (
    PackageIdentity("v1.csar", "upf", "1.2", "7f3a" * 16),
    PackageIdentity("v2.csar", "upf", "1.3", "91bc" * 16),
)
OF_PACKAGES = replace(PLAN, packages=PACKAGES)


def plain(markdown: str) -> str:
    """Return the text without what keeps it from being markup."""
    return re.sub(r"\\(.)", r"\1", markdown)


def test_a_plan_has_every_heading_step_reason_remark_and_what_stays() -> None:
    report = markdown_report.plan_markdown(PLAN)
    told = [title for title, _ in [*plan_report.sections(PLAN), *plan_report.remarks(PLAN)]]
    told += [word for _, notes in plan_report.remarks(PLAN) for word in notes]
    for step in PLAN.steps:
        told += [str(step.key), step.action.value, *plan_report.reason_texts(step)]
    told += [plan_sum(PLAN), "@@ -1 +0,0 @@\n  -1", "Unchanged", "Service ns/svc"]
    assert [word for word in told if word not in plain(report)] == []
    assert CANARY not in report


def test_a_report_says_about_what_and_as_whom() -> None:
    for report in (
        markdown_report.plan_markdown(OF_PACKAGES, HEADER),
        markdown_report.outcome_markdown(replace(DONE, plan=OF_PACKAGES), header=HEADER),
    ):
        facts = ["https://api:6443 (cluster prod-eu1, context prod, user ann)", "core", "i-1"]
        facts += ["upf 1.2 (sha256 7f3a7f3a7f3a)", "upf 1.3 (sha256 91bc91bc91bc)"]
        assert [fact for fact in facts if fact not in plain(report)] == []


def test_the_page_of_the_commands_explains_each_symbol() -> None:
    page = (Path(__file__).parents[3] / "doc/source/reference/commands.rst").read_text(
        encoding="utf-8"
    )
    rows = re.findall(r"^``(.)``\s+(\S.+)$", page, re.MULTILINE)
    used = {plan_report.symbol(replace(ROLL, action=action)) for action in Action}
    assert dict(rows).keys() == used


def test_workloads_that_restart_alike_are_one_entry_that_names_them_all() -> None:
    names = [f"d-{number}" for number in range(5)]
    keys = [ObjectKey("apps", "Deployment", "ns", name) for name in names]
    plan = replace(PLAN, steps=tuple(replace(ROLL, key=key) for key in keys))
    report = markdown_report.plan_markdown(plan)
    assert "5 Deployments of namespace ns" in report
    assert report.count("container c: image") == 1
    assert [name for name in names if name not in report] == []


def test_a_long_diff_is_whole_and_its_fence_is_longer_than_any_in_it() -> None:
    after = {"kind": "ConfigMap", "data": {"a": "\n".join([HOSTILE, *map(str, range(200))])}}
    step = ConfigStep(ObjectKey("", "ConfigMap", "ns", "cm"), Action.CREATE, None, after)
    lines = markdown_report.plan_markdown(Plan("ns", None, (step,))).splitlines()
    start, end = lines.index("  ````diff"), lines.index("  ````")
    added = [line for line in lines[start:end] if line.startswith("  +")]
    assert added == [f"  +{HOSTILE}", *(f"  +{number}" for number in range(200))]


def test_an_outcome_has_each_result_and_the_sum() -> None:
    report = markdown_report.outcome_markdown(DONE)
    assert f"| {ROLL.key} | {ROLL.action.value} | done |" in report
    assert outcome_report.summary_text(DONE) in plain(report)


def test_what_a_package_says_cannot_become_markup() -> None:
    step = ROLL.__class__(POD, RESTART.action, {}, reasons=(Reason(HOSTILE),))
    plan = Plan("ns", HOSTILE, (step,), notes=(Note(POD, HOSTILE),))
    failed = StepResult(step, StepState.FAILED, HOSTILE)
    report = markdown_report.outcome_markdown(Outcome(plan, (failed,)), HOSTILE, ["said no"])
    assert plain(report).count(HOSTILE) == 5
    assert re.findall(r"(?<!\\)[<|`*]script|\)\|", report) == []
    assert "said no" in report


FAILURE = UpdateFailedError(
    Outcome(OF_PACKAGES, (StepResult(ROLL, StepState.FAILED),)), "it failed"
)


def written(error: ContainerUpdateError, **parsed: object) -> str:
    out = io.StringIO()
    output.write_error(error, "Do it again", argparse.Namespace(**parsed), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("error", "style", "word"),
    [
        (PackageError("wrong"), output.TEXT, ""),
        (PackageError("wrong"), output.JSON, "PackageError"),
        (PackageError("wrong"), output.JSON, '"nextStep": "fix request"'),
        (PackageError("wrong"), output.JSON, '"advice": "Do it again"'),
        (PackageError("wrong"), output.MARKDOWN, "**Failed:** wrong. Do it again."),
        (FAILURE, output.TEXT, ""),
        (FAILURE, output.MARKDOWN, "| failed |"),
        (FAILURE, output.JSON, "outcome"),
    ],
)
def test_an_error_is_shown_in_each_format(
    error: ContainerUpdateError, style: str, word: str
) -> None:
    told = written(error, output=style)
    assert word in told
    assert bool(told) == bool(word)


def test_a_failure_in_markdown_says_what_it_was_about() -> None:
    page = written(FAILURE, output=output.MARKDOWN, header=HEADER)
    assert "prod-eu1" in page
    assert "upf 1.3" in page


@pytest.mark.parametrize("style", output.FORMATS)
def test_nothing_to_do_is_said_in_each_format(style: str) -> None:
    out = io.StringIO()
    assert output.write_nothing("no update", argparse.Namespace(output=style), out) == 2
    assert {"json": "{}", "yaml": "{}"}.get(style, "no update") in out.getvalue()


@pytest.mark.parametrize("style", output.FORMATS)
def test_in_a_stream_an_error_and_nothing_to_do_are_a_line_of_json_each(style: str) -> None:
    parsed, out = argparse.Namespace(output=style, progress_style="json"), io.StringIO()
    output.write_nothing("no update", parsed, out)
    output.write_error(FAILURE, "Do it again", parsed, out)
    nothing, error = map(json.loads, out.getvalue().splitlines())
    assert (nothing, error["kind"], error["advice"]) == ({}, "Error", "Do it again")
