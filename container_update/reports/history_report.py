# SPDX-License-Identifier: Apache-2.0
"""Operations that have ended: a table of them, and one in full. Pure; never a Secret's value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from container_update.cluster.operation import Result, Revision
from container_update.model.plan import ImageChange, Plan
from container_update.model.requests import names
from container_update.model.times import moment
from container_update.planning.comparison.diff import printable
from container_update.planning.plan_json import document, step_dict
from container_update.planning.summary import content_diffs
from container_update.reports import lines
from container_update.reports.lines import Line
from container_update.reports.markdown_report import revision_page, table
from container_update.reports.plan_report import diff_lines, step_lines

NOTHING_KEPT = "No history of this VNF instance is in the namespace."
_COLUMNS = ("REV", "ENDED (UTC)", "WHO", "WHAT", "PACKAGES", "RESULT", "TOOK")
Kept = tuple[str, str | None, Revision]
"""A revision, with the namespace and the id of its instance before it."""


def history_lines(found: Sequence[Kept], *, of_several: bool) -> Iterator[Line]:
    """Yield a table of revisions, of one instance or of several ones."""
    style = lines.HEADING
    for text in lines.align(list(_rows(found, of_several=of_several))):
        yield Line.of((text, style), is_content=True)
        style = lines.PLAIN


def history_markdown(found: Sequence[Kept], *, of_several: bool) -> str:
    """Return the same table for a ticket."""
    head, *rows = _rows(found, of_several=of_several)
    return table(head, rows)


def history_dict(found: Sequence[Kept], *, of_several: bool) -> dict[str, Any]:
    """Return revisions as JSON values, without their steps."""
    entries = [
        {"namespace": namespace, "instanceId": id_, **revision_summary(each)}
        if of_several
        else revision_summary(each)
        for namespace, id_, each in found
    ]
    return document("History", {"revisions": entries})


def _rows(found: Sequence[Kept], *, of_several: bool) -> Iterator[tuple[str, ...]]:
    yield ("NAMESPACE", "INSTANCE", *_COLUMNS) if of_several else _COLUMNS
    for namespace, instance_id, revision in found:
        place = printable(namespace), printable(instance_id or "-")
        yield (*(place if of_several else ()), *_row(revision))


def _row(revision: Revision) -> tuple[str, ...]:
    origin = revision.origin
    return (
        str(revision.number),
        moment(revision.ended),
        printable(origin.who),
        printable(f"{origin.title}: {origin.why}" if origin.why else origin.title),
        printable(names(revision.origin.packages)),
        revision.result.value,
        _took(revision),
    )


def revision_lines(revision: Revision, *, every: bool = False) -> Iterator[Line]:
    """Yield one revision: who, when, which packages, how it ended, what it did and why.

    :param every: show all objects, not only their numbers.
    """
    origin, is_done = revision.origin, revision.result is Result.DONE
    named = ("Revision", f"{revision.number}: {origin.title}, by {origin.who}")
    for word, value in (named, *_facts(revision)):
        yield Line.of((f"{word:<8}  ", lines.DIM), printable(value))
    style = lines.GOOD if is_done else lines.WARNING
    why = f": {printable(revision.cause)}" if revision.cause else ""
    yield Line.of(("Result    ", lines.DIM), (revision.result.value, style), why)
    for text in revision.report:
        yield Line.of(("    ", lines.DIM), printable(text))
    if revision.object_steps:
        if not is_done:
            yield Line.of(("It did this, and then undid it:", lines.HEADING))
        yield from step_lines(_plan(revision), every=every)
    elif is_done:
        yield Line.of(f"Changed {revision.changes} objects; what they were before is not kept.")


def revision_markdown(revision: Revision) -> str:
    """Return one revision for a ticket: how it ended, what failing pods reported, what it did."""
    origin = revision.origin
    why = f": {revision.cause}" if revision.cause else ""
    return revision_page(
        f"Revision {revision.number}: {origin.title}",
        [("Who", origin.who), *_facts(revision)],
        f"{revision.result.value}{why}",
        revision.report,
        _plan(revision),
    )


def _facts(revision: Revision) -> Iterator[tuple[str, str]]:
    if revision.origin.why:
        yield "Why", revision.origin.why
    yield "Packages", " -> ".join(map(str, revision.origin.packages)) or "not known"
    began, ended = moment(revision.started), moment(revision.ended)
    yield "Time", f"{began} to {ended} UTC ({_took(revision)})"


def diff_of_revision(revision: Revision) -> Iterator[Line]:
    """Yield what a revision changed: the images, and the lines of each ConfigMap."""
    for step in revision.object_steps:
        images = [reason for reason in step.reasons if isinstance(reason.cause, ImageChange)]
        diffs = content_diffs(step)
        if not (images or diffs):
            continue
        yield Line.of((f"{step.key}: {step.action.value}", lines.HEADING))
        if not diffs:
            yield from (Line.of(f"      {printable(str(reason))}") for reason in images)
        for diff in diffs:
            yield from diff_lines(diff, every=True)


def revision_dict(revision: Revision) -> dict[str, Any]:
    """Return one revision as JSON values."""
    steps = [step_dict(step) for step in revision.object_steps]
    body = {**revision_summary(revision), "report": list(revision.report), "steps": steps}
    return document("Revision", body)


def undone_text(revision: Revision) -> str:
    """Return the line about an operation that failed or was stopped, and was undone."""
    what = f"{revision.origin.title}, {moment(revision.ended)} UTC, by {revision.origin.who}"
    return printable(f"The last operation ({what}) was undone: {revision.cause}")


def revision_summary(revision: Revision) -> dict[str, Any]:
    """Return one revision as JSON values, without its steps."""
    origin = revision.origin
    return {
        "revision": revision.number,
        "operation": revision.operation,
        "type": origin.kind,
        "undoes": origin.undoes,
        "user": origin.user,
        "host": origin.host,
        "why": origin.why,
        "packages": [asdict(package) for package in origin.packages],
        "started": revision.started,
        "ended": revision.ended,
        "seconds": revision.seconds,
        "result": revision.result.value,
        "cause": revision.cause,
        "objects": revision.changes,
        "canBeUndone": revision.can_be_undone,
    }


def _plan(revision: Revision) -> Plan:
    return Plan("", None, revision.object_steps)


def _took(revision: Revision) -> str:
    minutes, seconds = divmod(round(revision.seconds), 60)
    return f"{minutes}m{seconds:02}s" if minutes else f"{seconds}s"
