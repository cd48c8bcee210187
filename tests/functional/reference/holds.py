# SPDX-License-Identifier: Apache-2.0
"""What holds of the reference CNF after any update, interrupted or not."""

from __future__ import annotations

from tests.functional.promise import Checker, Expected
from tests.functional.reference_update import OLD


def assert_is(checker: Checker, expected: Expected) -> None:
    """Check that the CNF is entirely as expected and nothing of an update is left."""
    differences = checker.differences(expected, as_before=expected is OLD)
    assert differences == [], differences
    assert checker.left_over() == []
