# SPDX-License-Identifier: Apache-2.0
"""Answers of OpenStack's services, read within limits of time and size.

Source: Orchestration Service API v1.
"""

from __future__ import annotations

import contextlib
import json
from functools import partial
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from container_update.cluster.responses import read, timely
from container_update.model.errors import ClusterError
from container_update.model.objects import Json
from container_update.model.schema import (
    LINE,
    MAPPING,
    TEXT,
    Fields,
    ListOf,
    MapOf,
    Schema,
    complete,
)
from container_update.package import fetch

MOST_BYTES = 64 * 1024 * 1024
"""Of an answer: Heat lists all resources of a stack in one."""
MOST_VALUES = 500_000
"""Of an answer: 25 for a resource."""

_STACK = complete(**dict.fromkeys(("stack_name", "id", "stack_status"), TEXT))
STACK, STACKS = complete(stack=_STACK), complete(stacks=ListOf(_STACK))
CREATED = complete(stack=complete(id=TEXT))
RESOURCE = complete(resource=MAPPING)
RESOURCES = complete(resources=ListOf(complete(resource_name=TEXT, resource_type=TEXT)))
TEMPLATE = complete(resources=MAPPING)
ENVIRONMENT = Fields(
    dict.fromkeys(("parameters", "parameter_defaults", "resource_registry"), MAPPING)
)
FILES = MapOf(LINE, TEXT, nullable=False)
LISTS = {
    "images": complete(images=ListOf(complete(id=TEXT))),
    "flavors": complete(flavors=ListOf(complete(id=TEXT, name=TEXT))),
}
REFUSAL = complete(error=complete(type=TEXT, message=TEXT))
"""What tells an answer from that of a proxy or a portal in between. The service has our credentials
and is trusted for the shape of the rest."""


def limit(session: requests.Session, seconds: float) -> None:
    """Keep no answer of a session that has more than :data:`MOST_BYTES` or :data:`MOST_VALUES`, and
    follow no redirect to another origin: the token, or the password, would go there.

    :param seconds: how long an answer may take from its beginning to its end.
    """
    # nothing is unpacked, so that what is received is what is kept
    session.headers["Accept-Encoding"] = "identity"
    session.hooks["response"].append(partial(_read, seconds))
    for adapter in session.adapters.values():
        if isinstance(adapter, requests.adapters.HTTPAdapter):
            timely(adapter.poolmanager)


def _read(seconds: float, answer: requests.Response, **_: object) -> None:
    """Read an answer before requests does."""
    try:
        body = read(str(answer.url), answer.raw, seconds, MOST_BYTES, MOST_VALUES).data
    except urllib3.exceptions.HTTPError as error:
        raise requests.ConnectionError(error) from error
    answer._content, answer._content_consumed = body, True
    target = urljoin(str(answer.url), answer.headers.get("Location", ""))
    if 300 <= answer.status_code < 400 and not _is_of_origin(target, str(answer.url)):
        here, there = urlsplit(str(answer.url)), urlsplit(target)
        raise ClusterError(
            f"{answer.request.method} {here.path}: {here.scheme}://{here.netloc} redirects to "
            f"{there.scheme!a} on {there.netloc!a}, which was not asked, as it would get the "
            "credentials: expected a redirect to the same scheme, host and port: correct the "
            "address (auth_url, or the cloud's catalogue), or what the service says is its own"
        )


def _is_of_origin(url: str, other: str) -> bool:
    with contextlib.suppress(ValueError):
        return fetch.origin_of(url) == fetch.origin_of(other)
    return False


def content(answer: requests.Response, schema: Schema) -> Json:
    """Return the body of an answer; ClusterError: it is not JSON, or not what was asked for."""
    problem = f"something else ({answer.headers.get('Content-Type', 'no Content-Type')})"
    with contextlib.suppress(ValueError, RecursionError):
        body: Json = json.loads(answer.content)
        if (wrong := schema.first_violation(body)) is None:
            return body
        problem = str(wrong)
    raise ClusterError(
        f"{answer.request.method} {urlsplit(str(answer.url)).path}: expected an answer in JSON "
        f"with the status {answer.status_code}, found {problem}: check that the address in the "
        "cloud's catalogue is that of the service and no proxy answers in its place"
    )
