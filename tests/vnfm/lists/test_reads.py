# SPDX-License-Identifier: Apache-2.0
"""What a list reads of the database: what a filter has to judge, and what is shown."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Select, event, select
from sqlalchemy.orm import Session

from tests.internals.service import Instance, Service
from tests.vnfm.client import Client
from tests.vnfm.lists.stored import (
    LIST,
    ask,
    pages,
    store_instances,
    store_operations,
)

HERE = ("place_created", "place_id")


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The columns of each row that is read from now on, beside whole entities."""
    log: list[tuple[str, ...]] = []
    execute = Session.execute

    class Counted:
        def __init__(self, result: Any) -> None:
            self.result = result

        def __iter__(self) -> Iterator[Any]:
            for row in self.result:
                log.append(tuple(row._fields))
                yield row

        def __enter__(self) -> Counted:
            return self

        def __exit__(self, *_: object) -> None:
            self.result.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.result, name)

    def counted(session: Session, statement: Any, *args: Any, **more: Any) -> Any:
        result = execute(session, statement, *args, **more)
        return Counted(result) if isinstance(statement, Select) else result

    monkeypatch.setattr(Session, "execute", counted)
    return log


def test_columns_that_no_attribute_has_are_not_read(
    client: Client, service: Service, fetched: list[tuple[str, ...]]
) -> None:
    store_operations(service, 3)
    ask(client, f"{LIST}?all_fields")
    assert not set(itertools.chain(*fetched)) & {"sealed", "requested_by", "owner"}


def test_credentials_are_decrypted_only_for_what_names_or_shows_them(
    client: Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_instances(service)
    vault = service.context.vault
    with service.context.database.writing() as session:
        for row in session.scalars(select(Instance)):
            row.sealed = vault.seal({"first": {"vimType": "kubernetes"}})
    opened: list[str] = []
    monkeypatch.setattr(
        type(vault), "open", lambda _, text: opened.append(text) or {"first": {"vimType": "k"}}
    )
    path = "/vnflcm/v2/vnf_instances"
    assert len(ask(client, f"{path}?filter=(eq,vnfdId,a)").json()) == 2
    assert opened == []
    assert ask(client, f"{path}?filter=(eq,vimConnectionInfo/first/vimType,x)").json() == []
    assert len(opened) == 4
    shown = ask(client, f"{path}?filter=(eq,vnfdId,a)&fields=vimConnectionInfo").json()
    assert [each["vimConnectionInfo"] for each in shown] == [{"first": {"vimType": "k"}}] * 2
    assert len(opened) == 6


def test_a_list_of_packages_takes_as_many_statements_as_there_may_be_packages(
    client: Client, service: Service
) -> None:
    statements: list[str] = []
    event.listen(
        service.context.database.engine,
        "before_cursor_execute",
        lambda _c, _u, statement, *_: statements.append(statement),
    )

    def count() -> int:
        statements.clear()
        ask(client, "/vnfpkgm/v1/vnf_packages?all_fields")
        return sum("FROM packages" in statement for statement in statements)

    none = count()
    store_instances(service)
    assert count() == none


def test_a_page_is_read_without_those_before_and_after_it(
    client: Client, service: Service, fetched: list[tuple[str, ...]]
) -> None:
    store_operations(service, 3000)
    object.__setattr__(service.context.settings, "page_size", 10)
    assert [len(page) for page in itertools.islice(pages(client, LIST), 5)] == [10] * 5
    assert [row[:2] for row in fetched] == [HERE] * (5 * 11)
