"""The samples for OpenStack on the embedded cloud: ``demo --scenario``, ``emulate --openstack``."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TextIO

from container_update.cli.demo.update import title
from container_update.cli.reports import text_report
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Json
from container_update.operations.change_package import Changed, run_change
from container_update.operations.change_request import ChangeRequest
from container_update.operations.strategy import ChangeJob
from container_update.package import samples

if TYPE_CHECKING:
    from container_update.emulator.heat import EmbeddedOpenStack
    from container_update.emulator.heat.balancer import Balancer
    from container_update.stacks.client import Heat

SCENARIOS: Mapping[str, str] = {
    "openstack-blue-green": "06-openstack-blue-green",
    "openstack-rolling": "07-openstack-rolling",
}
"""A scenario's name to its sample."""

STACK = "vnf-sample"
_TIMEOUT_SECONDS = 60.0
_DEPTH = 3
_SERVER, _PORT = "OS::Nova::Server", "OS::Neutron::Port"


def demo_stack(name: str, out: TextIO) -> Changed:
    """Create the sample's VNF in the embedded cloud, show it, change its package, show it again.

    :param name: a key of :data:`SCENARIOS`.
    :raises ContainerUpdateError: a step failed, or an extra is not installed.
    """
    with _embedded() as (cloud, balancer), TemporaryDirectory() as place:
        from container_update.operations.strategies.openstack import OpenStackTarget  # noqa: PLC0415
        from container_update.stacks.client import connect  # noqa: PLC0415

        folder = Path(place, "sample")
        shutil.copytree(samples.root() / SCENARIOS[name], folder)
        job = _job(folder, balancer)
        with connect(auth=cloud.auth()) as heat:
            title(out, "The VNF as its old package describes it")
            instantiate(folder / "before", heat)
            show(heat, out)
            title(out, f"The change: {job.request.upgrade_type}")
            changed = run_change(job, OpenStackTarget(heat, STACK))
            out.write(f"{text_report.plan_text(changed.outcome.plan)}\n\n")
            out.write(f"{text_report.outcome_text(changed.outcome)}\n")
            for script in changed.scripts:
                out.write(f"{script}\n")
            title(out, "The VNF after the change")
            show(heat, out)
            return changed


def emulate(clouds_yaml: Path, port: int, out: TextIO, stop: threading.Event) -> None:
    """Run the embedded cloud, and the load balancer of sample 06, until *stop* is set.

    :param clouds_yaml: the file to write; the login of the balancer is written to
        ``balancer.json`` beside it. Only their owner can read them.
    :param port: on loopback; 0: any free port.
    :raises ContainerUpdateError: an extra is not installed.
    """
    with _embedded(port) as (cloud, balancer):
        path = cloud.write_clouds_yaml(clouds_yaml)
        login = path.with_name("balancer.json")
        with os.fdopen(os.open(login, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(json.dumps({"external_lb_param": balancer.login()}, indent=2) + "\n")
        out.write(
            f"Keystone and Heat on {cloud.url}, a load balancer on 127.0.0.1 port {balancer.port} "
            f"(its login: {login})\nexport OS_CLIENT_CONFIG_FILE={path} OS_CLOUD=embedded\n"
        )
        out.flush()
        stop.wait()


@contextmanager
def _embedded(port: int = 0) -> Iterator[tuple[EmbeddedOpenStack, Balancer]]:
    try:
        from container_update.emulator.heat import EmbeddedOpenStack  # noqa: PLC0415
        from container_update.emulator.heat.balancer import Balancer  # noqa: PLC0415
    except ImportError as error:
        raise ContainerUpdateError(
            f"the embedded cloud needs the Python package {error.name}: install it with "
            "pip install 'container-update[emulator,openstack]'"
        ) from error
    with EmbeddedOpenStack(port=port) as cloud, Balancer() as balancer:
        yield cloud, balancer


def _job(folder: Path, balancer: Balancer) -> ChangeJob:
    """Return the sample's change, with the login of the balancer (step 2 of its README)."""
    body = json.loads((folder / "request.json").read_text())
    if "external_lb_param" in body["additionalParams"]:
        body["additionalParams"]["external_lb_param"] = balancer.login()
        (folder / "after" / "Scripts" / "known_hosts").write_text(balancer.known_hosts())
    return ChangeJob(
        ChangeRequest.of(body), str(folder / "before"), str(folder / "after"), "sample"
    )


def instantiate(package: Path, heat: Heat) -> None:
    """Create the VNF's stack from a sample's package.

    :raises ContainerUpdateError: the stack was not complete in time.
    """
    templates = package / "BaseHOT" / "simple"
    heat.create(
        {
            "stack_name": STACK,
            "template": (templates / "top.yaml").read_text(),
            "files": {path.name: path.read_text() for path in (templates / "nested").iterdir()},
            "parameters": {"network": "private"},
        }
    )
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while (stack := heat.stack(STACK) or {}).get("stack_status") != "CREATE_COMPLETE":
        if time.monotonic() > deadline:
            status = stack.get("stack_status")
            raise ContainerUpdateError(
                f"stack {STACK} is {status}, expected CREATE_COMPLETE after {_TIMEOUT_SECONDS:g} s"
            )
        threading.Event().wait(0.02)


def show(heat: Heat, out: TextIO) -> None:
    """Show the stacks of the cloud, each with its servers."""
    for stack in heat.stacks():
        name = f"{stack['stack_name']}/{stack['id']}"
        out.write(f"stack {stack['stack_name']}  {stack['stack_status']}  {stack['id']}\n")
        resources = heat.resources(name, _DEPTH)
        for server in (entry for entry in resources if entry["resource_type"] == _SERVER):
            out.write(f"  {_server_line(heat, server)}\n")


def _server_line(heat: Heat, server: Json) -> str:
    stack = _stack_of(server)
    attributes = _attributes(heat, stack, server["resource_name"])
    ports = [
        entry["resource_name"] for entry in heat.resources(stack) if entry["resource_type"] == _PORT
    ]
    addresses = [
        address["ip_address"]
        for port in ports
        for address in _attributes(heat, stack, port)["fixed_ips"]
    ]
    image = (attributes["image"] or {"id": "from a volume"})["id"]
    return "  ".join(
        [
            server["physical_resource_id"],
            attributes["status"],
            image,
            str(attributes["flavor"]),
            *addresses,
        ]
    )


def _stack_of(resource: Json) -> str:
    link = next(link["href"] for link in resource["links"] if link["rel"] == "stack")
    return str(link.partition("/stacks/")[2])


def _attributes(heat: Heat, stack: str, name: str) -> Json:
    attributes: Json = (heat.resource(stack, name) or {}).get("attributes") or {}
    return attributes
