"""Read the packages of a change of stacks, plan it, and carry it out with a journal.

:mod:`container_update.operations.change_package` is the way in.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from container_update.model.cancellation import Stop
from container_update.model.errors import ContainerUpdateError, PackageError, PlanError
from container_update.model.options import Options
from container_update.model.outcome import StepState
from container_update.package import csar, hot, hot_files
from container_update.package.hot import Body, Place
from container_update.stacks import live
from container_update.stacks.client import StackService, reference
from container_update.stacks.coordination import Coordinator, no_coordination
from container_update.stacks.desired import Software, is_same, wanted
from container_update.stacks.execute import Execution
from container_update.stacks.journal import Journal, Phase, Record, now
from container_update.stacks.outcome import (
    Records,
    Result,
    StackOutcome,
    StackUndoIncompleteError,
)
from container_update.stacks.plan import Action, StackPlan, Step, blue_green, rolling
from container_update.stacks.vnfcs import Member

BLUE_GREEN, ROLLING = "Blue-Green", "RollingUpdate"

_OWN_ENDING = re.compile(r"\.[0-9a-f]{8}$")
"""What Blue-Green has put behind the stack's first name before."""

Progress = Callable[["StackPlan | Step | Result"], object]
"""Told the plan when it is made, each step when it begins, and its result when it ends."""


@dataclass(frozen=True)
class StackRequest:
    """What is asked for: from which package to which, for which stack."""

    old: str
    new: str
    stack: str
    """The VNF's stack, by name or by ``name/id``."""
    upgrade_type: str
    """:data:`BLUE_GREEN` or :data:`ROLLING`."""
    vdu_ids: tuple[str, ...] = ()
    """The VDUs of ``vdu_params``. A rolling update needs them; Blue-Green concerns all."""
    instance_id: str | None = None
    flavour_id: str | None = None
    """The deployment flavour; None where the package has but one."""


