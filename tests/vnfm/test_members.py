# SPDX-License-Identifier: Apache-2.0
"""Liveness of the services, with both kinds of database."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from sqlalchemy import Connection, QueuePool, text
from sqlalchemy.exc import SQLAlchemyError

from tests.internals.service import Database, DatabaseLock, FileLock, ProcessLock, liveness
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
        terminate(connection)
    second.keep()
    with first.dead(second.id) as dead:
        assert not dead


def test_a_member_holds_its_lock_until_it_leaves(database_of: Database, tmp_path: Path) -> None:
    member = liveness.join(database_of, tmp_path / "members", 0)
    for _ in range(2):
        member.keep()
        assert member.holds()
    member.leave()
    assert not member.holds()


def test_the_files_of_the_locks_are_private_and_go_with_their_members(tmp_path: Path) -> None:
    folder = tmp_path / "state/members"
    opened, mask = len(os.listdir("/proc/self/fd")), os.umask(0)
    try:
        first, second, third = (FileLock(folder) for _ in range(3))
    finally:
        os.umask(mask)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert not is_dead(first, second)
    second.leave()
    assert is_dead(first, second)
    assert {file.stem for file in folder.iterdir()} == {first.id, third.id}
    (folder / f"{third.id}.lock").unlink()  # somebody tidies up
    for member in (first, third):
        member.leave()
    assert not list(folder.iterdir())
    assert len(os.listdir("/proc/self/fd")) == opened


def test_a_member_has_one_connection_which_is_in_no_transaction(
    postgresql: str, tmp_path: Path
) -> None:
    databases = [Database(postgresql) for _ in range(2)]
    first, second = (liveness.join(database, tmp_path, 0) for database in databases)
    pool = databases[1].engine.pool
    assert isinstance(pool, QueuePool)
    assert isinstance(second, DatabaseLock)
    assert second._connection is not None
    settings = ("lock_timeout", "tcp_keepalives_idle", "tcp_keepalives_interval")
    found = [second._connection.scalar(text(f"SHOW {name}")) for name in settings]
    assert found == ["5s", "10", "5"]
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
    with databases[0].engine.connect() as connection:
        assert connection.scalar(text(waiting)) == 0
        terminate(connection)
    second.keep()
    assert second.holds()
    assert pool.checkedout() == 1
    second.leave()
    assert (pool.checkedout(), second.holds()) == (0, False)
    assert lock_timeout(databases[1]) == "0", "it is for the members' connections alone"
    first.keep()
    first.leave()


def test_a_member_waits_until_another_has_settled_what_it_took_over(
    postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(postgresql)
    first, second = (liveness.join(d, tmp_path, 0) for d in (Database(postgresql), database))
    with database.engine.connect() as connection:
        terminate(connection)
    first.keep()
    monkeypatch.setattr(liveness, "_LOCK_SETTINGS", ("SET lock_timeout = '50ms'",))
    with first.dead(second.id) as dead:
        assert dead
        for _ in range(2):
            with pytest.raises(SQLAlchemyError):
                second.keep()
        assert isinstance(database.engine.pool, QueuePool)
        assert database.engine.pool.checkedout() == 0
        assert lock_timeout(database) == "0"
        second.leave()  # it has nothing to release
    second.keep()
    assert second.holds()
    assert not is_dead(first, second)


def lock_timeout(database: Database) -> str:
    """That of an ordinary connection."""
    with database.engine.connect() as connection:
        return str(connection.scalar(text("SHOW lock_timeout")))


def terminate(connection: Connection) -> None:
    """End the connections of all members of this database."""
    connection.execute(
        text(
            "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database"
            " ON pg_locks.database = pg_database.oid WHERE datname = current_database()"
            " AND locktype = 'advisory' AND pid <> pg_backend_pid()"
        )
    )


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


def test_a_lock_that_came_back_during_a_look_was_not_free_since_before(
    postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, database = Clock(monkeypatch), Database(postgresql)
    one, other = (liveness.join(database, tmp_path, PATIENCE / 3) for _ in range(2))
    with database.engine.connect() as connection:
        terminate(connection)
    one.keep()
    assert not is_dead(one, other)
    other.keep()
    assert not is_dead(one, other)
    clock.moment += PATIENCE
    other.leave()
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
