"""What the command line needs for a VNF in a Heat stack: ``--stack`` and what goes with it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from container_update.model.options import Options

if TYPE_CHECKING:
    from container_update.operations.strategies.openstack import OpenStackSite
    from container_update.stacks.client import Heat

DONE, NOTHING_TO_DO = 0, 2


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Which stack of which cloud."""
    add = command.add_argument
    add("--stack", metavar="NAME",
        help="the VNF is this stack of an OpenStack cloud, by name or by NAME/ID")  # fmt: skip
    add("--os-cloud", metavar="CLOUD",
        help="its cloud in clouds.yaml; default: $OS_CLOUD, else other OS_* variables")  # fmt: skip


@contextmanager
def site(parsed: argparse.Namespace, options: Options) -> Iterator[OpenStackSite]:
    """The stack that the arguments name."""
    from container_update.operations.strategies.openstack import OpenStackSite  # noqa: PLC0415

    with _connected(parsed, options) as heat:
        yield OpenStackSite(heat, parsed.stack, getattr(parsed, "flavour_id", None))


def status(parsed: argparse.Namespace, options: Options, out: TextIO) -> int:
    """Show the change that is under way."""
    from container_update.stacks.change import StackInstance  # noqa: PLC0415, slow to load

    with _connected(parsed, options) as heat:
        record = StackInstance(heat, parsed.instance_id, options).status()
    out.write(f"{record or 'No change is under way.'}\n")
    return DONE if record else NOTHING_TO_DO


@contextmanager
def _connected(parsed: argparse.Namespace, options: Options) -> Iterator[Heat]:
    try:
        from container_update.stacks.client import connect  # noqa: PLC0415, an extra
    except ImportError as error:
        from container_update.model.errors import ClusterError  # noqa: PLC0415

        raise ClusterError(
            f"--stack: {error}: install it with pip install 'container-update[openstack]'"
        ) from error
    with connect(parsed.os_cloud, options=options) as heat:
        yield heat
