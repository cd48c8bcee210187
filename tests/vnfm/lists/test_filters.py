# SPDX-License-Identifier: Apache-2.0
"""A list has what the filter finds in the whole resources: whatever is in the rows, and whatever is
asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from tests.circles import Circle, in_circles
from tests.internals.service import (
    Base,
    Condition,
    Database,
    Filter,
    Instance,
    OperationRow,
    Package,
    State,
    Subscription,
    TableQuery,
    representations,
)
from tests.vnfm.lists.stored import BEGIN, identity

TEXTS = (
    "", " ", "a", "A", "b", "ab", "a%b", "a_b", "axb", "a'b", 'a"b', "a\\b", "a/b", "\u00e4",
    "\u00c4", "\u1e9e", "\U0001f600", "a,b", "[", "{", "{}", "@key", "1", "1.0", "1e0", "nan",
    "true", "false", "null", "None", "2026-01-01", "2026-01-01T10:00:00.123Z",
    "2026-01-01T11:00:00.123+01:00", "0001-01-01T00:00:00+14:00", "COMPLETED", "completed",
    "INSTANTIATED", "IN_USE", "SHORT", "\n",
)  # fmt: skip
NEVER_STORED = ("\x00", "\ud800", "u00e4", "\x7f")
"""Values that a database could not take, or that are a part of how another one is written."""
EVERY = {Circle.DEFAULT: 27, Circle.THOROUGH: 7, Circle.COMPLETE: 1}
"""One filter of so many is tried: no divisor of the number of operators, so that each comes."""
OPERATORS = ("eq", "neq", "in", "nin", "gt", "gte", "lt", "lte", "cont", "ncont")


def document(text: str, number: int) -> dict[str, Any]:
    """Return JSON with a text in every place."""
    return {
        "text": text,
        "texts": [text, "z"],
        "entries": [{"text": text, "number": number}, {"text": "z", "number": 1}],
        text: {"text": text},
        "number": number - 0.5 if number % 2 else number,
        "flag": bool(number % 2),
        "nothing": None,
        "none": [],
        'text": "a': 1,
    }


PATHS = (
    "text", "texts", "entries/text", "entries/number", "number", "flag", "nothing", "none",
    "absent", "@key", "a/text", "\u00e4/text", 'a"b/text', "entries", "text/below", 'text": "a',
)  # fmt: skip


def rows() -> Iterator[tuple[type[Base], dict[str, Any]]]:
    states = [state.value for state in State if state is not State.PROCESSING]
    for number, text in enumerate(TEXTS):
        common = {"id": identity(number), "created": BEGIN}
        of_package = {
            "onboarding_state": text[:16], "operational_state": "ENABLED", "vnfd_id": text or None,
            "user_data": document(text, number),
            "body": {"product": text, **document(text, number)},
        }  # fmt: skip
        yield Package, {**common, **of_package}
        body = {"vnfInstanceName": text, **document(text, number)}
        yield Instance, {
            **common, "api": "v2", "vnfd_id": "a" if number % 2 else "b", "body": body,
            "instantiated": number % 3 == 0,
        }  # fmt: skip
        yield Subscription, {
            **common, "api": "v2", "callback_uri": text, "verbosity": "SHORT",
            "filter": document(text, number) if number % 4 else None,
        }  # fmt: skip
        values: dict[str, Any] = {
            "id": identity(number), "api": "v2", "instance_id": text[:36], "sealed": "",
            "operation": "CHANGE_VNFPKG" if number % 2 else text, "state": states[number % 5],
            "started": BEGIN, "entered": BEGIN, "params": document(text, number),
        }  # fmt: skip
        for place, name in enumerate(("changes", "changed", "error")):  # or JSON's null, or NULL
            if number % (place + 4) > 1:
                values[name] = document(text, number)
            elif number % (place + 4):
                values[name] = None
        yield OperationRow, values


LISTS: dict[str, tuple[type[Base], TableQuery, tuple[str, ...], tuple[str, ...]]] = {
    "operations": (
        OperationRow,
        TableQuery(representations.operation("http://vnfm"), OperationRow.started, OperationRow.id),
        ("operationParams", "resourceChanges", "changedInfo", "error",
         "modificationsTriggeredByVnfPkgChange"),
        ("id", "operationState", "operation", "vnfInstanceId", "startTime", "isCancelPending",
         "_links/self/href", "@key", "absent"),
    ),
    "instances": (
        Instance,
        TableQuery(
            representations.instance("http://vnfm", lambda _: None), Instance.created, Instance.id
        ),
        ("",),
        ("id", "vnfdId", "instantiationState", "vnfInstanceName", "@key", "vnfPkgId"),
    ),
    "packages": (
        Package,
        TableQuery(representations.PACKAGE, Package.created, Package.id),
        ("userDefinedData", ""),
        ("id", "vnfdId", "onboardingState", "usageState", "product", "@key", "error"),
    ),
    "subscriptions": (
        Subscription,
        TableQuery(
            representations.subscription("http://vnfm"), Subscription.created, Subscription.id
        ),
        ("filter",),
        ("id", "callbackUri", "verbosity", "@key"),
    ),
}  # fmt: skip
"""The table, its list, its attributes with JSON ('' for the attributes of the body), and others."""


@pytest.fixture
def stored(tmp_path: Path, database: str) -> Iterator[Database]:
    stored = Database(database or f"sqlite:///{tmp_path}/vnfm.sqlite")
    stored.upgrade()
    with stored.writing() as session:
        for table, values in sorted(rows(), key=lambda row: row[0] is not Package):
            session.execute(insert(table), values)
    yield stored
    stored.close()


def filters(json_names: tuple[str, ...], others: tuple[str, ...]) -> Iterator[Filter]:
    """Yield each operator with each value on each attribute, and filters of two expressions."""
    values = [(text,) for text in (*TEXTS, *NEVER_STORED)]
    values += [("a", "\u00e4"), ("zzz", "a%b"), ("1", "b"), TEXTS[-9:-6]]
    wanted = [(path, value) for path, value in itertools.product(others, values)]
    for number, name in enumerate(json_names):
        few = 3 if number else 1  # of the other columns: they are treated alike
        inside = [f"{name}/{path}".lstrip("/") for path in PATHS[::few]]
        wanted += itertools.product(inside, values[::few])
    for (path, value), op in itertools.product(wanted, OPERATORS):
        root = Filter()
        root.at(path.split("/")).conditions.append(Condition(op, value))
        yield root
    for name in json_names:
        start = [name] if name else []
        for text, op in itertools.product(TEXTS, ("eq", "cont", "gt")):
            root = Filter()
            root.at([*start, "entries", "text"]).conditions.append(Condition(op, (text,)))
            root.at([*start, "entries", "number"]).conditions.append(Condition("gt", ("3",)))
            yield root


@pytest.mark.parametrize("name", LISTS)
@in_circles(*Circle)
def test_a_list_has_the_rows_that_the_filter_finds_in_python(
    name: str, circle: Circle, stored: Database
) -> None:
    table, listing, json_names, others = LISTS[name]
    with stored.reading() as session:
        everything = [
            listing.show(session, row_id)
            for row_id in session.scalars(select(listing.id).order_by(listing.created, listing.id))
        ]
        numbers = set()
        for root in itertools.islice(filters(json_names, others), None, None, EVERY[circle]):
            found = [row[1] for row in listing.find(session, select(table), root, None, 500)]
            assert found == [each["id"] for each in everything if root.matches(each)], root
            numbers.add(len(found))
    assert {0, 1, len(TEXTS)} < numbers, "filters that find nothing, one, and all"
