# SPDX-License-Identifier: Apache-2.0
"""The emulators, which need extras: a cluster, and a cloud with a load balancer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from container_update.cli import extras

if TYPE_CHECKING:
    from container_update.emulator.heat import EmbeddedOpenStack
    from container_update.emulator.heat.balancer import Balancer
    from container_update.emulator.kubernetes import EmbeddedCluster


def embedded_cluster(*, port: int = 0, nodes: int = 1) -> EmbeddedCluster:
    """Return the embedded cluster, not started yet.

    :raises ContainerUpdateError: the extra emulator is not installed.
    """
    with extras.needed_by("the embedded cluster", "emulator"):
        from container_update.emulator.kubernetes import EmbeddedCluster  # noqa: PLC0415
    return EmbeddedCluster(port=port, nodes=nodes)


@contextmanager
def embedded_cloud(port: int = 0) -> Iterator[tuple[EmbeddedOpenStack, Balancer]]:
    """Run the embedded cloud and the load balancer of sample 06 for the ``with`` block.

    :raises ContainerUpdateError: an extra is not installed.
    """
    with extras.needed_by("the embedded cloud", "emulator,openstack"):
        from container_update.emulator.heat import EmbeddedOpenStack  # noqa: PLC0415
        from container_update.emulator.heat.balancer import Balancer  # noqa: PLC0415
    with EmbeddedOpenStack(port=port) as cloud, Balancer() as balancer:
        yield cloud, balancer
