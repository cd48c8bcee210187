# SPDX-License-Identifier: Apache-2.0
"""Durations and sizes as people write them."""

from __future__ import annotations

import pytest

from container_update.cli.arguments.option_arguments import (
    bytes_of,
    duration_text,
    seconds_of,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "seconds", "again"),
    [
        ("90", 90, "1m30s"),
        ("0.5", 0.5, "500ms"),
        ("5m", 300, "5m"),
        ("1h30m", 5400, "1h30m"),
        ("2d", 172800, "2d"),
        ("1.5s", 1.5, "1s500ms"),
        ("0.5m", 30, "30s"),
        ("500ms", 0.5, "500ms"),
        ("0", 0, "0s"),
        ("-1", -1, None),
    ],
)
def test_a_duration_has_units_or_is_seconds(text: str, seconds: float, again: str | None) -> None:
    assert seconds_of(text) == pytest.approx(seconds)
    if again is not None:
        assert duration_text(seconds) == again


@pytest.mark.parametrize("text", ["", "5x", "m", "5 minutes", "1m1h", "ten", "nan", "1e3", "-1s"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=f'duration such as 5m.*found "{text}"'):
        seconds_of(text)


@pytest.mark.parametrize(
    ("text", "size", "again"),
    [
        ("8MiB", 8 * 1024**2, "8MiB"),
        ("1 GiB", 1024**3, "1GiB"),
        ("500kB", 500_000, "500000 bytes"),
        ("1024", 1024, "1KiB"),
        ("100", 100, "100 bytes"),
    ],
)
def test_a_size_has_a_unit_or_is_bytes(text: str, size: int, again: str) -> None:
    assert bytes_of(text) == size
    assert size_text(size) == again


def test_what_is_no_size_is_named() -> None:
    with pytest.raises(ValueError, match=r'size such as 8MiB.*found "8 apples"'):
        bytes_of("8 apples")
