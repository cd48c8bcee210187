# SPDX-License-Identifier: Apache-2.0
"""``developers/promises.rst`` is the table that ``tests/functional/test_promises.py`` runs.

``python doc/promises.py`` makes it anew.
"""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from typing import Any

import pytest

from tests.functional import verbs
from tests.project.test_checks import ROOT


@pytest.fixture(scope="module")
def script() -> Mapping[str, Any]:
    """What the script defines."""
    return runpy.run_path(str(ROOT / "doc/promises.py"))


def test_the_page_is_the_table_of_today(script: Mapping[str, Any]) -> None:
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"]()


def test_every_reason_is_of_a_promise() -> None:
    named = {promise for verb in verbs.VERBS for promise in verb.reasons}
    assert named <= verbs.PROMISES.keys()
