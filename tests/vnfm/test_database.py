# SPDX-License-Identifier: Apache-2.0
"""The tables and their migrations, in both kinds of database."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from fastapi.testclient import TestClient
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from container_update import ContainerUpdateError, Options
from tests.internals.service import (
    UNSETTLED,
    Base,
    Database,
    OperationRow,
    Service,
    Settings,
    State,
    Subscription,
    instances,
    now,
    outbox,
    perform,
)
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.postgres import Server
from tests.vnfm.waiting import PATIENCE_SECONDS, until


@pytest.fixture
def kept(database: str, tmp_path: Path) -> Database:
    """A database whose tables are up to date."""
    opened_database = Database(database or f"sqlite:///{tmp_path / 'vnfm.sqlite'}")
    opened_database.upgrade()
    return opened_database


def test_the_migrations_create_the_tables_of_the_models(kept: Database) -> None:
    with kept.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_several_services_may_migrate_the_database_at_once(database: str, tmp_path: Path) -> None:
    url = database or f"sqlite:///{tmp_path / 'vnfm.sqlite'}"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: Database(url).upgrade(), range(4)))
    with Database(url).reading() as session:
        assert session.scalars(select(OperationRow)).all() == []


def operation(number: int, state: State) -> OperationRow:
    return OperationRow(
        id=str(number), api="v1", instance_id="one", operation="MODIFY_INFO", state=state.value,
        started=now(), entered=now(), params={}, sealed="",
    )  # fmt: skip


@pytest.mark.parametrize("state", State)
def test_an_instance_has_one_unsettled_operation_at_most(kept: Database, state: State) -> None:
    with kept.writing() as session:
        session.add(operation(1, state))
    if state not in UNSETTLED:
        with kept.writing() as session:
            session.add(operation(2, State.STARTING))
        return
    with pytest.raises(IntegrityError) as raised, kept.writing() as session:
        session.add(operation(2, State.STARTING))
    assert "MODIFY_INFO" not in str(raised.value), "what was sent is in no message"


VIM = {"name": "vim", "type": "kubernetes", "auth_url": "http://127.0.0.1:9"}


@pytest.fixture
def client(database: str, tmp_path: Path) -> Iterator[Client]:
    """A client of a service on each kind of database."""
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none", database_url=database)
    service = Service(settings, Options())
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        yield Client(http)


def at_once(send: Callable[[Any], object], values: Iterable[Any]) -> None:
    """Send many requests at the same time."""
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(send, values))


def test_of_vims_that_become_the_default_at_the_same_time_one_is(client: Client) -> None:
    def default(number: int) -> None:
        body = {**VIM, "name": f"vim-{number}", "is_default": True}
        client.call("POST", "/v1.0/vims", {"vim": body}, 201)

    at_once(default, range(8))
    vims = client.call("GET", "/v1.0/vims")["vims"]
    assert [vim["is_default"] for vim in vims].count(True) == 1


def test_changes_of_a_vim_at_the_same_time_are_all_made(client: Client) -> None:
    path = f"/v1.0/vims/{client.call('POST', '/v1.0/vims', {'vim': VIM}, 201)['vim']['id']}"
    changes = {name: {"a": "b"} for name in ("vim_project", "placement_attr", "extra")}
    changes |= dict.fromkeys(("description", "tenant_id"), "text")
    at_once(lambda change: client.call("PUT", path, {"vim": dict([change])}), changes.items())
    shown = client.call("GET", path)["vim"]
    assert {name: shown.get(name) for name in changes} == changes


def test_changes_of_a_package_at_the_same_time_are_all_made(client: Client) -> None:
    root = "/vnfpkgm/v1/vnf_packages"
    path = f"{root}/{client.call('POST', root, {}, 201)['id']}"
    wanted = {f"key-{number}": number for number in range(32)}

    def change(pair: tuple[str, int]) -> None:
        client.call("PATCH", path, {"userDefinedData": dict([pair])})

    at_once(change, wanted.items())
    assert client.call("GET", path)["userDefinedData"] == wanted


# --- PostgreSQL: one transaction deletes what another one is about to refer to -------------------

_LOCKED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, url: str, send: Callable[[], object]
) -> list[Future[Any]]:
    """Have something sent before a function is called for the first time, which goes on once that
    has ended, or waits for a lock."""
    original, sent = getattr(module, name), list[Future[Any]]()
    pool, opened_database = ThreadPoolExecutor(1), Database(url)

    def is_over() -> bool:
        with opened_database.engine.connect() as connection:
            return sent[0].done() or bool(connection.scalar(text(_LOCKED)))

    def called(*given: Any) -> Any:
        if not sent:
            sent.append(pool.submit(send))
            until(is_over, "it ends, or waits for a lock")
        return original(*given)

    monkeypatch.setattr(module, name, called)
    return sent


@pytest.mark.thorough
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_what_is_told_to_a_subscription_that_is_deleted_meanwhile_is_done(
    client: Client, postgresql: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    vnfd_id = client.onboard(vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))[0])
    with Database(postgresql).writing() as session:
        subscription = Subscription(
            id=str(uuid.uuid4()), created=now(), api="v1", callback_uri="http://127.0.0.1:9"
        )
        session.add(subscription)
    path = f"/vnflcm/v1/subscriptions/{subscription.id}"
    send = partial(client.call, "DELETE", path, status=204)
    sent = meanwhile(monkeypatch, outbox, "matches", postgresql, send)

    client.create(vnfd_id)

    assert sent[0].result(PATIENCE_SECONDS) is None
    assert client.call("GET", "/vnflcm/v1/subscriptions") == []


@pytest.mark.thorough
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_package_is_not_deleted_while_an_instance_of_it_is_created(
    client: Client, postgresql: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = client.read_in(client.upload(vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))[0]))
    path = package["_links"]["self"]["href"]

    def delete() -> None:
        client.call("PATCH", path, {"operationalState": "DISABLED"})
        client.call("DELETE", path, status=409)

    sent = meanwhile(monkeypatch, instances, "product_of", postgresql, delete)

    client.create(package["vnfdId"])

    assert sent[0].result(PATIENCE_SECONDS) is None


@pytest.mark.thorough
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_request_that_comes_as_an_operation_ends_waits_for_it_and_for_nothing_else(
    client: Client, postgresql: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Two that lock the operation and its instance in another order would wait for each other."""
    path = client.create(client.onboard(vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))[0]))
    send = partial(client.send, "PATCH", path, {"vnfInstanceName": "second"})
    sent = meanwhile(monkeypatch, perform, "_record", postgresql, send)

    client.do("PATCH", path, {"vnfInstanceName": "first"})

    second = sent[0].result(PATIENCE_SECONDS)
    client.settled(second.headers["Location"])
    assert client.call("GET", path)["vnfInstanceName"] == "second"
    assert "the database does not answer" not in caplog.text


