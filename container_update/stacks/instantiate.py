"""Make the stack that a package describes, and delete it again: the ends of a VNF's life.

For the service and small sites; Tacker instantiates and terminates by itself.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.model.cancellation import CancelToken
from container_update.model.errors import ClusterError, NextStep, PlanError
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.package import csar, hot, hot_files
from container_update.package.hot import Body
from container_update.stacks import desired
from container_update.stacks.client import StackService, reference, state_sentence
from container_update.stacks.desired import Software
from container_update.stacks.planner import flavour_of

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


def described_by(package: str, flavour_id: str, given: Mapping[str, Any], options: Options) -> Body:
    """Return the stack as a package describes it.

    :param given: values for parameters of the top template.
    :raises PackageError: the package is wrong, or does not fit what is given.
    """
    with csar.open_package(package, options=options) as opened:
        flavour = flavour_of(opened, flavour_id)
        body = hot_files.base_hot(opened, flavour.id)
        places = {
            vdu_id: hot.place_of(body, vdu_id, name, opened.source)
            for vdu_id, name in flavour.vdus.items()
        }
        software = Software(flavour.images, flavour.compute_flavours)
        return desired.first(body, given, places, software)


@dataclass(frozen=True)
class Builder:
    """Makes and deletes whole stacks, and waits until that is done.

    Every method raises ClusterError where Heat cannot be asked, and PlanError with Heat's reason
    where it could not do it, or not within ``options.timeout``.
    """

    service: StackService
    options: Options
    cancel: CancelToken = field(default_factory=CancelToken)
    """Asked from elsewhere, ends the waiting early; the stacks stay as far as they are."""
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)

    def make(self, name: str, body: Body) -> Json:
        """Make a stack; one of that name, which an earlier try left, is deleted first.

        :returns: the stack, as Heat describes it.
        """
        self.delete(name)
        tag = f"container-update-{uuid.uuid4().hex[:16]}"  # whose it is, after a lost answer
        request = {"stack_name": name, "tags": tag, "disable_rollback": True, **body.as_request()}
        try:
            self.service.create(request)
        except ClusterError as error:
            current = self.service.stack(name) if error.status == 409 else None
            if current is None or tag not in (current.get("tags") or ()):
                raise  # else the first answer was lost, and this was the second try
        current = self._settled(name)
        if current is None:
            raise PlanError(f"stack {name} is gone: somebody else deleted it")
        if current["stack_status"] != "CREATE_COMPLETE":
            raise PlanError(state_sentence(current))
        return current

    def delete(self, stack: str) -> None:
        """Delete a stack, by its name or by ``name/id``; nothing where there is none."""
        deadline = self.clock() + self.options.timeout
        current = self.service.stack(stack)
        if current is None:
            return
        stack = reference(current)
        while True:
            try:
                self.service.delete(stack)
                break
            except ClusterError as error:
                if error.status != 409 or self.clock() > deadline:
                    raise
                self._rest(_FIRST_PAUSE, stack)
        current = self._settled(stack)
        if current is not None:
            raise PlanError(state_sentence(current))

    def _settled(self, stack: str) -> Json | None:
        """Return the stack as soon as nothing is done to it; None where there is none."""
        deadline, pause = self.clock() + self.options.timeout, _FIRST_PAUSE
        while (current := self.service.stack(stack)) and str(current["stack_status"]).endswith(
            "_IN_PROGRESS"
        ):
            if self.clock() > deadline:
                raise PlanError(f"{state_sentence(current)}; the time limit is over")
            self._rest(pause, stack)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return current

    def _rest(self, seconds: float, stack: str) -> None:
        if self.cancel:
            raise PlanError(
                f"stack {stack}: the wait for it was stopped {self.cancel.reason}",
                next_step=NextStep.RETRY,
            )
        self.pause(seconds)
