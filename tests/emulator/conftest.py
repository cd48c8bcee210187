# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator

import pytest

from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from tests.emulator.client import Api


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """A fresh cluster with quick containers and the namespace 'rec'."""
    quick = Behaviour(start_seconds=0.01, stop_seconds=0.01)
    with EmbeddedCluster(behaviour=quick) as running:
        running.call(
            lambda registry: registry.create("namespaces", "", {"metadata": {"name": "rec"}})
        )
        yield running


@pytest.fixture
def api(cluster: EmbeddedCluster) -> Iterator[Api]:
    """A client of the fresh cluster."""
    client = Api(cluster)
    yield client
    client.close()
