# SPDX-License-Identifier: Apache-2.0
"""Read the packages of a change, compare them with the live stack, and plan the change."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from container_update.model.errors import PackageError, PlanError
from container_update.model.plan import Action, Reason
from container_update.model.requests import PackageIdentity
from container_update.openstack import live
from container_update.openstack.client import Heat, reference
from container_update.openstack.plan import (
    BLUE_GREEN,
    ROLLING,
    AnyStep,
    Live,
    StackPlan,
    StackStep,
    blue_green,
    rolling,
)
from container_update.openstack.software import defined_software
from container_update.openstack.templates.desired import VnfdSoftware, desired_stack, is_same
from container_update.openstack.templates.links import StackLinks
from container_update.package import csar, hot, hot_files
from container_update.package.hot import Place, StackBody
from container_update.package.vnfd import Flavour


@dataclass(frozen=True)
class StackRequest:
    """A request: from which package to which, for which stack."""

    old: str
    new: str
    stack: str
    """The VNF's stack, by name or by ``name/id``."""
    upgrade_type: str
    """:data:`BLUE_GREEN` or :data:`ROLLING`."""
    vdu_ids: tuple[str, ...] = ()
    """The VDUs of ``vdu_params``. A rolling update concerns these, Blue-Green all."""
    instance_id: str | None = None
    flavour_id: str | None = None
    """The deployment flavour; None where the package has but one."""
    links: StackLinks = field(default_factory=StackLinks)
    """The virtual links of the request."""
    nfv: Mapping[str, Any] = field(default_factory=dict)
    """``additionalParams.nfv``, what the request gives for the templates' parameter."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """The paths of its coordination scripts, by VNF: 'new' and 'old'."""


@dataclass(frozen=True)
class StackPackages:
    """What the two packages say, independent of the live stack."""

    request: StackRequest
    old_vdus: Mapping[str, str]
    """The VDUs of the old package that change: id to name."""
    new_vdus: Mapping[str, str]
    """The VDUs of the new package that change: id to name."""
    all_vdus: Mapping[str, str]
    """Every VDU of either package: id to name."""
    body: StackBody
    software: VnfdSoftware
    vnfd_id: str
    """The new package's."""
    identities: tuple[PackageIdentity, ...] = ()
    """Of the old and the new one."""

    @property
    def places(self) -> dict[str, Place]:
        """Target VDU to where its server is defined in the new templates."""
        return _places(self.body, self.new_vdus, self.request.new)

    @property
    def goal(self) -> str:
        """A digest of the request and the new package: the goal in the journal's record."""
        request = self.request
        asked = [request.upgrade_type, request.vdu_ids, self.vnfd_id]
        given = [value for value in (request.links.points(), dict(request.nfv)) if value]
        software = [dict(self.software.images), dict(self.software.flavours)]
        text = json.dumps([asked, software, self.body.as_request(), *given], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def read_packages(request: StackRequest, old: csar.Csar, new: csar.Csar) -> StackPackages:
    """Read both packages, which are open; PackageError where one, or the request, is wrong."""
    flavour = flavour_of(new, request.flavour_id)
    old_vdus, new_vdus = dict(old.vdus(request.flavour_id)), dict(new.vdus(flavour.id))
    if not old_vdus:
        raise PackageError(
            f"{old.source}: expected the package that the stack runs from, found no VDUs in it"
        )
    is_part = request.upgrade_type == ROLLING
    targets = set(request.vdu_ids) if is_part else {*old_vdus, *new_vdus}
    return StackPackages(
        request,
        {vdu_id: name for vdu_id, name in old_vdus.items() if vdu_id in targets},
        {vdu_id: name for vdu_id, name in new_vdus.items() if vdu_id in targets},
        {**old_vdus, **new_vdus},
        request.links.apply_to(hot_files.base_hot(new, flavour.id)),
        VnfdSoftware(flavour.images, flavour.compute_flavours),
        new.vnfd_id,
    )


def flavour_of(package: csar.Csar, flavour_id: str | None) -> Flavour:
    """Return a package's flavour; PackageError: it has none of that id, or several without one."""
    known = {flavour.id: flavour for flavour in package.flavours}
    if flavour_id is None and len(package.imported_flavours) == 1:
        return package.imported_flavours[0]
    if flavour_id not in known:
        raise PackageError(
            f"{package.source}: expected the id of one of its flavours ({', '.join(known)}), "
            f"found {flavour_id or 'none'}"
        )
    return known[flavour_id]


def _places(body: StackBody, vdus: Mapping[str, str], source: str) -> dict[str, Place]:
    return {vdu_id: hot.place_of(body, vdu_id, name, source) for vdu_id, name in vdus.items()}


def rolling_plan(packages: StackPackages, service: Heat) -> StackPlan:
    """Plan a rolling update: the servers of the VDUs of the request, one after the other.

    :raises PlanError: the stack is in no state for a change.
    """
    state, body, new = _states(packages, service, live.read_for_update)
    _check_same_places(packages, body)
    _check_hidden_stays(body, new, state.reference.partition("/")[0])
    plan = rolling(state, new, packages.places, packages.request.new, packages.request.scripts)
    return replace(plan, steps=tuple(_with_way_back(step, service) for step in plan.steps))


def blue_green_plan(packages: StackPackages, service: Heat) -> StackPlan:
    """Plan a new stack beside the old one; PlanError: the old one is in no state for a change."""
    state, body, new = _states(packages, service, live.read)
    name = state.reference.partition("/")[0]
    if is_same(body, new):
        return state.plan(BLUE_GREEN, packages.places, unchanged=state.members)
    _check_nothing_hidden(body, new, name)
    base = live.SUFFIX.sub("", name)
    new_name = f"{base}.{uuid.uuid4().hex[:8]}"
    return blue_green(state, new, packages.places, new_name, packages.request.scripts)


Planner = Callable[[StackPackages, Heat], StackPlan]
"""Compares the packages of a change with the live stack: a strategy on OpenStack."""


def _states(
    packages: StackPackages, service: Heat, read: Callable[..., Live]
) -> tuple[Live, StackBody, StackBody]:
    """Return the live stack, its body, and the body that the new package leads to."""
    request = packages.request
    stack = live.find(service, request.stack)
    body = live.body_of(service, reference(stack))
    places = _places(body, packages.old_vdus, "the live stack")
    state = replace(read(service, stack, body, places), instance_id=request.instance_id)
    new = desired_stack(
        packages.body,
        body,
        packages.places,
        packages.software,
        live.sizes(service.resources(state.reference, 1), body),
        points=request.links.points(),
        nfv=request.nfv,
    )
    return state, body, new


def _check_same_places(packages: StackPackages, body: StackBody) -> None:
    """Refuse servers with another resource: Heat would replace all of a VDU at once."""

    def position(place: Place) -> tuple[object, ...]:
        return place.head, place.grouped, place.file is None, place.server

    live_places = _places(body, packages.old_vdus, "the live stack")
    for vdu_id, place in packages.places.items():
        now = live_places.get(vdu_id, place)
        if position(now) != position(place):
            raise PackageError(
                f"{packages.request.new}: expected the server of {vdu_id} as resource {now}, as in "
                f"the live stack, found {place}: Heat would replace all its servers at once: keep "
                f"the names of the resources and what contains them, or use {BLUE_GREEN}"
            )


def _check_hidden_stays(old: StackBody, new: StackBody, stack: str) -> None:
    """Refuse to lose the values of hidden parameters, which no undo could give back."""
    was, shall_be = (
        side.hidden & set(side.template.get("parameters") or {}) for side in (old, new)
    )
    if lost := sorted(was - shall_be):
        raise PlanError(
            f"stack {stack}: Heat does not tell the values of its hidden parameters "
            f"({', '.join(lost)}), which the new template does not have, or does not hide: they "
            f"would be lost, also for an undo: keep them, or leave them out and use {BLUE_GREEN}"
        )


def _check_nothing_hidden(old: StackBody, new: StackBody, stack: str) -> None:
    """Refuse hidden parameters: a second stack needs their values, which Heat masks."""
    both = set(old.template.get("parameters") or {}) & set(new.template.get("parameters") or {})
    unknown = sorted((old.hidden & both) - set(new.parameters))
    if unknown:
        raise PlanError(
            f"stack {stack}: Heat does not tell the values of its hidden parameters "
            f"({', '.join(unknown)}), so that no second stack can be made with them: use "
            "RollingUpdate, which keeps them"
        )


def _with_way_back(step: AnyStep, service: Heat) -> AnyStep:
    """Say of a step that its undo replaces the server: Nova cannot shrink a disk."""
    if not isinstance(step, StackStep) or step.member is None or step.after is None:
        return step
    now, flavour = (
        step.member.software,
        defined_software(step.after, step.member.resource).get("flavor"),
    )
    if now is None or now.disk is None or flavour in (None, now.flavour):
        return step
    then = service.flavour_disk(str(flavour))
    if then is None or then <= now.disk or step.action is Action.RECREATE:
        return step
    note = Reason(
        f"its disk grows from {now.disk} to {then} GB, which Nova cannot take back: an undo "
        "replaces the server by another one with another id"
    )
    return replace(step, reasons=(*step.reasons, note))
