# SPDX-License-Identifier: Apache-2.0
"""The samples for OpenStack, by the command line, with a load balancer of the emulator."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.heat import ResourceFault
from tests.functional.stacks.conftest import Front
from tests.functional.stacks.limits import Limits
from tests.functional.stacks.proxy import CloudProxy, FirstDeletionFails
from tests.functional.stacks.site import REAL, Site
from tests.functional.stacks.vnf import until
from tests.internals.core import build, hot, main, samples
from tests.internals.stacks import Heat, live, reference

paramiko = pytest.importorskip("paramiko")  # before what imports it

from container_update.emulator.heat.balancer import Balancer  # noqa: E402

SAMPLES = samples.root()
SCRIPTS = SAMPLES / "coordination"
STACK = "vnf-sample"
DONE, NOTHING_TO_DO, CHANGES_PENDING, FAILED, UNDO_INCOMPLETE, NO_WAY_BACK = 0, 2, 3, 7, 8, 12
WRONG_REQUEST = 4


@dataclass(frozen=True)
class Sample:
    """A copy of a sample for the cloud's images, flavours and network, with its VNF."""

    folder: Path
    heat: Heat
    site: Site
    cloud: str

    def run(self, *more: str) -> tuple[int, str]:
        """Run the command of the README."""
        return command(
            "heat", "change", str(self.folder / "before"), str(self.folder / "after"),
            "--request", str(self.folder / "request.json"), "--os-cloud", self.cloud,
            "--stack", STACK, *more,
        )  # fmt: skip

    def recover(self, name: str, *more: str) -> tuple[int, str]:
        """Run one of status, resume and rollback."""
        return command("heat", name, "--os-cloud", self.cloud, "--stack", STACK, *more)

    def stacks(self) -> list[str]:
        """Return the names of the stacks of the VNF and of its journal."""
        return [stack["stack_name"] for stack in self.heat.stacks()]

    def resources(self, kind: str, stack: str = STACK) -> list[dict[str, Any]]:
        """Return the resources of a type, with their attributes, oldest first."""
        owner = self.heat.stack(stack)
        assert owner is not None
        found = []
        for entry in self.heat.resources(reference(owner), live.DEPTH):
            if entry["resource_type"] == kind:
                nested = entry["links"][1]["href"].partition("/stacks/")[2]
                resource = self.heat.resource(nested, entry["resource_name"])
                assert resource is not None
                found.append(resource)
        return found

    def servers(self) -> dict[str, str]:
        """Return the servers' ids, each with its image."""
        return {
            server["physical_resource_id"]: server["attributes"]["image"]["id"]
            for server in self.resources(hot.SERVER)
        }

    def addresses(self, stack: str = STACK) -> list[str]:
        """Return the addresses of a stack's servers."""
        ports = self.resources("OS::Neutron::Port", stack)
        return [port["attributes"]["fixed_ips"][0]["ip_address"] for port in ports]


def command(*words: str) -> tuple[int, str]:
    """Run container-update; return its exit status and its output."""
    out = io.StringIO()
    return main(list(words), out), out.getvalue()


MakeSample = Callable[[str], Sample]


@pytest.fixture
def sample(
    heat: Heat, site: Site, limits: Limits, os_cloud: str, tmp_path: Path
) -> Iterator[MakeSample]:
    """Makes a sample for the cloud and instantiates its VNF."""
    site = replace(site, flavors=(site.flavors[0], limits.cores))

    def make(name: str) -> Sample:
        copy = tmp_path / name
        shutil.copytree(SAMPLES / name, copy)
        for side in ("before", "after"):
            for path in (copy / side).rglob("*.yaml"):
                path.write_text(for_site(path.read_text(), site))
            build.write_metadata(copy / side)
        templates = copy / "before" / "BaseHOT" / "simple"
        heat.create(
            {
                "stack_name": STACK,
                "template": (templates / "top.yaml").read_text(),
                "files": {"front.yaml": (templates / "nested" / "front.yaml").read_text()},
                "parameters": {"network": site.network},
            }
        )
        until(lambda: (heat.stack(STACK) or {}).get("stack_status") == "CREATE_COMPLETE")
        return Sample(copy, heat, site, os_cloud)

    yield make
    if REAL:
        for stack in heat.stacks():
            if STACK in stack["stack_name"] or stack["stack_name"].startswith("container-update"):
                heat.delete(stack["stack_name"])


