# SPDX-License-Identifier: Apache-2.0
"""Whatever a query has, no answer is a failure: every route of the OpenAPI document that reads, and
those of the page, which it does not have."""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.internals.service import Service
from tests.vnfm.client import Client
from tests.vnfm.lists.stored import identity, store_instances, store_operations

EXAMPLES = 6
"""Queries to each route, beside those that are written out."""
SHARE = 3
"""A parameter of a route gets one of so many of the hostile values, its neighbour others."""
OF_THE_PAGE = {
    "/view/operations": ("instance", "text", "operation", "state", "before"),
    "/view/drafts/v2/{instance_id}": ("operation", "vnfd_id"),
}
OF_LISTS = ("fields", "exclude_fields", "exclude_default", "all_fields", "filter",
            "nextpage_opaque_marker")  # fmt: skip
"""The parameters of SOL013, which the document need not name."""


def marker(*place: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


HOSTILE = (
    "", "\x00", "a\x00b", "\x1b[2J", "\u202e", "/", ",", "id/id/id", "a/" * 40, "_links", "%", "'",
    "(eq,id,\x00)", "(cont,id,%)", "(in,id,a,\x00)", "(eq,startTime,9999-12-31T23:59:59.9999Z)",
    "(gt,startTime,0001-01-01T00:00:00+14:00)", "(eq,a/b/c,1)", "(", "(eq,id", "9" * 5000, "W10=",
    marker("2026-01-01T00:00:00", "a\x00b"), marker("2026-01-01T00:00:00", "\ud800"),
    marker("0001-01-01T00:00:00", "a"), marker(None, None), marker("2026-01-01", 5), marker([]),
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=20), st.text("(),'/\x00aid", max_size=20))
VALUES = st.one_of(st.sampled_from(HOSTILE), TEXTS)


def test_no_query_is_answered_with_a_failure(client: Client, service: Service) -> None:
    store_operations(service, 3)
    store_instances(service)
    routes = {**documented(service), **OF_THE_PAGE}
    assert len(routes) > 20
    assert {"id", "name"} <= {*routes["/v1.0/vims"]}
    wrong = [url for route, names in routes.items() for url in failures(client, route, names)]
    assert wrong == []


def documented(service: Service) -> dict[str, tuple[str, ...]]:
    """Return every route that reads, with the names of the parameters of its query."""
    paths = service.app.openapi()["paths"]
    gets = {path: methods["get"] for path, methods in paths.items() if "get" in methods}
    return {
        path: tuple(each["name"] for each in get.get("parameters", ()) if each["in"] == "query")
        for path, get in gets.items()
    }


def failures(client: Client, route: str, names: tuple[str, ...]) -> set[str]:
    """Return the requests to a route that are answered with a failure."""
    path = route.replace("{package_id}", identity(99))  # the others have no files
    path, wrong = re.sub(r"\{\w+\}", identity(1), path), set()

    def ask(query: dict[str, str]) -> None:
        url = f"{path}?{urlencode(query)}"
        answer = client.http.get(url, headers={"Version": "2.0.0"})
        if answer.status_code >= 500:
            wrong.add(f"{url}: {answer.status_code}")

    queries = st.dictionaries(st.sampled_from((*names, *OF_LISTS)), VALUES, min_size=1, max_size=3)

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(query=queries)
    def ask_each(query: dict[str, str]) -> None:
        ask(query)

    for number, name in enumerate(names):
        for value in HOSTILE[(len(route) + number) % SHARE :: SHARE]:
            ask({name: value})
    ask_each()
    return wrong
