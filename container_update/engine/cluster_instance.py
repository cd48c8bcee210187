# SPDX-License-Identifier: Apache-2.0
"""A VNF instance in a cluster: what :mod:`container_update.engine.run` asks of it.

A run may be interrupted anywhere: the lease and the journal are around it, and what it left behind
in its journal is finished or undone by the next one.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from container_update.cluster.beginning import host_name, new_identity, origin_of
from container_update.cluster.informer import Informer
from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.journal import Journal
from container_update.cluster.lease import LeaseLock, utc_now
from container_update.cluster.operation import Operation, Revision
from container_update.cluster.retry import RetryingCluster
from container_update.engine.checks.grants import refuse_lasting_grants
from container_update.engine.checks.image_check import check_images_pullable
from container_update.engine.cluster_view import ClusterView, wrong_requests_first
from container_update.engine.execute import Execution, pods_by_workload
from container_update.engine.goal import Goal, Observed
from container_update.engine.journalled_run import JournalledRun
from container_update.engine.notes import Notes
from container_update.engine.recovery import ClusterRecovery, Described, GoOn
from container_update.engine.workload_events import EventRecorder
from container_update.model import errors
from container_update.model.cancellation import CancelToken
from container_update.model.objects import INSTANCE_LABEL, ObjectKey, namespace_key
from container_update.model.outcome import Outcome, Progress, StepResult
from container_update.model.plan import Action, Plan
from container_update.model.reporter import reporter
from container_update.planning import permissions
from container_update.planning.steps import ManifestStep, object_steps
from container_update.planning.steps.new_objects import new_object
from container_update.workloads import ownership

LOG = logging.getLogger(__name__)


@dataclass
class ClusterInstance(ClusterView):
    """A VNF instance in a cluster, on which one operation at a time can be under way."""

    cluster: RetryingCluster
    progress: Progress = lambda _: None
    leave_failed: bool = False
    """A failed operation is left for a rollback or a resume, not undone."""
    cancel: CancelToken = field(default_factory=CancelToken)
    """Cancels the operation from another thread or a signal handler."""
    why: str = ""
    """The reason that the user gave for ending an operation that another run began."""
    kept: Revision | None = field(default=None, init=False)
    """The revision of the run that ended last; None where it is not kept."""
    informer: Informer | None = field(default=None, init=False)
    """The informer of the interrupted run that was recovered last."""
    read_at: str = field(default="", init=False)
    """The version at which the journal was read before the plan was made; see Journal."""

    def __post_init__(self) -> None:
        self.progress = reporter(self.progress)

    @property
    def in_history(self) -> dict[str, Any]:
        """The attributes of an outcome about the revision of the run that ended last."""
        if self.kept is None:
            return {}
        return {"revision": self.kept.number, "has_way_back": self.kept.is_kept}

    def journal_of(self, lock: LeaseLock) -> Journal:
        """Return the journal that the holder of the lease may write."""
        cluster = self.cluster.with_guard(lock.check)
        return Journal(cluster, self.namespace, self.instance_id, lock.operation)

    def lock(self, run_id: str, *, ends: bool = False) -> LeaseLock:
        """Return the lease of a run; *ends*: it only ends an operation under way."""
        return LeaseLock(
            self.cluster,
            self.namespace,
            self.instance_id,
            run_id,
            host_name(),
            self.options.lease_seconds,
            self.cancel,
            ends,
        )

    # --- an operation, step by step -------------------------------------------------------------

    def recover_for(self, goal: Goal) -> Outcome | None:
        """Finish what an earlier run left where it has the same goal, else undo it."""
        with wrong_requests_first(goal):
            promotes, described = goal.intent.promotes, goal.read_manifests
            outcome = ClusterRecovery(
                self, goal.digest, promote=promotes, go_on=goal.carry_out, described=described
            ).run()
        self.resumed = outcome is not None
        if not self.resumed:
            self.cluster.ask_rights(self.namespace)  # meanwhile
        return outcome

    def happens_once(self, goal: Goal) -> bool:
        """Tell whether an interrupted run that is finished is all that was asked for."""
        return goal.intent.happens_once

    def make_plan(self, goal: Goal, observed: Observed) -> Plan:
        """Return the plan of a goal; have the nodes pull its images where the options say so."""
        plan = super().make_plan(goal, observed)
        if self.options.pull and not plan.is_empty:
            plan = check_images_pullable(plan, self.cluster, self.options, self.cancel)
        return plan

    @contextmanager
    def begin(self, goal: Goal, plan: Plan, observed: Observed) -> Iterator[JournalledRun]:
        """Hold the lease and the journal while the block carries out the plan of a goal.

        :raises ClusterError: the account lacks a right; nothing was written.
        :raises FrozenError: the instance is frozen.
        :raises UpdateInProgressError: another update of this instance runs, or ran since the
            plan was made.
        """
        owns, informer, intent = self.require_rights(plan), observed.informer, goal.intent
        common = new_identity(utc_now(), goal.digest(), self.instance_id)
        steps = object_steps(plan)
        origin = origin_of(intent.kind, plan.packages, intent.undoes, intent.scripts, intent.why)
        instance = plan.instance  # what it runs from afterwards
        if not (intent.kind and self.options.history):
            instance = b""
        elif instance is None:
            instance = InstanceRecord.of(plan).encode(self.namespace)
        with self._own_namespace(plan) as unclaimed, self.lock(common["operation"]) as lock:
            record = Operation(
                **common,
                origin=origin,
                steps=plan.steps,
                pods_before=pods_by_workload(steps, informer),
                def_files=plan.def_files,
                context=plan.context,
                objects=tuple(manifest.key for manifest in plan.manifests),
                instance=instance,
            )
            journal = self.journal_of(lock)
            is_first = journal.first_since(self.read_at)
            journal.write(record, lock, lambda: self._refuse_stale(is_first, plan, informer))
            run = self.run_of(lock, journal, record, plan, informer, owns=owns, resumed=False)
            created = (s.key for s in steps if s.action in (Action.CREATE, Action.HAND_OVER))
            run.marked = tuple(created) if owns else ()
            unclaimed.pop_all()  # the end of the run takes the Namespace back
            with run.until_ended():
                yield run
            self.kept = run.kept

    @contextmanager
    def _own_namespace(self, plan: Plan) -> Iterator[ExitStack]:
        """Create the VNF's own Namespace where the plan does: the lease and the journal are in it.

        Its step finds it created. Who runs the block calls ``pop_all`` of what it gets once the
        journal is there; otherwise the Namespace is deleted after the block.
        """
        labels = {INSTANCE_LABEL: self.instance_id} if self.instance_id else {}
        with ExitStack() as unclaimed:
            for step in object_steps(plan):
                is_own = step.key == namespace_key(self.namespace)
                if not (is_own and step.action is Action.CREATE and isinstance(step, ManifestStep)):
                    continue
                assert step.content is not None, "a creation has its manifest"
                try:
                    made = self.cluster.create(new_object(step.content, "", labels))
                except errors.ClusterError as error:
                    if error.status != 409:  # another client's, of which the step tells more
                        raise
                else:
                    delete, uid = self.cluster.delete, made["metadata"]["uid"]
                    unclaimed.callback(partial(delete, step.key, uid=uid))
            yield unclaimed

    def outcome(self, plan: Plan, results: tuple[StepResult, ...], observed: Observed) -> Outcome:
        """Return the outcome of a plan, with the live pods."""
        return Outcome(
            plan=plan,
            results=results,
            vnfcs=ownership.vnfcs(plan.vdus, plan.manifests, observed.live),
            restarted=restarted_pods(results, observed.informer),
            **self.in_history,
        )

    def _refuse_stale(self, is_first: Callable[[], bool], plan: Plan, informer: Informer) -> None:
        """Raise UpdateInProgressError where an object of the plan has changed since it was listed.

        The plan is made without the lease, so that a plan with no steps writes nothing: another
        operation may have held it in the meantime, from its beginning to its end.
        """
        if is_first():
            return
        keys = dict.fromkeys([m.key for m in plan.manifests] + [s.key for s in object_steps(plan)])
        if changed := informer.changed_since_listed(keys):
            raise errors.UpdateInProgressError(
                f"{', '.join(map(str, changed))} changed while the operation was being planned; "
                "another operation of this VNF instance may have ended since: nothing was changed",
                next_step=errors.NextStep.RETRY,
            )

    def require_rights(self, plan: Plan) -> bool:
        """Return whether what the plan creates can belong to the journal until its end."""
        needed, to_release = permissions.needed_rights(plan), permissions.to_release(plan)
        refused = self.cluster.missing_rights((*needed, *to_release))
        missing = [right for right in refused if right in needed]
        if missing:
            raise errors.ClusterError(
                "the operation, or its undo, would be refused (403) because this account may not "
                f"{'; '.join(str(right) for right in missing)}: nothing was written; bind a Role "
                "with these rights to it",
                status=403,
                reason="Forbidden",
                next_step=errors.NextStep.GRANT_RIGHTS,
            )
        refuse_lasting_grants(plan, self.cluster)
        return not set(refused).intersection(to_release)

    def run_of(  # noqa: PLR0913
        self,
        lock: LeaseLock,
        journal: Journal,
        record: Operation,
        plan: Plan,
        informer: Informer,
        *,
        owns: bool,
        resumed: bool,
    ) -> JournalledRun:
        """Return the run that carries out a plan, or undoes it.

        :param owns: what the plan creates can belong to the journal until the run has ended.
        :param resumed: an earlier run has begun it.
        """
        notes = Notes(record, self.progress)
        lock.notes = notes.text
        execution = Execution(
            plan,
            self.cluster.with_guard(lock.check),
            informer,
            EventRecorder(self.cluster.unretried, record.origin.why),
            self.options,
            record.pods_before,
            lock.cancel,
            progress=notes,
            leave_failed=self.leave_failed,
            owner=journal.owner if owns else None,
        )
        keys = tuple(step.key for step in record.object_steps)
        run = JournalledRun(lock, journal, record, execution, keys)
        execution.before_undo, execution.note = run.turn_back, run.note
        execution.resumed, execution.ended = resumed, record.ended_groups
        return run

    def recover(
        self,
        *,
        back: bool = False,
        promote: str = "",
        go_on: GoOn | None = None,
        described: Described = lambda: None,
    ) -> Outcome | None:
        """Finish or undo the run that left its journal behind; see :class:`ClusterRecovery`."""
        status = self.status()  # a new run clears these leftovers by itself
        if status.record is None and (status.leftovers or status.expired):
            self._take_and_clear()
        return ClusterRecovery(
            self, back=back, promote=promote, go_on=go_on, described=described
        ).run()

    def tidy(self, _: Goal) -> None:
        """Remove the lease of a run that was killed at its very end; wait for nothing."""
        holder = self.holder()
        if holder is not None and holder.is_gone():
            try:
                self._take_and_clear()
            except errors.ContainerUpdateError as error:
                LOG.warning("the lease of a run that ended could not be removed: %s", error)

    def _take_and_clear(self) -> None:
        with self.lock(str(uuid.uuid4()), ends=True) as lock:
            self.journal_of(lock).clear()


def restarted_pods(
    results: Iterable[StepResult], informer: Informer
) -> dict[ObjectKey, tuple[str, ...]]:
    """Return the pods that each restarted workload has now."""
    restarted = {}
    for result in results:
        key = result.step.key
        live = informer.get(key)
        has_new_pods = result.step.starts_pods or result.step.action is Action.HAND_OVER
        if live is not None and has_new_pods:
            pods = informer.pods_or_itself(live)
            restarted[key] = tuple(pod["metadata"]["name"] for pod in pods)
    return restarted
