# SPDX-License-Identifier: Apache-2.0
"""A service whose lists the tests read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.internals.service import Service
from tests.vnfm import postgres
from tests.vnfm.client import Client
from tests.vnfm.lists.stored import lister, store_operations


@pytest.fixture
def service(tmp_path: Path, database: str) -> Service:
    """A service with empty tables and long pages."""
    return lister(tmp_path, database)


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    """A client of it."""
    with client_of(service) as client:
        yield client


@contextmanager
def client_of(service: Service) -> Iterator[Client]:
    """Yield a client while the service runs."""
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        yield Client(http, "v2")


@dataclass(frozen=True)
class Filled:
    """A service with many operations, which no test changes."""

    service: Service
    client: Client


@pytest.fixture(scope="module", params=postgres.DATABASES)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    """A service with 5,000 operations on each kind of database, one after the other."""
    url = ""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql_server").create_database()
    folder = tmp_path_factory.mktemp("filled")
    service = lister(folder, url, operation_seconds=0)  # none is deleted because it is old
    store_operations(service, 5000)
    with client_of(service) as client:
        yield Filled(service, client)
