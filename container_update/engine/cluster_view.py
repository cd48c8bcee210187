# SPDX-License-Identifier: Apache-2.0
"""A VNF instance in a cluster, to be read: nothing here can write.

A plan is made here, a status is read here, and :mod:`container_update.engine.cluster_instance` adds
what an operation needs to carry a plan out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from container_update.cluster.informer import Informer
from container_update.cluster.journal import JournalReader
from container_update.cluster.lease import Holder, frozen_by, lease_key, utc_now
from container_update.cluster.operation import Operation
from container_update.cluster.retry import RetryingReader
from container_update.cluster.scope import Scope
from container_update.engine.checks.server_check import check_with_server
from container_update.engine.claims import with_claims_noted
from container_update.engine.goal import Goal, Observed
from container_update.engine.lost_traffic import with_lost_traffic_noted
from container_update.engine.notes import Noted
from container_update.model import errors, operation
from container_update.model.objects import Collection, Json, Manifest, ObjectKey
from container_update.model.options import Options
from container_update.model.plan import Action, Plan
from container_update.planning.foreign_steps import Owned
from container_update.planning.order import arrange
from container_update.planning.steps import ObjectStep, object_steps
from container_update.planning.summary import with_change_causes
from container_update.planning.update import collections


@dataclass
class ClusterView:
    """A VNF instance in a cluster, to be read: its *cluster* has no way to write."""

    cluster: RetryingReader
    namespace: str
    instance_id: str | None
    options: Options
    resumed: bool = field(default=False, init=False)
    """An interrupted operation was finished or undone a moment ago."""

    @property
    def journal(self) -> JournalReader:
        """The journal of an operation that is under way, for readers."""
        return JournalReader(self.cluster, self.namespace, self.instance_id)

    @property
    def requests(self) -> int:
        """How many requests went to the API server so far."""
        return self.cluster.requests

    @contextmanager
    def observe(self, goal: Goal) -> Iterator[Observed]:
        """Watch the objects of a goal while the block plans it and carries it out."""
        seconds = self.options.watch_seconds
        with Informer(self.cluster, goal.scope(), watch_seconds=seconds) as informer:
            yield Observed(self.cluster, informer, self.resumed)

    def make_plan(self, goal: Goal, observed: Observed) -> Plan:
        """Return the plan of a goal, tried by dry runs where it asks for them; write nothing."""
        with wrong_requests_first(goal):
            plan = with_claims_noted(arrange(goal.plan(observed)), self.cluster)
        plan = with_lost_traffic_noted(plan, self.cluster)
        plan = self._without_foreign(plan, goal)
        if goal.intent.asks_server:
            plan = check_with_server(plan, self.cluster, self.options)
        kind = goal.intent.kind
        return with_change_causes(replace(plan, kind=kind)) if kind else plan

    def status(self) -> operation.Status:
        """Return the operation under way."""
        journal = self.journal
        record, lease = journal.read(), self._lease()
        leftovers = journal.leftovers() if record is None else ()
        held = record.states_at_hold() if record is not None else ()
        current = operation.Status(record, leftovers=leftovers, states=held)
        if lease is None:
            return current
        current = replace(current, frozen=frozen_by(lease, utc_now()))
        if (holder := _holder_of(lease)) is not None:
            expired = not holder.seems_alive(utc_now())
            since = f"since {holder.since}"
            current = replace(current, holder=holder.identity, held=since, expired=expired)
        noted = Noted.of(lease, record) if record is not None else None
        if noted is None:
            return current
        return replace(current, states=noted.states_of_steps(runs=current.is_running))

    def holder(self) -> Holder | None:
        """Return who holds the lease, also where it has expired."""
        lease = self._lease()
        return _holder_of(lease) if lease is not None else None

    def _lease(self) -> Json | None:
        return self.cluster.get(lease_key(self.namespace, self.instance_id))

    def _without_foreign(self, plan: Plan, goal: Goal) -> Plan:
        """Return a plan without the steps of an unsigned history that are not trusted."""
        intent = goal.intent
        if self.cluster.journal_key or intent.recorded_in is None:
            return plan
        owned = self.owned_objects(goal.read_manifests(), intent.recorded_in, all_of_it=True)
        is_content_recorded = intent.undoes is not None
        owned = replace(owned, checks_content=is_content_recorded)
        steps, both = object_steps(plan), errors.NextStep.NAME_BOTH_PACKAGES
        seen = {step.key: step.before for step in steps}
        source = f"the history of the VNF instance in namespace {self.namespace}"
        trusted = self.trusted_steps(owned, steps, seen, Action.DELETE, source, next_step=both)
        if not is_content_recorded:
            return plan
        known = {step.place: step for step in trusted}
        left = (known.get(s.place) if isinstance(s, ObjectStep) else s for s in plan.steps)
        return replace(plan, steps=tuple(step for step in left if step is not None))

    def owned_objects(
        self, described: Iterable[Manifest] | None, namespaces: Iterable[str], *, all_of_it: bool
    ) -> Owned:
        """Return the rule by which steps that are read from the cluster are trusted.

        :param described: what the packages of the request describe; None: it names none.
        :param namespaces: those in which the source of the steps has Secrets.
        """
        known: defaultdict[ObjectKey, list[Json]] = defaultdict(list)
        for manifest in described or ():
            known[manifest.key].append(manifest.body)
        own = frozenset({self.namespace, *namespaces, *(key.namespace for key in known)} - {""})
        return Owned(self.instance_id, self.namespace, known, own, all_of_it)

    def trusted_steps(  # noqa: PLR0913
        self,
        owned: Owned,
        steps: Sequence[ObjectStep],
        seen: Mapping[ObjectKey, Json | None],
        deletes: Action,
        source: str,
        *,
        next_step: errors.NextStep = errors.NextStep.NAME_PACKAGES,
    ) -> tuple[ObjectStep, ...]:
        """Return the steps of a journal or a history that may be carried out or undone.

        :param seen: the live objects that were read already; None: there is none.
        :param source: the name of what the steps are read from, for the message.
        :raises PlanError: a step is about an object that is not known to be the VNF's.
        """
        keys = [key for key in owned.unknown(steps) if key not in seen]
        with Informer(self.cluster, Scope(keys)) as informer:
            listed = collections(keys).intersection(map(Collection.of, keys))
            read = informer.read(keys, listed)
        live = {**read, **{key: body for key, body in seen.items() if body is not None}}
        trusted, foreign = owned.trusted_steps(steps, live, deletes)
        if foreign:
            more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
            raise errors.PlanError(
                f"{source}: expected steps about objects of this VNF instance, found one about "
                f"{foreign[0]}{more}. No package of this request describes that object with this "
                "content, and the object is not known to be the instance's: an account that may "
                "create Secrets there may have written the step. Nothing was written",
                next_step=next_step,
            )
        return trusted

    def plan_of(self, record: Operation) -> Plan:
        """Return the plan of an operation, as far as its journal has it."""
        return Plan(
            self.namespace,
            self.instance_id,
            record.steps,
            def_files=record.def_files,
            packages=record.origin.packages,
            kind=record.origin.kind,
        )


def _holder_of(lease: Json) -> Holder | None:
    """Return who holds a lease; None where it only keeps a freeze."""
    holder = Holder.of(lease)
    return holder if holder.identity or not frozen_by(lease, utc_now()) else None


@contextmanager
def wrong_requests_first(goal: Goal) -> Iterator[None]:
    """Raise the error of a wrong request instead of a ClusterError: no other try would help."""
    try:
        yield
    except errors.ClusterError:
        goal.read_manifests()
        raise
