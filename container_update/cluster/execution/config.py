"""Carries out steps that write the content of ConfigMaps and Secrets."""

from __future__ import annotations

from dataclasses import dataclass

from container_update.cluster.execution.context import ExecutionContext, Reverted
from container_update.cluster.execution.writer import ChangedByAnotherError
from container_update.model.objects import Json
from container_update.model.plan import Action
from container_update.planning import diff
from container_update.planning.steps import ConfigStep
from container_update.planning.steps.new_objects import new_object


@dataclass(frozen=True)
class ConfigExecutor:
    """See :class:`~container_update.cluster.execution.context.StepExecutor`."""

    context: ExecutionContext

    def apply(self, step: ConfigStep, _: float) -> None:
        """Create, replace or recreate the object."""
        writer = self.context.writer
        live = writer.read(step)
        if live is not None and live is not step.before and step.is_applied(live):
            return
        if live is None:
            self._create(step)
        elif step.action is Action.REPLACE:
            writer.apply(step, live)
        elif step.action is Action.RECREATE and step.is_untouched(live):
            writer.recreate(step.key, step.desired(live))
        else:
            raise ChangedByAnotherError(
                f"{step.key} was changed by somebody else since it was read"
            )

    def _create(self, step: ConfigStep) -> None:
        if step.action is Action.REPLACE:
            raise ChangedByAnotherError(f"{step.key} was deleted by somebody else")
        if step.before is not None:
            body = new_object(step.desired(step.before), step.key.namespace, {})
        else:
            body = new_object(step.content, step.key.namespace, self.context.writer.labels)
        self.context.writer.create(body, step.is_applied)

    def revert(self, step: ConfigStep, _: float) -> Reverted:
        """Put the content back as it was, or delete what was created."""
        live = self.context.cluster.get(step.key)
        if step.before is None:
            return self._delete(step, live)
        if live is None:
            self.context.cluster.create(new_object(step.before, step.key.namespace, {}))
            return Reverted.RESTORED
        if step.is_restored(live):
            return Reverted.UNCHANGED
        if not step.is_applied(live):
            return Reverted.OF_OTHERS
        if _is_replaceable(step.before, live):
            self.context.writer.restore(step, live)
        else:
            self.context.writer.recreate(step.key, step.restored(live))
        return Reverted.RESTORED

    def _delete(self, step: ConfigStep, live: Json | None) -> Reverted:
        if live is None:
            return Reverted.UNCHANGED
        if not step.is_applied(live):
            return Reverted.OF_OTHERS
        self.context.cluster.delete(step.key, uid=live["metadata"]["uid"])
        return Reverted.RESTORED


def _is_replaceable(before: Json, live: Json) -> bool:
    now, then = diff.content(live), diff.content(before)
    return not now.immutable and now.type == then.type
