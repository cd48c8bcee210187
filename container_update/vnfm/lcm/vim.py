"""The seam between the life of a VNF and the kind of VIM that it runs in.

Only here the kinds are told apart: :mod:`.kubernetes` has objects in a cluster, :mod:`.openstack` a
stack.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from container_update.model.outcome import Outcome
from container_update.operations.change_package import Changed
from container_update.operations.strategy import ChangeJob, Target
from container_update.vnfm import vims
from container_update.vnfm.lcm import kubernetes
from container_update.vnfm.lcm.operation_context import OperationContext, Record


class Vim(Protocol):
    """What one operation asks of its VIM; every method may raise ContainerUpdateError."""

    def held_by(self) -> str | None:
        """Who works at the VNF there, in a sentence; None where nobody does, or not any more."""

    def instantiate(self) -> Record:
        """Make the VNF as the request says, whatever an earlier try left; its record."""

    def undo_instantiate(self) -> None:
        """Delete what was made so far."""

    def terminate(self) -> None:
        """Delete the VNF and wait until it is gone."""

    def target(self) -> Target:
        """Where a change of its package is made."""

    def changed(self, record: Record, changed: Changed) -> Record:
        """Return the record after a change, which names what runs now."""

    def undo_change(self, job: ChangeJob) -> Outcome | None:
        """Undo by the journal what a change left; None where there was nothing."""

    def as_it_is(self, record: Record) -> Record:
        """Return the record with the VNFCs that there are: an undo may have made new ones."""


def connected(context: OperationContext) -> AbstractContextManager[Vim]:
    """Return the VIM that the operation's instance runs in, until the ``with`` block ends.

    :raises PackageError: there is none, or what it needs is not installed.
    :raises ClusterError: it cannot be asked.
    """
    if vims.kind_of(context.connection) == vims.OPENSTACK:
        from container_update.vnfm.lcm import openstack  # noqa: PLC0415, an extra

        return openstack.connected(context)
    return kubernetes.connected(context)
