"""``container-update db``: upgrade, backup, restore and vacuum, in both kinds of database."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import func, select, text

from container_update.cli import main
from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options
from container_update.vnfm import operations
from container_update.vnfm.service import Service
from container_update.vnfm.settings import Settings
from container_update.vnfm.store import liveness, revisions, room
from container_update.vnfm.store.backup import backup, refuse_foreign_file, restore
from container_update.vnfm.store.database import Database, now
from container_update.vnfm.store.rows import Notification, Operation, Subscription, Vim
from tests.vnfm.waiting import PATIENCE_SECONDS

NEWEST = revisions.known()[0]
SECRET = "hunter2-and-more"


@dataclass
class Site:
    """A service that is stopped, with its database."""

    folder: Path
    url: str

    @property
    def settings(self) -> Settings:
        return Settings(state_dir=str(self.folder / "state"), database_url=self.url, auth="none")

    @cached_property
    def database(self) -> Database:
        return Database(self.settings.database)

    def db(self, name: str, *arguments: str) -> tuple[int, str]:
        """Run a command; return its exit status and what it wrote."""
        out = io.StringIO()
        where = ["--state-dir", str(self.folder / "state"), "--database-url", self.url]
        status = main.main(["db", name, *where[: None if self.url else 2], *arguments], out)
        return status, out.getvalue()

    def add_vims(self, *names: str) -> None:
        """Store something that can be recognized."""
        with self.database.writing() as session:
            session.add_all(
                Vim(id=name, created=now(), name=name, is_default=False, body={}, sealed="")
                for name in names
            )
        self.database.close()  # nobody else may have it open while it is restored

    def vims(self) -> set[str]:
        """Return what was stored."""
        with self.database.reading() as session:
            names = set(session.scalars(select(Vim.name)))
        self.database.close()
        return names


@pytest.fixture
def site(database: str, tmp_path: Path) -> Site:
    site = Site(tmp_path, database)
    assert site.db("upgrade")[0] == 0
    return site


@pytest.fixture
def sqlite(tmp_path: Path) -> Site:
    site = Site(tmp_path, "")
    assert site.db("upgrade")[0] == 0
    return site


def test_the_tables_are_upgraded_once(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, upgrade = Site(tmp_path, database), command.upgrade
    with monkeypatch.context() as patched:
        patched.setattr(command, "upgrade", lambda config, _: upgrade(config, "0002"))
        assert "the tables were created (0002)" in site.db("upgrade")[1]
    assert f"the tables were upgraded from revision 0002 to {NEWEST}" in site.db("upgrade")[1]
    assert f"the tables have revision {NEWEST} already" in site.db("upgrade")[1]
    assert site.database.revision() == NEWEST


def test_a_backup_brings_back_what_was_there(site: Site) -> None:
    site.add_vims("one", "two")
    file = site.folder / "backup"
    status, said = site.db("backup", str(file))
    assert status == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for name in ("vault.key", "packages"):
        assert str(site.settings.folder / name) in said, "what is not in the backup is named"
    site.add_vims("later")

    status, said = site.db("restore", str(file))
    assert (status, site.vims()) == (0, {"one", "two"})
    kept = Path(said.partition("What was there before is in ")[2].splitlines()[0])
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    site.db("restore", str(kept))
    assert site.vims() == {"one", "two", "later"}
    assert not list(site.folder.rglob(".*.part"))


def test_a_backup_is_consistent_while_the_database_is_written(site: Site) -> None:
    """Each transaction stores two rows; a backup has both of them or neither."""
    stop, stored = threading.Event(), threading.Event()

    def store() -> None:
        number = 0
        while not stop.is_set():
            site.add_vims(f"{number} left", f"{number} right")
            number += 1
            stored.set()

    thread = threading.Thread(target=store)
    thread.start()
    try:
        assert stored.wait(PATIENCE_SECONDS)
        for number in range(3):
            backup(site.database, site.folder / str(number))
    finally:
        stop.set()
        thread.join()
    site.database.close()
    for number in range(3):
        restore(site.settings, site.database, site.folder / str(number))
        names = site.vims()
        assert len(names) >= 2
        assert {name.split()[0] + " right" for name in names} <= names
        assert len(names) % 2 == 0


def test_what_a_restored_database_has_at_work_goes_on_by_no_means_by_itself(site: Site) -> None:
    states = ("STARTING", "PROCESSING", "ROLLING_BACK", "COMPLETED", "FAILED_TEMP")
    with site.database.writing() as session:
        session.add_all(
            Operation(
                id=state, api="v2", instance_id=state, operation="HEAL", state=state,
                started=now(), entered=now(), params={}, sealed="", owner=None,
            )
            for state in states
        )  # fmt: skip
    site.database.close()
    backup(site.database, site.folder / "backup")
    restore(site.settings, site.database, site.folder / "backup")
    settings = replace(site.settings, lock_seconds=0.0)
    service = Service(settings, Options()).context
    assert operations.take_over(service) == []
    with service.database.reading() as session:
        found = {row.id: row.state for row in session.scalars(select(Operation))}
    failed = dict.fromkeys(states[:3], "FAILED_TEMP")
    assert found == {**{state: state for state in states}, **failed}
    service.process_lock.leave()
    service.database.close()


def test_a_file_that_is_there_is_not_overwritten(site: Site) -> None:
    file = site.folder / "backup"
    file.write_text("mine")
    assert site.db("backup", str(file))[0] == 1
    assert file.read_text() == "mine"


def test_a_database_that_a_service_uses_is_not_restored(site: Site) -> None:
    file = site.folder / "backup"
    backup(site.database, file)
    service = Service(site.settings, Options())
    site.add_vims("kept")
    with pytest.raises(ContainerUpdateError, match="a service uses it: stop every service"):
        restore(site.settings, site.database, file)
    assert site.vims() == {"kept"}
    service.context.process_lock.leave()
    service.context.database.close()
    restore(site.settings, site.database, file)
    assert site.vims() == set()


def test_a_database_that_another_program_has_open_is_not_restored(sqlite: Site) -> None:
    file = sqlite.folder / "backup"
    backup(sqlite.database, file)
    with sqlite.database.reading() as session:
        session.execute(text("SELECT 1 FROM vims"))
        with pytest.raises(ContainerUpdateError, match="another program has it open"):
            restore(sqlite.settings, sqlite.database, file)
    assert not list(sqlite.settings.folder.glob("*.before-*"))


def test_no_service_starts_while_a_database_is_restored(
    sqlite: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, asked, events, lock = sqlite.settings, threading.Event(), [], fcntl.flock
    liveness.join(sqlite.database, settings.members, 0).leave()

    def flock(handle: int, how: int) -> None:
        if how == fcntl.LOCK_SH:
            asked.set()
        lock(handle, how)

    def start() -> None:
        member = liveness.join(sqlite.database, settings.members, 0)
        events.append("started")
        member.leave()

    monkeypatch.setattr(fcntl, "flock", flock)
    with liveness.reserved(sqlite.database, settings.members) as is_reserved:
        assert is_reserved
        thread = threading.Thread(target=start)
        thread.start()
        assert asked.wait(PATIENCE_SECONDS)
        events.append("restored")
    thread.join(PATIENCE_SECONDS)
    assert events == ["restored", "started"]


def _no_file(file: Path) -> None:
    file.unlink()


def _text(file: Path) -> None:
    file.write_text("no database " * 100)


def _newer(file: Path) -> None:
    _execute(file, "UPDATE alembic_version SET version_num = '9999'")


def _of_another_program(file: Path) -> None:
    _execute(file, "DROP TABLE outbox")


def _empty(file: Path) -> None:
    file.unlink()
    _execute(file, "CREATE TABLE things (id)")


def _damaged(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.seek(4096 * 2)
        opened.write(b"\xff" * 4096 * 8)


def _execute(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()


SPOILT: Mapping[Callable[[Path], None], str] = {
    _no_file: "there is no such file",
    _text: "file is not a database",
    _newer: "its tables have revision 9999",
    _of_another_program: "found another database",
    _empty: "found another database",
    _damaged: "backup of this service's database",
}


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_a_file_that_is_no_backup_is_refused(spoil: Callable[[Path], None], sqlite: Site) -> None:
    file = sqlite.folder / "backup"
    sqlite.add_vims("kept")
    backup(sqlite.database, file)
    refuse_foreign_file(file)
    spoil(file)
    with pytest.raises(ContainerUpdateError, match=SPOILT[spoil]):
        restore(sqlite.settings, sqlite.database, file)
    assert sqlite.vims() == {"kept"}
    assert not list(sqlite.settings.folder.glob("*.before-*"))


def test_a_damaged_database_is_replaced_and_kept_with_its_log(sqlite: Site) -> None:
    file, live = sqlite.folder / "backup", sqlite.settings.folder / "vnfm.sqlite"
    sqlite.add_vims("kept")
    backup(sqlite.database, file)
    live.write_text("damaged " * 1000)
    live.with_name("vnfm.sqlite-wal").write_text("its log")
    kept = restore(sqlite.settings, sqlite.database, file)
    assert kept is not None
    assert (kept.read_text()[:7], sqlite.vims()) == ("damaged", {"kept"})
    assert kept.with_name(f"{kept.name}-wal").read_text() == "its log"


def test_a_backup_of_an_older_revision_is_restored_and_upgraded_by_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, upgrade = Site(tmp_path, ""), command.upgrade
    with monkeypatch.context() as patched:
        patched.setattr(command, "upgrade", lambda config, _: upgrade(config, "0001"))
        site.db("upgrade")
    backup(site.database, tmp_path / "backup")
    site.db("upgrade")
    restore(site.settings, site.database, tmp_path / "backup")
    assert site.database.revision() == "0001"
    service = Service(site.settings, Options())
    assert site.database.revision() == NEWEST
    service.context.process_lock.leave()
    service.context.database.close()


def test_what_is_no_longer_kept_goes_and_its_room_with_it(site: Site) -> None:
    long_ago = now() - timedelta(days=400)
    with site.database.writing() as session:
        session.add_all(
            Operation(
                id=str(number), api="v2", instance_id="gone", operation="HEAL", state=state,
                started=long_ago, entered=long_ago, params={"text": "x" * 20_000}, sealed="",
            )
            for number, state in enumerate(["COMPLETED"] * 50 + ["FAILED_TEMP"])
        )  # fmt: skip
        subscription = Subscription(id="one", created=long_ago, api="v2", callback_uri="http://x/")
        session.add(subscription)
        session.flush()
        for delivered in (long_ago, None):
            session.add(
                Notification(
                    subscription_id="one", body={}, created=long_ago, attempts=0,
                    next_attempt=long_ago, delivered=delivered,
                )
            )  # fmt: skip
    before = room.size(site.database)
    status, said = site.db("vacuum")
    assert (status, "deleted 50 old operations, 1 old notifications" in said) == (0, True), said
    assert f"Size before: {before / 1024**2:.2f} MiB" in said
    with site.database.reading() as session:
        counts = [session.scalar(select(func.count(row.id))) for row in (Operation, Notification)]
    assert counts == [1, 1], "what is not settled, and what was not sent, stays"
    if not site.url:
        assert room.size(site.database) < before / 2


@pytest.mark.parametrize("name", ["backup", "vacuum"])
def test_a_database_that_is_not_there_is_not_created(name: str, tmp_path: Path) -> None:
    arguments = [str(tmp_path / "backup")] if name == "backup" else []
    (tmp_path / "state").mkdir()
    assert Site(tmp_path, "").db(name, *arguments)[0] == 1
    assert list(tmp_path.rglob("*")) == [tmp_path / "state"]


# --- PostgreSQL's programs ------------------------------------------------------------------------


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with what a stand-in of pg_dump got: its arguments, then its environment."""
    binaries, got = tmp_path / "bin", tmp_path / "got"
    binaries.mkdir()
    program = binaries / "pg_dump"
    program.write_text(f'#!/bin/sh\n(echo "$@"; env) > {got}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")
    return got


@pytest.mark.parametrize("place", ["before the host", "in the query"])
def test_a_password_is_in_the_environment_and_in_no_argument(
    place: str, tool: Path, postgresql: str, tmp_path: Path
) -> None:
    site = Site(tmp_path, postgresql)
    site.db("upgrade")
    url = {
        "before the host": postgresql.replace("vnfm@", f"vnfm:{SECRET}@"),
        "in the query": f"{postgresql}?password={SECRET}&application_name=x",
    }[place]
    backup(Database(url), tmp_path / "backup")
    arguments, _, environment = tool.read_text().partition("\n")
    assert SECRET not in arguments
    assert f"PGPASSWORD={SECRET}\n" in environment
    assert postgresql.rpartition("/")[2] in arguments


def test_without_the_programs_the_command_to_type_is_told(
    postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, postgresql)
    site.db("upgrade")
    monkeypatch.setenv("PATH", str(tmp_path))
    url = postgresql.replace("vnfm@", f"vnfm:{SECRET}@")
    with pytest.raises(ContainerUpdateError, match="pg_dump is not on this host") as raised:
        backup(Database(url), tmp_path / "backup")
    assert f": pg_dump --format=custom --no-owner --no-privileges --file={tmp_path}" in str(
        raised.value
    )
    assert SECRET not in str(raised.value)
    assert list(tmp_path.glob("*backup*")) == []


def test_a_dump_is_restored_only_over_tables_of_its_own_revision(
    postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, upgrade = Site(tmp_path, postgresql), command.upgrade
    with monkeypatch.context() as patched:
        patched.setattr(command, "upgrade", lambda config, _: upgrade(config, "0002"))
        site.db("upgrade")
    file = tmp_path / "backup"
    backup(site.database, file)
    site.db("upgrade")
    with pytest.raises(ContainerUpdateError, match="create an empty database"):
        restore(site.settings, site.database, file)
    assert site.database.revision() == NEWEST


def test_an_empty_postgresql_gets_a_backup_of_another_one(
    postgresql: str, postgresql_server: object, tmp_path: Path
) -> None:
    site = Site(tmp_path, postgresql)
    site.db("upgrade")
    site.add_vims("one")
    backup(site.database, tmp_path / "backup")
    other = Site(tmp_path, postgresql_server.create_database())  # type: ignore[attr-defined]
    assert restore(other.settings, other.database, tmp_path / "backup") is None
    assert other.vims() == {"one"}


def test_what_pg_dump_did_not_write_is_refused(postgresql: str, tmp_path: Path) -> None:
    site = Site(tmp_path, postgresql)
    site.db("upgrade")
    shutil.copy(__file__, tmp_path / "backup")
    with pytest.raises(ContainerUpdateError, match="pg_restore failed: "):
        restore(site.settings, site.database, tmp_path / "backup")
    assert site.database.revision() == NEWEST
