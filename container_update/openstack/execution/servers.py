# SPDX-License-Identifier: Apache-2.0
"""Look at the servers after their stacks were changed, and mend what Heat overlooks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from container_update.model.objects import Json
from container_update.openstack.client import Heat
from container_update.openstack.execution.writer import StepError, Writer
from container_update.openstack.plan import StackStep
from container_update.openstack.software import Software, as_it_is, deviation
from container_update.openstack.vnfcs import VnfcServer
from container_update.package.hot import StackBody


@dataclass(frozen=True)
class Servers:
    """The servers of one operation."""

    service: Heat
    stacks: Writer

    def ensure(self, member: VnfcServer, body: StackBody) -> None:
        """Wait until a server is active, and see that it runs what its stack defines.

        :raises StepError: it does not become active, or stays different.
        """
        self._mend(member, body, self.stacks.active(member), known=None)

    def ensure_as_before(self, member: VnfcServer, body: StackBody) -> str:
        """Do the same in an undo, where a server that does not become active is replaced.

        :param body: the stack as it was, when the server had ``member.software``.
        :returns: which server took its place, empty where it is the same one.
        :raises StepError: it does not become active, or stays different.
        """
        try:
            server = self.stacks.active(member, part=0.5)
        except StepError as error:
            self.stacks.mark_unhealthy(member.stack, member.resource, str(error))
            self.stacks.update(member.stack, body, again=True)
            server = self.stacks.active(member)
        # a server that was not what its stack says becomes that, not what it was
        known = None if member.deviation else member.software
        server = self._mend(member, body, server, known=known)
        now = str(server.get("physical_resource_id") or member.server_id)
        if now == member.server_id:
            return ""
        return f"server {member.server_id} was replaced by server {now}"

    def _mend(
        self, member: VnfcServer, body: StackBody, server: Json, *, known: Software | None
    ) -> Json:
        """Return a server once it is as defined: the stack is told what Nova has, then *body*."""
        live, name = Software.of(server), member.resource
        if live is None or not deviation(self.service, server, body, name, known):
            return server
        self.stacks.update(member.stack, as_it_is(body, name, live))
        self.stacks.update(member.stack, body)
        server = self.stacks.active(member)
        if wrong := deviation(self.service, server, body, name, known):
            raise StepError(_sentence(member, wrong))
        return server

    def make_room(self, member: VnfcServer) -> str:
        """Have the next update replace a server whose disk is larger than before: Nova refuses to
        give it a smaller one.

        :returns: that it does, empty where it does not.
        """
        before = member.software
        live = Software.of(self.service.resource(member.stack, member.resource))
        if before is None or live is None or before.disk is None or live.disk is None:
            return ""
        if live.disk <= before.disk:
            return ""
        reason = f"its disk has {live.disk} GB and had {before.disk} GB"
        self.stacks.mark_unhealthy(member.stack, member.resource, reason)
        return reason

    def look(self, steps: Iterable[StackStep]) -> None:
        """See that each step's server is as the step says; StepError where one is not."""
        for step in steps:
            if step.member is not None and step.after is not None:
                server, name = self.stacks.active(step.member), step.member.resource
                if wrong := deviation(self.service, server, step.after, name):
                    raise StepError(_sentence(step.member, wrong))


def _sentence(member: VnfcServer, wrong: str) -> str:
    return (
        f"the server of {member.vdu_id} {member.name} has {wrong}, though Heat says that its stack "
        "is complete: see whether another client changes it"
    )
