# SPDX-License-Identifier: Apache-2.0
"""Asks a Prometheus server for the value of a query. The operator names the server, no request."""

from __future__ import annotations

import http.client
import json
import math
import urllib.parse
import urllib.request
from typing import Any

_SECONDS = 10.0
_MOST_BYTES = 1024 * 1024


class MetricError(Exception):
    """The server gives no value that can be used; the message says why."""


def measured(server: str, query: str) -> tuple[float, ...]:
    """Return the value of a query: one, or that of each sample of a vector; NaN is none of them.

    Source: Prometheus documentation, "HTTP API", instant queries.

    :param server: its URL, as ``http://prometheus.monitoring:9090``.
    :raises MetricError: it cannot be asked, answers with an error, or has no samples.
    """
    if not server.startswith(("http://", "https://")):
        raise MetricError("expected the URL of a Prometheus server (option prometheus), found none")
    url = f"{server.rstrip('/')}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310, checked above
            body = answer.read(_MOST_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise MetricError(f"{server} cannot be asked {query}: {error}") from error
    values = _values(body)
    if not values:
        raise MetricError(f"{server}: {query} has no value: expected a number of each sample")
    return values


def _values(body: bytes) -> tuple[float, ...]:
    """Return the values of an answer, none where one of them is no number."""
    try:
        data: Any = json.loads(body)["data"]
        samples = [data["result"]] if data["resultType"] == "scalar" else None
        values = [sample["value"] for sample in data["result"]] if samples is None else samples
        numbers = tuple(float(number) for _, number in values)
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    return () if any(map(math.isnan, numbers)) else numbers
