"""The samples for OpenStack, by the command line, on the emulator with a load balancer."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from container_update.cli.main import main
from container_update.emulator.heat import EmbeddedOpenStack, ResourceFault
from container_update.package import hot, samples
from container_update.stacks import live
from container_update.stacks.client import Heat, reference
from tests.functional.stacks.vnf import until

paramiko = pytest.importorskip("paramiko")  # before what imports it

from container_update.emulator.heat.balancer import Balancer  # noqa: E402

SAMPLES = samples.root()
SCRIPTS = SAMPLES / "coordination"
STACK = "vnf-sample"
DONE, NOTHING_TO_DO, CHANGES_PENDING, FAILED, UNDO_INCOMPLETE, NO_WAY_BACK = 0, 2, 3, 7, 8, 12
WRONG_REQUEST = 4


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    with Balancer() as running:
        yield running


@contextmanager
def sample(name: str, folder: Path, heat: Heat) -> Iterator[Path]:
    """Yield a copy of a sample whose VNF is instantiated."""
    copy = folder / name
    shutil.copytree(SAMPLES / name, copy)
    templates = copy / "before" / "BaseHOT" / "simple"
    heat.create(
        {
            "stack_name": STACK,
            "template": (templates / "top.yaml").read_text(),
            "files": {"front.yaml": (templates / "nested" / "front.yaml").read_text()},
            "parameters": {"network": "private"},
        }
    )
    until(lambda: (heat.stack(STACK) or {}).get("stack_status") == "CREATE_COMPLETE")
    yield copy


def run(cloud: EmbeddedOpenStack, folder: Path, *more: str) -> tuple[int, str]:
    """Run the command of the README."""
    out = io.StringIO()
    status = main(
        ["change-vnfpkg", str(folder / "before"), str(folder / "after"),
         "--request", str(folder / "request.json"), "--os-cloud", "embedded",
         "--stack", STACK, *more],
        out,
    )  # fmt: skip
    return status, out.getvalue()


@pytest.fixture(autouse=True)
def clouds(
    cloud: EmbeddedOpenStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> EmbeddedOpenStack:
    path = cloud.write_clouds_yaml(tmp_path / "clouds.yaml")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    return cloud


def addresses(heat: Heat, stack: str) -> list[str]:
    """Return the addresses of a stack's servers, oldest first."""
    server_stack = heat.stack(stack)
    assert server_stack is not None
    entries = heat.resources(reference(server_stack), live.DEPTH)
    ports = [entry for entry in entries if entry["resource_type"] == "OS::Neutron::Port"]
    ips = []
    for port in ports:
        stack_of = port["links"][1]["href"].partition("/stacks/")[2]
        port_resource = heat.resource(stack_of, port["resource_name"])
        assert port_resource is not None
        ips.append(port_resource["attributes"]["fixed_ips"][0]["ip_address"])
    return ips


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
    cloud: EmbeddedOpenStack, heat: Heat, tmp_path: Path, balancer: Balancer
) -> None:
    with sample("06-openstack-blue-green", tmp_path, heat) as folder:
        with_balancer(folder, balancer)
        assert run(cloud, folder, "--plan")[0] == CHANGES_PENDING
        assert balancer.commands == []
        status, output = run(cloud, folder)
    (stack,) = heat.stacks()
    assert status == DONE
    assert stack["stack_name"] != STACK
    (command,) = balancer.commands
    name, vdu_id, *backends = command.split()
    assert (name, vdu_id) == ("set-backends", "VDU1")
    assert sorted(backends) == sorted(addresses(heat, stack["stack_name"]))
    assert "the load balancer sends its traffic to" in output
    assert balancer.password not in output


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"password": "wrong"}, "Authentication failed"),
    ({"port": 1}, "load balancer 127.0.0.1"),
]


