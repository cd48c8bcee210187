# SPDX-License-Identifier: Apache-2.0
"""The operations of a VNF instance that have ended, and the way back from finished updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from container_update.cluster.history import History, led_to
from container_update.cluster.operation import UPDATES, Result, Revision
from container_update.cluster.retry import RetryingReader
from container_update.cluster.scope import Scope
from container_update.engine.checks.namespaces import refuse_if_known_missing
from container_update.engine.cluster_view import ClusterView
from container_update.engine.goal import Goal, Intent, Observed
from container_update.engine.goals.change import PackageChange
from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.goals.request_schema import COORDINATE_NEW, COORDINATE_OLD
from container_update.engine.goals.update import plan_matching
from container_update.engine.journalled_run import JournalledRun
from container_update.engine.read_packages import check_packages
from container_update.engine.resume import Named, of_operation, recorded_change
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.errors import PlanError
from container_update.model.objects import Manifest
from container_update.model.options import Options
from container_update.model.outcome import StepResult
from container_update.model.plan import INSTALL, UNDO, Plan
from container_update.model.requests import ChangePackageRequest, UndoRequest
from container_update.package import csar
from container_update.planning.comparison import match
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.going_back import Undoing
from container_update.planning.steps.new_objects import created_again


def history(
    cluster: ReadOnlyCluster,
    options: Options = Options(),  # noqa: B008
    *,
    namespace: str = "default",
    instance_id: str | None = None,
) -> tuple[Revision, ...]:
    """Return the operations of an instance that have ended, the newest first.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     for revision in history(cluster, namespace="cnf"):
    ...         print(revision.number, revision.origin.who, revision.result.value)
    2 ann@workstation done
    1 ann@workstation undone

    :param cluster: where the VNF runs.
    :param namespace: of the VNF.
    :param instance_id: the VNF instance, as it was given to its operations.
    :raises ClusterError: the account may not list the namespace's Secrets.
    :raises PlanError: there is no such namespace.
    """
    retrying = RetryingReader(cluster, options.retry_seconds)
    revisions = History(retrying, namespace, instance_id).read()
    if not revisions:
        refuse_if_known_missing(namespace, retrying)
    return revisions


class GoBack(Goal):
    """What was there before finished updates.

    The goal of an interrupted operation is read before it is recovered, the revisions to undo are
    read afterwards: what was recovered is one of them.
    """

    def __init__(
        self,
        request: UndoRequest,
        cluster: ReadOnlyCluster,
        options: Options = Options(),  # noqa: B008
    ) -> None:
        self.intent = Intent(request.namespace, request.instance_id, UNDO)
        self._revision, self._packages = request.revision, request.packages
        self._options = options
        self._change: PackageChange | None = None
        self._cluster = RetryingReader(cluster, options.retry_seconds)
        self._undone: tuple[Revision, ...] = ()
        self._before: Revision | None = None
        self._first = _first(self._read(), request.revision)

    def _read(self) -> tuple[Revision, ...]:
        """Return the revisions that ended well, the newest first."""
        revisions = History(self._cluster, *self.intent.where).read(whole=True)
        return tuple(each for each in revisions if each.result is Result.DONE)

    def digest(self) -> str:
        """See Goal: it names the first operation that is undone."""
        return f"{UNDO} {self._first.operation}" if self._first else UNDO

    def scope(self) -> Scope:
        """See Goal."""
        done = self._read()
        self._undone = _undone(done, self._revision)
        spaces = (name for each in self._undone for name in each.namespaces)
        self.intent = replace(self.intent, recorded_in={self.intent.namespace, *spaces})
        if not self._undone:
            return Scope()
        first = self._undone[0].number
        self.intent = replace(self.intent, undoes=first)
        self._before = next((each for each in done if each.number < first), None)
        return Scope() if self._changes else Scope(self._undoing.keys)

    @property
    def _changes(self) -> tuple[Revision, ...]:
        """The revisions to undo that changed the package."""
        return tuple(each for each in self._undone if each.origin.kind not in UPDATES)

    def read_manifests(self) -> Sequence[Manifest] | None:
        """See Goal: the objects of the packages that the request names."""
        return self._named.read_manifests()

    @cached_property
    def _named(self) -> Named:
        return Named.read(self._packages, self.intent.namespace, self._options)

    @property
    def _undoing(self) -> Undoing:
        first, last = self._undone[0], self._undone[-1]
        steps = tuple(step for each in self._undone for step in each.object_steps)
        return Undoing(steps, last.objects, first.number, last.def_files)

    def plan(self, observed: Observed) -> Plan:
        """See Goal: what the instance runs from afterwards is what it ran from before the first
        update that is undone."""
        namespace, instance_id = self.intent.where
        if not self._undone:
            refuse_if_known_missing(namespace, observed.cluster)
            return Plan(namespace, instance_id, ())
        before = self._before
        record, instance = led_to(before) if before else None, before.instance if before else b""
        plan = self._planned_change(observed) if self._changes else self._planned_update(observed)
        return replace(plan, instance=instance, vdus=record.vdus if record else {})

    def _planned_update(self, observed: Observed) -> Plan:
        undoing = self._undoing
        observed.list(undoing.keys)
        live = observed.live
        plan = plan_matching(self, undoing.matching(live), live, observed.cluster, self._options)
        old, new = self._undone[0].origin.packages[:1], self._undone[-1].origin.packages[1:]
        packages = (*new, *old) if old and new else ()  # from the present package to the earlier
        return replace(undoing.complete(plan, live), packages=packages)

    # --- where a change of the package is undone ------------------------------------------------

    def _planned_change(self, observed: Observed) -> Plan:
        """Return the plan of the change to the package that the instance ran from before. Its
        scripts are in the packages that the request names, or in those that a signed history names.

        :raises PackageError: these are not the packages of the change, or lack a script.
        """
        packages = changing_back(self._before, self._undone, self.intent.namespace)
        first, last = self._changes[0].origin, self._changes[-1].origin
        scripts = {
            **_of_role(COORDINATE_OLD, first.scripts, COORDINATE_NEW),
            **_of_role(COORDINATE_NEW, last.scripts, COORDINATE_OLD),
        }
        params = {"upgrade_type": last.kind, **scripts}
        vnfd_id = packages.vnfd_id
        asked = ChangeRequest.of({"vnfdId": vnfd_id, "additionalParams": params})
        if not self._packages and self._cluster.journal_key and asked.scripts:
            self._packages = tuple(each.source for each in packages.identities)
        old, new = of_operation(self._named, packages.identities, asked)
        if asked.scripts:
            with (
                csar.open_package(old, options=self._options) as before,
                csar.open_package(new, options=self._options) as after,
            ):
                vnfd_id = after.vnfd_id or vnfd_id
                check_packages(replace(asked, vnfd_id=vnfd_id), after, before)
        request = ChangePackageRequest(
            {"vnfdId": vnfd_id, "additionalParams": params},
            old,
            new,
            namespace=self.intent.namespace,
            instance_id=self.intent.instance_id,
        )
        self._change = PackageChange(request, self._cluster, self._options, packages=packages)
        asks = self._change.intent
        self.intent = replace(self.intent, kind=last.kind, asks_server=True, scripts=asks.scripts)
        plan = self._change.plan(observed)
        return plan if asks.scripts else replace(plan, context={})  # which they alone need

    def carry_out(self, run: JournalledRun) -> tuple[StepResult, ...]:
        """See Goal."""
        if not run.record.context:
            return super().carry_out(run)
        if (change := self._change) is None:
            where = self.intent.where
            here = ClusterView(self._cluster, *where, self._options)
            change, _ = recorded_change(run.record, here, self._packages)
        return change.carry_out(run)


# --- which are undone ---------------------------------------------------------------------------


def _undone(done: Sequence[Revision], number: int | None) -> tuple[Revision, ...]:
    """Return the revisions to undo, the oldest first; refuse one that cannot be undone."""
    first = _first(done, number)
    if first is None:
        return ()
    undone = tuple(reversed([each for each in done if each.number >= first.number]))
    for each in undone:
        _refuse_unfit(each)
    return undone


def _first(done: Sequence[Revision], number: int | None) -> Revision | None:
    """Return the revision of that number; None: the newest that no other one has undone."""
    if number is None:
        newest, before = next(iter(done), None), None
        while newest is not None and newest.origin.undoes is not None:
            before = newest.origin.undoes
            newest = next((each for each in done if each.number < before), None)
        return None if newest is not None and newest.origin.kind == INSTALL else newest
    for each in done:
        if each.number == number:
            return each
    known = ", ".join(str(each.number) for each in reversed(done)) or "none"
    raise PlanError(
        f"revision {number}: no finished operation has this number: choose one of {known}"
    )


def _refuse_unfit(revision: Revision) -> None:
    what = f"revision {revision.number} ({revision.origin.title})"
    if revision.origin.kind == INSTALL:
        raise PlanError(f"{what}: expected an update, found the installation: uninstall the VNF")
    if revision.origin.kind in UPDATES and not revision.is_kept:
        raise PlanError(
            f"{what}: the history does not have the content before it (it is too large, or a part "
            "was deleted): update to the old package"
        )


def _of_role(then: str, scripts: Mapping[str, str], now: str) -> dict[str, str]:
    """Return a request's script for the role that its VNF has on the way back."""
    return {
        now + name.removeprefix(then): text
        for name, text in scripts.items()
        if name in (then, f"{then}-class")
    }


