# SPDX-License-Identifier: Apache-2.0
"""Create the stack that a package describes, update it as a whole, and delete it again.

For the service and small sites; Tacker instantiates and terminates by itself.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from container_update.model.cancellation import CancelToken
from container_update.model.errors import ClusterError, NextStep, PackageError, PlanError
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.openstack.client import Heat, heat_minutes, reference, state_sentence
from container_update.openstack.planner import flavour_of
from container_update.openstack.templates import desired, groups
from container_update.openstack.templates.desired import Software
from container_update.openstack.templates.links import Links
from container_update.package import csar, hot, hot_files
from container_update.package.hot import Body

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


def described_by(  # noqa: PLR0913
    package: str,
    flavour_id: str,
    given: Mapping[str, Any],
    options: Options,
    *,
    links: Links = Links(),  # noqa: B008, frozen
    sizes: Mapping[str, int] = {},
) -> Body:
    """Return the stack that a package describes.

    :param given: values for parameters of the top template.
    :param links: the virtual links of the request.
    :param sizes: VDU id to the number of its servers, for those in a scaling group; a parameter
        that is given takes precedence.
    :raises PackageError: the package is wrong, or has no such parameters.
    """
    with csar.open_package(package, options=options) as opened:
        return stack_of(opened, flavour_id, given, links=links, sizes=sizes)


def stack_of(
    package: csar.Csar,
    flavour_id: str,
    given: Mapping[str, Any],
    *,
    links: Links = Links(),  # noqa: B008, frozen
    sizes: Mapping[str, int] = {},
) -> Body:
    """Return the stack that an opened package describes, as :func:`described_by` does."""
    flavour = flavour_of(package, flavour_id)
    body = links.applied(hot_files.base_hot(package, flavour.id))
    places = {
        vdu_id: hot.place_of(body, vdu_id, name, package.source)
        for vdu_id, name in flavour.vdus.items()
    }
    software = Software(flavour.images, flavour.compute_flavours)
    body = desired.initial_stack(body, given, places, software, points=links.points(), sizes=sizes)
    grouped = {vdu: size for vdu, size in sizes.items() if vdu in places and places[vdu].grouped}
    for vdu, size in sizes.items():
        if size > 1 and vdu in places and vdu not in grouped:
            raise PackageError(
                f"instantiationLevelId: expected at most 1 instance of {vdu}, whose server is "
                f"in no scaling group of the top template, found {size}: choose another level, "
                "or put it into an OS::Heat::AutoScalingGroup"
            )
    sized = groups.resized(body, places, grouped)
    asked = {name: value for name, value in body.parameters.items() if name in given}
    return replace(sized, parameters={**sized.parameters, **asked})


def refuse_ungrouped(package: csar.Csar, flavour_id: str | None, vdus: Iterable[str]) -> None:
    """Refuse to scale VDUs whose servers are in no scaling group of a package's templates.

    :raises PlanError: names the first one.
    """
    flavour = flavour_of(package, flavour_id)
    places = hot.places_in(hot_files.base_hot(package, flavour.id), flavour.vdus)
    for vdu in vdus:
        groups.grouped_place(places, vdu)


@dataclass(frozen=True)
class Builder:
    """Creates, updates and deletes whole stacks, and waits until Heat is done.

    Every method raises ClusterError where Heat cannot be reached, and PlanError with Heat's reason
    where Heat failed, or was not done within ``options.timeout``.
    """

    service: Heat
    options: Options
    cancel: CancelToken = field(default_factory=CancelToken)
    """Ends the wait early; the stacks stay as far as they are."""

    def make(self, name: str, body: Body) -> Json:
        """Create a stack; first delete one of that name, which an earlier try left.

        :returns: the stack, as Heat describes it.
        """
        self.delete(name)
        tag = f"container-update-{uuid.uuid4().hex[:16]}"  # recognises it after a lost answer
        request = {"stack_name": name, "tags": tag, "disable_rollback": True, **body.as_request()}
        request["timeout_mins"] = heat_minutes(self.options.timeout)
        try:
            self.service.create(request)
        except ClusterError as error:
            current = self.service.stack(name) if error.status == 409 else None
            if current is None or tag not in (current.get("tags") or ()):
                raise  # else the first answer was lost, and this was the repeated request
        current = self.settled(name)
        if current is None:
            raise PlanError(f"stack {name} is gone: somebody else deleted it")
        if current["stack_status"] != "CREATE_COMPLETE":
            raise PlanError(state_sentence(current))
        return current

    def delete(self, stack: str) -> None:
        """Delete a stack, by its name or by ``name/id``, if there is one."""
        deadline = time.monotonic() + self.options.timeout
        current = self.service.stack(stack)
        if current is None:
            return
        stack = reference(current)
        while True:
            try:
                self.service.delete(stack)
                break
            except ClusterError as error:
                if error.status != 409 or time.monotonic() > deadline:
                    raise
                self._rest(_FIRST_PAUSE, stack)
        current = self.settled(stack)
        if current is not None:
            raise PlanError(state_sentence(current))

    def patch(self, stack: str, body: Json) -> None:
        """Update a stack; what *body* leaves out stays as it is.

        Even where nothing differs Heat replaces what is unhealthy. The stack is IN_PROGRESS when
        Heat answers.
        """
        limit = {"timeout_mins": heat_minutes(self.options.timeout)}
        self.service.update(stack, body | limit, existing=True)
        current = self.settled(stack)
        if current is None:
            raise PlanError(f"stack {stack} is gone: somebody else deleted it")
        if current["stack_status"] != "UPDATE_COMPLETE":
            raise PlanError(state_sentence(current), next_step=NextStep.FIX_AND_RETRY)

    def settled(self, stack: str) -> Json | None:
        """Return the stack once no action is in progress on it; None where there is none."""
        deadline, pause = time.monotonic() + self.options.timeout, _FIRST_PAUSE
        while (current := self.service.stack(stack)) and str(current["stack_status"]).endswith(
            "_IN_PROGRESS"
        ):
            if time.monotonic() > deadline:
                raise PlanError(f"{state_sentence(current)}; the time limit is over")
            self._rest(pause, stack)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return current

    def _rest(self, seconds: float, stack: str) -> None:
        if self.cancel:
            raise PlanError(
                f"stack {stack}: the wait for it was stopped {self.cancel.reason}",
                next_step=NextStep.RETRY,
            )
        time.sleep(seconds)
