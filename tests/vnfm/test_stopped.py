# SPDX-License-Identifier: Apache-2.0
"""An operation that is cancelled, or whose service ends, at any of its writes: what runs and what
is recorded are those of before it, or those of after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.faults import Fault, Faults
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.gate import Gate
from tests.internals.core import Collection, Json, KubernetesCluster
from tests.internals.service import Service, Settings
from tests.vnfm import scalable, vnfs
from tests.vnfm.client import Client
from tests.vnfm.scalable import recorded
from tests.vnfm.test_upkeep import scaling
from tests.vnfm.waiting import until

OPTIONS = Options(timeout=60, undo_timeout=60, grace_period=0.5, drain_seconds=0)
KINDS = (("apps", "Deployment"), ("apps", "StatefulSet"))


@dataclass
class Vnf:
    """A VNF of a service that may end, and what runs of it."""

    state: Path
    cluster: EmbeddedCluster
    kubernetes: KubernetesCluster
    package: Path
    path: str = field(default="", init=False)
    client: Client = field(init=False)
    service: Service = field(init=False)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Have a service answer during the block; after it all that it does is interrupted."""
        settings = Settings(state_dir=str(self.state), auth="none", drain_seconds=0)
        self.service = Service(settings, OPTIONS)
        with TestClient(self.service.app, base_url="http://127.0.0.1:9890") as http:
            self.client = Client(http, "v2")
            yield

    def instantiation(self) -> Json:
        return scalable.instantiation(self.client.vims(self.cluster))

    def instantiate(self) -> None:
        self.client.do("POST", f"{self.path}/instantiate", self.instantiation())

    @property
    def running(self) -> Mapping[str, int]:
        """The number of pods that each workload is to have."""
        bodies = [b for k in KINDS for b in self.kubernetes.list(Collection(*k, "default")).items]
        return {body["metadata"]["name"]: body["spec"]["replicas"] for body in bodies}

    @property
    def images(self) -> set[str]:
        """The versions of the images that the workloads are to have."""
        bodies = [b for k in KINDS for b in self.kubernetes.list(Collection(*k, "default")).items]
        specs = (body["spec"]["template"]["spec"] for body in bodies)
        return {spec["containers"][0]["image"].partition(":")[2] for spec in specs}

    def left_over(self) -> list[str]:
        """Return the journals, and the leases that are held."""
        secrets = self.kubernetes.list(Collection("", "Secret", "default")).items
        leases = self.kubernetes.list(Collection("coordination.k8s.io", "Lease", "default")).items
        held = [each for each in leases if each["spec"].get("holderIdentity")]
        journals = [each for each in secrets if each["type"].endswith("/journal")]
        return [each["metadata"]["name"] for each in (*journals, *held)]

    def is_recorded(self) -> bool:
        """Tell whether the record has a VNFC for each pod, and no other."""
        shown = self.client.call("GET", self.path)
        if shown["instantiationState"] == "NOT_INSTANTIATED":
            return not self.running
        numbers = {vdu: len(pods) for vdu, pods in recorded(shown).items()}
        return numbers == {vdu: self.running[name] for vdu, name in scalable.VDUS.items()}


@pytest.fixture
def vnf(cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path) -> Vnf:
    return Vnf(tmp_path / "state", cluster, kubernetes, scalable.package(tmp_path))


def begin_instantiation(vnf: Vnf) -> Callable[[], str]:
    return lambda: vnf.client.begin("POST", f"{vnf.path}/instantiate", vnf.instantiation())


def begin_scaling(vnf: Vnf) -> Callable[[], str]:
    vnf.instantiate()
    return lambda: vnf.client.begin("POST", f"{vnf.path}/scale", scaling("OUT", 2))


def begin_rollback(vnf: Vnf) -> Callable[[], str]:
    vnf.instantiate()
    vnf.cluster.behaviour.bad_images = ["*worker*"]
    vnf.cluster.behaviour.backoff_seconds = 0.1
    failed = vnf.client.do("POST", f"{vnf.path}/scale", scaling("OUT", 2), "FAILED_TEMP")
    vnf.cluster.behaviour.bad_images = []
    href = failed["_links"]["self"]["href"]
    return lambda: vnf.client.begin("POST", f"{href}/rollback") and href


def begin_change(vnf: Vnf, upgrade_type: str = "RollingUpdate") -> Callable[[], str]:
    """Change the package: of the Deployment alone where it is not a rolling update."""
    vnf.instantiate()
    vnf.client.onboard(scalable.package(vnf.package.parent, version="2.0"))
    of_all = upgrade_type == "RollingUpdate"
    vdus = [{"vdu_id": name} for name in scalable.VDUS if of_all or name == "VDU1"]
    params = {"upgrade_type": upgrade_type, "vdu_params": vdus}
    request = {"vnfdId": scalable.NEW_VNFD_ID, "additionalParams": params}
    return lambda: vnf.client.begin("POST", f"{vnf.path}/change_vnfpkg", request)


def begin_modification(vnf: Vnf) -> Callable[[], str]:
    """Move another VNF, by a modify request, to another package."""
    old, new = (
        vnf.client.onboard(vnfs.package(vnf.package.parent, version, vnfs.ours("v2"))[0])
        for version in ("1.0", "2.0")
    )
    vnf.path = vnf.client.create(old)
    request = vnfs.instantiation(vnf.client.vims(vnf.cluster))
    vnf.client.do("POST", f"{vnf.path}/instantiate", request)
    return lambda: vnf.client.begin("PATCH", vnf.path, {"vnfdId": new})


