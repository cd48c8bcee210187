# SPDX-License-Identifier: Apache-2.0
"""A service's process that gets SIGTERM in the middle of an operation, once, or again while it
ends: its next start finishes the operation."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests import forks
from tests.internals.core import KubernetesCluster
from tests.vnfm import scalable
from tests.vnfm.served import Served
from tests.vnfm.test_load import client_of
from tests.vnfm.test_stopped import IMAGES, OPERATIONS, Vnf, held_at
from tests.vnfm.waiting import until

PODS = {"front": 1, "worker": 1}


def begin_healing(vnf: Vnf) -> Callable[[], str]:
    vnf.instantiate()
    return lambda: vnf.client.begin("POST", f"{vnf.path}/heal", {})


def begin_termination(vnf: Vnf) -> Callable[[], str]:
    vnf.instantiate()
    request = {"terminationType": "FORCEFUL"}
    return lambda: vnf.client.begin("POST", f"{vnf.path}/terminate", request)


BEGUN = {
    **{name: (begin, new) for name, (begin, _, _, new) in OPERATIONS.items()},
    "heal": (begin_healing, PODS),
    "terminate": (begin_termination, {}),
}


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("name", BEGUN)
def test_what_sigterm_interrupts_the_next_start_ends(
    name: str, signals: int, cluster: EmbeddedCluster, kubernetes: KubernetesCluster, tmp_path: Path
) -> None:
    begin, new = BEGUN[name]
    service = Served(tmp_path / "only", "", drain_seconds=0 if signals == 1 else 60)
    vnf = Vnf(tmp_path, cluster, kubernetes, scalable.package(tmp_path))
    try:
        service.start()
        vnf.client = client_of(service, "v2")
        vnf.path = vnf.client.create(vnf.client.onboard(vnf.package))
        with held_at(vnf, 3, begin(vnf)) as operation:
            for _ in range(signals):
                os.kill(service.process, signal.SIGTERM)
                until(lambda: service.logged("Shutting down") > 0, "it ends")
        assert forks.services().wait(service.process) == 0
        service.process = 0
        service.start()
        vnf.client = client_of(service, "v2")
        ended = vnf.client.settled(operation)
        state = "ROLLED_BACK" if name == "rollback" else "COMPLETED"
        assert ended["operationState"] == state, ended.get("error")
        assert vnf.running == new
        assert vnf.images == (IMAGES.get(name, {"1.0"}) if new else set())
        assert vnf.is_recorded()
        assert vnf.left_over() == []
    finally:
        if service.process:
            service.kill()
