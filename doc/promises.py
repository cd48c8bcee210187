# SPDX-License-Identifier: Apache-2.0
"""Makes the page of the promises: ``python doc/promises.py``, at the repository's root.

It is the table of ``tests/functional/verbs.py`` and of the one for Heat in its folder ``stacks``:
every "yes" is a test.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.functional.stacks import verbs as stack_verbs  # noqa: E402
from tests.functional.verbs import PROMISES, VERBS  # noqa: E402

PAGE = ROOT / "doc/source/developers/promises.rst"
BEGIN = """\
=======================
What each verb promises
=======================

.. Made by ``python doc/promises.py`` from ``verbs.py`` in ``tests/functional`` and in its folder
   ``stacks``: change these, not this.

Whatever is done to a VNF, on Kubernetes or on Heat, goes one way, ``operate`` in
``container_update/engine/run.py``, so that every verb keeps the same promises. :doc:`reliability`
and :doc:`heat` explain them. Each "yes" is a test in ``test_promises.py``, beside either
``verbs.py``, the same one for all verbs. A number is the reason why there is none.
"""
ROWS = {verb.name: verb.reasons for verb in (*VERBS, *stack_verbs.VERBS)}
"""Verb to the reasons of its cells that are not a yes."""
REASONS = list(
    dict.fromkeys(row[name] for row in ROWS.values() for name in PROMISES if name in row)
)
"""In the order of their numbers."""


def page() -> str:
    """Return the text of the page."""
    return "\n".join((BEGIN, *_promises(), *_table(), *_reasons()))


def _promises() -> Iterator[str]:
    for name, text in PROMISES.items():
        yield name
        yield from _filled(text, "    ")
    yield ""


def _table() -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", "   :stub-columns: 1", "")
    yield from _row(["verb", *PROMISES])
    for verb, reasons in ROWS.items():
        yield from _row([verb, *(_cell(reasons.get(name)) for name in PROMISES)])
    yield ""


def _row(cells: list[str]) -> Iterator[str]:
    first, *others = cells
    yield f"   * - {first}"
    yield from (f"     - {cell}" for cell in others)


def _cell(reason: str | None) -> str:
    return "yes" if reason is None else f"[{REASONS.index(reason) + 1}]_"


def _reasons() -> Iterator[str]:
    for number, reason in enumerate(REASONS, start=1):
        yield f".. [{number}]"
        yield from _filled(reason, "   ")
    yield ""


def _filled(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        100,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