Begin = Callable[[Vnf], Callable[[], str]]
OPERATIONS: dict[str, tuple[Begin, int, dict[str, int], dict[str, int]]] = {
    "instantiate": (begin_instantiation, 8, {}, {"front": 1, "worker": 1}),
    "scale": (begin_scaling, 6, {"front": 1, "worker": 1}, {"front": 1, "worker": 3}),
    "rollback": (begin_rollback, 4, {"front": 1, "worker": 3}, {"front": 1, "worker": 1}),
    "change": (begin_change, 10, {"front": 1, "worker": 1}, {"front": 1, "worker": 1}),
    "Blue-Green": (
        lambda vnf: begin_change(vnf, "Blue-Green"),
        18,
        {"front": 1, "worker": 1},
        {"front": 1, "worker": 1},
    ),
}
"""How each begins, how many writes are tried, and the pods before it and after it."""
IMAGES = {"change": {"2.0"}, "Blue-Green": {"1.0", "2.0"}}
"""The versions of the images after it."""
POINTS = [(name, n) for name, (_, writes, *_) in OPERATIONS.items() for n in range(1, writes + 1)]


@contextmanager
def held_at(vnf: Vnf, number: int, begin: Callable[[], str]) -> Iterator[str]:
    """Begin an operation, and hold a write of it while the block runs."""
    gate = Gate()
    fault = Fault(gate, method="[PD]*", path="*/namespaces/default/*", nth=number)
    vnf.cluster.middlewares.append(Faults(fault))
    operation = begin()
    with gate.held():
        yield operation


@pytest.mark.parametrize("mode", ["GRACEFUL", "FORCEFUL"])
@pytest.mark.parametrize(("name", "number"), [p for p in POINTS if p[0] != "rollback"])
def test_what_is_cancelled_at_a_write_is_wholly_old_or_new(
    vnf: Vnf, name: str, number: int, mode: str
) -> None:
    begin, _, old, new = OPERATIONS[name]
    with vnf.served():
        vnf.path = vnf.client.create(vnf.client.onboard(vnf.package))
        send = begin(vnf)
        before = vnf.client.call("GET", vnf.path)
        with held_at(vnf, number, send) as operation:
            vnf.client.call("POST", f"{operation}/cancel", {"cancelMode": mode}, 202)
        ended = vnf.client.settled(operation)
        assert vnf.left_over() == []
        assert vnf.is_recorded()
        if ended["operationState"] == "FAILED_TEMP":
            assert "by a request to cancel" in ended["error"]["detail"]
            assert (vnf.running, vnf.client.call("GET", vnf.path)) == (old, before)
            assert vnf.images <= {"1.0"}
            vnf.client.do("POST", f"{operation}/retry")
        assert vnf.running == new
        assert vnf.images == IMAGES.get(name, {"1.0"})
        assert vnf.is_recorded()


@pytest.mark.parametrize(("name", "number"), POINTS)
def test_what_the_end_of_a_service_interrupts_at_a_write_the_next_one_finishes(
    vnf: Vnf, name: str, number: int
) -> None:
    begin, _, _, new = OPERATIONS[name]
    first = ExitStack()
    with first, ThreadPoolExecutor(1) as pool:
        first.enter_context(vnf.served())
        vnf.path = vnf.client.create(vnf.client.onboard(vnf.package))
        with held_at(vnf, number, begin(vnf)) as operation:
            ends = pool.submit(first.close)
            until(vnf.service.context.ending.is_set, "the service ends")
        ends.result()
    with vnf.served():
        ended = vnf.client.settled(operation)
        state = "ROLLED_BACK" if name == "rollback" else "COMPLETED"
        assert ended["operationState"] == state, ended.get("error")
        assert vnf.running == new
        assert vnf.images == IMAGES.get(name, {"1.0"})
        assert vnf.is_recorded()
        assert vnf.left_over() == []


@pytest.mark.parametrize("is_interrupted", [False, True])
@pytest.mark.parametrize(
    ("begin", "told"),
    [
        (begin_change, "Everything is left as it is"),
        (begin_modification, "Everything is as before"),
    ],
)
def test_what_fails_when_the_next_service_goes_on_ends_as_if_nothing_had_interrupted_it(
    vnf: Vnf, begin: Begin, told: str, is_interrupted: bool
) -> None:
    """A change is left for a retry or a rollback, a modification is undone at once."""
    vnf.cluster.behaviour.bad_images = ["*:2.0"]
    vnf.cluster.behaviour.backoff_seconds = 0.1
    first = ExitStack()
    with first, ThreadPoolExecutor(1) as pool:
        first.enter_context(vnf.served())
        vnf.path = vnf.client.create(vnf.client.onboard(vnf.package))
        send = begin(vnf)
        if is_interrupted:
            with held_at(vnf, 4, send) as operation:
                ends = pool.submit(first.close)
                until(vnf.service.context.ending.is_set, "the service ends")
            ends.result()
        else:
            operation = send()
            vnf.client.settled(operation)
    with vnf.served():
        ended = vnf.client.settled(operation)
        assert ended["operationState"] == "FAILED_TEMP"
        assert told in ended["error"]["detail"]
        is_left = begin is begin_change
        assert bool(vnf.left_over()) is is_left
        assert ("2.0" in vnf.images) is is_left
        if is_left:
            vnf.client.begin("POST", f"{operation}/rollback")
            assert vnf.client.settled(operation)["operationState"] == "ROLLED_BACK"
        assert vnf.left_over() == []
        assert vnf.images == {"1.0"}