def for_site(text: str, site: Site) -> str:
    """Return a file of the sample with the cloud's images and flavours."""
    names = ("front-1.0", "front-2.0", "m1.small", "m1.medium")
    for name, own in zip(names, (*site.images, *site.flavors), strict=True):
        text = text.replace(name, own)
    return text


def with_balancer(folder: Path, balancer: Balancer, **changed: Any) -> None:
    """Write the balancer's login into the request, as step 2 of the README says."""
    path = folder / "request.json"
    request = json.loads(path.read_text())
    request["additionalParams"]["external_lb_param"] = {
        **balancer.login(),
        **changed,
    }
    path.write_text(json.dumps(request))
    (folder / "after" / "Scripts" / "known_hosts").write_text(balancer.known_hosts())


def test_blue_green_configures_the_load_balancer_with_the_new_servers(
    sample: MakeSample, balancer: Balancer
) -> None:
    vnf = sample("06-openstack-blue-green")
    with_balancer(vnf.folder, balancer)
    assert vnf.run("--plan")[0] == CHANGES_PENDING
    assert balancer.commands == []
    status, output = vnf.run()
    (stack,) = vnf.stacks()
    assert status == DONE
    assert stack != STACK
    (command,) = balancer.commands
    name, vdu_id, *backends = command.split()
    assert (name, vdu_id) == ("set-backends", "VDU1")
    assert sorted(backends) == sorted(vnf.addresses(stack))
    assert "the load balancer sends its traffic to" in output
    assert f"--stack {stack} " in output.splitlines()[-1]
    assert balancer.password not in output


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"password": "wrong"}, "Authentication failed"),
    ({"port": 1}, "load balancer 127.0.0.1"),
]


