# SPDX-License-Identifier: Apache-2.0
"""Asks a Prometheus server for the value of a query. The operator names the server, no request."""

from __future__ import annotations

import http.client
import json
import math
import threading
import time
import urllib.parse
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from container_update.cluster.credentials import checked_url
from container_update.model.errors import ClusterError
from container_update.package import fetch

_SECONDS = 10.0
"""For the whole of a question and its answer."""
_LOOK = 0.1
"""Seconds between two looks whether the answer is there."""
_MOST_BYTES = 1024 * 1024


class MetricError(Exception):
    """The server gives no value that can be used; the message says why."""


def measured(
    server: str, query: str, pause: Callable[[float], object] = time.sleep
) -> tuple[float, ...]:
    """Return the value of a query: one, or that of each sample of a vector; NaN is none of them.

    No redirect is followed and no proxy is used: the operator has named the server.

    Source: Prometheus documentation, "HTTP API", instant queries.

    :param server: its URL, as ``http://prometheus.monitoring:9090``.
    :param pause: waits for some seconds; what it raises ends the wait for the answer.
    :raises MetricError: it cannot be asked, answers with an error or too late, or has no samples.
    """
    if not server:
        raise MetricError("expected the URL of a Prometheus server (option prometheus), found none")
    try:
        parts = urllib.parse.urlsplit(checked_url(server, "the option prometheus"))
    except ClusterError as error:
        raise MetricError(str(error)) from error
    answer: Future[bytes] = Future()

    def ask() -> None:
        try:
            answer.set_result(_fetch(parts, query))
        except Exception as error:  # noqa: BLE001, raised by result()
            answer.set_exception(error)

    threading.Thread(target=ask, name="prometheus", daemon=True).start()
    until = time.monotonic() + _SECONDS
    while not answer.done():
        if time.monotonic() >= until:
            raise MetricError(f"{server} has not answered {query} within {_SECONDS:g} s")
        pause(_LOOK)
    try:
        values = _values(answer.result())
    except TimeoutError as error:
        raise MetricError(f"{server} has not answered {query} within {_SECONDS:g} s") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise MetricError(f"{server} cannot be asked {query}: {error}") from error
    if not values:
        raise MetricError(f"{server}: {query} has no value: expected a number of each sample")
    return values


def _fetch(parts: urllib.parse.SplitResult, query: str) -> bytes:
    """Return the body of an answer with status 200."""
    query = urllib.parse.urlencode({"query": query})
    url = parts._replace(path=f"{parts.path.rstrip('/')}/api/v1/query", query=query)
    status, body = fetch.exchange(url, _SECONDS, _MOST_BYTES)
    if status != http.HTTPStatus.OK:
        raise http.client.HTTPException(f"expected the status 200, found {status}")
    return body


def _values(body: bytes) -> tuple[float, ...]:
    """Return the values of an answer, none where one of them is no number."""
    try:
        data: Any = json.loads(body)["data"]
        samples = [data["result"]] if data["resultType"] == "scalar" else None
        values = [sample["value"] for sample in data["result"]] if samples is None else samples
        numbers = tuple(float(number) for _, number in values)
    except (ArithmeticError, ValueError, KeyError, TypeError, RecursionError):
        return ()
    return () if any(map(math.isnan, numbers)) else numbers
