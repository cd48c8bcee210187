# SPDX-License-Identifier: Apache-2.0
"""A run that holds the lease and has a journal, until both are released."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from container_update.cluster.history import HistoryWriter
from container_update.cluster.journal import Journal
from container_update.cluster.lease import LeaseLock, utc_now
from container_update.cluster.operation import Operation, Revision
from container_update.engine.execute import Execution
from container_update.engine.fence import Fence
from container_update.model import context_threads, errors, operation
from container_update.model.objects import Json, ObjectKey, namespace_key
from container_update.model.options import OF_VNFM
from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.plan import UNINSTALL, Action
from container_update.planning import order
from container_update.planning.steps import ManifestStep
from container_update.planning.steps.manifest import is_made_of

LOG = logging.getLogger(__name__)


@dataclass
class JournalledRun:
    """A run that holds the lease and has a journal."""

    lock: LeaseLock
    journal: Journal
    record: Operation
    execution: Execution
    marked: tuple[ObjectKey, ...]
    """The objects that the fence has labelled, or the journal owns, until the run has ended."""
    kept: Revision | None = field(default=None, init=False)
    """Its revision in the history once it has ended; None where it is not kept."""
    _kept_before: Callable[[], Sequence[Json]] | None = field(default=None, init=False)
    """Returns the history as it was when the run began."""

    def note(self, ended: int, results: Sequence[StepResult]) -> None:
        """Note, for a resume, how many groups have ended, and the scripts' results of the last."""
        scripts = [result.script for result in results if result.script is not None]
        self.record = self.journal.note(self.record, ended, scripts)

    def turn_back(self) -> None:
        """Note in the journal that the run is being undone; the undo goes on if that fails."""
        self._note_phase(operation.Phase.UNDO, "still says that the update goes on")

    def end(self, undone: Outcome | None = None, cause: str = "") -> None:
        """Keep what the run did in the history, then remove its journal.

        Where the API server refuses, the journal stays, and the next run, which has only this left
        to do, removes it, or raises what the API server says.

        The revision, the removal of the journal and the release of the lease come one after
        another. Were the journal removed while the revision is written, a run killed in between
        would have done something that no history tells of. Were the lease released while the
        journal is removed, another run could find the journal and end this run a second time.

        :param undone: the outcome of a run that was undone: of the objects that it had created only
            those that another client has changed since, or that are kept, are still there.
        :param cause: why it was undone.
        :raises LeaseLostError: another run may have gone on with it.
        :raises ClusterError: the journal of a run that had ended before still cannot be removed.
        """
        was_over = self.is_over
        left = () if undone is None else (*undone.left_to_others, *undone.kept)
        stay = frozenset(self.marked if undone is None else left)
        execution = self.execution
        execution.events.finish()
        if (own := self._deleted_namespace(undone, left)) is None:
            self._confirm_and_keep(undone, cause)
        else:
            self.lock.confirm()
        for _ in range(2):
            try:
                if self._is_uninstalled and undone is None:
                    self._forget_instance(is_kept=own is None)
                fence = Fence(execution.cluster, execution.options.workers)
                fence.lower(self.marked, self.journal.owner, stay, execution.informer.live)
                if own is None or not self._delete_namespace(own):
                    self.journal.remove()
                break
            except errors.ClusterError as error:
                refusal = error
        else:
            if was_over:
                raise refusal
            LOG.warning("the journal of a run that ended could not be removed: %s", refusal)
            if not refusal.transient:
                # the next run would undo what has ended: a webhook may let it be written alone
                self._note_phase(operation.Phase.END, "does not say that the run has ended")
        self.lock.check()

    def _note_phase(self, phase: operation.Phase, otherwise: str) -> None:
        try:
            self.record = self.journal.set_phase(self.record, phase)
        except errors.ClusterError as error:
            LOG.warning("the journal %s: %s", otherwise, error)

    def _deleted_namespace(
        self, undone: Outcome | None, left: Container[ObjectKey]
    ) -> ManifestStep | None:
        """Return the step of the VNF's own Namespace where the run, or its undo, deletes that."""
        action = Action.DELETE if undone is None else Action.CREATE
        for step in self.record.object_steps:
            is_own = step.key == namespace_key(self.journal.namespace)
            if is_own and step.action is action and step.key not in left:
                assert isinstance(step, ManifestStep), "its manifest is its content"
                return step
        return None

    def _delete_namespace(self, step: ManifestStep) -> bool:
        """Delete the VNF's own Namespace, with journal and lease; tell whether it is the step's."""
        cluster, instance_id = self.execution.cluster, self.record.instance_id
        live = cluster.get(step.key)
        if live is None or (
            not is_made_of(step.content, live, instance_id)
            if step.content
            else live["metadata"]["uid"] != step.old["metadata"]["uid"]
        ):
            return False
        self.journal.remove_elsewhere()
        self.lock.stop_renewing()
        cluster.delete(step.key, uid=live["metadata"]["uid"])
        return True

    @property
    def is_over(self) -> bool:
        """Whether only :meth:`end` is left: nothing can be undone any more."""
        return self.record.phase is operation.Phase.END

    @contextmanager
    def until_ended(self) -> Iterator[None]:
        """Remove the journal when the block is finished or completely undone, and only then."""
        if self.record.origin.kind and self.execution.options.history > 0:
            self._kept_before = context_threads.in_background(self._history.every)
        try:
            yield
            if not self.is_over:
                self._undo_if_locked_out()
        except errors.UpdateFailedError as error:
            states = {result.state for result in error.outcome.results}
            if states <= {StepState.UNDONE, StepState.NOT_STARTED}:
                self.end(error.outcome, error.cause)
            raise
        if self.record.held_at is None:
            self.end()

    def _undo_if_locked_out(self) -> None:
        """Undo the run where its own webhook or policy refuses the renewal of the lease."""
        steps = self.record.object_steps
        written = [s for s in steps if order.judges(s.key) and not s.is_removal]
        if written and (error := self.lock.refused_renewal()) is not None:
            self.execution.revert_first(written)
            key = written[-1].key
            self.execution.give_up(f"{key} failed: with it, the lease cannot be renewed: {error}")

    def _confirm_and_keep(self, undone: Outcome | None, cause: str) -> None:
        """Confirm the lease and write the revision meanwhile, to be forgotten if that is lost."""
        keep = context_threads.in_background(lambda: self._keep_history(undone, cause))
        try:
            self.lock.confirm()
        except errors.LeaseLostError:
            if (kept := keep()) is not None:
                replace(self._history, cluster=self.lock.cluster).forget(kept)
            raise
        self.kept = keep()

    def _keep_history(self, undone: Outcome | None, cause: str) -> Revision | None:
        """Write the revision; whether that succeeds does not matter to the run."""
        if not self.record.origin.kind or (self._is_uninstalled and undone is None):
            return None
        why, report = (None, ()) if undone is None else (cause, undone.diagnosed)
        ended = Revision.of(self.record, utc_now(), self.journal.owner["uid"], why, report)
        return self._history.keep(ended, self.execution.options.history, self._kept_before)

    @property
    def _history(self) -> HistoryWriter:
        return HistoryWriter(
            self.execution.cluster, self.journal.namespace, self.record.instance_id
        )

    @property
    def _is_uninstalled(self) -> bool:
        return self.record.origin.kind == UNINSTALL

    def _forget_instance(self, *, is_kept: bool) -> None:
        """Delete the history of an instance that is no more; *is_kept*: but for a summary."""
        if not self.is_over:
            self.record = self.journal.set_phase(self.record, operation.Phase.END)
        is_kept = is_kept and self.execution.options.history > OF_VNFM
        ended = Revision.of(self.record, utc_now(), self.journal.owner["uid"])
        self._history.clear(ended if is_kept else None)
