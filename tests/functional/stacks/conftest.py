# SPDX-License-Identifier: Apache-2.0
"""A cloud to run against: the embedded one, or a real one when ``OS_CLOUD`` is set.

    OS_CLOUD=mycloud pytest tests/functional/stacks

doc/source/openstack.rst says what is used there, and how to choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from container_update import Options
from container_update.emulator.heat import CloudFaults, EmbeddedOpenStack

pytest.importorskip("openstack", reason="the extra openstack is not installed")

from tests.functional.stacks.limits import EmbeddedLimits, Limits, RealLimits
from tests.functional.stacks.proxy import CloudProxy
from tests.functional.stacks.site import REAL, Site, administrators_cloud
from tests.functional.stacks.vnf import Vnf
from tests.internals.stacks import Heat, connect, writer

if TYPE_CHECKING:
    from container_update.emulator.heat.balancer import Balancer

Front = EmbeddedOpenStack | CloudProxy
"""What clients talk to, which makes faults of requests."""
Actions = Callable[[str], list[str]]

OPTIONS = Options(
    timeout=600 if REAL else 20, undo_timeout=600 if REAL else 20, retry_seconds=5, lease_seconds=20
)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the stacks of the embedded cloud again soon: it is done in milliseconds."""
    if not REAL:
        monkeypatch.setattr(writer, "_FIRST_PAUSE", 0.005)


@pytest.fixture
def cloud() -> Iterator[EmbeddedOpenStack]:
    """The embedded cloud, for tests that make it fail or inspect it."""
    if REAL:
        pytest.skip("only the embedded cloud fails on command")
    with EmbeddedOpenStack() as embedded:
        embedded.faults.seconds = 0.001
        yield embedded


@pytest.fixture
def front(request: pytest.FixtureRequest) -> Iterator[Front]:
    """The embedded cloud, or a proxy in front of the real one."""
    if not REAL:
        yield request.getfixturevalue("cloud")
        return
    with CloudProxy(REAL) as proxy:
        yield proxy


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> CloudFaults:
    """How long the embedded cloud takes for what; on a real one it changes nothing."""
    if REAL:
        return CloudFaults()
    embedded: EmbeddedOpenStack = request.getfixturevalue("cloud")
    return embedded.faults


@pytest.fixture
def heat(front: Front) -> Iterator[Heat]:
    """The client of the Heat to test against."""
    with connect(auth=front.auth(), options=OPTIONS) as service:
        yield service


@pytest.fixture
def os_cloud(front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The cloud's name in clouds.yaml, for commands."""
    path = front.write_clouds_yaml(tmp_path / "clouds.yaml")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    return REAL or "embedded"


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    """A load balancer on loopback."""
    pytest.importorskip("paramiko")
    from container_update.emulator.heat.balancer import Balancer  # noqa: PLC0415

    with Balancer() as running:
        yield running


@pytest.fixture
def site(heat: Heat) -> Site:
    """What the cloud has for servers."""
    return Site.of_cloud(heat) if REAL else Site()


@pytest.fixture
def limits(request: pytest.FixtureRequest, heat: Heat, site: Site) -> Iterator[Limits]:
    """What the cloud refuses."""
    if not REAL:
        yield EmbeddedLimits(request.getfixturevalue("cloud"), site)
        return
    admin = administrators_cloud()
    if not admin:
        pytest.skip(f"clouds.yaml has no administrator of {REAL}")
    with RealLimits.made(heat, admin, site) as limits:
        yield limits


@pytest.fixture
def actions(request: pytest.FixtureRequest, heat: Heat) -> Actions:
    """What was done to a server since it was created, by its id."""
    if REAL:
        return lambda server_id: nova_actions(heat, server_id)
    embedded: EmbeddedOpenStack = request.getfixturevalue("cloud")
    return lambda server_id: embedded.call(
        lambda cloud: next(
            list(server.facts["actions"])
            for server in cloud.servers()
            if server.physical_id == server_id
        )
    )


def nova_actions(heat: Heat, server_id: str) -> list[str]:
    """Return the rebuilds and resizes that Nova lists of a server, oldest first."""
    answer = heat._nova.get(f"/servers/{server_id}/os-instance-actions")
    names = [str(action["action"]) for action in answer.json()["instanceActions"]]
    return [name for name in reversed(names) if name in ("rebuild", "resize")]


@pytest.fixture
def vnf(heat: Heat, tmp_path: Path, site: Site) -> Iterator[Vnf]:
    """A VNF to instantiate; its stacks are deleted at the end."""
    contract_vnf = Vnf(heat, tmp_path, site, OPTIONS)
    yield contract_vnf
    contract_vnf.leave_real_cloud()
