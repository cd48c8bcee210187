"""Liveness of the services, with both kinds of database."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from container_update.vnfm.store import liveness
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.liveness import DatabaseLock, ProcessLock
from tests.vnfm.postgres import Server


@pytest.fixture
def database_of(database: str, tmp_path: Path) -> Database:
    return Database(database or f"sqlite:///{tmp_path / 'vnfm.sqlite'}")


def test_a_member_is_dead_only_after_it_left(database_of: Database, tmp_path: Path) -> None:
    first, second = (liveness.join(database_of, tmp_path / "members", 0) for _ in range(2))
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
    first, second, third = (liveness.join(database_of, tmp_path / "members", 0) for _ in range(3))
    third.leave()
    with first.dead(third.id) as claimed, second.dead(third.id) as its:
        assert (claimed, its) == (True, False)


def test_a_member_survives_a_broken_connection(postgresql: str, tmp_path: Path) -> None:
    database = Database(postgresql)
    first, second = (liveness.join(database, tmp_path, 0) for _ in range(2))
    assert isinstance(second, DatabaseLock)
    with database.engine.connect() as connection:
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_locks"
                 " WHERE locktype = 'advisory' AND pid <> pg_backend_pid()")
        )  # fmt: skip
    second.keep()
    with first.dead(second.id) as dead:
        assert not dead


@pytest.mark.parametrize("back", ["in the order they left", "in the other order", "twice"])
def test_members_that_lost_the_database_are_not_taken_for_dead(
    back: str, own_postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    url = own_postgresql.create_database()
    pair = [liveness.join(Database(url), tmp_path, PATIENCE / 3) for _ in range(2)]
    restart(own_postgresql, pair)
    if back == "twice":
        pair[0].keep()
        assert not is_dead(pair[0], pair[1]), "its lock is free, and it may live"
        clock.moment += 10 * PATIENCE
        restart(own_postgresql, [])  # between two looks
    first, second = pair[::-1] if back == "in the other order" else pair

    first.keep()
    assert first.holds()
    assert not is_dead(first, second)
    clock.moment += PATIENCE - 1
    first.keep()
    assert not is_dead(first, second)
    second.keep()
    for _ in range(3):
        for one, other in ((first, second), (second, first)):
            one.keep()
            assert one.holds()
            assert not is_dead(one, other)
            clock.moment += PATIENCE


def test_a_member_that_died_while_the_database_was_away_is_found_dead(
    own_postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    url = own_postgresql.create_database()
    living, dead = (liveness.join(Database(url), tmp_path, PATIENCE / 3) for _ in range(2))
    restart(own_postgresql, [living, dead])
    for _ in range(PATIENCE):
        living.keep()
        assert not is_dead(living, dead)
        clock.moment += 1
    living.keep()
    assert is_dead(living, dead)


def test_a_lock_that_was_free_long_ago_says_nothing_of_today(
    postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    one, other = (liveness.join(Database(postgresql), tmp_path, PATIENCE / 3) for _ in range(2))
    assert isinstance(other, DatabaseLock)
    other.leave()
    one.keep()
    assert not is_dead(one, other)
    for _ in range(3):  # looks that had no reason to ask
        clock.moment += PATIENCE
        one.keep()
    assert not is_dead(one, other)


PATIENCE = 7
"""Seconds for which a lock has to be free until its owner is taken for dead."""


class Clock:
    """The monotonic clock of the locks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.moment = 1000.0
        monkeypatch.setattr(liveness.time, "monotonic", lambda: self.moment)


def is_dead(one: ProcessLock, other: ProcessLock) -> bool:
    with one.dead(other.id) as dead:
        return dead


def restart(server: Server, members: list[ProcessLock]) -> None:
    """Restart the server; every member sees that it is away."""
    server.stop()
    for member in members:
        for _ in range(3):
            with pytest.raises(SQLAlchemyError):
                member.keep()
            assert not member.holds()
    server.start()
