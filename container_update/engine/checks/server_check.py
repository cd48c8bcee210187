# SPDX-License-Identifier: Apache-2.0
"""Asks the API server about every write of a plan, by a dry run, before the first one is sent.

Validation, quotas and admission take part in a dry run, controllers do not (Kubernetes API
concepts, "Dry-run"). The plan then has what the server would really change, with notes on fields
that it would drop or keep.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from container_update.cluster.retry import RetryingReader
from container_update.engine.writer import HOW_WITHOUT_DRY_RUN, try_creation_again
from container_update.model import context_threads
from container_update.model.cluster import DryRun
from container_update.model.errors import AdmissionError, ClusterError, NoDryRunError, QuotaError
from container_update.model.objects import INSTANCE_LABEL, Json, ObjectKey
from container_update.model.options import NOTE, Options
from container_update.model.plan import Action, FieldChange, Note, Plan
from container_update.planning import order, permissions, stored_writes
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep, object_steps
from container_update.planning.steps.new_objects import new_object
from container_update.planning.steps.workload import WorkloadStep

_ATTEMPTS = 5
"""How often a write is tried that conflicts with those of busy controllers."""
_NOT_TRIED = (Action.REPLACE_PODS, Action.DELETE)
"""Evictions and deletions: a server may carry out a deletion that is meant as a dry run, and says
nothing of one that access reviews do not say. A webhook that forbids it is met in the run, which is
undone."""
_MOST_NAMES = 5
"""How many objects a note names, and fields a refusal."""


class RefusedWritesError(ClusterError):
    """The API server would refuse writes of *plan*, to be shown; none was sent."""

    def __init__(self, plan: Plan, message: str, first: ClusterError) -> None:
        super().__init__(message, status=first.status, reason=first.reason)
        self.plan = plan


@dataclass(frozen=True)
class _Answer:
    """What the server answered about a step."""

    step: ObjectStep
    live: Json | None = None
    """The object that the write was made from."""
    tried: DryRun | None = None
    refusal: ClusterError | None = None
    waits_for: ObjectKey | None = None
    """An object that the plan writes first: without it the server cannot judge the step."""
    untried: str = ""
    """Why it was not tried, where none of the others is given."""


def check_with_server(plan: Plan, cluster: RetryingReader, options: Options) -> Plan:
    """Return a plan as the server would carry it out: without writes that change nothing, and with
    notes on dropped fields and on warnings.

    :raises RefusedWritesError: it would refuse some; the message has all of them.
    :raises ClusterError: it does not answer.
    """
    steps = [
        step
        for step in object_steps(plan)
        if step.action not in _NOT_TRIED and not step.is_of_new_object
    ]
    labels = {INSTANCE_LABEL: plan.instance_id} if plan.instance_id else {}
    makers = stored_writes.Makers.of(steps, plan.manifests)
    asking = _Asking(plan, steps, makers, cluster, labels, options.dry_run_denials == NOTE)
    with context_threads.pool(options.workers) as pool:
        answers = tuple(pool.map(asking.about, steps))
    asking.raise_refusals(answers)
    tried = sum(answer.tried is not None for answer in answers)
    notes = (*plan.notes, *_notes(answers))
    plan = replace(plan, notes=notes, tried=tried, writes=len(steps))
    stored = {
        answer.step.place: (answer.live, answer.tried.body)
        for answer in answers
        if answer.tried is not None and answer.tried.body
    }
    return stored_writes.as_stored(plan, stored)


_PAUSE, _PATIENCE = 0.25, 8
"""Seconds between two looks at a kind that is not served, and how many there are."""


@dataclass(frozen=True)
class _Asking:
    """The questions about one plan."""

    plan: Plan
    steps: Sequence[ObjectStep]
    makers: stored_writes.Makers
    cluster: RetryingReader
    labels: Mapping[str, str]
    notes_denials: bool
    """A write that admission denies is not tried, instead of refused."""

    def about(self, step: ObjectStep, patience: int = _PATIENCE) -> _Answer:
        """Try the write of a step; *patience*: looks at a kind that is not served yet."""
        maker = self.makers.maker(step)
        if maker is not None:
            return _Answer(step, waits_for=maker)
        try:
            return self._try_step(step)
        except ClusterError as error:
            if untried := self._why_untried(error):
                return _Answer(step, untried=untried)
            if error.transient or error.status is None:
                raise
            needed = self._missing_object(step, error.status)
            if error.status == 404 and needed is None and step.before is None and patience:
                time.sleep(_PAUSE)  # the kind may have been defined a moment ago
                return self.about(step, patience - 1)
            is_forbidden = needed is None and error.status == 403
            if is_forbidden and self.cluster.missing_rights([*permissions.of_step(step)]):
                # the operation itself says which one
                return _Answer(step, untried="this account may not write it")
            return _Answer(step, waits_for=needed, refusal=None if needed else error)

    def _why_untried(self, error: ClusterError) -> str:
        """Return why a refusal of a dry run is none of the write; '' where it is one."""
        if isinstance(error, NoDryRunError) or (
            self.notes_denials and isinstance(error, AdmissionError)
        ):
            return str(error)
        leaving = next((step.key for step in self.plan.steps if order.frees(step)), None)
        if leaving is None or not isinstance(error, AdmissionError | QuotaError):
            return ""
        return f"{leaving}, which goes first, may be what refuses it: {error}"

    def _missing_object(self, step: ObjectStep, status: int) -> ObjectKey | None:
        """Return what the plan writes first and the server may have missed."""
        if status not in (403, 404):
            return None
        named = stored_writes.needed_first(step, self.steps)
        return (
            stored_writes.started_first(step, self.steps)
            if named is None and status == 404
            else named
        )

    def _new(self, step: ObjectStep) -> Json:
        content = step.content if isinstance(step, ConfigStep | ManifestStep) else None
        assert content is not None, "a creation has its manifest"
        return new_object(content, step.key.namespace, self.labels)

    def _try_step(self, step: ObjectStep) -> _Answer:
        if step.before is None:
            return _Answer(step, None, self.cluster.dry_run("create", self._new(step)))
        if step.action in (Action.RECREATE, Action.RECREATE_POD):
            if isinstance(step, WorkloadStep):
                body = step.new_pod(self.labels)
            else:
                body = new_object(step.with_change(step.before), step.key.namespace, {})
            return _Answer(step, step.before, try_creation_again(self.cluster, body))
        return self._replace(step, step.before)

    def _replace(self, step: ObjectStep, live: Json) -> _Answer:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return _Answer(step, live, self.cluster.dry_run("replace", step.with_change(live)))
            except ClusterError as error:
                now = self.cluster.get(step.key) if error.status == 409 else None
                if now is None or attempt == _ATTEMPTS:
                    raise
                live = now
        raise AssertionError("the last attempt returns or raises")

    def raise_refusals(self, answers: Sequence[_Answer]) -> None:
        """Raise RefusedWritesError where the server would refuse a write."""
        sources = {manifest.key: manifest.source for manifest in self.plan.manifests}
        refusals = [(each.step, each.refusal) for each in answers if each.refusal is not None]
        if refusals:
            texts = (
                f"{error} ({source}{_changed_fields(step)})" if source else str(error)
                for step, error in refusals
                for source in [stored_writes.source_of(step, sources)]
            )
            raise RefusedWritesError(
                self.plan,
                f"the API server would refuse {len(refusals)} of {len(answers)} writes: "
                f"{'; '.join(texts)}: nothing was written{_other_way(refusals)}",
                refusals[0][1],
            )


def _other_way(refusals: Iterable[tuple[ObjectStep, ClusterError]]) -> str:
    """Return how an operation gets past admission that denies dry runs alone."""
    is_denied = any(isinstance(error, AdmissionError) for _, error in refusals)
    return HOW_WITHOUT_DRY_RUN if is_denied else ""


def _changed_fields(step: ObjectStep) -> str:
    """Return which fields of an object change; a server may name only those that could."""
    causes = [reason.cause for reason in step.reasons]
    paths = [each.path for each in causes if isinstance(each, FieldChange)]
    names = [path for path in paths if not path.startswith(("metadata.", "spec.template."))]
    return f": it changes {_some(names)}" if names else ""


def _notes(answers: Iterable[_Answer]) -> Iterator[Note]:
    """Yield what could not be tried, and what the server warns of, each once."""
    waiting: dict[ObjectKey, list[ObjectKey]] = {}
    warned: dict[str, list[ObjectKey]] = {}
    for answer in answers:
        key = answer.step.key
        if answer.waits_for is not None:
            waiting.setdefault(answer.waits_for, []).append(key)
        elif answer.tried is None:
            yield Note(key, f"cannot be tried on the API server: {answer.untried}")
        else:
            for warning in answer.tried.warnings:
                warned.setdefault(warning, []).append(key)
    for key, others in waiting.items():
        text = "what needs it cannot be validated until it exists"
        yield Note(key, f"{text}: {_names(others)}")
    for warning, (first, *others) in warned.items():
        also = f" (also for {_names(others)})" if others else ""
        yield Note(first, f"the API server warns: {warning}{also}")


def _names(keys: Iterable[ObjectKey]) -> str:
    return _some([str(key) for key in dict.fromkeys(keys)])


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
