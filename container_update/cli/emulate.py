"""``container-update demo`` and ``emulate``: the commands that run on the emulators."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path
from typing import TextIO

DONE = 0
_SCENARIOS = ("modify", "blue-green", "rolling", "openstack-blue-green", "openstack-rolling")


def add_demo_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``demo``."""
    add = command.add_argument
    add(
        "--guide",
        choices=("v1", "v2"),
        default="v1",
        help="the user guide of the scenario modify (default: %(default)s)",
    )
    add("--scenario", default="modify", choices=_SCENARIOS,
        help="modify: the user guide's update; others: a change of the VNF package "
        "(default: %(default)s)")  # fmt: skip


def demo(parsed: argparse.Namespace, out: TextIO) -> int:
    """Run a scenario on an emulator; return the exit status."""
    from container_update.cli.demo.change import demo_change  # noqa: PLC0415, slow to load
    from container_update.cli.demo.stack import SCENARIOS, demo_stack  # noqa: PLC0415
    from container_update.cli.demo.update import demo as demo_update  # noqa: PLC0415

    if parsed.scenario == "modify":
        demo_update(parsed.guide, out)
    elif parsed.scenario in SCENARIOS:
        demo_stack(parsed.scenario, out)
    else:
        demo_change(parsed.scenario, out)
    return DONE


def add_emulate_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``emulate``."""
    add = command.add_argument
    add("--port", type=int, default=0, metavar="N",
        help="the port on loopback; 0: any free port (default: %(default)s)")  # fmt: skip
    add("--nodes", type=int, default=1, metavar="N",
        help="the number of nodes (default: %(default)s)")  # fmt: skip
    add("--kubeconfig", type=Path, default=Path("kubeconfig"), metavar="FILE",
        help="the kubeconfig file to write (default: %(default)s)")  # fmt: skip
    add("--openstack", action="store_true", help="run Keystone and Heat of an OpenStack instead")
    add("--clouds-yaml", type=Path, default=Path("clouds.yaml"), metavar="FILE",
        help="with --openstack: the clouds.yaml file to write (default: %(default)s)")  # fmt: skip


def emulate(parsed: argparse.Namespace, out: TextIO) -> int:
    """Run an emulator until a signal arrives; return the exit status."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if parsed.openstack:
        from container_update.cli.demo.stack import emulate as emulate_stack  # noqa: PLC0415

        emulate_stack(parsed.clouds_yaml, parsed.port, out, stop)
        return DONE
    from container_update.cli.demo.update import embedded_cluster  # noqa: PLC0415, slow to load

    with embedded_cluster(port=parsed.port, nodes=parsed.nodes) as embedded:
        path = embedded.write_kubeconfig(parsed.kubeconfig)
        out.write(f"Kubernetes API on {embedded.url}\nkubectl --kubeconfig {path} get pods\n")
        out.flush()
        stop.wait()
    return DONE
