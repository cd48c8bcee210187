# SPDX-License-Identifier: Apache-2.0
"""A service whose lists the tests read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.internals.service import Service
from tests.vnfm.client import Client
from tests.vnfm.lists.stored import lister


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
