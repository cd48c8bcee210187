# SPDX-License-Identifier: Apache-2.0
"""The journal of a change, for an undo or a resumption, in a stack of its own.

A stack without resources holds the journal as one of its files. It is where the VNF is, so that
any host with access to the project can finish or undo what a lost host began; nothing of it is in
``stack show``. It takes one stack of the project's quota while a change runs. Its tags name the
holder and the time of the last heartbeat.

Heat has no conditional requests; two of its rules fence a host that lost its hold all the same. A
name is given to one stack at a time, and a request with an id never reaches another stack.
So a run that takes over creates a *successor*, named after the id of the stack that it succeeds:
only one run can. It then reads what the earlier run wrote last, writes it into its own stack and
deletes the earlier one. Each run writes to its own stack by its id, and looks for a successor
after every write and before every request to the VNF's stacks. Of two runs that write and then look
at least one sees the other: either the earlier run sees the successor and stops, or the later one
reads all that the earlier one did.
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from container_update.cluster import keeping
from container_update.model import context_threads, errors
from container_update.model.cancellation import CancelToken
from container_update.model.objects import Json
from container_update.model.operation import name_of
from container_update.model.packing import DAMAGED
from container_update.openstack.client import Heat, heat_minutes, reference
from container_update.openstack.hold import Clock, StackHolder, is_free, tags_of
from container_update.openstack.record import StackRecord, decode, encode

LOG = logging.getLogger(__name__)

_FILE = "container-update-journal"
_SIGNED = "."
"""Between a record, the public name of a key and its signature; base64 has none."""
_ENDED = "ended"
"""The record of a change that needs none any more."""
_TEMPLATE: Json = {
    "heat_template_version": "2015-04-30",
    "description": "The journal of a change of the VNF's package that is under way",
    "resources": {"nothing": {"type": "OS::Heat::None"}},
}
_SETTLES_WITHIN = 120.0
"""Seconds in which Heat ends an action on the journal's stack."""


class UnsignedError(errors.ContainerUpdateError):
    """The journal has no signature of this host's key."""


@dataclass(frozen=True)
class _StoredJournal:
    """The journal of an operation that has not ended."""

    stacks: tuple[Json, ...]
    """Its stacks, each the successor of the one before; more than one while a run takes over."""
    record: str
    """The latest record in them."""


