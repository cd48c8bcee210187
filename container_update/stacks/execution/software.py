"""Look at the servers after their stacks were changed, and mend what Heat overlooks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from container_update.package.hot import Body
from container_update.stacks.client import Heat
from container_update.stacks.execution.writer import StepError, Writer
from container_update.stacks.plan import StackStep
from container_update.stacks.servers import Software, as_it_is, deviation
from container_update.stacks.vnfcs import VnfcServer


@dataclass(frozen=True)
class Servers:
    """The servers of one operation."""

    service: Heat
    stacks: Writer

    def ensure(self, member: VnfcServer, body: Body, *, known: bool = False) -> str:
        """Wait until a server is active, and see that it runs what its stack defines.

        Where it does not, the stack is updated to what Nova has, in which Heat sees a change, and
        then to *body* again: the server keeps its id.

        :param known: *body* is the stack as it was, when the server had ``member.software``.
        :returns: which server took its place, empty where it is the same one.
        :raises StepError: it does not become active, or stays different.
        """
        if wrong := self._deviation(member, body, known=known):
            server = self.service.resource(member.stack, member.resource)
            live = Software.of(server)
            assert live is not None, "only what Nova has can deviate"
            self.stacks.update(member.stack, as_it_is(body, member.resource, live))
            self.stacks.update(member.stack, body)
            if wrong := self._deviation(member, body, known=known):
                raise StepError(_sentence(member, wrong))
        server = self.service.resource(member.stack, member.resource) or {}
        now = str(server.get("physical_resource_id") or member.server_id)
        if now == member.server_id:
            return ""
        return f"server {member.server_id} was replaced by server {now}"

    def _deviation(self, member: VnfcServer, body: Body, *, known: bool) -> str:
        server = self.stacks.active(member)
        before = member.software if known else None
        return deviation(self.service, server, body, member.resource, before)

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
        self.stacks.mark_unhealthy(member, reason)
        return reason

    def look(self, steps: Iterable[StackStep]) -> None:
        """See that the server of each step is what the step says.

        :raises StepError: one is not.
        """
        for step in steps:
            if step.member is not None and step.after is not None:
                wrong = self._deviation(step.member, step.after, known=False)
                if wrong:
                    raise StepError(_sentence(step.member, wrong))


def _sentence(member: VnfcServer, wrong: str) -> str:
    return (
        f"the server of {member.vdu_id} {member.name} has {wrong}, though Heat says that its stack "
        "is complete: see whether somebody else changes it"
    )
