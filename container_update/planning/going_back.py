# SPDX-License-Identifier: Apache-2.0
"""From what finished updates did to a plan that undoes them. Pure.

What an update wrote is written back, by the rules of an update: configuration as it was, images as
they were, and a restart of what uses them. Everything else of an object stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.model.plan import Action, Note, Plan, Reason
from container_update.planning.comparison.match import Matching
from container_update.planning.configuration import Live, starts_without
from container_update.planning.order import in_groups
from container_update.planning.staying import why_it_stays, with_claims_kept
from container_update.planning.steps import ManifestStep, ObjectStep
from container_update.planning.steps.new_objects import new_object


@dataclass(frozen=True)
class Undoing:
    """What is to be undone.

    :param steps: of every update that is undone, the oldest first.
    :param objects: every object of the CNF.
    :param first: the number of the first one.
    """

    steps: tuple[ObjectStep, ...]
    objects: tuple[ObjectKey, ...]
    first: int
    def_files: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[ObjectKey, ...]:
        """Every object that may be concerned."""
        return tuple(dict.fromkeys([*self.objects, *(step.key for step in self.steps)]))

    def matching(self, live: Live) -> Matching:
        """Return pairs for two packages: objects as the updates left them, and as before."""
        created = (key for key in self._created_keys(live) if key.is_config)
        removed = tuple(self._manifest(key, live[key]) for key in created)
        return Matching(tuple(self._pairs(live)), (), (), self.def_files, removed=removed)

    def complete(self, plan: Plan, live: Live) -> Plan:
        """Return the plan with deletions of what the updates created, optional objects first."""
        why = Reason(f"it is new since revision {self.first}")
        removals = [
            with_claims_kept(ManifestStep(key, Action.DELETE, live[key], reasons=(why,)))
            for key in self._created_keys(live)
        ]
        optional = starts_without({key: live[key] for key in self.keys if key in live})
        first = [step for step in removals if step.key in optional]
        last = [step for step in removals if step.key not in optional]
        steps = in_groups(first, (*plan.steps, *last), among=live)
        kept = {key: why_it_stays(key, live[key]) for key in self.keys if key in live}
        notes = [
            Note(key, f"{why}, but {because}: stays")
            for key, because in kept.items()
            if because and self._is_created(key)
        ]
        return replace(plan, steps=steps, notes=(*plan.notes, *notes), ignored=())

    def _created_keys(self, live: Live) -> Iterator[ObjectKey]:
        """Yield what goes: what the updates created and no annotation keeps."""
        created = (key for key in self.keys if key in live and self._is_created(key))
        return (key for key in created if not why_it_stays(key, live[key]))

    def _is_created(self, key: ObjectKey) -> bool:
        steps = self._by_key.get(key, ())
        return bool(steps) and steps[0].before is None

    @cached_property
    def _by_key(self) -> Mapping[ObjectKey, Sequence[ObjectStep]]:
        by_key: defaultdict[ObjectKey, list[ObjectStep]] = defaultdict(list)
        for step in self.steps:
            by_key[step.key].append(step)
        return by_key

    def _pairs(self, live: Live) -> Iterator[tuple[Manifest, Manifest | None]]:
        for key in self.keys:
            steps, body = self._by_key.get(key, ()), live.get(key)
            if self._is_created(key) or (body is None and not steps):
                continue
            if body is None:
                body = new_object(steps[0].old, key.namespace, {})
            yield (
                self._manifest(key, _after(steps, body)),
                self._manifest(key, _before(steps, body)),
            )

    def _manifest(self, key: ObjectKey, body: Json) -> Manifest:
        return Manifest(key, body, Source(f"before revision {self.first}", 0))


def _after(steps: Iterable[ObjectStep], body: Json) -> Json:
    """Return an object as the updates left it; a Secret counts as unchanged since."""
    for step in steps:
        if step.key.kind != "Secret" and step.action is not Action.DELETE:
            body = step.with_change(body)
    return body


def _before(steps: Sequence[ObjectStep], body: Json) -> Json:
    for step in reversed(steps):
        body = step.without_change(body)
    return body
