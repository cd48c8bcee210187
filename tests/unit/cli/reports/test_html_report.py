"""Plans and outcomes as pages."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from container_update.cli.reports import html_report, outcome_report, plan_report
from container_update.cli.terminal import output
from container_update.model.errors import ContainerUpdateError, PackageError, UpdateFailedError
from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.plan import Note, Plan, Reason
from tests.unit.cli.reports.test_plan_report import CANARY, PLAN, POD, RESTART, ROLL

HOSTILE = "<script>alert('x')</script>\" onload=\"x"
VOID = {"meta", "br"}


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
        "a plan": html_report.plan_html(PLAN),
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


def test_an_outcome_on_a_page_has_each_result_with_its_pods_and_the_sum() -> None:
    done = Outcome(PLAN, (StepResult(ROLL, StepState.DONE),), restarted={ROLL.key: ("d-1", "d-2")})
    text = Page(html_report.outcome_html(done)).text
    assert "d-1, d-2" in text
    assert outcome_report.summary_text(done) in text


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


FAILURE = UpdateFailedError("it failed", Outcome(PLAN, (StepResult(ROLL, StepState.FAILED),)))


@pytest.mark.parametrize(
    ("error", "style", "word"),
    [
        (PackageError("wrong"), output.TEXT, ""),
        (PackageError("wrong"), output.JSON, "PackageError"),
        (PackageError("wrong"), output.JSON, '"nextStep": "fix request"'),
        (PackageError("wrong"), output.JSON, '"advice": "Do it again"'),
        (PackageError("wrong"), output.HTML, "wrong. Do it again."),
        (FAILURE, output.TEXT, ""),
        (FAILURE, output.YAML, "kind: Error"),
        (FAILURE, output.MARKDOWN, "| failed |"),
        (PackageError("wrong"), output.MARKDOWN, "**Failed:** wrong"),
        (FAILURE, output.JSON, "outcome"),
        (FAILURE, output.HTML, "Results"),
    ],
)
def test_an_error_is_shown_in_each_format(
    error: ContainerUpdateError, style: str, word: str
) -> None:
    told = output.error(error, style, "Do it again")
    assert word in told
    assert bool(told) == bool(word)


@pytest.mark.parametrize("style", output.FORMATS)
def test_nothing_to_do_is_said_in_each_format(style: str) -> None:
    words = {"json": "{}", "yaml": "{}", "html": "<!doctype html>"}
    assert words.get(style, "no update") in output.nothing("no update", style)
