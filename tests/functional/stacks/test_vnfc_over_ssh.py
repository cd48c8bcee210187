# SPDX-License-Identifier: Apache-2.0
"""The sample script that configures VNFCs over SSH, against a real SSH server on loopback."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from container_update import UpdateFailedError
from container_update.emulator.heat import CloudFaults, ResourceFault
from tests.functional.changed import Changed, in_stack
from tests.functional.stacks import templates
from tests.functional.stacks.conftest import Front
from tests.functional.stacks.proxy import CloudProxy, NeverComplete, answer_with_loopback
from tests.functional.stacks.site import REAL
from tests.functional.stacks.vnf import Vnf
from tests.internals.core import StackChange, samples
from tests.internals.stacks import BLUE_GREEN, ROLLING

pytest.importorskip("paramiko")  # before what imports it

from container_update.emulator.heat.balancer import Balancer

SCRIPT = (samples.root() / "coordination" / "configure_vnfc.py").read_text()
FLOATING = "CP1_FloatingIp"


@pytest.fixture
def sshd() -> Iterator[Balancer]:
    """The SSH server of every VNFC: an address and a port on loopback."""
    with Balancer() as running:
        yield running


@pytest.fixture(autouse=True)
def addresses(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every server a port on loopback, and, on the embedded cloud, a floating IP there."""
    if isinstance(front, CloudProxy):
        front.middlewares.append(answer_with_loopback)
        return
    original, port = templates.server, copy.deepcopy(templates.PORT)
    port["properties"]["fixed_ips"] = [{"ip_address": "127.0.0.1"}]  # type: ignore[index]

    def server(**arguments: Any) -> dict[str, Any]:
        floating = {
            "type": "OS::Neutron::FloatingIP",
            "properties": {
                "floating_network": "public",
                "port_id": {"get_resource": "CP1"},
                "floating_ip_address": "127.0.0.1",
            },
        }
        return {**original(**arguments), "CP1": port, FLOATING: floating}

    monkeypatch.setattr(templates, "server", server)


def change(vnf: Vnf, sshd: Balancer, upgrade_type: str, cp_name: str = "CP1") -> Changed:
    """Change the package by a request with the sample as both scripts."""
    new = vnf.package(
        "group",
        vnf.site.images[1],
        **{"Scripts/configure_vnfc.py": SCRIPT, "Scripts/known_hosts": sshd.known_hosts()},
    )
    login = sshd.login()
    del login["ip_address"]
    vdu = {"vdu_id": "VDU1"}
    vdu |= {f"{which}_vnfc_param": {**login, "cp_name": cp_name} for which in ("old", "new")}
    params = {
        "upgrade_type": upgrade_type,
        "lcm-operation-coordinate-new-vnf": "Scripts/configure_vnfc.py",
        "lcm-operation-coordinate-old-vnf": "Scripts/configure_vnfc.py",
        "vdu_params": [vdu],
        "external_lb_param": None,
    }
    request = vnf.change_request(new, params)
    return in_stack(StackChange(request, vnf.heat, vnf.stack, vnf.options))


@pytest.mark.parametrize("cp_name", ["CP1", FLOATING])
def test_each_updated_vnfc_is_configured_over_ssh(vnf: Vnf, sshd: Balancer, cp_name: str) -> None:
    if REAL and cp_name == FLOATING:
        pytest.skip(
            "a floating IP comes from an external network, which a proxy before Heat cannot make: "
            "the cloud's administrator makes it"
        )
    vnf.instantiate("group")
    changed = change(vnf, sshd, ROLLING, cp_name)
    assert sshd.commands == [f"configure-vnfc {vnf.instance_id} after-update"] * 2
    assert all("VNFC 127.0.0.1, after-update: set" in run.output for run in changed.scripts)


def test_a_vnfc_that_went_back_is_told_so(
    front: Front, faults: CloudFaults, vnf: Vnf, sshd: Balancer
) -> None:
    vnf.instantiate("group")
    new = vnf.site.images[1]
    if REAL:
        front.middlewares.append(NeverComplete("FAILED", complete=1))
    faults.resources.append(
        ResourceFault(where=lambda properties: properties.get("image") == new, nth=2, times=1)
    )
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        change(vnf, sshd, ROLLING)
    events = [command.rpartition(" ")[2] for command in sshd.commands]
    assert events == ["after-update", "after-rollback"]


def test_blue_green_runs_it_for_the_first_vnfc_of_the_vdu(vnf: Vnf, sshd: Balancer) -> None:
    vnf.instantiate("group")
    change(vnf, sshd, BLUE_GREEN)
    assert len(sshd.commands) == 2, "the new VNF's script, then the old one's"


def test_a_script_that_needs_the_address_of_an_unknown_connection_point_fails(
    vnf: Vnf, sshd: Balancer, caplog: pytest.LogCaptureFixture
) -> None:
    vnf.instantiate("group")
    with pytest.raises(UpdateFailedError, match="ssh_ip"):
        change(vnf, sshd, ROLLING, "CP7")
    assert "connection point CP7 has no address" in caplog.text
    assert sshd.commands == []
    assert set(vnf.servers().values()) == {vnf.site.images[0]}
