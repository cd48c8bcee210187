# SPDX-License-Identifier: Apache-2.0
"""What every operation on a cluster is: a goal that is planned from the live objects.

A goal says which objects it concerns, where it leads, and how to get there. How a plan is carried
out, undone and recorded is the same for all of them: :mod:`container_update.engine.run`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from container_update.cluster.informer import Informer
from container_update.cluster.retry import RetryingReader
from container_update.cluster.scope import Scope
from container_update.engine.journalled_run import JournalledRun
from container_update.model.objects import Collection, Manifest, ObjectKey
from container_update.model.outcome import StepResult
from container_update.model.plan import Plan
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.configuration import Live
from container_update.planning.update import collections, traffic


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
        """Return all of these objects that exist, with pods, and list the collections *also*."""
        keys = tuple(dict.fromkeys(keys))
        return self.informer.read(keys, collections(keys) | frozenset(also))

    def read_packages(self, packages: Packages, namespace: str) -> Live:
        """Return the live objects of packages, their traffic, and the namespace's Deployments."""
        keys, described = packages.keys, (packages.old, packages.kept, packages.new)
        self.informer.include(
            keys, [(k, each.body) for objects in described for k, each in objects.items()]
        )
        return self.read(keys, traffic(keys) | {Collection("apps", "Deployment", namespace)})


@dataclass(frozen=True)
class Intent:
    """What an operation is asked to be: of which instance, and by which rules.

    >>> Intent("cnf", "vnf-1", "update", why="a new log level").kind
    'update'
    """

    namespace: str
    """The VNF's, with its lease, its journal and its history."""
    instance_id: str | None
    kind: str = ""
    """Its name in the history; '': it is not kept there."""
    why: str = ""
    """Why it is wanted, in the words of the user, for the history; one line."""
    asks_server: bool = False
    """The API server is asked about every write, by dry runs, before the first one."""
    happens_once: bool = False
    """An interrupted run that is finished is all that was asked for: it is not planned again."""
    promotes: str = ""
    """The name of the hold that is over: an earlier run that waits there goes on."""
    undoes: int | None = None
    """The first revision that it undoes, whose content it writes; None: it goes forward."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """The parameters of its request about coordination scripts."""
    recorded_in: Iterable[str] | None = None
    """The namespaces with the Secrets of the history that its plan is made from; None: the plan is
    made from packages alone."""

    @property
    def where(self) -> tuple[str, str | None]:
        """The namespace and the id of the instance."""
        return self.namespace, self.instance_id


class Goal(ABC):
    """Where an operation on a VNF instance leads.

    >>> class Nothing(Goal):
    ...     intent = Intent("cnf", None)
    ...     def digest(self):
    ...         return "nothing"
    ...     def plan(self, observed):
    ...         return Plan("cnf", None, steps=())
    >>> Nothing().digest()
    'nothing'
    """

    intent: Intent

    @abstractmethod
    def digest(self) -> str:
        """Return what identifies the state that it leads to: two runs of one request have the same.

        Called first where an earlier run was interrupted: errors in packages that it reads come
        before anything is done.

        :raises PackageError: a package or the request is wrong.
        """

    def read_manifests(self) -> Sequence[Manifest] | None:
        """Return what the packages of the request describe; None: it names none.

        Steps that come from the cluster, which others may have written, are compared with it; see
        :mod:`~container_update.planning.foreign_steps`.

        :raises PackageError: a package or the request is wrong, also where no cluster answers.
        """
        return None

    def scope(self) -> Scope:
        """Return which live objects it is about. Called after an earlier run was recovered."""
        return Scope()

    @abstractmethod
    def plan(self, observed: Observed) -> Plan:
        """Return the plan; write nothing.

        :raises PackageError: a package or the request is wrong.
        :raises PlanError: the live objects are in no state for it.
        """

    def carry_out(self, run: JournalledRun) -> tuple[StepResult, ...]:
        """Carry out the plan of a run."""
        return run.execution.run()


class PackageGoal(Goal):
    """A goal that packages describe, which are read when they are first needed."""

    @property
    @abstractmethod
    def packages(self) -> Packages:
        """What they say; a single package is the old one and the new one."""

    def read_manifests(self) -> Sequence[Manifest]:
        """See Goal."""
        return self.packages.manifests
