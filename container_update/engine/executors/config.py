# SPDX-License-Identifier: Apache-2.0
"""Carries out steps that write the content of ConfigMaps and Secrets."""

from __future__ import annotations

from container_update.engine.context import StepExecutor
from container_update.engine.writer import ChangedByAnotherError
from container_update.model.objects import Json, instance_of, is_kept
from container_update.model.outcome import Reverted
from container_update.model.plan import Action
from container_update.planning.comparison import diff
from container_update.planning.steps import ConfigStep
from container_update.planning.steps.new_objects import new_object


class ConfigExecutor(StepExecutor[ConfigStep]):
    """See :class:`~container_update.engine.context.StepExecutor`."""

    def apply(self, step: ConfigStep, deadline: float) -> None:
        """Create, replace or recreate the object."""
        resumed = self.writer.resumed
        live = self.writer.wait_until_settled(step.key, deadline) if resumed else step.before
        step = step.as_it_is(live)
        if live is not None and live is not step.before and self._is_own(step, live):
            return
        if live is None:
            self._create(step, deadline)
        elif step.action is Action.REPLACE:
            self.writer.apply(step, live)
        elif step.action is Action.RECREATE and step.is_untouched(live):
            self.writer.recreate(step.with_change(live), step.is_applied, deadline)
        else:
            raise ChangedByAnotherError(
                f"{step.key} was changed by another client since it was read"
            )

    def _create(self, step: ConfigStep, deadline: float) -> None:
        if step.action is Action.REPLACE:
            raise ChangedByAnotherError(f"{step.key} was deleted by another client")
        create = self.writer.create if step.before is not None else self.writer.create_new
        create(self._new_body(step), lambda live: self._is_own(step, live), deadline)

    def _new_body(self, step: ConfigStep) -> Json:
        labels = self.writer.labels if step.before is None else {}
        return new_object(step.after, step.key.namespace, labels)

    def _is_own(self, step: ConfigStep, live: Json) -> bool:
        """Tell whether an object is as the step wants it and, where the step creates it, has the
        label of this instance: another one may create the same at this time."""
        return step.is_applied(live) and (
            step.before is not None or instance_of(live) == instance_of(self._new_body(step))
        )

    def make_immutable(self, step: ConfigStep) -> None:
        """Make the object immutable; raises as :meth:`apply`."""

        def immutable(live: Json) -> Json:
            if not step.as_it_is(live).is_applied(live):
                raise ChangedByAnotherError(f"{step.key} was changed by another client meanwhile")
            return step.with_change(live)

        self.writer.edit(step.key, self.cluster.get(step.key), immutable)

    def revert(self, step: ConfigStep, deadline: float) -> Reverted:
        """Restore the content, or delete a created object."""
        live = self.writer.wait_until_settled(step.key, deadline)
        step = step.as_it_is(live)
        if live is None and step.before is None:
            return Reverted.UNCHANGED
        if live is None:
            self.cluster.create(new_object(step.old, step.key.namespace, {}))
        elif step.before is not None and step.is_restored(live):
            return Reverted.UNCHANGED
        elif not self._is_own(step, live):
            return Reverted.OF_OTHERS
        elif step.before is None and is_kept(live):
            return Reverted.KEPT
        elif step.before is None:
            self.writer.delete(live, deadline)
            return Reverted.DELETED
        elif _is_replaceable(step.before, live):
            self.writer.restore(step, live)
        else:
            self.writer.recreate(step.without_change(live), step.is_restored, deadline)
        return Reverted.RESTORED


def _is_replaceable(before: Json, live: Json) -> bool:
    now, then = diff.content(live), diff.content(before)
    return not now.immutable and now.type == then.type
