"""The tables and their migrations, in both kinds of database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.states import UNSETTLED, State
from container_update.vnfm.store.database import Database, now
from container_update.vnfm.store.rows import Base, Operation, Subscription


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
        assert session.scalars(select(Operation)).all() == []


def test_a_subscription_of_the_first_tables_gets_full_notifications(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_database = Database(database or f"sqlite:///{tmp_path / 'vnfm.sqlite'}")
    upgrade = command.upgrade
    with monkeypatch.context() as patched:
        patched.setattr(command, "upgrade", lambda config, _: upgrade(config, "0001"))
        old_database.upgrade()
    with old_database.writing() as session:
        columns = "id, created, api, callback_uri"
        values = "'one', '2026-01-01 00:00:00', 'v2', 'http://nfvo/'"
        session.execute(text(f"INSERT INTO subscriptions ({columns}) VALUES ({values})"))
    old_database.upgrade()
    with old_database.reading() as session:
        assert session.get_one(Subscription, "one").verbosity == "FULL"


def operation(number: int, state: State) -> Operation:
    return Operation(
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


def test_a_database_of_another_kind_is_refused() -> None:
    with pytest.raises(ContainerUpdateError, match="expected sqlite or postgresql, found mysql"):
        Database("mysql://nobody@127.0.0.1/none")
