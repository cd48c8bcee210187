# SPDX-License-Identifier: Apache-2.0
"""What every operation on a cluster is: a goal that is planned from what is live.

A goal says which objects it concerns, where it leads, and how to get there. How a plan is carried
out, undone and recorded is the same for all of them: :mod:`container_update.engine.run`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from container_update.cluster.informer import Informer
from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.retry import RetryingReader
from container_update.cluster.scope import Scope
from container_update.engine.journalled_run import JournalledRun
from container_update.model.objects import Collection, Manifest, ObjectKey
from container_update.model.outcome import Outcome, StepResult
from container_update.model.plan import Plan
from container_update.model.scripts import ScriptReport
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.configuration import Live
from container_update.planning.update import collections, traffic

if TYPE_CHECKING:
    from container_update.records.vnf_records import Records


@dataclass(frozen=True)
class Observed:
    """A cluster as an operation sees it while it is planned and carried out."""

    cluster: RetryingReader
    informer: Informer
    resumed: bool = False
    """An interrupted operation was finished or undone a moment ago."""

    @property
    def live(self) -> Live:
        """What was listed, as it is now."""
        return self.informer.live

    def list(self, keys: Iterable[ObjectKey]) -> None:
        """List the collections of the workloads and of the configuration among these objects."""
        self.informer.list(collections(keys))

    def read(self, keys: Iterable[ObjectKey], also: Iterable[Collection] = ()) -> Live:
        """Return all of these objects that exist, with the pods of the workloads among them.

        :param also: collections to list besides.
        """
        keys = tuple(dict.fromkeys(keys))
        return self.informer.read(keys, collections(keys) | frozenset(also))

    def read_packages(self, packages: Packages, namespace: str) -> Live:
        """Return the live objects of packages with what their Services send traffic to, and the
        Deployments of the VNF's namespace, which may have taken the name of one of them."""
        keys, described = packages.keys, (packages.old, packages.kept, packages.new)
        self.informer.include(
            keys, [(k, each.body) for objects in described for k, each in objects.items()]
        )
        return self.read(keys, traffic(keys) | {Collection("apps", "Deployment", namespace)})


class Goal(ABC):
    """Where an operation on a VNF instance leads.

    >>> class Nothing(Goal):
    ...     namespace, instance_id = "cnf", None
    ...     def digest(self):
    ...         return "nothing"
    ...     def plan(self, observed):
    ...         return Plan(self.namespace, self.instance_id, steps=())
    >>> Nothing().digest()
    'nothing'
    """

    kind: str = ""
    """Its name in the history; '': it is not kept there."""
    asks_server: bool = False
    """The API server is asked about every write, by dry runs, before the first one."""
    happens_once: ClassVar[bool] = False
    """An interrupted run that is finished is all that was asked for: it is not planned again."""

    promotes: str = ""
    """The name of the hold that is over: an earlier run that waits there goes on."""
    undoes: int | None = None
    """The first revision that it undoes; None: it goes forward."""
    scripts: Mapping[str, str] = MappingProxyType({})
    """The parameters of its request about coordination scripts."""
    recorded_in: Iterable[str] | None = None
    """The namespaces with the Secrets of the history that its plan is made from; None: the plan is
    made from packages alone."""
    content_is_recorded: ClassVar[bool] = False
    """What it writes is in that history too, not in packages alone."""
    why: str = ""
    """Why it is wanted, in the words of the user, for the history; one line."""
    namespace: str
    """The VNF's, with its lease, its journal and its history."""
    instance_id: str | None

    @abstractmethod
    def digest(self) -> str:
        """Return what identifies the state that it leads to: two runs of one request have the same.

        Called first where an earlier run was interrupted: errors in packages that it reads come
        before anything is done.

        :raises PackageError: a package or the request is wrong.
        """

    def check(self) -> None:  # noqa: B027, not every goal has something to check
        """Raise the PackageError of a request that is wrong, also where no cluster answers."""

    def scope(self) -> Scope:
        """Return which live objects it is about. Called after an earlier run was recovered."""
        return Scope()

    @abstractmethod
    def plan(self, observed: Observed) -> Plan:
        """Return the plan; write nothing.

        :raises PackageError: a package or the request is wrong.
        :raises PlanError: what runs is in no state for it.
        """

    def vdus(self) -> Mapping[str, str]:
        """Return the name of the workload of each VDU that is recorded afterwards, by its id."""
        return {}

    def context(self) -> Mapping[str, Any]:
        """Return plain values that a resume needs besides the steps of the plan."""
        return {}

    def described(self) -> Sequence[Manifest] | None:
        """Return what the packages of the request describe; None: it names none.

        Called only where steps come from the cluster, which others may have written; see
        :mod:`~container_update.planning.foreign_steps`.
        """
        return None

    def recorded(self, plan: Plan) -> bytes:
        """Return what the instance runs from once the plan is carried out; empty: not known."""
        return InstanceRecord.of(plan, self.vdus()).encode(self.namespace)

    def carry_out(self, run: JournalledRun) -> tuple[StepResult, ...]:
        """Carry out the plan of a run."""
        return run.execution.run()

    def records(self, outcome: Outcome) -> Records:
        """Return what a VNFM has to record of an outcome that does not wait for a person."""
        from container_update.records.vnf_records import Records  # noqa: PLC0415, not of a command

        return Records.of_update(outcome)

    @property
    def reports(self) -> Sequence[ScriptReport]:
        """Every run of a coordination script, in order."""
        return ()


class PackageGoal(Goal):
    """A goal that packages describe, which are read when they are first needed."""

    @property
    @abstractmethod
    def packages(self) -> Packages:
        """What they say; of a goal with one package it is the old one and the new one.

        :raises PackageError: one is wrong.
        """

    def check(self) -> None:
        """See Goal."""
        assert self.packages, "they are read"

    def described(self) -> Sequence[Manifest]:
        """See Goal."""
        return self.packages.manifests

    def vdus(self) -> Mapping[str, str]:
        """See Goal."""
        return self.packages.vdus
