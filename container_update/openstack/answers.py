# SPDX-License-Identifier: Apache-2.0
"""Answers of Keystone and Heat, which may be anybody's: read within limits."""

from __future__ import annotations

from functools import partial

import requests
import urllib3

from container_update.cluster.responses import read

MOST_BYTES = 64 * 1024 * 1024
"""Of an answer: Heat lists all resources of a stack in one."""


def limit(session: requests.Session, seconds: float) -> None:
    """Keep no answer of a session that is larger than :data:`MOST_BYTES`.

    :param seconds: how long an answer may take from its beginning to its end.
    """
    # nothing is unpacked, so that what is received is what is kept
    session.headers["Accept-Encoding"] = "identity"
    session.hooks["response"].append(partial(_read, seconds))


def _read(seconds: float, answer: requests.Response, **_: object) -> None:
    """Read an answer before requests does."""
    try:
        body = read(str(answer.url), answer.raw, seconds, MOST_BYTES).data
    except urllib3.exceptions.HTTPError as error:
        raise requests.ConnectionError(error) from error
    answer._content, answer._content_consumed = body, True