@dataclass
class StackJournal:
    """The journal of one VNF instance."""

    service: Heat
    instance_id: str | None
    operation: str
    """The run that uses it."""
    lease_seconds: float
    clock: Clock = Clock()  # noqa: RUF009, it is frozen
    cancel: CancelToken = field(default_factory=CancelToken)
    """Ends the wait for a hold that seems to have been lost."""
    _own: Json | None = field(default=None, init=False)
    """The stack that this run holds."""
    _renewed: float = field(default=0.0, init=False)
    """When it last sent a heartbeat, on the monotonic clock."""

    @property
    def _name(self) -> str:
        return name_of(self.instance_id)

    @property
    def is_held(self) -> bool:
        """Whether this run holds it."""
        return self._own is not None

    # --- reading --------------------------------------------------------------------------------

    def read(self) -> StackRecord | None:
        """Return the change that is under way; None where there is none, or it ends just now."""
        journal = self._find()
        if journal is None:
            return None
        text, _, end = journal.record.partition(_SIGNED)
        signer, _, signature = end.rpartition(_SIGNED)
        if self._key and not hmac.compare_digest(
            signature.encode(), self._signature(text).encode()
        ):
            why = keeping.why_untrusted("a journal", signer, self._key)
            raise UnsignedError(
                f"stack {self._name}: {why}; or correct the VNF by hand and delete this stack"
            )
        try:
            return decode(text)
        except DAMAGED as error:
            raise errors.ContainerUpdateError(
                f"stack {self._name}: the journal is damaged: correct the VNF by hand, then delete "
                "this stack"
            ) from error

    @property
    def _key(self) -> str:
        return self.service.journal_key

    def _signature(self, text: str) -> str:
        return keeping.signature([self._name, text], self._key)

    def _files(self, record: StackRecord) -> Json:
        """Return the files of its stack: a record, signed where this host has a key."""
        text = encode(record)
        if self._key:
            text = _SIGNED.join((text, keeping.public_name(self._key), self._signature(text)))
        return {_FILE: text}

    def holder(self) -> StackHolder | None:
        """Return who holds the journal; None where there is none, or where its run left it."""
        journal = self._find()
        stack = journal and self.service.stack(reference(journal.stacks[-1]))
        holder = StackHolder.of(stack) if stack else None
        return None if holder is None or holder.renewed is None else holder

    def stacks(self) -> list[Json]:
        """Return all stacks of this instance's journal, also what a lost run left of it."""
        return [
            stack
            for stack in self.service.stacks()
            if str(stack["stack_name"]).partition(".")[0] == self._name
        ]

    def _find(self) -> _StoredJournal | None:
        """Return the journal of the change under way, not what lost or refused runs left."""
        stacks = [stack for stack in map(self._settle, map(reference, self.stacks())) if stack]
        names = {stack["stack_name"] for stack in stacks}
        chains = [self._chain(stack, stacks) for stack in stacks]
        for chain in sorted(chains, key=lambda chain: chain[0]["stack_name"] == self._name):
            record = self._latest(chain)
            if record is not None and self._successor_of(chain[-1]) not in names:
                return _StoredJournal(chain, record)
        return None

    def _latest(self, chain: tuple[Json, ...]) -> str | None:
        """Return the latest record; None where there is none, or the change has ended."""
        texts = [text for stack in chain if (text := self._record_in(stack)) is not None]
        return texts[-1] if texts and texts[-1] != _ENDED else None

    def _chain(self, stack: Json, stacks: list[Json]) -> tuple[Json, ...]:
        """Return a stack after those that it succeeds, the first one first."""
        others = [other for other in stacks if other is not stack]  # their names may make a circle
        earlier = [other for other in others if stack["stack_name"] == self._successor_of(other)]
        return (*(self._chain(earlier[0], others) if earlier else ()), stack)

    def _successor_of(self, stack: Json) -> str:
        """Return the name of the stack with which a run takes over; Heat's limit is 255 letters."""
        return f"{self._name}.{stack['id'].replace('-', '')[:12]}"

    def _record_in(self, stack: Json) -> str | None:
        """Return what a stack holds; None where its run has begun to delete it."""
        if not self._is_there(stack):
            return None
        try:
            return self.service.files(reference(stack)).get(_FILE)
        except errors.ClusterError as error:
            if error.status != 404:  # deleted since it was listed
                raise
            return None

    # --- to hold it -----------------------------------------------------------------------------

    def begin(self, record: StackRecord) -> None:
        """Create the journal before anything is done; UpdateInProgressError: there is one."""
        self.sweep()
        self._own = self._create(self._name, self._files(record))
        journal = self._find()
        if journal is None or journal.stacks[0]["id"] != self._own["id"]:
            self._delete(self._own)  # another run had just taken over: no stack has the first name
            raise self._taken_error(self._name)
        self.confirm()

    def take_over(self) -> None:
        """Become the holder; nothing happens where the change has ended.

        :raises UpdateInProgressError: its holder lives, or another run takes over too.
        :raises LeaseLostError: another run has taken over from this one.
        """
        journal = self._find()
        if journal is None:
            return
        latest = journal.stacks[-1]
        if not is_free(lambda: self.service.stack(reference(latest)), self.clock, self.cancel):
            self.take_over()
            return
        self._own = self._create(self._successor_of(latest), {})
        # from here on an earlier run stops when it looks next: read what it wrote last
        record = self._latest(journal.stacks)
        self.confirm()
        if record is None:  # the change ended in the meantime
            self._delete(self._own)
            self._own = None
            return
        self._write({"files": {_FILE: record}})
        for stack in journal.stacks:  # the first one first: who sees a later one sees its successor
            self._delete(stack)
        self.confirm()

    def _create(self, name: str, files: Json) -> Json:
        body: Json = {"stack_name": name, "template": _TEMPLATE, "files": files}
        body |= {"tags": self._tags(), "timeout_mins": heat_minutes(_SETTLES_WITHIN)}
        deadline = time.monotonic() + _SETTLES_WITHIN
        while True:
            self._renewed = self.clock.monotonic()
            try:
                self.service.create(body)
                break
            except errors.ClusterError as error:
                if error.status != 409:
                    raise
                present = self.service.stack(name)
                if present and StackHolder.of(present).operation == self.operation:
                    break  # the first answer was lost
                if (present and self._is_there(present)) or time.monotonic() > deadline:
                    raise self._taken_error(name) from error
            time.sleep(0.02)  # Heat keeps the name of a deleted stack for a moment
        stack = self._settle(name)
        if stack is None:
            raise self._lost_error(name)
        return stack

    # --- while it is held -----------------------------------------------------------------------

    def confirm(self) -> None:
        """Send a heartbeat if it is due, and look whether another run has taken over.

        When it returns no other run takes over for at least a third of the lease.

        :raises LeaseLostError: another has, or this run never held the journal.
        """
        deadline = time.monotonic() + _SETTLES_WITHIN
        while True:
            self.renew()
            self._look()
            if self.clock.monotonic() - self._renewed <= self.lease_seconds * 2 / 3:
                return
            if time.monotonic() > deadline:
                raise errors.ClusterError(
                    f"Heat takes longer to answer than a heartbeat of stack {self._name} is good "
                    f"for ({self.lease_seconds:.0f} s): give it a longer lease_seconds"
                )

    def _look(self) -> None:
        """Raise LeaseLostError where another run has taken over."""
        if self._own is None:
            raise self._lost_error(self._name)
        # in this order: a successor goes only after what it succeeds
        successor = self._successor_of(self._own)
        if self.service.stack(successor) is not None:
            raise self._lost(f"another run has taken over: stack {successor} is its journal")
        if not self._is_there(self._own):
            raise self._lost_error(self._own["stack_name"])

    def write(self, record: StackRecord) -> StackRecord:
        """Replace the record; return it. LeaseLostError: another run has taken over."""
        self._write({"files": self._files(record)})
        self.confirm()
        return record

    def renew(self) -> None:
        """Send a heartbeat if the last one is more than a third of the lease ago."""
        if self._own and self.clock.monotonic() - self._renewed > self.lease_seconds / 3:
            self._write({})

    @contextmanager
    def renew_meanwhile(self) -> Iterator[None]:
        """Send heartbeats while the block runs something that sends none.

        :raises LeaseLostError: at its end: another run has taken over.
        """

        def keep_renewing(ended: threading.Event) -> None:
            while not ended.wait(self.lease_seconds / 6):
                try:
                    self.confirm()
                except errors.LeaseLostError:
                    return  # the end of the block raises it
                except errors.ContainerUpdateError as error:
                    LOG.warning("no heartbeat could be sent: %s", error)

        with context_threads.beside(keep_renewing, "journal"):
            yield
        self.confirm()

    def release(self) -> None:
        """Let any other run take over at once: this one has ended and leaves its journal."""
        try:
            self.confirm()
            self._write({"tags": tags_of(self.operation, None, self.lease_seconds)})
        except errors.LeaseLostError:
            return
        except errors.ClusterError as error:
            LOG.warning("the journal is free only after %.0f s: %s", self.lease_seconds, error)

    def remove(self) -> None:
        """Delete the journal: the change is finished or undone.

        :raises LeaseLostError: another run has taken over, and says what becomes of the change.
        """
        self._write({"files": {_FILE: _ENDED}})
        self.confirm()  # from here on a run that takes over reads that the change has ended
        self._own = None
        self.sweep()

    def sweep(self) -> None:
        """Delete the leftovers of runs that ended, were refused or were lost, unless a change is
        under way."""
        left = self.stacks()
        if self._find() is None:
            for stack in left:
                self._delete(stack)

    # --- one stack ------------------------------------------------------------------------------

    def _write(self, content: Json) -> None:
        """Change this run's own stack; every write is a heartbeat."""
        deadline = time.monotonic() + _SETTLES_WITHIN
        while True:
            began = self.clock.monotonic()
            stack = self._own and self._settle(reference(self._own))
            if stack is None:
                raise self._lost_error(self._name)
            try:
                update = {"tags": self._tags(), **content}
                self.service.update(reference(stack), update, existing=True)
                break
            except errors.ClusterError as error:
                if error.status == 404:
                    raise self._lost_error(self._name) from error
                # 409: an answer was lost, the first request is being carried out
                if error.status != 409 or time.monotonic() > deadline:
                    raise
        self._settle(reference(stack))
        self._renewed = began

    def _delete(self, stack: Json) -> None:
        """Delete a stack by its id, and wait until it is gone."""
        deadline = time.monotonic() + _SETTLES_WITHIN
        while (current := self._settle(reference(stack))) is not None:
            if time.monotonic() > deadline:
                raise errors.ClusterError(
                    f"stack {stack['stack_name']}, the journal of this change, is "
                    f"{current['stack_status']}: expected it to be deleted. The change itself has "
                    "ended: delete this stack"
                )
            try:
                self.service.delete(reference(stack))
            except errors.ClusterError as error:
                if error.status != 409:  # another action is in progress
                    raise
            time.sleep(0.02)

    def _is_there(self, stack: Json) -> bool:
        current = self.service.stack(reference(stack))
        return current is not None and not current["stack_status"].startswith("DELETE")

    def _settle(self, stack: str) -> Json | None:
        """Return a stack once no action is in progress on it; None where there is none."""
        deadline, pause = time.monotonic() + _SETTLES_WITHIN, 0.02
        while (current := self.service.stack(stack)) is not None:
            if not current["stack_status"].endswith("_IN_PROGRESS"):
                break
            if time.monotonic() > deadline:
                raise errors.ClusterError(
                    f"stack {stack} stays in {current['stack_status']}: expected it to end this "
                    f"within {_SETTLES_WITHIN:.0f} s: check that Heat's engines run"
                )
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
        return current

    def _tags(self) -> str:
        return tags_of(self.operation, self.clock.now(), self.lease_seconds)

    def _lost(self, why: str) -> errors.LeaseLostError:
        return errors.LeaseLostError(f"This run stopped where it was: {why}")

    def _lost_error(self, name: str) -> errors.LeaseLostError:
        return self._lost(
            f"stack {name}, the journal of this change, is gone: another run has taken over, or "
            "another client deleted it"
        )

    def _taken_error(self, name: str) -> errors.UpdateInProgressError:
        return errors.UpdateInProgressError(
            f"another change of this VNF instance has begun: stack {name} is its journal"
        )
