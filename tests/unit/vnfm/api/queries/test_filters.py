# SPDX-License-Identifier: Apache-2.0
"""Which documents a filter finds, and which filters are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from container_update.vnfm.api.queries import query_filters
from container_update.vnfm.problems import ProblemError

GREEN = {
    "id": 123,
    "weight": 100,
    "name": "it's (green)",
    "ok": True,
    "begun": "2026-01-01T10:00:00Z",
    "parts": [{"id": 1, "color": "red"}, {"id": 2, "color": "green"}],
    "tags": ["a", "b"],
    "nothing": None,
    "empty": [],
    "vims": {"first": {"type": "kubernetes"}, "a/b,c~d@": {"type": "openstack"}},
}
BLUE = {
    "id": 456,
    "weight": 500.5,
    "name": "blue, mostly",
    "ok": False,
    "begun": "2026-01-01T10:00:00.500000Z",
    "parts": [{"id": 3, "color": "green"}, {"id": 4, "color": "blue"}],
    "tags": [],
    "vims": {},
}

FINDS = {
    # one operator after the other
    "(eq,weight,100)": [123],
    "(eq,weight,100.0)": [123],
    "(neq,weight,100)": [456],
    "(in,weight,1,100,500.5)": [123, 456],
    "(nin,weight,1,100)": [456],
    "(gt,weight,100)": [456],
    "(gte,weight,100)": [123, 456],
    "(lt,weight,500.5)": [123],
    "(lte,weight,500.5)": [123, 456],
    "(cont,name,green,red)": [123],
    "(ncont,name,green,red)": [456],
    # each type by its own rules
    "(eq,ok,true)": [123],
    "(neq,ok,true)": [456],
    "(gt,ok,0)": [],
    "(eq,weight,heavy)": [],
    "(neq,weight,heavy)": [123, 456],
    "(lt,weight,heavy)": [],
    "(gt,weight,nan)": [],
    "(cont,weight,1)": [],
    "(gt,begun,2026-01-01T10:00:00Z)": [456],
    "(lte,begun,2026-01-01T11:00:00.000+01:00)": [123],
    "(eq,begun,2026-01-01T11:00:00+01:00)": [123],
    "(lt,name,c)": [456],
    "(eq,parts,red)": [],
    "(eq,nothing,None)": [],
    # what is not there satisfies nothing
    "(eq,absent,1)": [],
    "(neq,absent,1)": [],
    "(neq,empty,1)": [],
    "(eq,weight/unit,kg)": [],
    # nested, arrays, maps
    "(eq,parts/color,green)": [123, 456],
    "(eq,parts/color,green);(eq,parts/id,3)": [456],
    "(eq,parts/color,red);(eq,parts/id,2)": [],
    "(eq,tags,b)": [123],
    "(eq,vims/first/type,kubernetes)": [123],
    "(eq,vims/@key,first)": [123],
    "(eq,vims/a~1b~ac~0d~b/type,openstack)": [123],
    "(eq,id,456);(gt,weight,1);(lt,weight,1000)": [456],
    # quoted values
    "(eq,name,'it''s (green)')": [123],
    "(in,name,'x','blue, mostly')": [456],
    "(neq,name,'')": [123, 456],
}

REFUSED = {
    "": "'(operator,attribute,value)' at character 1",
    "eq,a,b": "'(operator,attribute,value)' at character 1",
    "(eq,a)": "'eq' at character 1 takes exactly one value, found 0",
    "(eq,a,b,c)": "'eq' at character 1 takes exactly one value, found 2",
    "(in,a)": "takes at least one value",
    "(is,a,b)": "expected one of cont, eq,",
    "(eq,a,b": "a value or ')' at character 8",
    "(eq,a,)": "a value or ')' at character 6",
    "(eq,a,'b)": "a value or ')'",
    "(eq,a,b)(eq,a,b)": "expected ';' between expressions at character 9",
    "(eq,a,b);": "'(operator,attribute,value)' at character 10",
    "(eq,,b)": "is no path",
    "(eq,a//b,c)": "is no path",
    "(eq,a~2,c)": "'~2' is no escape",
    "(eq," + "/".join("a" * 13) + ",b)": "no path of 1 to 12",
    "(eq,a," + "b" * 5000 + ")": "at most 4096",
    ";".join(["(eq,a,b)"] * 17): "at most 16 expressions",
    "(in,a" + ",b" * 65 + ")": "64 values",
}


def find(items: list[Any], text: str) -> list[Any]:
    root = query_filters.parse(text)
    return [item for item in items if root.matches(item)]


@pytest.mark.parametrize(("text", "ids"), FINDS.items(), ids=FINDS)
def test_the_filter_finds(text: str, ids: list[int]) -> None:
    assert [item["id"] for item in find([GREEN, BLUE], text)] == ids


@pytest.mark.parametrize(("text", "why"), REFUSED.items(), ids=[text[:30] for text in REFUSED])
def test_the_filter_is_refused(text: str, why: str) -> None:
    with pytest.raises(ProblemError, match=re.escape(why)) as caught:
        query_filters.parse(text)
    assert caught.value.status == 400


def test_no_filter_finds_all() -> None:
    assert all(map(query_filters.Filter().matches, (GREEN, BLUE)))


def test_a_document_far_deeper_than_the_filter_causes_no_error() -> None:
    deep: Any = "x"
    for _ in range(900):
        deep = {"a": deep}
    assert find([{"id": 1, "deep": deep}], "(neq,deep/a/a,y)") == []


@given(st.text(alphabet="(),';/~@01abeqinct=-.Z", max_size=40))
def test_any_text_is_a_filter_or_a_refusal(text: str) -> None:
    try:
        matches = find([GREEN, BLUE], text)
    except ProblemError as error:
        assert error.status == 400  # noqa: PT017, either is right
    else:
        assert all(item in (GREEN, BLUE) for item in matches)
