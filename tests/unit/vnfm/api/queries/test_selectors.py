# SPDX-License-Identifier: Apache-2.0
"""Which attributes a list's entries are answered with."""

from __future__ import annotations

import copy

import pytest

from container_update.vnfm.api.queries.lists import Attributes, Selection
from container_update.vnfm.problems import ProblemError

BODY = {
    "id": "1",
    "state": "ON",
    "links": [{"href": "x", "rel": "self"}, {"href": "y"}],
    "info": {"pods": ["a"], "size": 2, "deep": {"k": 1, "l": 2}},
}
ATTRIBUTES = Attributes(required=frozenset({"id"}), hidden=("info/deep", "links"))

SHOWS = {
    "no selector": ({}, {"id": "1", "state": "ON", "info": {"pods": ["a"], "size": 2}}),
    "exclude_default": (
        {"exclude_default": ""},
        {"id": "1", "state": "ON", "info": {"pods": ["a"], "size": 2}},
    ),
    "all_fields": ({"all_fields": ""}, BODY),
    "fields": ({"fields": "state"}, {"id": "1", "state": "ON"}),
    "nested fields": ({"fields": "info/deep/k"}, {"id": "1", "info": {"deep": {"k": 1}}}),
    "fields of an array's entries": (
        {"fields": "links/href"},
        {"id": "1", "links": [{"href": "x"}, {"href": "y"}]},
    ),
    "a field and one below it": ({"fields": "info,info/size"}, {"id": "1", "info": BODY["info"]}),
    "absent fields": ({"fields": "absent,info/absent"}, {"id": "1", "info": {}}),
    "below a scalar": ({"fields": "state/x"}, {"id": "1", "state": "ON"}),
    "fields and exclude_default": (
        {"fields": "info/deep", "exclude_default": ""},
        {"id": "1", "state": "ON", "info": BODY["info"]},
    ),
    "exclude_fields": (
        {"exclude_fields": "links,info/deep/k"},
        {"id": "1", "state": "ON", "info": {"pods": ["a"], "size": 2, "deep": {"l": 2}}},
    ),
    "exclude what is required": ({"exclude_fields": "id,links,info"}, {"id": "1", "state": "ON"}),
    "exclude from entries": (
        {"exclude_fields": "links/rel,info"},
        {"id": "1", "state": "ON", "links": [{"href": "x"}, {"href": "y"}]},
    ),
}

REFUSED = [
    {"all_fields": "", "fields": "id"},
    {"fields": "id", "exclude_fields": "state"},
    {"exclude_fields": "id", "exclude_default": ""},
    {"fields": ""},
    {"fields": "a,,b"},
    {"exclude_fields": "a~9"},
    {"fields": ",".join(["a"] * 65)},
]


@pytest.mark.parametrize(("query", "shown"), SHOWS.values(), ids=SHOWS)
def test_an_entry_is_shown_as(query: dict[str, str], shown: object) -> None:
    before = copy.deepcopy(BODY)
    assert Selection.of({"unrelated": "x", **query}, ATTRIBUTES).apply(BODY) == shown
    assert before == BODY


@pytest.mark.parametrize("query", REFUSED, ids=str)
def test_the_query_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(ProblemError) as caught:
        Selection.of(query, ATTRIBUTES)
    assert caught.value.status == 400


@pytest.mark.parametrize("query", [query for query, _ in SHOWS.values()], ids=SHOWS)
def test_attributes_of_which_nothing_is_shown_are_not_needed(query: dict[str, str]) -> None:
    selection = Selection.of(query, ATTRIBUTES)
    needed = selection.names(BODY)
    assert selection.apply({name: BODY[name] for name in needed if name in BODY}) == (
        selection.apply(BODY)
    )
    assert set(selection.apply(BODY)) == set(needed) & set(BODY)