def changing_back(before: Revision | None, undone: Sequence[Revision], namespace: str) -> Packages:
    """Return the present package as the old one, the earlier as the new; refuse without both."""
    first, last = undone[0], undone[-1]
    then, now = led_to(before) if before else None, led_to(last)
    ends = (*last.origin.packages[1:], *first.origin.packages[:1])
    packages = " to ".join(each.source for each in ends)
    advice = f"change the package back{f', from {packages}' if packages else ''}"
    if then is None or now is None or not (then.is_whole and now.is_whole):
        raise PlanError(
            f"revision {first.number} ({first.origin.title}): the history does not have the "
            "package before it, or the present one (this program did not install it, it is too "
            f"large, or an earlier revision is gone): {advice}"
        )
    steps = [step for each in undone for step in each.object_steps]
    written = {step.key for step in steps}
    new = match.index(then.by_path)
    elsewhere = {key for key in new if key.kind == "Secret" and key.namespace != namespace}
    if lost := elsewhere & written:
        raise PlanError(
            f"{', '.join(map(str, lost))}: the history has no content of Secrets in other "
            f"namespaces: {advice}"
        )
    identities = (now.package, then.package) if now.package and then.package else ()
    return Packages(
        old=match.index(now.by_path),
        new={key: manifest for key, manifest in new.items() if key not in elsewhere},
        old_vdus=now.vdus,
        new_vdus=then.vdus,
        vnfd_id="unknown",
        def_files=then.def_files,
        kept={key: new[key] for key in elsewhere},
        identities=identities,
        former={
            step.key: created_again(step.before, step.key.namespace)
            for step in reversed(steps)
            if step.before is not None and not step.is_config
        },
    )