@pytest.mark.parametrize(("changed", "words"), WRONG)
def test_a_change_whose_load_balancer_cannot_be_configured_is_undone(
    sample: MakeSample, balancer: Balancer,
    changed: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    vnf = sample("06-openstack-blue-green")
    with_balancer(vnf.folder, balancer, **changed)
    status, _ = vnf.run()
    assert status == FAILED
    assert words in capsys.readouterr().err
    assert vnf.stacks() == [STACK]


def test_a_load_balancer_with_another_host_key_gets_no_password(
    sample: MakeSample, balancer: Balancer
) -> None:
    vnf = sample("06-openstack-blue-green")
    with_balancer(vnf.folder, balancer)
    balancer.key = paramiko.ECDSAKey.generate()
    passwords: list[str] = []
    balancer.check_auth_password = lambda *_: passwords.append("asked")  # type: ignore[method-assign]
    status, _ = vnf.run()
    assert status == FAILED
    assert passwords == []
    assert vnf.stacks() == [STACK]


def test_a_failing_script_restores_the_old_servers_in_the_load_balancer(
    sample: MakeSample, balancer: Balancer
) -> None:
    vnf = sample("06-openstack-blue-green")
    before = vnf.addresses()
    with_balancer(vnf.folder, balancer)
    old = vnf.folder / "after" / "Scripts" / "fails.py"
    old.write_text(
        "import pickle, runpy, sys\n"
        "if not pickle.load(sys.stdin.buffer)['coordination']['back']: sys.exit('it says no')\n"
        "sys.stdin.seek(0)\n"
        f"runpy.run_path({str(SCRIPTS / 'configure_balancer.py')!r}, run_name='__main__')\n"
    )
    status, output = vnf.run("--coordinate-old", "Scripts/fails.py")
    assert status == FAILED
    assert "it says no" in output
    _, back = (command.split()[2:] for command in balancer.commands)
    assert sorted(back) == sorted(before)


def leave_failed_update(vnf: Sample, limits: Limits) -> None:
    """Leave a rolling update that failed at its second server, which can be resized next time."""
    limits.room_for(resizes=1)
    assert vnf.run("--leave-failed")[0] == FAILED
    limits.lift()


@pytest.mark.parametrize("request_given", [True, False], ids=["request", "no request"])
@pytest.mark.parametrize(("command", "image"), [("resume", 1), ("rollback", 0)])
def test_an_unfinished_change_with_scripts_needs_its_request_again(
    sample: MakeSample, limits: Limits, command: str, image: int,
    request_given: bool, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    vnf = sample("07-openstack-rolling")
    leave_failed_update(vnf, limits)
    told, text = vnf.recover("status")
    body = json.loads(vnf.recover("status", "-o", "json")[1])
    assert (told, body["phase"], body["holder"]) == (DONE, "update", None)
    states = [step["state"] for step in body["steps"]]
    begun = states.index("interrupted")
    assert states == ["done"] * begun + ["interrupted"] + ["not started"] * len(states[begun + 1 :])
    assert [line.split(": ")[0] for line in text.splitlines() if re.match(r"  \d+\. ", line)] == [
        f"  {number}. {state}" for number, state in enumerate(states, 1)
    ]
    if not request_given:
        assert vnf.recover(command)[0] == WRONG_REQUEST
        assert "expected the request of this change again" in capsys.readouterr().err
    status, output = vnf.recover(command, "--request", str(vnf.folder / "request.json"))
    assert status == DONE
    assert "Coordination scripts:" in output
    assert set(vnf.servers().values()) == {vnf.site.images[image]}
    assert vnf.stacks() == [STACK], "the journal is gone"
    assert vnf.recover(command)[0] == NOTHING_TO_DO
    assert vnf.recover("status") == (NOTHING_TO_DO, "No operation is under way.\n")


@pytest.mark.parametrize(
    ("scenario", "image", "message"),
    [
        ("openstack-blue-green", "front-2.0", "the load balancer sends its traffic to"),
        ("openstack-rolling", "front-2.0", "Heat resizes the server and rebuilds it"),
    ],
)
def test_the_demo_runs_the_sample_and_shows_the_servers_before_and_after(
    scenario: str, image: str, message: str
) -> None:
    out = io.StringIO()
    assert main(["try", "demo", "--scenario", scenario], out) == DONE
    before, change, after = out.getvalue().split("The ")[1:]
    assert before.count("front-1.0  m1.small") == 2
    assert message in change
    assert after.count(f"{image}  m1.medium") == 2
    assert after.count("stack vnf-sample") == 1


def test_once_the_old_stack_is_being_deleted_the_change_can_only_be_finished(
    front: Front,
    sample: MakeSample,
    balancer: Balancer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    vnf = sample("06-openstack-blue-green")
    with_balancer(vnf.folder, balancer)
    if isinstance(front, CloudProxy):
        front.middlewares.append(FirstDeletionFails(STACK))
    else:
        fault = ResourceFault("the volume is in use", action="DELETE", times=1)
        front.faults.resources.append(fault)
    assert vnf.run()[0] == UNDO_INCOMPLETE
    request = ("--request", str(vnf.folder / "request.json"))
    assert vnf.recover("rollback", *request)[0] == NO_WAY_BACK
    error_output = capsys.readouterr().err
    finish = (
        "It can only be finished: container-update heat resume "
        f"--request {vnf.folder / 'request.json'} --stack {STACK} --os-cloud {vnf.cloud}."
    )
    assert error_output.count(finish) == 2
    assert "fix the cause. It can" in error_output
    assert vnf.run()[0] == DONE
    (stack,) = vnf.stacks()
    assert stack != STACK
