# SPDX-License-Identifier: Apache-2.0
"""Change one stack, each request safe to repeat.

What was sent to a stack is marked in its tags with the operation and a digest of what was sent:
after a lost answer, or in another run, the tag shows whether it was done. An update of a stack
clears the tags of those nested in it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from container_update.model import errors
from container_update.model.cancellation import CancelToken
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.openstack.client import Heat, heat_minutes, reference, state_sentence
from container_update.openstack.journal import StackJournal
from container_update.openstack.record import MARK
from container_update.openstack.templates import groups
from container_update.openstack.vnfcs import VnfcServer
from container_update.package.hot import StackBody

LOG = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
HEATS_MINUTES = 60
"""Heat's time limit for an action on a stack that sets none, by its default configuration."""


class StepError(errors.ContainerUpdateError):
    """A step failed; the message says why."""


@dataclass(repr=False)
class Writer:
    """Changes stacks for one operation, and waits until Heat is done."""

    service: Heat
    journal: StackJournal
    options: Options
    cancel: CancelToken
    tag_of: Callable[[StackBody | None], str]
    """Returns the tag of a body of this operation."""
    undoing: bool = field(default=False, init=False)
    """The operation is being undone: another time limit, and nothing stops it."""

    # --- one stack ------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        body: StackBody,
        kept: tuple[str, ...],
        minutes: int | None,
        *,
        instead: bool = False,
    ) -> None:
        """Create a stack; replace one that failed in an earlier run.

        :param instead: replace one that another operation has left, too.
        :param minutes: its own time limit for each action: what does not end is deleted in the
            undo, which waits for nothing.
        """
        tag, deadline, sent = self.tag_of(body), self.deadline(), False
        limit = {"timeout_mins": minutes or HEATS_MINUTES}
        marks = {"tags": _join(kept, tag), "disable_rollback": True}
        left = self.service.stack(name) if instead else None
        if left is not None and tag not in (left.get("tags") or ()):
            self.delete(reference(left))
        while True:
            current = self.wait_until_settled(name, deadline)
            if current is None:
                if time.monotonic() > deadline:
                    raise StepError(
                        f"stack {name} is not there after the time limit, though Heat took the "
                        "request: see whether another client deletes it"
                    )
                try:
                    self.service.create(
                        {"stack_name": name} | marks | limit | body.as_request(),
                        guard=self.journal.confirm,
                    )
                except errors.ClusterError as error:
                    self._only_busy(error, name, deadline)
                sent = True
                self._rest(_FIRST_PAUSE)
                continue
            if tag not in (current.get("tags") or ()):
                raise StepError(
                    f"expected no stack {name}, found one that this operation did not make: delete "
                    "or rename it"
                )
            if current["stack_status"] == "CREATE_COMPLETE":
                return
            if sent:
                raise StepError(state_sentence(current))
            self.delete(reference(current))  # an earlier run's: with CREATE_FAILED none is updated

    def update(
        self,
        stack: str,
        body: StackBody,
        minutes: int | None = None,
        *,
        again: bool = False,
        only: tuple[str, ...] | None = None,
    ) -> None:
        """Update a stack; repeat an update that failed in an earlier run.

        :param minutes: Heat's time limit, after which a resource that does not end is free again;
            None: that of the step.
        :param again: even if this body was sent before: unhealthy resources are to be replaced.
        :param only: what of the body is sent, the rest stays as it is; None: all of it.
        """
        tag, deadline, sent = self.tag_of(body), self.deadline(), False
        while True:
            current = self.wait_until_settled(stack, deadline)
            if current is None:
                raise StepError(f"stack {stack} is gone: another client deleted it")
            if tag in (current.get("tags") or ()) and (sent or not again):
                status = current["stack_status"]  # ROLLBACK_COMPLETE: Heat has undone the update
                if status.endswith("_COMPLETE") and not status.startswith("ROLLBACK"):
                    return
                if sent and not self._was_cancelled(current):
                    raise StepError(state_sentence(current))
            # an undo writes over it until its time is over: the old state has to come back
            elif sent and (not self.undoing or time.monotonic() > deadline):
                raise StepError(
                    f"stack {current['stack_name']} was updated by another client at the same time"
                )
            try:
                self._send_update(current, body, minutes or self.minutes, only)
                sent = True
            except errors.ClusterError as error:
                self._only_busy(error, stack, deadline)
            self._rest(_FIRST_PAUSE)

    def _send_update(
        self, current: Json, body: StackBody, minutes: int, only: tuple[str, ...] | None
    ) -> None:
        stack, tag = reference(current), self.tag_of(body)
        if groups.MASKED in str(body.template):
            body = groups.unmask(body, self.service.template(stack))
        request, existing = body.as_update()
        if only is not None:
            request, existing = {name: request[name] for name in only}, True
        request["tags"] = _join(operators_tags(current), tag)
        request["timeout_mins"] = minutes
        self.service.update(stack, request, existing=existing, guard=self.journal.confirm)

    def set_minutes(self, stack: str, minutes: int) -> None:
        """Give a stack its own time limit back; nothing else of it changes."""
        self.service.update(
            stack, {"timeout_mins": minutes}, existing=True, guard=self.journal.confirm
        )
        self.wait_until_settled(stack, self.deadline())

    def stop(self, stack: str, body: StackBody) -> None:
        """Cancel this operation's update of a stack to *body*, if it is in progress.

        Heat lets the resources that it has begun with end, or fail at the time limit.
        """
        current = self.service.stack(stack) or {}
        is_ours = self.tag_of(body) in (current.get("tags") or ())
        if is_ours and current["stack_status"] == "UPDATE_IN_PROGRESS":
            self.service.cancel(stack, guard=self.journal.confirm)

    def mark_unhealthy(self, stack: str, resource: str, reason: str) -> None:
        """Have the next update replace a resource, or remove it from its group first of all."""
        self.service.mark_unhealthy(stack, resource, reason, guard=self.journal.confirm)

    def delete(self, stack: str) -> None:
        """Delete a stack, and wait until it is gone."""
        deadline = self.deadline()
        while True:
            try:
                self.service.delete(stack, guard=self.journal.confirm)
                break
            except errors.ClusterError as error:
                self._only_busy(error, stack, deadline)
                self._rest(_FIRST_PAUSE)
        current = self.wait_until_settled(stack, deadline)
        if current is not None:
            raise StepError(state_sentence(current))

    def _was_cancelled(self, stack: Json) -> bool:
        """Return whether an earlier run's request to cancel its update has met that of the undo."""
        return self.undoing and str(stack["stack_status_reason"]).endswith("cancelled")

    def _only_busy(self, error: errors.ClusterError, stack: str, deadline: float) -> None:
        """Raise the error unless the stack is busy (409) and there is time to try again."""
        if error.status != 409 or time.monotonic() > deadline:
            raise error
        LOG.info("stack %s is busy: %s", stack, error)

    # --- waiting --------------------------------------------------------------------------------

    def active(self, member: VnfcServer, part: float = 1.0) -> Json:
        """Return the server's resource once the server is active: it can fail after Heat's update
        has ended.

        :param part: of a step's time limit.
        """
        began = time.monotonic()
        deadline = began + part * self._limit
        while True:
            current = self.service.resource(member.stack, member.resource) or {}
            status = str((current.get("attributes") or {}).get("status", "gone"))
            if status == "ACTIVE":
                return current
            if status == "ERROR" or time.monotonic() > deadline:
                raise StepError(f"its server is {status}, expected ACTIVE: see the server's fault")
            self._rest(_pause(began))

    def wait_until_settled(self, stack: str, deadline: float) -> Json | None:
        """Return the stack once no action is in progress on it; None where there is none."""
        began = time.monotonic()
        while True:
            current = self.service.stack(stack)
            if current is None or not current["stack_status"].endswith("_IN_PROGRESS"):
                return current
            if time.monotonic() > deadline:
                raise StepError(
                    f"stack {current['stack_name']} is still {current['stack_status']} after the "
                    f"time limit; Heat says: {current['stack_status_reason']}"
                )
            self.check_stop()
            self._rest(_pause(began))

    def quiet(self, stack: str) -> None:
        """Wait until nothing is in progress on a stack and its resources: those of a failed or
        cancelled update go on."""
        began, deadline = time.monotonic(), self.deadline()
        current = self.wait_until_settled(stack, deadline)
        while current is not None and not current["stack_status"].endswith("_COMPLETE"):
            busy = [
                str(resource["resource_name"])
                for resource in self.service.resources(stack)
                if str(resource["resource_status"]).endswith("_IN_PROGRESS")
            ]
            if not busy:
                return
            if time.monotonic() > deadline:
                raise StepError(
                    f"resources {', '.join(busy)} of stack {current['stack_name']} are still in "
                    "progress after the time limit"
                )
            self._rest(_pause(began))
            current = self.wait_until_settled(stack, deadline)

    def _rest(self, seconds: float) -> None:
        self.journal.renew()
        time.sleep(seconds)

    def check_stop(self) -> None:
        """Raise StepError where the change is to stop; an undo goes on."""
        if self.cancel and not self.undoing:
            raise StepError(f"stopped {self.cancel.reason}")

    def deadline(self) -> float:
        """Return when a step that begins now has to have ended, on the monotonic clock."""
        return time.monotonic() + self._limit

    @property
    def minutes(self) -> int:
        """The time limit of a step in the minutes that Heat counts."""
        return heat_minutes(self._limit)

    @property
    def _limit(self) -> float:
        return self.options.undo_timeout if self.undoing else self.options.timeout


def _pause(began: float) -> float:
    """Return the pause before the next look: a tenth of the wait so far, within limits."""
    return min(max(_FIRST_PAUSE, (time.monotonic() - began) / 10), _LONGEST_PAUSE)


def operators_tags(stack: Json) -> tuple[str, ...]:
    """Return the tags of a stack that no operation of this program has set."""
    return tuple(tag for tag in stack.get("tags") or () if not tag.startswith(MARK))


def _join(kept: tuple[str, ...], tag: str) -> str:
    return ",".join((*kept, tag))
