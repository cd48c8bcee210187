# SPDX-License-Identifier: Apache-2.0
"""What a list reads of the database: what a filter has to judge, and what is shown."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Select, delete, event, func, select, update
from sqlalchemy.orm import Session

from tests.internals.service import Instance, OperationRow, Service, TableQuery
from tests.vnfm.client import Client
from tests.vnfm.lists.conftest import Filled
from tests.vnfm.lists.stored import (
    ENDED,
    LIST,
    ask,
    pages,
    store_instances,
    store_operations,
)

HERE = ("place_created", "place_id")
"""What is read of each row that a filter has to judge, beside the columns that it names."""
READS = {
    "(gte,startTime,{last})": (("started",), 2),
    "(in,operationState,FAILED_TEMP,PROCESSING)": (("state",), 0),
    "(eq,operationState,FAILED_TEMP);(gt,id,0)": (("id", "state"), 0),
    "(eq,vnfInstanceId,00000000-0000-4000-8000-000000000001)": (("instance_id",), 0),
    "(gt,stateEnteredTime,2036-01-01T00:00:00Z);(eq,operationParams/number,7)": (
        ("entered", "params"), 0,
    ),
    "(eq,id,00000000-0000-0000-0000-000000000007)": (("id",), 1),
    "(cont,id,-000000000017)": (("id",), 1),
    "(lt,id,00000000-0000-0000-0000-000000000003)": (("id",), 2),
    "(eq,isCancelPending,true)": (("state", "kept"), 0),
    "(neq,isAutomaticInvocation,false)": ((), 0),
    "(neq,absent,1)": ((), 0),
    "(eq,id/below,1)": (("id",), 0),
    "(eq,operationParams/note,'note 4999')": (("params",), 1),
    "(cont,operationParams/note,'e 4999')": (("params",), 1),
    "(eq,operationParams/number,4999)": (("params",), 1),
    "(neq,operationParams/absent,4999)": (("params",), 0),
    "(gt,error/status,1)": (("error",), 0),
    "(neq,changedInfo/vnfdId,x)": (("changed", "operation"), 0),
    "(cont,_links/self/href,-000000000017)": (
        ("id", "api", "instance_id", "operation", "state", "kept", "due"), 1,
    ),
}  # fmt: skip
"""A filter; by which columns it judges each of 5,000 rows, and how many it finds."""


@pytest.mark.parametrize("text", READS)
def test_a_filter_reads_what_it_has_to_judge_and_then_what_it_finds(
    text: str, filled: Filled, fetched: list[tuple[str, ...]]
) -> None:
    columns, found = READS[text]
    with filled.service.context.database.reading() as session:
        last = session.scalar(select(func.max(OperationRow.started)))
    assert last
    text = text.format(last=f"{last.isoformat(timespec='milliseconds')}Z")
    listed = ask(filled.client, f"{LIST}?filter={text}").json()
    assert len(listed) == found
    reads = Counter(fetched)
    assert reads.pop((*HERE, *columns)) == 5000
    assert sum(reads.values()) == found, reads


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


@pytest.mark.parametrize(
    ("query", "hidden"),
    [("", True), ("?all_fields", False), ("?fields=error", True), ("?fields=changedInfo", False)],
)
def test_columns_of_attributes_that_are_not_shown_are_not_read(
    query: str, hidden: bool, client: Client, service: Service, fetched: list[tuple[str, ...]]
) -> None:
    store_operations(service, 3)
    ask(client, f"{LIST}{query}")
    columns = set(itertools.chain(*fetched))
    assert not columns & {"sealed", "requested_by", "owner"}
    assert ("changed" not in columns) is hidden


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


def test_a_row_that_changes_before_it_is_shown_is_judged_once_more(
    client: Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_operations(service, 9)
    load = TableQuery.load

    def changed(listing: TableQuery, session: Session, ids: Any, names: Any) -> Any:
        if service.context.database.is_sqlite:
            session.rollback()  # or it would see its snapshot
        with service.context.database.writing() as other:
            other.execute(
                update(OperationRow).where(OperationRow.id == ids[0]).values(state=ENDED[1])
            )
            other.execute(delete(OperationRow).where(OperationRow.id == ids[1]))
        return load(listing, session, ids, names)

    monkeypatch.setattr(TableQuery, "load", changed)
    listed = ask(client, f"{LIST}?filter=(eq,operationState,COMPLETED)").json()
    assert [each["operationState"] for each in listed] == ["COMPLETED"]


def test_a_page_is_read_without_those_before_and_after_it(
    client: Client, service: Service, fetched: list[tuple[str, ...]]
) -> None:
    store_operations(service, 3000)
    object.__setattr__(service.context.settings, "page_size", 10)
    assert [len(page) for page in itertools.islice(pages(client, LIST), 5)] == [10] * 5
    reads = Counter(fetched)
    assert reads.pop(HERE) == 5 * 11
    assert sum(reads.values()) == 5 * 10
