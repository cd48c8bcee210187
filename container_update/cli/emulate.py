"""``container-update demo`` and ``emulate``: the commands that run on the emulators."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from pathlib import Path
from typing import TextIO

from container_update.cli.output import DONE

_SCENARIOS = ("modify", "blue-green", "rolling", "openstack-blue-green", "openstack-rolling")


def add_demo_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``demo``."""
    add = command.add_argument
    add("--guide", choices=("v1", "v2"), default="v1",
        help="the user guide of the scenario modify (default: %(default)s)")  # fmt: skip
    add("--scenario", default="modify", choices=_SCENARIOS,
        help="modify: the user guide's update; others: a change of the VNF package "
        "(default: %(default)s)")  # fmt: skip


def demo(parsed: argparse.Namespace, out: TextIO) -> int:
    """Run a scenario on an emulator; return the exit status."""
    from container_update.cli.demo import scenarios  # noqa: PLC0415, slow to load

    scenarios.run(parsed.scenario, parsed.guide, out)
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
    (_emulate_cloud if parsed.openstack else _emulate_cluster)(parsed, out, stop)
    return DONE


def _emulate_cluster(parsed: argparse.Namespace, out: TextIO, stop: threading.Event) -> None:
    from container_update.cli.demo.emulators import embedded_cluster  # noqa: PLC0415

    with embedded_cluster(port=parsed.port, nodes=parsed.nodes) as embedded:
        path = embedded.write_kubeconfig(parsed.kubeconfig)
        out.write(f"Kubernetes API on {embedded.url}\nkubectl --kubeconfig {path} get pods\n")
        out.flush()
        stop.wait()


def _emulate_cloud(parsed: argparse.Namespace, out: TextIO, stop: threading.Event) -> None:
    """Run the embedded cloud and a load balancer; only the owner can read the files with logins."""
    from container_update.cli.demo.emulators import embedded_cloud  # noqa: PLC0415

    with embedded_cloud(parsed.port) as (cloud, balancer):
        path = cloud.write_clouds_yaml(parsed.clouds_yaml)
        login = path.with_name("balancer.json")
        with os.fdopen(os.open(login, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(json.dumps({"external_lb_param": balancer.login()}, indent=2) + "\n")
        out.write(
            f"Keystone and Heat on {cloud.url}, a load balancer on 127.0.0.1 port {balancer.port} "
            f"(its login: {login})\nexport OS_CLIENT_CONFIG_FILE={path} OS_CLOUD=embedded\n"
        )
        out.flush()
        stop.wait()
