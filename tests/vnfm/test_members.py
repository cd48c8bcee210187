"""Liveness of the services, with both kinds of database."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from container_update.vnfm.store import liveness
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.liveness import DatabaseLock


@pytest.fixture
def database_of(database: str, tmp_path: Path) -> Database:
    return Database(database or f"sqlite:///{tmp_path / 'vnfm.sqlite'}")


def test_a_member_is_dead_only_after_it_left(database_of: Database, tmp_path: Path) -> None:
    first, second = (liveness.join(database_of, tmp_path / "members") for _ in range(2))
    with first.dead(second.id) as dead:
        assert not dead
    with first.dead(first.id) as dead:
        assert not dead
    second.leave()
    with first.dead(second.id) as dead:
        assert dead


def test_only_one_member_claims_the_work_of_a_dead_one(
    database_of: Database, tmp_path: Path
) -> None:
    first, second, third = (liveness.join(database_of, tmp_path / "members") for _ in range(3))
    third.leave()
    with first.dead(third.id) as claimed, second.dead(third.id) as its:
        assert (claimed, its) == (True, False)


def test_a_member_survives_a_broken_connection(postgresql: str, tmp_path: Path) -> None:
    database = Database(postgresql)
    first, second = (liveness.join(database, tmp_path) for _ in range(2))
    assert isinstance(second, DatabaseLock)
    with database.engine.connect() as connection:
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_locks"
                 " WHERE locktype = 'advisory' AND pid <> pg_backend_pid()")
        )  # fmt: skip
    second.keep()
    with first.dead(second.id) as dead:
        assert not dead
