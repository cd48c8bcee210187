"""What holds of the reference CNF after whatever happened to its update."""

from __future__ import annotations

from tests.functional.promise import Checker, Expected
from tests.functional.reference_update import OLD


def assert_is(checker: Checker, expected: Expected) -> None:
    """The CNF is as expected, wholly, and nothing of an update is left in its namespace."""
    assert checker.differences(expected, as_before=expected is OLD) == []
    assert checker.left_over() == []