@dataclass(frozen=True)
class Packages:
    """What the two packages say, without a look at the stack."""

    request: StackRequest
    old_vdus: Mapping[str, str]
    """Those of the old package that change, with their names."""
    new_vdus: Mapping[str, str]
    """Those of the new package that change, with their names."""
    all_vdus: Mapping[str, str]
    """Every VDU of either package, with its name."""
    body: Body
    software: Software
    vnfd_id: str
    """The new package's."""

    @property
    def places(self) -> dict[str, Place]:
        """Target VDU to where its server stands in the new templates."""
        return _places(self.body, self.new_vdus, self.request.new)

    @property
    def target(self) -> str:
        """Stands for what is asked for."""
        asked = [self.request.upgrade_type, self.request.vdu_ids, self.vnfd_id]
        software = [dict(self.software.images), dict(self.software.flavours)]
        text = json.dumps([asked, software, self.body.as_request()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


# --- packages and plan --------------------------------------------------------------------------


def read_packages(request: StackRequest, settings: csar.Settings) -> Packages:
    """Both packages. PackageError: one of them, or the request, is wrong."""
    if request.upgrade_type not in (BLUE_GREEN, ROLLING):
        raise PackageError(
            f"upgrade_type: expected {BLUE_GREEN} or {ROLLING}, found {request.upgrade_type}"
        )
    with (
        csar.open_package(request.old, settings=settings) as old,
        csar.open_package(request.new, settings=settings) as new,
    ):
        flavour = flavour_of(new, request.flavour_id)
        old_vdus, new_vdus = dict(old.vdus(request.flavour_id)), dict(new.vdus(flavour.id))
        targets = _targets(request, old_vdus, new_vdus)
        return Packages(
            request,
            {vdu_id: name for vdu_id, name in old_vdus.items() if vdu_id in targets},
            {vdu_id: name for vdu_id, name in new_vdus.items() if vdu_id in targets},
            {**old_vdus, **new_vdus},
            hot_files.base_hot(new, flavour.id, settings.yaml),
            Software(flavour.images, flavour.compute_flavours),
            new.vnfd_id,
        )


def flavour_of(package: csar.Csar, flavour_id: str | None) -> csar.Flavour:
    """A package's flavour. PackageError where it has none of that id, or None fits several."""
    known = {flavour.id: flavour for flavour in package.flavours}
    if flavour_id is None and len(known) == 1:
        return next(iter(known.values()))
    if flavour_id not in known:
        raise PackageError(
            f"{package.source}: expected the id of one of its flavours ({', '.join(known)}), "
            f"found {flavour_id or 'none'}"
        )
    return known[flavour_id]


def _targets(
    request: StackRequest, old_vdus: Mapping[str, str], new_vdus: Mapping[str, str]
) -> set[str]:
    """The VDUs that change."""
    where = "additionalParams.vdu_params"
    for number, vdu_id in enumerate(request.vdu_ids):
        if vdu_id not in new_vdus:
            raise PackageError(
                f"{where}[{number}].vdu_id: expected a VDU of the new package (it has "
                f"{', '.join(new_vdus) or 'none'}), found {vdu_id}"
            )
    if request.upgrade_type == ROLLING and not request.vdu_ids:
        raise PackageError(
            f"{where}: expected the VDUs to update, found none: a rolling update on OpenStack "
            "needs them"
        )
    left_out = set(new_vdus) - set(request.vdu_ids)
    if request.upgrade_type == BLUE_GREEN and request.vdu_ids and left_out:
        raise PackageError(
            f"{where}: expected every VDU of the new package, without {', '.join(sorted(left_out))}"
            ": Blue-Green on OpenStack replaces the whole stack; leave vdu_params out, or use "
            "RollingUpdate"
        )
    return set(request.vdu_ids) if request.upgrade_type == ROLLING else {*old_vdus, *new_vdus}


def _places(body: Body, vdus: Mapping[str, str], source: str) -> dict[str, Place]:
    return {vdu_id: hot.place_of(body, vdu_id, name, source) for vdu_id, name in vdus.items()}


def make_plan(packages: Packages, service: StackService) -> StackPlan:
    """The packages compared with the live stack. PlanError: the stack is in no state for it."""
    request = packages.request
    page = live.find(service, request.stack)
    body = live.body_of(service, reference(page))
    state = live.read(service, page, body, _places(body, packages.old_vdus, "the live stack"))
    sizes = live.sizes(service.resources(state.reference, 1), body)
    new = wanted(packages.body, body, packages.places, packages.software, sizes)
    if request.upgrade_type == ROLLING:
        return rolling(state, new, packages.places, request.new)
    if is_same(body, new):
        unchanged = state.members
        return StackPlan(BLUE_GREEN, state.reference, (), unchanged, unchanged, packages.places)
    _check_nothing_hidden(body, new, page["stack_name"])
    base = _OWN_ENDING.sub("", page["stack_name"])
    return blue_green(state, new, packages.places, f"{base}.{uuid.uuid4().hex[:8]}")


def _check_nothing_hidden(old: Body, new: Body, stack: str) -> None:
    """A second stack needs every value, and Heat does not tell those of hidden parameters."""
    both = set(old.template.get("parameters") or {}) & set(new.template.get("parameters") or {})
    untold = sorted((old.hidden & both) - set(new.parameters))
    if untold:
        raise PlanError(
            f"stack {stack}: Heat does not tell the values of its hidden parameters "
            f"({', '.join(untold)}), so that no second stack can be made with them: use "
            "RollingUpdate, which leaves them as they are"
        )


# --- a VNF instance -----------------------------------------------------------------------------


@dataclass(frozen=True)
class StackInstance:
    """A VNF instance in a cloud: what can be under way there."""

    service: StackService
    instance_id: str | None
    options: Options
    coordinate: Coordinator = no_coordination
    stop: Stop | None = None
    progress: Progress = lambda _: None
    leave_failed: bool = False
    """A failure is left for a rollback or a resume, not undone at once."""
    clock: Callable[[], datetime] = now

    def journal(self, holder: str) -> Journal:
        """Where a change that is under way is written down."""
        return Journal(
            self.service, self.instance_id, holder, self.options.lease_seconds, clock=self.clock
        )

    def run(self, plan: StackPlan, vnfd_id: str, target: str) -> StackOutcome:
        """Carry out a plan, journalled."""
        with self.begun(plan, vnfd_id, target) as execution:
            return self.outcome(execution.record, execution.run())

    @contextmanager
    def begun(self, plan: StackPlan, vnfd_id: str, target: str) -> Iterator[Execution]:
        """A plan in the journal, while the block carries it out to its end.

        :raises UpdateInProgressError: another change of this instance runs.
        """
        started = self.clock().isoformat(timespec="seconds")
        record = Record(str(uuid.uuid4()), _host(), started, plan, vnfd_id, target)
        journal = self.journal(record.operation)
        journal.begin(record)
        with _released(journal):
            yield self._execution(journal, record)
            journal.remove()

    def status(self) -> Record | None:
        """What is under way."""
        return self.journal("").read()

    def recover(
        self,
        *,
        target: str | None = None,
        back: bool = False,
        go_on: Callable[[Execution], object] = Execution.run,
        started: Callable[[Execution], object] = lambda _: None,
    ) -> StackOutcome | None:
        """Finish or undo the change that left its journal behind.

        :param target: what is asked for now; a journal that leads elsewhere is undone.
        :param back: undo in any case.
        :param go_on: brings it to its end.
        :param started: told the execution before it goes either way.
        :returns: what became of it, without records where it was undone; None: there was nothing.
        :raises UpdateInProgressError: it is still running.
        :raises StackUndoIncompleteError: it could not be undone.
        """
        journal = self.journal(str(uuid.uuid4()))
        if journal.read() is None:
            return None
        journal.take_over()
        record = journal.read()
        if record is None:
            return None
        elsewhere = target is not None and target != record.target
        with _released(journal):
            execution = self._execution(journal, record)
            started(execution)
            if back or elsewhere or record.phase is Phase.UNDO:
                return self._go_back(execution, journal)
            go_on(execution)
            outcome = self.outcome(execution.record, execution.results)
            journal.remove()
            return outcome

    def _execution(self, journal: Journal, record: Record) -> Execution:
        return Execution(
            self.service,
            journal,
            record,
            options=self.options,
            coordinate=self.coordinate,
            progress=self.progress,
            stop=self.stop,
            leave_failed=self.leave_failed,
        )

    def _go_back(self, execution: Execution, journal: Journal) -> StackOutcome:
        outcome = StackOutcome(execution.record.plan, execution.undo())
        could_not = [result for result in outcome.results if result.state is StepState.UNDO_FAILED]
        if could_not:
            objects = "; ".join(f"{result.step.title}: {result.message}" for result in could_not)
            raise StackUndoIncompleteError(
                f"operation {execution.record.operation} could not be undone: {objects}", outcome
            )
        journal.remove()
        return outcome

    def outcome(self, record: Record, results: tuple[Result, ...]) -> StackOutcome:
        """What the stack is now, and what of it the host writes down."""
        plan = record.plan
        made = [step.stack for step in plan.steps if step.action is Action.CREATE]
        page = live.find(self.service, made[0] if made else plan.stack)
        body = live.body_of(self.service, reference(page))
        found = live.read(self.service, page, body, plan.places).members
        records = _records(record.vnfd_id, str(page["id"]), plan.members, found)
        return StackOutcome(plan, results, found, records, self.service.requests)


@contextmanager
def _released(journal: Journal) -> Iterator[None]:
    """A run that fails and leaves its journal lets others go on with it."""
    try:
        yield
    except ContainerUpdateError:
        journal.release()
        raise


def _records(
    vnfd_id: str, stack_id: str, before: tuple[Member, ...], after: tuple[Member, ...]
) -> Records:
    old_ids = {(member.stack, member.resource): member.server_id for member in before}
    replaced = {
        old_ids[member.stack, member.resource]: member.server_id
        for member in after
        if old_ids.get((member.stack, member.resource), member.server_id) != member.server_id
    }
    return Records(
        vnfd_id,
        stack_id,
        _gathered((member.vdu_id, (member.server_id,)) for member in after),
        _gathered((name, (id_,)) for member in after for name, id_ in member.ports.items()),
        _gathered((name, (id_,)) for member in after for name, id_ in member.volumes.items()),
        replaced,
    )


def _gathered(entries: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    gathered: dict[str, tuple[str, ...]] = {}
    for name, ids in entries:
        gathered[name] = (*gathered.get(name, ()), *ids)
    return gathered


def _host() -> str:
    return f"{socket.gethostname()}.{os.getpid()}"
