# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium: Debian's, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox",  # root, in CI
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, PHONE = (1200, 900), (360, 740)
DEADLINE_MS = 30_000


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser with a new profile; skip the test if there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright: see the extra 'test'")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS, headless=True)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(browser: Any, **options: Any) -> Iterator[Any]:
    """Yield a window that shares nothing with other windows."""
    context = browser.new_context(**options)
    context.set_default_timeout(DEADLINE_MS)
    try:
        yield context
    finally:
        context.close()
