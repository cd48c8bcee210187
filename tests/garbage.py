# SPDX-License-Identifier: Apache-2.0
"""Python's search for garbage, kept to what the tests make."""

from __future__ import annotations

import gc

_THRESHOLDS = (20_000, 20, 20)


def leave_modules_alone() -> None:
    """Have collections skip all that exists now: modules, and the tests themselves.

    It stays for as long as the process runs, and each full collection would go through all of it:
    that took a tenth of the processor time of all tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
