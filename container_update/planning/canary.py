# SPDX-License-Identifier: Apache-2.0
"""The plan of a canary: new pods take over from the old ones in steps, behind the same Service.

Pure. Each step is a percentage of the pods that the Deployment has; after each the plan may check a
metric and wait for a person. The Service selects old and new pods, so that the traffic is shared as
the pods are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from container_update.model.errors import PackageError, PlanError
from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.model.plan import Action, Reason, Step
from container_update.model.scripts import NEW, OLD
from container_update.planning import release_labels as labels
from container_update.planning.blue_green import BlueGreenPlanner, Pair
from container_update.planning.steps import ManifestStep, ScaleStep
from container_update.planning.steps.manifest import manifest_digest, with_recorded_digest
from container_update.planning.steps.new_objects import new_object
from container_update.planning.strategy import Strategy, pauses, refuse_headless, what_differs
from container_update.workloads.readiness import replicas, with_replicas
from container_update.workloads.traffic import scales, selects

STEPS = "canary_steps"
_STEPS = (10, 50, 100)
_WHOLE = 100


class CanaryPlanner(BlueGreenPlanner):
    """Decides a canary; new Deployments are made as for Blue-Green."""

    @cached_property
    def shares(self) -> tuple[tuple[int, Mapping[str, Any]], ...]:
        """Each step's percentage, which has to grow, and what it waits for afterwards."""
        entries = [
            entry if isinstance(entry, Mapping) else {"percent": entry}
            for entry in self.params.get(STEPS) or _STEPS
        ]
        shares = [(entry["percent"], entry) for entry in entries]
        percents = [percent for percent, _ in shares]
        if percents != sorted(set(percents)):
            raise PackageError(
                "expected percentages that grow from step to step, found "
                f"{', '.join(map(str, percents))}",
                path=f"additionalParams.{STEPS}",
            )
        return (*shares, *([(_WHOLE, {})] if percents[-1] != _WHOLE else []))

    def first_replicas(self, pair: Pair) -> int:
        """Return with how many pods the new Deployment begins."""
        return _share(pair, self.shares[0][0])

    def phases(self, steps: Sequence[Step]) -> Iterator[Iterable[Step]]:
        """Yield one step of the canary after the other; old objects are removed at the very end."""
        if not self.pairs:
            yield from super().phases(steps)
            return
        yield [step for step in steps if not (step.is_switch or step.is_removal)]
        before = 0
        for percent, entry in self.shares:
            yield list(self._more(before, percent)) if before else ()
            if percent == _WHOLE:  # while there are old pods
                yield from self._script_phases(OLD, steps)
            yield list(self._fewer(before, percent))
            if not before:
                yield from self._script_phases(NEW, steps)
            yield from pauses(entry, f"canary of {percent} %", self._changes(steps))
            before = percent
        yield [step for step in steps if step.is_switch]
        yield [step for step in steps if step.is_removal]
        yield from self.hand_overs()

    def _more(self, before: int, percent: int) -> Iterator[ScaleStep]:
        """Yield the steps that give the new Deployments their next pods; they are not there yet."""
        for key, pair in self.pairs.items():
            beside = self.beside[key]
            body = new_object(self.green_body(pair), key.namespace, {})
            yield from _scale(beside, body, _share(pair, before), _share(pair, percent), percent)

    def _fewer(self, before: int, percent: int) -> Iterator[ScaleStep]:
        """Yield the steps that take as many pods from the old Deployments."""
        for pair in self.pairs.values():
            old, left = (_old_share(pair, each) for each in (before, percent))
            yield from _scale(pair.blue, pair.live, old, left, percent)

    def other_step(self, key: ObjectKey, new: Manifest) -> Iterator[Step]:
        """Yield the steps of a Service that old and new pods share; refuse an autoscaler."""
        live = self.live.get(key, {})
        pairs = [pair for pair in self.pairs.values() if self._serves(new, live, pair)]
        if key.kind == "HorizontalPodAutoscaler":
            self._refuse_scaled(replace(new, body=live))
        if not (pairs and live):
            yield from Strategy.other_step(self, key, new)
            return
        shared = labels.without_release(live)
        self._refuse_unshared(new, live, shared, pairs)
        content = with_recorded_digest(self.service_body(new, live), manifest_digest(new.body))
        if labels.release_of(live):
            why = Reason("after an earlier change it selects the new pods only; a canary has both")
            opened = new_object(shared, key.namespace, {})
            yield ManifestStep(key, Action.REPLACE, live, opened, reasons=(why,))
            live = {**live, "spec": opened["spec"]}
        step = ManifestStep(key, Action.SWITCH, live, content)
        if self._is_changed(step, new):
            yield replace(step, reasons=tuple(what_differs(self.packages.old.get(key), new)))

    def _refuse_unshared(self, new: Manifest, live: Json, shared: Json, pairs: list[Pair]) -> None:
        refuse_headless(new, live)
        for pair in pairs:
            green = labels.pod_labels(self.green_body(pair))
            for body, pods in ((shared, pair.old_pods), (shared, green), (new.body, green)):
                selector = labels.selector_of(body)
                if not selects(selector, pods):
                    raise PlanError(
                        f"{new.key}: expected a selector for the old and the new pods of "
                        f"{pair.new.key}, which share the traffic in a canary, found {selector}: "
                        "remove from it the labels that only one of them has, or use Blue-Green"
                    )

    def _refuse_scaled(self, scaler: Manifest) -> None:
        for blue in (pair.blue for pair in self.pairs.values()):
            if scales(scaler, blue):
                raise PlanError(
                    f"{scaler.key}: expected no autoscaler for {blue}, whose pods a canary counts: "
                    "use Blue-Green, or remove the autoscaler for the change"
                )


def _scale(
    key: ObjectKey, body: Json, before: int, after: int, percent: int
) -> Iterator[ScaleStep]:
    if before != after:
        why = (Reason(f"canary of {percent} %: {before} -> {after} pods"),)
        current = with_replicas(body, before)
        yield ScaleStep(key, Action.SCALE, current, reasons=why, replicas=after)


def _old_share(pair: Pair, percent: int) -> int:
    """Return how many old pods stay: until the last step at least one shares the traffic."""
    whole = replicas(pair.live)
    left = whole - _share(pair, percent)
    return max(left, min(1, whole)) if percent < _WHOLE else left


def _share(pair: Pair, percent: int) -> int:
    """Return how many pods a percentage of a Deployment's is: at least one of any."""
    return math.ceil(replicas(pair.live) * percent / _WHOLE)
