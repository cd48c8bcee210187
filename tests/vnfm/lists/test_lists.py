# SPDX-License-Identifier: Apache-2.0
"""Lists of resources: what the database leaves out of them, and their pages."""

from __future__ import annotations

import base64
import itertools
import json
from datetime import timedelta
from urllib.parse import quote

import pytest
from sqlalchemy import select

from tests.internals.service import (
    Batch,
    Instance,
    OperationRow,
    Package,
    Service,
    StepRow,
    Steps,
    Workers,
    forget_operations,
    now,
    query_filters,
)
from tests.vnfm.client import Client
from tests.vnfm.lists.stored import (
    BEGIN,
    LIST,
    TIMED_VNFD,
    ask,
    identity,
    pages,
    store_instances,
    store_operations,
)

VALUES = (
    identity(3), "COMPLETED", "SCALE", "INSTANTIATED", "ONBOARDED", "a", "A", "true", TIMED_VNFD,
    "2026-01-01T01:00:00+01:00", "2026-01-01T10:00:00.124Z", "2026-01-01T11:00:00.623+01:00",
    "2026-01-01T12:00:00.123456Z", "2026-01-01", "0001-01-01T00:00:00+14:00", "\x00",
)  # fmt: skip
OPERATORS = ("eq", "neq", "in", "nin", "gt", "gte", "lt", "lte", "cont", "ncont")
LISTS = {
    "/vnflcm/v2/vnf_lcm_op_occs": (
        "id", "operationState", "operation", "vnfInstanceId", "startTime", "stateEnteredTime",
    ),
    "/vnflcm/v2/vnf_instances": ("id", "vnfdId", "instantiationState"),
    "/vnfpkgm/v1/vnf_packages": ("id", "vnfdId", "onboardingState", "operationalState"),
}  # fmt: skip


@pytest.mark.thorough  # and test_filters.py
@pytest.mark.parametrize("path", LISTS)
def test_the_database_finds_what_the_filter_finds(
    path: str, client: Client, service: Service
) -> None:
    store_operations(service, 20)
    store_instances(service)
    everything = ask(client, f"{path}?all_fields").json()
    filters = [
        f"({op},{name},'{value}')"
        for op, name, value in itertools.product(OPERATORS, LISTS[path], VALUES)
    ]
    filters += [f"(in,{name},'{VALUES[0]}','{VALUES[-5]}')" for name in LISTS[path]]
    found = set()
    for text in filters:
        listed = ask(client, f"{path}?all_fields&filter={quote(text)}").json()
        root = query_filters.parse(text)
        assert listed == [each for each in everything if root.matches(each)], text
        found.add(len(listed))
    assert {0, len(everything)} < found, "filters that find nothing, some, and all"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [7, 7, 7, 4]),
        ("?filter=(in,operationParams/number," + ",".join(map(str, range(0, 25, 2))) + ")", [7, 6]),
        ("?filter=(gte,startTime,2026-01-01T10:00:02.5Z)&fields=operationParams", [7, 7, 1]),
        ("?filter=(eq,operation,TERMINATE)", [0]),
        ("?filter=(lt,startTime,2026-01-01T10:00:03.6Z)", [7, 7]),
    ],
)
def test_pages_have_each_entry_once(
    query: str, expected: list[int], client: Client, service: Service
) -> None:
    store_operations(service, 25)
    path = f"/vnflcm/v2/vnf_lcm_op_occs{query}"
    whole = [each["id"] for each in ask(client, path).json()]
    object.__setattr__(service.context.settings, "page_size", 7)
    read = list(pages(client, path))
    assert [len(page) for page in read] == expected
    assert list(itertools.chain(*read)) == whole


def test_a_page_stays_where_it_is_when_entries_before_it_go(
    client: Client, service: Service
) -> None:
    store_operations(service, 25)
    object.__setattr__(service.context.settings, "page_size", 10)
    following = pages(client, "/vnflcm/v2/vnf_lcm_op_occs")
    first = next(following)
    with service.context.database.writing() as session:
        for gone in first:
            session.delete(session.get_one(OperationRow, gone))
    rest = list(itertools.chain(*following))
    assert len(rest) == 15
    assert not set(first) & set(rest)


@pytest.mark.parametrize(("fields", "found"), [("nothing", "'nothing'"), ("%00", r"'\x00'")])
def test_a_field_that_the_resource_does_not_have_is_refused(
    fields: str, found: str, client: Client
) -> None:
    answer = client.http.get(
        f"/vnflcm/v2/subscriptions?fields={fields}", headers={"Version": "2.0.0"}
    )
    assert answer.status_code == 400
    assert answer.json()["detail"] == f"query: the resource has no attribute {found}"


