# SPDX-License-Identifier: Apache-2.0
"""``container-update try``: the commands for who has no cluster: demo, emulate, samples."""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from container_update.cli.arguments import option_arguments
from container_update.cli.terminal.output import DONE
from container_update.emulator.demo import samples
from container_update.model.errors import ContainerUpdateError

_SCENARIOS = (
    *("modify", "failure", "blue-green", "rolling"),
    *("openstack-blue-green", "openstack-rolling"),
)


HELP = "without a cluster of your own: demo, emulate, samples"
_DEMO_EXAMPLES = """\
examples:
  container-update try demo
  container-update try demo --scenario failure
"""
_EMULATE_EXAMPLE = """\
example:
  container-update try emulate --write-kubeconfig kubeconfig --fail 'upf:*'
"""


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands.

    :param add: adds one, by its name, its function and its help.
    """
    _add_demo_arguments(add("demo", demo, "run a change of a sample on an emulator"))
    text = "run the embedded cluster until it is interrupted"
    add_arguments(add("emulate", emulate, text))
    text = "list the samples, or copy one: packages, requests, scripts, roles"
    samples.add_arguments(add("samples", samples.run, text))


def _add_demo_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``demo``."""
    command.epilog = _DEMO_EXAMPLES
    add = command.add_argument
    add("--guide", choices=("v1", "v2"), default="v1",
        help="the user guide of the update (default: %(default)s)")  # fmt: skip
    add("--scenario", default="modify", choices=_SCENARIOS, metavar="NAME",
        help="modify: the user guide's update; failure: the same with an image that cannot be "
        f"pulled; {', '.join(_SCENARIOS[2:])}: a change of the VNF package "
        "(default: %(default)s)")  # fmt: skip


def demo(parsed: argparse.Namespace, out: TextIO) -> int:
    """Run a scenario on an emulator; return the exit status."""
    from container_update.emulator.demo import scenarios  # noqa: PLC0415, slow to load

    scenarios.run(parsed.scenario, parsed.guide, out)
    return DONE


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``emulate``."""
    command.epilog = _EMULATE_EXAMPLE
    add = command.add_argument
    add("--port", type=int, default=0, metavar="N",
        help="the port on loopback; 0: any free port (default: %(default)s)")  # fmt: skip
    add("--nodes", type=int, default=1, metavar="N",
        help="the number of nodes (default: %(default)s)")  # fmt: skip
    add("--write-kubeconfig", type=Path, default=Path("kubeconfig"), metavar="FILE",
        help="the kubeconfig file to write; a file that no emulator wrote is not overwritten, "
        "and the command ends (default: %(default)s)")  # fmt: skip
    add("--slow", type=_seconds, default=None, metavar="TIME",
        help="how long a container takes from its start until it is ready: 5s, 500ms, 1m, or "
        "seconds")  # fmt: skip
    add("--fail", action="append", default=[], metavar="PATTERN",
        help="images that cannot be pulled, as the manifest names them: 'upf:*' "
        "(repeatable)")  # fmt: skip
    add("--crash", action="append", default=[], metavar="PATTERN",
        help="images or pods whose containers end with exit code 1 as soon as they run "
        "(repeatable)")  # fmt: skip
    add("--openstack", action="store_true", help="run Keystone and Heat of an OpenStack instead")
    add("--clouds-yaml", type=Path, default=Path("clouds.yaml"), metavar="FILE",
        help="with --openstack: the clouds.yaml file to write, under the same condition "
        "(default: %(default)s)")  # fmt: skip


def _seconds(text: str) -> float:
    """Return the seconds of a duration such as 5s."""
    try:
        return option_arguments.seconds_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def emulate(parsed: argparse.Namespace, out: TextIO) -> int:
    """Run an emulator until a signal arrives; return the exit status."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        (_emulate_cloud if parsed.openstack else _emulate_cluster)(parsed, out, stop)
    except OSError as error:
        raise ContainerUpdateError(
            f"cannot listen on port {parsed.port}: {error.strerror}: choose another one with "
            "--port, or none for any free one"
        ) from error
    return DONE


def _emulate_cluster(parsed: argparse.Namespace, out: TextIO, stop: threading.Event) -> None:
    from container_update.emulator.demo import login_files  # noqa: PLC0415
    from container_update.emulator.demo.emulators import embedded_cluster  # noqa: PLC0415

    with embedded_cluster(port=parsed.port, nodes=parsed.nodes) as embedded:
        embedded.behaviour.ready_seconds = parsed.slow or embedded.behaviour.ready_seconds
        embedded.behaviour.bad_images.extend(parsed.fail)
        for pattern in parsed.crash:
            embedded.behaviour.let_crash(pattern)
        path = login_files.write(
            parsed.write_kubeconfig, embedded.kubeconfig(), login_files.is_kubeconfig
        )
        out.write(f"Kubernetes API on {embedded.url}\nkubectl --kubeconfig {path} get pods\n")
        out.flush()
        stop.wait()


def _emulate_cloud(parsed: argparse.Namespace, out: TextIO, stop: threading.Event) -> None:
    """Run the embedded cloud and a load balancer; only the owner can read the files with logins."""
    from container_update.emulator.demo import login_files  # noqa: PLC0415
    from container_update.emulator.demo.emulators import embedded_cloud  # noqa: PLC0415

    with embedded_cloud(parsed.port) as (cloud, balancer):
        path = login_files.write(
            parsed.clouds_yaml, cloud.clouds_yaml(), login_files.is_clouds_yaml
        )
        login = json.dumps({"external_lb_param": balancer.login()}, indent=2) + "\n"
        login_file = login_files.write(
            path.with_name("balancer.json"), login, login_files.is_balancer_login
        )
        out.write(
            f"Keystone and Heat on {cloud.url}, a load balancer on 127.0.0.1 port {balancer.port} "
            f"(its login: {login_file})\nexport OS_CLIENT_CONFIG_FILE={path} OS_CLOUD=embedded\n"
        )
        out.flush()
        stop.wait()
