# SPDX-License-Identifier: Apache-2.0
"""The contents of /healthz and /readyz."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from container_update import Options
from tests.internals.service import (
    Base,
    Database,
    Package,
    Service,
    Settings,
    error_responses,
    health,
    now,
)
from tests.vnfm.waiting import PATIENCE_SECONDS


def probe(**checks: bool) -> TestClient:
    app = FastAPI()
    app.include_router(
        health.router({name: lambda good=good: good for name, good in checks.items()})
    )
    error_responses.install(app)
    return TestClient(app)


def test_a_service_with_working_parts_is_ready() -> None:
    client = probe(database=True, workers=True)
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_a_broken_part_is_named_and_the_process_stays_live() -> None:
    client = probe(database=False, workers=True, lock=False)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["detail"] == "not ready: database, lock"
    assert client.get("/healthz").status_code == 200


def test_readiness_checks_the_database(tmp_path: Path) -> None:
    assert health.answers(Database(f"sqlite:///{tmp_path / 'vnfm.sqlite'}"))
    assert not health.answers(Database("sqlite:////nonexistent/vnfm.sqlite"))


@pytest.fixture
def kept(database: str, tmp_path: Path) -> Database:
    opened_database = Database(database or f"sqlite:///{tmp_path / 'vnfm.sqlite'}")
    opened_database.upgrade()
    return opened_database


def test_a_database_that_takes_no_writes_is_not_ready(kept: Database) -> None:
    assert health.answers(kept)
    with full(kept):
        with pytest.raises(SQLAlchemyError), kept.writing() as session:
            session.add_all(packages())
        assert not health.answers(kept)
    assert health.answers(kept)
    with kept.writing() as session:
        session.add_all(packages())
        session.flush()
        assert len(inspect(kept.engine).get_table_names()) == len(Base.metadata.tables) + 1


def packages() -> list[Package]:
    return [
        Package(
            id=str(number), created=now(), onboarding_state="CREATED", operational_state="DISABLED",
            user_data={"text": "x" * 10_000}, body={},
        )
        for number in range(10)
    ]  # fmt: skip


@contextmanager
def full(database: Database) -> Iterator[None]:
    """Let the database grow no more: SQLite by its own limit, PostgreSQL as one that its provider
    sets read-only when its disk is full."""
    if database.is_sqlite:
        statements = ["PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1000000"]
    else:
        change = f'ALTER DATABASE "{database.url.database}" SET default_transaction_read_only ='
        statements = [f"{change} on", f"SET transaction_read_only = off; {change} off"]
    limit, unlimit = statements

    def at_connection(connection: Any, _: object) -> None:
        connection.execute(limit)

    if database.is_sqlite:
        event.listen(database.engine, "connect", at_connection)
    else:
        with database.writing() as session:
            session.execute(text(limit))
    database.engine.dispose()
    yield
    if database.is_sqlite:
        event.remove(database.engine, "connect", at_connection)
    else:
        with database.writing() as session:
            for statement in unlimit.split(";"):
                session.execute(text(statement))
    database.engine.dispose()


def test_a_state_directory_that_takes_no_writes_is_not_ready(tmp_path: Path) -> None:
    assert health.has_room(tmp_path)
    with no_room():
        assert not health.has_room(tmp_path)
    assert health.has_room(tmp_path)
    assert not health.has_room(tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def no_room() -> Iterator[None]:
    """Let files of this process grow up to some bytes only."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_shows_in_the_readiness_of_the_service_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PACE_SECONDS", 0.0)
    service = Service(Settings(state_dir=str(tmp_path / "state"), auth="none"), Options())
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as client:
        assert client.get("/readyz").status_code == 200
        with no_room():
            answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["detail"]) == (503, "not ready: state_dir")
        with full(service.context.database):
            answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["detail"]) == (503, "not ready: database")
        assert client.get("/readyz").status_code == 200


def test_a_check_that_costs_something_is_not_made_at_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = iter([True, False])
    clock = [0.0]
    monkeypatch.setattr(health, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    check = health.Paced(lambda: next(results))
    assert [check() for _ in range(3)] == [True] * 3
    clock[0] += health.PACE_SECONDS
    assert [check() for _ in range(3)] == [False] * 3


def test_a_check_that_hangs_holds_one_request_only() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def hang() -> bool:
        asked.set()
        return go_on.wait(PATIENCE_SECONDS)

    check = health.Paced(hang)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(check)
        assert asked.wait(PATIENCE_SECONDS)
        assert not check()
        go_on.set()
        assert first.result(PATIENCE_SECONDS)
