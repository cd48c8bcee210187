# SPDX-License-Identifier: Apache-2.0
"""The VIM of an operation: :mod:`.kubernetes` has objects in a cluster, :mod:`.openstack` a stack.

Only this module distinguishes the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from container_update.engine.goals.change_package import Changed, Target
from container_update.engine.goals.job import ChangeJob
from container_update.model.objects import Json
from container_update.model.outcome import Outcome
from container_update.vnfm import vims
from container_update.vnfm.lcm.infrastructure import kubernetes
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord


class ConnectedVim(Protocol):
    """The VNF in its VIM, for one operation; every method may raise ContainerUpdateError."""

    def held_by(self) -> str | None:
        """Return who holds the VNF's lease, as a sentence; None if nobody does or it expired."""

    def instantiate(self) -> VnfRecord:
        """Create the VNF as the request says, whatever an earlier try left; return its record."""

    def undo_instantiate(self) -> None:
        """Delete what was created so far."""

    def terminate(self) -> None:
        """Delete the VNF and wait until it is gone."""

    def heal(self, vnfcs: Sequence[Json], *, with_storage: bool) -> None:
        """Replace VNFCs and wait until the new ones work; without any, heal the whole VNF.

        :param vnfcs: their entries of vnfcResourceInfo.
        :param with_storage: their storage is replaced too.
        """

    def scale(self, numbers: Mapping[str, int]) -> None:
        """Give VDUs these numbers of VNFCs and wait until they work."""

    def undo_heal(self) -> None:
        """Undo what a heal that failed left.

        :raises NoWayBackError: that is not possible.
        """

    def undo_scale(self, numbers: Mapping[str, int]) -> None:
        """Undo what a scaling that failed left.

        :param numbers: the VDUs' numbers of VNFCs before.
        """

    def target(self) -> Target:
        """Return where the VNF runs, for a change of its package."""

    def changed(self, record: VnfRecord, changed: Changed) -> VnfRecord:
        """Return the record after a change, with the resources that exist now."""

    def undo_change(self, job: ChangeJob) -> Outcome | None:
        """Undo by the journal what a change left; return None if it left nothing."""

    def as_it_is(self, record: VnfRecord) -> VnfRecord:
        """Return the record with the live VNFCs: an undo may have created new ones."""


def connected(context: OperationContext) -> AbstractContextManager[ConnectedVim]:
    """Connect to the VIM that the operation's instance runs in, for a ``with`` block.

    :raises PackageError: there is none, or what it needs is not installed.
    :raises ClusterError: it cannot be reached.
    """
    if vims.kind_of(context.connection) == vims.OPENSTACK:
        from container_update.vnfm.lcm.infrastructure import openstack  # noqa: PLC0415, an extra

        return openstack.connected(context)
    return kubernetes.connected(context)
