# SPDX-License-Identifier: Apache-2.0
"""The pages of the history: each operation once, whenever it started."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.internals.service import Service
from tests.vnfm.client import Client
from tests.vnfm.lists.stored import BEGIN, identity, store_operations

PAST = "/view/operations"
STARTS = {
    "all at the same moment": lambda _: BEGIN,
    "within a millisecond": lambda number: BEGIN + timedelta(microseconds=number),
    "a few at each moment": lambda number: BEGIN + timedelta(milliseconds=number // 7),
}


def read(client: Client, **query: str) -> list[dict[str, Any]]:
    answer = client.http.get(PAST, params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json())


@pytest.mark.parametrize("case", STARTS)
def test_each_operation_is_on_one_page_the_last_one_first(
    case: str, service: Service, client: Client
) -> None:
    for number in range(120):
        started = STARTS[case](number)
        store_operations(service, 1, id=identity(number), started=started, entered=started)
    page = read(client)
    shown = [page]
    while len(page) == 50:
        page = read(client, before=page[-1]["marker"])
        shown.append(page)
    ids = [each["id"] for page in shown for each in page]
    assert [len(page) for page in shown] == [50, 50, 20]
    assert ids == sorted(ids, key=lambda id_: (-number_of(id_, case), id_))


def number_of(id_: str, case: str) -> int:
    """Return the microseconds after the beginning at which the operation started."""
    since = STARTS[case](int(id_[-4:], 16)) - BEGIN
    return since // timedelta(microseconds=1)


@pytest.mark.parametrize("marker", ["x", "2026-01-01T10:00:00.123Z", "W10=", "\u00e4"])
def test_a_marker_that_was_not_given_out_is_refused(marker: str, client: Client) -> None:
    answer = client.http.get(PAST, params={"before": marker})
    assert answer.status_code == 400
    assert "before: expected the marker of an entry" in answer.json()["detail"]