def test_a_database_of_another_kind_is_refused() -> None:
    with pytest.raises(ContainerUpdateError, match="expected sqlite or postgresql, found mysql"):
        Database("mysql://nobody@127.0.0.1/none")


def test_a_transaction_that_lost_its_connection_is_done_again(postgresql: str) -> None:
    opened_database, tries = Database(postgresql), []

    def transaction() -> int:
        with opened_database.writing() as session:
            tries.append(session.scalar(text("SELECT pg_backend_pid()")))
            if len(tries) == 1:
                session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
            return int(session.scalar(text("SELECT 1")) or 0)

    assert opened_database.lasting(transaction) == 1
    assert len(tries) == len(set(tries)) == 2


def test_an_outage_is_waited_for_until_the_service_ends(own_postgresql: Server) -> None:
    opened_database = Database(own_postgresql.create_database())
    own_postgresql.stop()
    with ThreadPoolExecutor(1) as pool:
        asked = threading.Event()

        def ask() -> None:
            asked.set()
            opened_database.engine.connect().close()

        waiting = pool.submit(opened_database.lasting, ask)
        assert asked.wait(PATIENCE_SECONDS)
        opened_database.close()
        assert isinstance(waiting.exception(PATIENCE_SECONDS), OperationalError)


def test_an_error_that_is_no_outage_is_raised_at_once(kept: Database) -> None:
    tries: list[int] = []

    def write_nonsense() -> None:
        tries.append(1)
        with kept.writing() as session:
            session.execute(text("SELECT * FROM nowhere"))

    with pytest.raises(DBAPIError):
        kept.lasting(write_nonsense)
    assert len(tries) == 1


@pytest.mark.parametrize("elsewhere", [False, True], ids=["state_dir", "another folder"])
@pytest.mark.parametrize("before", ["nothing", "an empty folder", "all files"])
def test_the_files_of_the_service_are_for_its_user_only(
    before: str, elsewhere: bool, tmp_path: Path
) -> None:
    state, other = tmp_path / "state", tmp_path / "other"
    file = (other if elsewhere else state) / "vnfm.sqlite"
    files = [file.with_name(file.name + suffix) for suffix in ("", "-wal", "-shm")]
    url = f"sqlite:///{file}" if elsewhere else ""
    other.mkdir(mode=0o755)
    if before != "nothing":
        state.mkdir(mode=0o755)
        state.chmod(0o755)
    earlier = Database(f"sqlite:///{file}")
    if before == "all files":
        earlier.upgrade()  # its connections stay open, and so its files stay
        for path in files:
            path.chmod(0o644)
    mask = os.umask(0)
    try:
        service = Service(Settings(state_dir=str(state), database_url=url, auth="none"), Options())
    finally:
        os.umask(mask)
    with service.context.database.writing() as session:
        session.execute(text("DELETE FROM outbox"))
        assert {path.name: mode(path) for path in files} == {path.name: 0o600 for path in files}
    assert mode(state) == 0o700
    assert mode(other) == 0o755, "it may be a folder of others, too"
    service.context.database.close()
    earlier.close()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("bits", [0o1777, 0o777, 0o702])
def test_a_folder_in_which_all_may_write_is_no_state_directory(bits: int, tmp_path: Path) -> None:
    tmp_path.chmod(bits)
    settings = Settings(state_dir=str(tmp_path), auth="none")
    with pytest.raises(ContainerUpdateError, match="expected a folder in which only this user"):
        Service(settings, Options())
    assert mode(tmp_path) == bits