@pytest.mark.parametrize(
    "marker",
    [
        "x",
        "7",
        "\u00e4",
        "e30=",
        "W10=",
        *(
            base64.urlsafe_b64encode(json.dumps(place).encode()).decode()
            for place in (
                ["2026-01-01T00:00:00+00:00", "x"],
                ["2026-01-01", "\x00"],
                ["2026-01-01"],
                ["x", "x"],
                [[], []],
                [1, "x"],
                ["2026-01-01", 1],
            )
        ),
    ],
)
def test_a_marker_that_was_not_given_out_is_refused(marker: str, client: Client) -> None:
    answer = client.http.request(
        "GET", f"{LIST}?nextpage_opaque_marker={quote(marker)}", headers={"Version": "2.0.0"}
    )
    assert answer.status_code == 400
    assert "expected one from a Link header" in answer.json()["detail"]


KEPT_DAYS = 90
KEPT = {
    "ended long ago, and another one followed": ("COMPLETED", 100, True, True, False),
    "failed long ago, and another one followed": ("FAILED", 100, True, True, False),
    "rolled back long ago, and another one followed": ("ROLLED_BACK", 100, True, True, False),
    "ended long ago, and its instance is gone": ("COMPLETED", 100, False, False, False),
    "ended of late": ("COMPLETED", 80, True, True, True),
    "ended long ago, and is the last of its instance": ("COMPLETED", 100, True, False, True),
    "waits for a decision": ("FAILED_TEMP", 100, True, True, True),
    "waits for a decision, without an instance": ("FAILED_TEMP", 100, False, False, True),
    "runs": ("PROCESSING", 100, True, True, True),
}
"""State, days since it entered it, whether its instance exists and had another operation later,
and whether it is kept."""


@pytest.mark.parametrize("case", KEPT)
def test_an_operation_is_kept_as_long_as_it_may_be_needed(case: str, service: Service) -> None:
    state, days, has_instance, is_followed, is_kept = KEPT[case]
    with service.context.database.writing() as session:
        session.add(
            Package(
                id=identity(1), created=now(), onboarding_state="ONBOARDED", vnfd_id="a",
                operational_state="ENABLED", user_data={}, body={},
            )
        )  # fmt: skip
        session.flush()
        if has_instance:
            session.add(
                Instance(
                    id=identity(0), created=now(), api="v2", vnfd_id="a", instantiated=True, body={}
                )
            )
    moment = now() - timedelta(days=days)
    store_operations(
        service, 1, id=identity(7), instance_id=identity(0), state=state, started=moment,
        entered=moment, owner=service.context.process_lock.id,
    )  # fmt: skip
    if is_followed:
        store_operations(service, 1, id=identity(8), instance_id=identity(0), started=now())
    Steps(service.context.database, identity(7), remember=False).add("VNF", "wait", "done")

    forget_operations(service.context.database, service.context.settings.operation_seconds)

    with service.context.database.reading() as session:
        ids = set(session.scalars(select(OperationRow.id)))
        assert ids == {*([identity(7)] if is_kept else []), *([identity(8)] if is_followed else [])}
        assert len(session.scalars(select(StepRow)).all()) == is_kept


@pytest.mark.parametrize(
    ("state", "days", "is_kept"),
    [("PROCESSING", 100, True), ("FAILED", 80, True), ("FAILED", 100, False)],
)
def test_the_operations_of_a_batch_are_kept_as_long_as_it(
    state: str, days: int, is_kept: bool, service: Service
) -> None:
    moment = now() - timedelta(days=days)
    store_operations(service, 1, id=identity(7), entered=now() - timedelta(days=100),
                     batch_id=identity(9))  # fmt: skip
    with service.context.database.writing() as session:
        session.add(
            Batch(
                id=identity(9), api="v2", operation="MODIFY_INFO", state=state, started=moment,
                entered=moment, requested_by="", new_package="", body={}, sealed="",
            )
        )  # fmt: skip
    forgotten = forget_operations(
        service.context.database, service.context.settings.operation_seconds
    )
    with service.context.database.reading() as session:
        assert len(session.scalars(select(Batch)).all()) == is_kept
    assert forgotten == (not is_kept)


def test_many_old_operations_are_deleted_when_the_service_looks(
    service: Service, client: Client
) -> None:
    store_operations(service, 1200, entered=BEGIN - timedelta(days=400))
    assert forget_operations(service.context.database, 0.0) == 0
    assert len(ask(client, LIST).json()) == 1000, "0: for ever"
    object.__setattr__(service.context.settings, "operation_seconds", KEPT_DAYS * 86400.0)
    Workers(service.context).look()
    assert ask(client, LIST).json() == []
