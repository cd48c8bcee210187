# SPDX-License-Identifier: Apache-2.0
"""Plans and outcomes as pages."""

from __future__ import annotations

import argparse
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from container_update.cli.reports import html_report, outcome_report, plan_report
from container_update.cli.reports.header import Header
from container_update.cli.terminal import output
from container_update.model.cluster import ClusterContext
from container_update.model.errors import ContainerUpdateError, PackageError, UpdateFailedError
from container_update.model.objects import ObjectKey
from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.plan import Action, Note, Plan, Reason
from container_update.model.requests import PackageIdentity
from container_update.planning.steps import ConfigStep
from container_update.planning.summary import plan_sum
from tests.unit.cli.reports.test_plan_report import CANARY, PLAN, POD, RESTART, ROLL

HOSTILE = "<script>alert('x')</script>\" onload=\"x"
VOID = {"meta", "br"}
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


class Page(HTMLParser):
    """A page as a browser takes it apart: its tags, their attributes, its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def pages() -> dict[str, str]:
    results = [StepResult(step, StepState.DONE, seconds=1.0) for step in PLAN.steps]
    failed = StepResult(ROLL, StepState.FAILED, "no such image", 2.0)
    return {
        "a plan": html_report.plan_html(OF_PACKAGES, HEADER),
        "an empty plan": html_report.plan_html(Plan("ns", None, ())),
        "an outcome": html_report.outcome_html(Outcome(PLAN, tuple(results))),
        "a failure": html_report.outcome_html(Outcome(PLAN, (failed,)), "it failed", ["said no"]),
        "a sentence": html_report.sentence_html("nothing to do"),
    }


@pytest.mark.parametrize("html", pages().values(), ids=pages())
def test_a_page_is_whole_runs_nothing_and_fetches_nothing(html: str) -> None:
    page = Page(html)
    assert page.open == []
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not {"src", "href", "style"} & page.attributes
    assert CANARY not in html


def test_a_plan_on_a_page_has_every_heading_step_reason_and_remark() -> None:
    text = Page(html_report.plan_html(PLAN)).text
    told = [title for title, _ in [*plan_report.sections(PLAN), *plan_report.remarks(PLAN)]]
    told += [word for _, notes in plan_report.remarks(PLAN) for word in notes]
    for step in PLAN.steps:
        told += [str(step.key), step.action.value, *plan_report.reason_texts(step)]
    assert [word for word in told if word not in text] == []


def test_a_page_says_when_about_what_and_as_whom() -> None:
    for html in (
        html_report.plan_html(OF_PACKAGES, HEADER),
        html_report.outcome_html(replace(DONE, plan=OF_PACKAGES), header=HEADER),
    ):
        text = Page(html).text
        facts = ["https://api:6443 (cluster prod-eu1, context prod, user ann)", "core", "i-1"]
        facts += ["upf 1.2 (sha256 7f3a7f3a7f3a)", "upf 1.3 (sha256 91bc91bc91bc)"]
        assert [fact for fact in facts if fact not in text] == []
        assert re.search(r"Date\d{4}-\d\d-\d\d \d\d:\d\d UTC", text)


def test_a_plan_on_a_page_has_the_diff_of_each_key_in_colours_the_sum_and_what_stays() -> None:
    html = html_report.plan_html(PLAN)
    assert '<p class="key">key a: removed</p>' in html
    assert '<span class="hunk">@@ -1 +0,0 @@</span><span class="removed">-1</span>' in html
    assert f"Plan: {plan_sum(PLAN)}" in Page(html).text
    assert "Unchanged" in html
    assert "<li>Service ns/svc</li>" in html


def test_the_legend_explains_each_symbol_of_the_plan_and_no_other() -> None:
    html = html_report.plan_html(PLAN)
    legend = html.partition('<ul class="legend">')[2].partition("</ul>")[0]
    text = Page(legend).text
    for sign, meaning in plan_report.LEGEND.items():
        is_used = sign in {plan_report.symbol(step) for step in PLAN.steps}
        assert (f"{sign} {meaning}" in text) == is_used


def test_the_page_of_the_commands_explains_the_symbols_in_the_same_words() -> None:
    page = (Path(__file__).parents[4] / "doc/source/reference/commands.rst").read_text(
        encoding="utf-8"
    )
    rows = re.findall(r"^``(.)``\s+(\S.+)$", page, re.MULTILINE)
    assert dict(rows) == plan_report.LEGEND
    assert plan_report.LEGEND.keys() == plan_report.SYMBOL_STYLES.keys()


def test_workloads_that_restart_alike_are_one_entry_that_names_them_all() -> None:
    names = [f"d-{number}" for number in range(5)]
    keys = [ObjectKey("apps", "Deployment", "ns", name) for name in names]
    plan = replace(PLAN, steps=tuple(replace(ROLL, key=key) for key in keys))
    html = html_report.plan_html(plan)
    assert "<b>5 Deployments of namespace ns</b>" in html
    assert html.count("container c: image") == 1
    assert [key for key in keys if f"<li>{key}</li>" not in html] == []


def test_a_diff_cannot_become_markup_and_a_long_one_is_whole() -> None:
    after = {"kind": "ConfigMap", "data": {"a": "\n".join([HOSTILE, *map(str, range(200))])}}
    step = ConfigStep(ObjectKey("", "ConfigMap", "ns", "cm"), Action.CREATE, None, after)
    html = html_report.plan_html(Plan("ns", None, (step,)))
    page = Page(html)
    assert "script" not in page.tags
    assert f"+{HOSTILE}" in page.text
    assert '<span class="added">+199</span>' in html


def test_an_outcome_on_a_page_has_each_result_with_its_pods_and_the_sum() -> None:
    text = Page(html_report.outcome_html(DONE)).text
    assert "d-1, d-2" in text
    assert outcome_report.summary_text(DONE) in text


def test_a_failure_on_a_page_has_its_sentence_and_stands_out() -> None:
    html = pages()["a failure"]
    assert '<span class="failed">failed: no such image</span>' in html
    assert "it failed" in Page(html).text
    assert "said no" in Page(html).text


def test_what_a_package_says_cannot_become_markup() -> None:
    step = ROLL.__class__(POD, RESTART.action, {}, reasons=(Reason(HOSTILE),))
    plan = Plan("ns", HOSTILE, (step,), notes=(Note(POD, HOSTILE),))
    failed = StepResult(step, StepState.FAILED, HOSTILE)
    html = html_report.outcome_html(Outcome(plan, (failed,)), HOSTILE, [HOSTILE])
    page = Page(html)
    assert "script" not in page.tags
    assert "onload" not in page.attributes
    assert page.text.count(HOSTILE) == 6


def test_a_result_on_a_narrow_screen_still_has_the_word_of_its_column() -> None:
    html = html_report.outcome_html(DONE)
    assert [w for w in ("Action", "Result", "Pods") if f'<td data-label="{w}">' not in html] == []
    assert "content: attr(data-label)" in html


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
        (PackageError("wrong"), output.HTML, "wrong. Do it again."),
        (FAILURE, output.TEXT, ""),
        (FAILURE, output.MARKDOWN, "| failed |"),
        (PackageError("wrong"), output.MARKDOWN, "**Failed:** wrong"),
        (FAILURE, output.JSON, "outcome"),
        (FAILURE, output.HTML, "Results"),
    ],
)
def test_an_error_is_shown_in_each_format(
    error: ContainerUpdateError, style: str, word: str
) -> None:
    told = written(error, output=style)
    assert word in told
    assert bool(told) == bool(word)


@pytest.mark.parametrize("style", [output.HTML, output.MARKDOWN])
def test_a_failure_on_a_page_says_what_it_was_about(style: str) -> None:
    page = written(FAILURE, output=style, header=HEADER)
    assert "prod-eu1" in page
    assert "upf 1.3" in page


@pytest.mark.parametrize("style", output.FORMATS)
def test_nothing_to_do_is_said_in_each_format(style: str) -> None:
    words = {"json": "{}", "html": "<!doctype html>"}
    out = io.StringIO()
    assert output.write_nothing("no update", argparse.Namespace(output=style), out) == 2
    assert words.get(style, "no update") in out.getvalue()


@pytest.mark.parametrize("style", output.FORMATS)
def test_in_a_stream_an_error_and_nothing_to_do_are_a_line_of_json_each(style: str) -> None:
    parsed, out = argparse.Namespace(output=style, progress_style="json"), io.StringIO()
    output.write_nothing("no update", parsed, out)
    output.write_error(FAILURE, "Do it again", parsed, out)
    nothing, error = map(json.loads, out.getvalue().splitlines())
    assert (nothing, error["kind"], error["advice"]) == ({}, "Error", "Do it again")
