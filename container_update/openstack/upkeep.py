# SPDX-License-Identifier: Apache-2.0
"""Heal and scale a VNF's stack, whose package stays.

Servers are marked unhealthy, and the next update of the stack replaces them; a scaling group gets
another size. Both are one PATCH of the top stack, as Tacker sends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from container_update.model.errors import PlanError
from container_update.model.objects import Json
from container_update.openstack import live, vnfcs
from container_update.openstack.client import Heat, reference
from container_update.openstack.instantiate import Builder
from container_update.openstack.templates import groups
from container_update.openstack.vnfcs import VnfcServer
from container_update.package import hot
from container_update.package.hot import Body, Place


@dataclass(frozen=True)
class RunningStack:
    """A VNF's stack in whatever state, with its VDUs' servers."""

    service: Heat
    builder: Builder
    stack: str
    """``name/id``."""
    body: Body
    places: Mapping[str, Place]
    resources: Sequence[Json]

    @classmethod
    def read(
        cls, service: Heat, builder: Builder, name: str, vdus: Mapping[str, str]
    ) -> RunningStack:
        """Read the stack once no action is in progress on it.

        :param vdus: VDU id to its name.
        :raises PlanError: there is no such stack.
        """
        stack = builder.settled(name)
        if stack is None:
            raise PlanError(f"there is no stack {name}: somebody else deleted it")
        top = reference(stack)
        body = live.body_of(service, top)
        places = hot.places_in(body, vdus)
        return cls(service, builder, top, body, places, service.resources(top, live.DEPTH))

    @property
    def servers(self) -> tuple[VnfcServer, ...]:
        """The servers of the VDUs, the oldest of each first."""
        return vnfcs.members(self.resources, self.stack, self.places)

    # --- heal -----------------------------------------------------------------------------------

    def replace(self, server_ids: Iterable[str], *, with_storage: bool) -> None:
        """Replace servers, and wait until Heat is done.

        :param server_ids: those that are gone already are left out: an earlier try replaced them.
        :param with_storage: their volumes are replaced too.
        """
        doomed = set(server_ids)
        for server in self.servers:
            if server.server_id in doomed:
                for name in (server.resource, *(server.volumes if with_storage else ())):
                    self.service.mark_unhealthy(server.stack, name, "heal")
        self.builder.patch(self.stack, {})

    # --- scale ----------------------------------------------------------------------------------

    def scale(self, numbers: Mapping[str, int]) -> None:
        """Give the scaling groups of VDUs another size, and wait until Heat is done.

        :raises PlanError: a VDU has no scaling group.
        """
        for vdu_id, number in numbers.items():
            self._mark_newest(vdu_id, number)
        desired = groups.resized(self.body, self.places, numbers)
        request: Json = {"parameters": desired.parameters}
        if desired.template != self.body.template:
            request["template"] = desired.template
        self.builder.patch(self.stack, request)

    def _mark_newest(self, vdu_id: str, number: int) -> None:
        """Mark the members that are to go: Heat removes unhealthy ones first, else the oldest."""
        members = [server for server in self.servers if server.vdu_id == vdu_id]
        for server in members[number:]:
            for resource in self.resources:
                is_group = vnfcs.stack_of(resource) != self.stack
                if resource["resource_name"] == server.name and is_group:
                    group = vnfcs.stack_of(resource)
                    assert group is not None, "a nested stack has a link"
                    self.service.mark_unhealthy(group, server.name, "scale in")