@pytest.mark.parametrize(("changed", "words"), WRONG)
def test_a_change_whose_load_balancer_cannot_be_configured_is_undone(
    cloud: EmbeddedOpenStack, heat: Heat, tmp_path: Path, balancer: Balancer,
    changed: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with sample("06-openstack-blue-green", tmp_path, heat) as folder:
        with_balancer(folder, balancer, **changed)
        status, _ = run(cloud, folder)
    assert status == FAILED
    assert words in capsys.readouterr().err
    assert [stack["stack_name"] for stack in heat.stacks()] == [STACK]


def test_a_load_balancer_with_another_host_key_gets_no_password(
    cloud: EmbeddedOpenStack, heat: Heat, tmp_path: Path, balancer: Balancer
) -> None:
    with sample("06-openstack-blue-green", tmp_path, heat) as folder:
        with_balancer(folder, balancer)
        balancer.key = paramiko.ECDSAKey.generate()
        passwords: list[str] = []
        balancer.check_auth_password = lambda *_: passwords.append("asked")  # type: ignore[method-assign]
        status, _ = run(cloud, folder)
    assert status == FAILED
    assert passwords == []
    assert [stack["stack_name"] for stack in heat.stacks()] == [STACK]


def test_a_failing_script_restores_the_old_servers_in_the_load_balancer(
    cloud: EmbeddedOpenStack, heat: Heat, tmp_path: Path, balancer: Balancer
) -> None:
    with sample("06-openstack-blue-green", tmp_path, heat) as folder:
        before = addresses(heat, STACK)
        with_balancer(folder, balancer)
        old = folder / "after" / "Scripts" / "fails.py"
        old.write_text(
            "import pickle, runpy, sys\n"
            "if not pickle.load(sys.stdin.buffer)['coordination']['back']: sys.exit('it says no')\n"
            "sys.stdin.seek(0)\n"
            f"runpy.run_path({str(SCRIPTS / 'configure_balancer.py')!r}, run_name='__main__')\n"
        )
        status, output = run(cloud, folder, "--coordinate-old", "Scripts/fails.py")
    assert status == FAILED
    assert "it says no" in output
    _, back = (command.split()[2:] for command in balancer.commands)
    assert sorted(back) == sorted(before)


def test_a_rolling_update_checks_each_server_which_keeps_its_id_and_address(
    cloud: EmbeddedOpenStack, heat: Heat, tmp_path: Path
) -> None:
    with sample("07-openstack-rolling", tmp_path, heat) as folder:
        server_stack = heat.stack(STACK)
        assert server_stack is not None

        def servers() -> set[str]:
            entries = heat.resources(reference(server_stack), live.DEPTH)
            return {
                str(entry["physical_resource_id"])
                for entry in entries
                if entry["resource_type"] == hot.SERVER
            }

        before, ip_addresses = servers(), addresses(heat, STACK)
        status, output = run(cloud, folder)
        assert status == DONE
        assert output.count("image front-1.0 -> front-2.0") >= 2
        assert all(address in output for address in ip_addresses)
        assert (servers(), addresses(heat, STACK)) == (before, ip_addresses)
        assert run(cloud, folder)[0] == NOTHING_TO_DO


@pytest.mark.parametrize(
    "copy", ["06-openstack-blue-green/after/Scripts", "07-openstack-rolling/after/Scripts"]
)
def test_the_packages_scripts_are_those_of_the_samples(copy: str) -> None:
    (path,) = (SAMPLES / copy).glob("*.py")
    assert path.read_text() == (SCRIPTS / path.name).read_text()


def test_an_unfinished_change_is_shown_and_rolled_back_with_its_scripts(
    cloud: EmbeddedOpenStack, heat: Heat, tmp_path: Path
) -> None:
    with sample("07-openstack-rolling", tmp_path, heat) as folder:
        before = live.body_of(heat, STACK)
        fails = folder / "after" / "Scripts" / "fails.py"
        fails.write_text("import sys; sys.exit('it does not answer')")
        script = ("--coordinate-new", "Scripts/fails.py")
        status, _ = run(cloud, folder, *script, "--leave-failed")
        assert status == FAILED
        out = io.StringIO()
        assert main(["status", "--os-cloud", "embedded", "--stack", STACK], out) == DONE
        assert "RollingUpdate of stack vnf-sample" in out.getvalue()
        assert run(cloud, folder, "--rollback")[0] == DONE
        assert live.body_of(heat, STACK) == before
        assert [stack["stack_name"] for stack in heat.stacks()] == [STACK]
        assert run(cloud, folder, "--rollback")[0] == NOTHING_TO_DO
        out = io.StringIO()
        assert main(["status", "--os-cloud", "embedded", "--stack", STACK], out) == NOTHING_TO_DO


def recover(command: str, *more: str) -> tuple[int, str]:
    """Run one of status, resume and rollback."""
    out = io.StringIO()
    return main([command, "--os-cloud", "embedded", "--stack", STACK, *more], out), out.getvalue()


def leave_failed_update(cloud: EmbeddedOpenStack, folder: Path) -> None:
    """Leave a rolling update that failed at its second server, which can be created next time."""
    fault = ResourceFault(
        "Quota exceeded for cores (HTTP 403)",
        "Forbidden",
        where=lambda properties: "front-2.0" in str(properties.get("image")),
        nth=2,
        times=1,
    )
    cloud.faults.resources.append(fault)
    assert run(cloud, folder, "--leave-failed")[0] == FAILED


@pytest.mark.parametrize("request_given", [True, False], ids=["request", "no request"])
@pytest.mark.parametrize(("command", "image"), [("resume", "front-2.0"), ("rollback", "front-1.0")])
def test_an_unfinished_change_with_scripts_needs_its_request_again(
    cloud: EmbeddedOpenStack, heat: Heat, tmp_path: Path, command: str, image: str,
    request_given: bool, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with sample("07-openstack-rolling", tmp_path, heat) as folder:
        leave_failed_update(cloud, folder)
        assert recover("status")[0] == DONE
        body = json.loads(recover("status", "-o", "json")[1])
        assert (body["phase"], body["holder"]) == ("update", None)
        if not request_given:
            assert recover(command)[0] == WRONG_REQUEST
            assert "expected the request of this change again" in capsys.readouterr().err
        status, output = recover(command, "--request", str(folder / "request.json"))
        assert status == DONE
        assert "Coordination scripts:" in output
        assert images(cloud) == {image}
        assert [stack["stack_name"] for stack in heat.stacks()] == [STACK], "the journal is gone"
        assert recover(command)[0] == NOTHING_TO_DO
        assert recover("status") == (NOTHING_TO_DO, "No update is under way.\n")


@pytest.mark.parametrize(("command", "image"), [("resume", "front-2.0"), ("rollback", "front-1.0")])
def test_without_scripts_the_journal_is_enough(
    cloud: EmbeddedOpenStack, heat: Heat, tmp_path: Path, command: str, image: str
) -> None:
    with sample("07-openstack-rolling", tmp_path, heat) as folder:
        path = folder / "request.json"
        request = json.loads(path.read_text())
        params = request["additionalParams"]
        request["additionalParams"] = {
            name: value for name, value in params.items() if "coordinate" not in name
        }
        path.write_text(json.dumps(request))
        leave_failed_update(cloud, folder)
        path.unlink()
        status, output = recover(command, "-o", "json")
        assert status == DONE
        states = {result["state"] for result in json.loads(output)["results"]}
        assert ("done" in states) is (command == "resume")
        assert images(cloud) == {image}
        assert [stack["stack_name"] for stack in heat.stacks()] == [STACK], "the journal is gone"


def images(cloud: EmbeddedOpenStack) -> set[str]:
    """Return the images of all servers."""
    return cloud.call(lambda heat: {server.properties["image"] for server in heat.servers()})


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
    assert main(["demo", "--scenario", scenario], out) == DONE
    before, change, after = out.getvalue().split("The ")[1:]
    assert before.count("front-1.0  m1.small") == 2
    assert message in change
    assert after.count(f"{image}  m1.medium") == 2
    assert after.count("stack vnf-sample") == 1


def test_once_the_old_stack_is_being_deleted_the_change_can_only_be_finished(
    cloud: EmbeddedOpenStack,
    heat: Heat,
    tmp_path: Path,
    balancer: Balancer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with sample("06-openstack-blue-green", tmp_path, heat) as folder:
        with_balancer(folder, balancer)
        cloud.faults.resources.append(
            ResourceFault("the volume is in use", action="DELETE", times=1)
        )
        assert run(cloud, folder)[0] == UNDO_INCOMPLETE
        assert run(cloud, folder, "--rollback")[0] == NO_WAY_BACK
        error_output = capsys.readouterr().err
        finish = (
            f"It can only be finished: container-update resume --stack {STACK} --os-cloud embedded "
            f"--request {folder / 'request.json'}."
        )
        assert error_output.count(finish) == 2
        assert "fix the cause. It can" in error_output
        assert run(cloud, folder)[0] == DONE
    (stack,) = heat.stacks()
    assert stack["stack_name"] != STACK
