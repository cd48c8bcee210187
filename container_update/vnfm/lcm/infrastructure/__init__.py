# SPDX-License-Identifier: Apache-2.0
"""What an operation does in the VIM, objects in a cluster or a stack in a cloud.

Only this file distinguishes the two. The classes in :mod:`.kubernetes` and :mod:`.openstack` have
the same methods, each of which may raise ContainerUpdateError; the type checker sees to it, because
the caller of one may have either.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from container_update.vnfm import vims
from container_update.vnfm.lcm.infrastructure import kubernetes
from container_update.vnfm.lcm.infrastructure.kubernetes import KubernetesVim
from container_update.vnfm.lcm.operation_context import OperationContext

if TYPE_CHECKING:
    from container_update.vnfm.lcm.infrastructure.openstack import OpenStackVim

    Vim = KubernetesVim | OpenStackVim


def connect_vim(context: OperationContext) -> AbstractContextManager[Vim]:
    """Connect to the VIM that the operation's instance runs in, for a ``with`` block.

    :raises PackageError: there is none, or what it needs is not installed.
    :raises ClusterError: it cannot be reached.
    """
    if vims.kind_of(context.connection) == vims.OPENSTACK:
        from container_update.vnfm.lcm.infrastructure import openstack  # noqa: PLC0415, an extra

        return openstack.connect_vim(context)
    return kubernetes.connect_vim(context)
