# SPDX-License-Identifier: Apache-2.0
"""Whether the functional tests run on a real API server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

REAL = os.environ.get("CONTAINER_UPDATE_KUBECONFIG")
"""The administrator's kubeconfig of a real API server; None: on the embedded cluster."""

SETTLE_SECONDS = 60.0 if REAL else 10.0
"""How long what has been asked for may take to become true: real controllers and kubelets work in
steps of seconds."""


def one_of(every: int, rows: Iterable[Any], *, everywhere: bool = False) -> list[Any]:
    """Return the rows of a table: on a real cluster, where each one takes many seconds, one of so
    many is in the default circle, and the others are in the thorough one.

    :param everywhere: on the embedded cluster too.
    """
    return [
        row
        if not (REAL or everywhere) or number % every == 0
        else pytest.param(*(row if isinstance(row, tuple) else [row]), marks=pytest.mark.thorough)
        for number, row in enumerate(rows)
    ]
