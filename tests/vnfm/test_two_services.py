# SPDX-License-Identifier: Apache-2.0
"""Two services on one PostgreSQL under load, in both APIs and both kinds of VIM: one of them is
killed and the database is restarted, and every operation ends right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.circles import Circle, in_circles
from tests.internals.core import KubernetesCluster
from tests.vnfm import fleet
from tests.vnfm.client import Client
from tests.vnfm.clouds import ROLLING, Cloud, CloudVnf, Sample
from tests.vnfm.postgres import Server
from tests.vnfm.served import Served
from tests.vnfm.test_load import client_of, modify
from tests.vnfm.waiting import until

SIZES = {Circle.THOROUGH: (4, 2), Circle.COMPLETE: (20, 10)}
"""How many VNFs there are on Kubernetes in each API, and in stacks."""


@dataclass(frozen=True)
class Begun:
    """An operation that was accepted."""

    service: Served
    path: str


@in_circles(Circle.THOROUGH, Circle.COMPLETE)
def test_of_two_services_one_is_killed_and_no_operation_is_lost_or_robbed(
    pair: tuple[Served, Served],
    own_postgresql: Server,
    cluster: EmbeddedCluster,
    kubernetes: KubernetesCluster,
    cloud: Cloud,
    circle: Circle,
    tmp_path: Path,
) -> None:
    size, size_of_stacks = SIZES[circle]
    first, second = pair
    clients = {api: client_of(first, api, 120) for api in ("v1", "v2")}
    fleets = {
        api: fleet.launch(client, cluster, kubernetes, tmp_path, size)
        for api, client in clients.items()
    }
    stacks = _stacks(clients["v2"], cloud, tmp_path, size_of_stacks)

    begun: list[Begun] = []
    for api, instances in fleets.items():
        begun += _shared(pair, api, instances.paths, lambda client, path, instances=instances:
                         modify(client, instances, path))  # fmt: skip
    paths = {stack.path: stack for stack in stacks}
    begun += _shared(pair, "v2", tuple(paths), lambda client, path: client.begin(
        "POST", f"{path}/change_vnfpkg", paths[path].sample.change()))  # fmt: skip

    until(lambda: _at_work(clients["v2"], begun, second), "the second service is at work", 120)
    second.kill()
    own_postgresql.stop()
    own_postgresql.start()

    for each in begun:
        client = clients[each.path.split("/")[2]]
        ended = until(lambda each=each, client=client: _ended(client, each.path), each.path, 300)
        if each.service is first:
            assert ended == "COMPLETED", f"{each.path}: another service took it over"
        elif ended == "FAILED_TEMP":
            client.begin("POST", f"{each.path}/retry")
            assert client.settled(each.path)["operationState"] == "COMPLETED"
        else:
            assert ended == "COMPLETED"
    for api, instances in fleets.items():
        versions = fleet.check(clients[api], instances, kubernetes)
        assert set(versions.values()) == {"2.0"}
    for stack in stacks:
        running = cloud.running(stack.shown()["instantiatedVnfInfo"]["instance_id"])
        assert set(running.values()) == {("front-2.0", "m1.medium")}
    assert len(cloud.stacks()) == len(stacks), "no journal is left"


def _stacks(client: Client, cloud: Cloud, folder: Path, size: int) -> list[CloudVnf]:
    sample = Sample(ROLLING, cloud, folder, scripts=False)
    old, _ = (client.onboard(sample.zipped(side)) for side in ("before", "after"))
    vnfs = [CloudVnf(client, sample, client.create(old)) for _ in range(size)]
    request = sample.instantiation(cloud.vims())
    operations = [client.begin("POST", f"{vnf.path}/instantiate", request) for vnf in vnfs]
    for operation in operations:
        assert client.settled(operation)["operationState"] == "COMPLETED"
    return vnfs


def _shared(
    pair: tuple[Served, Served],
    api: str,
    paths: tuple[str, ...],
    begin: Callable[[Client, str], str],
) -> list[Begun]:
    """Begin an operation for each instance, one by the first service, one by the second."""
    clients = [client_of(service, api, 120) for service in pair]
    return [
        Begun(pair[number % 2], begin(clients[number % 2], path))
        for number, path in enumerate(paths)
    ]


def _at_work(client: Client, begun: list[Begun], service: Served) -> bool:
    """Return whether a service works at an operation."""
    running = _running(client)
    return any(each.path in running for each in begun if each.service is service)


def _running(client: Client) -> set[str]:
    path = f"/vnflcm/{client.api}/vnf_lcm_op_occs"
    listed = client.call("GET", f"{path}?filter=(eq,operationState,PROCESSING)")
    return {f"{path}/{each['id']}" for each in listed}


def _ended(client: Client, path: str) -> str | None:
    """Return the state that an operation ended in; None while it runs or the database is away."""
    answer = client.send("GET", path)
    state = answer.json().get("operationState") if answer.status_code == 200 else None
    return state if state in ("COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK") else None
