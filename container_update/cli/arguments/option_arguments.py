# SPDX-License-Identifier: Apache-2.0
"""The settings of :class:`Options` as arguments of the command line, with durations and sizes as
people write them."""

from __future__ import annotations

import argparse
import operator
import re
from collections.abc import Callable, Collection
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from container_update.cli.arguments import parser
from container_update.cluster import journal_key
from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options, size_text

ALL = tuple(option.name for option in fields(Options) if option.name != "render")
"""Who uses the command line names the packages, so that folders are rendered."""
READING = (
    *("retry_seconds", "request_timeout", "page_size", "watch_seconds"),
    *("journal_key", "no_journal_key", "insecure_skip_tls_verify"),
)
"""The settings of a command that only reads the cluster."""


def add_arguments(
    command: argparse.ArgumentParser,
    names: Collection[str] = ALL,
    *,
    used: Collection[str] = ALL,
) -> None:
    """Add an argument for each of these settings, in a group of its own in ``--help-all``.

    :param used: those that ``--help-all`` shows; the others are taken, so that one list of options
        fits all commands.
    """
    group = command.add_argument_group("settings")
    for option in fields(Options):
        if option.name in names:
            action = _add_argument(group, option)
            if option.name not in used:
                action.help = argparse.SUPPRESS
            else:
                parser.hide(action)
    command.add_argument("--help-all", action=parser.HelpAll,
        help="show the settings and all other options, and exit")  # fmt: skip


def _add_argument(group: argparse._ArgumentGroup, option: Field[Any]) -> argparse.Action:
    name, default = "--" + option.name.replace("_", "-"), option.default
    text = option.metadata["help"].rstrip(".")
    first = text[0] if text[:2].isupper() else text[0].lower()  # "URL of ..." stays
    text = first + text[1:].replace(" in seconds", "").replace(" in bytes", "")
    if option.metadata.get("secret"):
        text = f"a file with {text}"
    if default is False:
        return group.add_argument(name, action="store_true", help=text)
    if choices := option.metadata["choices"]:
        help_text = f"{text} (default: {default})"
        return group.add_argument(name, choices=choices, default=default, help=help_text)
    convert, metavar, words = _kind(option)
    help_text = f"{text} (default: {words})"
    return group.add_argument(
        name,
        type=_reader_with_bounds(option, convert),
        default=default,
        metavar=metavar,
        help=help_text,
    )


def _kind(option: Field[Any]) -> tuple[Callable[[str], Any], str, str]:
    """Return how a setting is read, what stands for its value in the help, and its default."""
    default = option.default
    if isinstance(default, tuple):
        return _split, "A,B", ", ".join(default) or "none"
    if option.metadata.get("secret"):
        return _text_of, "FILE", "none"
    if isinstance(default, str):
        return str, "URL" if option.name == "prometheus" else "FILE", default or "none"
    if isinstance(default, float):
        return seconds_of, "TIME", duration_text(default)
    if option.name.endswith("_bytes"):
        return bytes_of, "SIZE", size_text(int(str(default)))
    return int, "N", str(default)


def _reader_with_bounds(option: Field[Any], convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return what reads a setting and compares it with its bounds."""
    bounds = (
        ("at least", option.metadata["min"], operator.lt),
        ("at most", option.metadata["max"], operator.gt),
    )

    def read_value(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError as error:
            message = f'expected a number, found "{text}"' if convert is int else str(error)
            raise argparse.ArgumentTypeError(message) from None
        for words, bound, is_beyond in bounds:
            if bound is not None and is_beyond(value, bound):
                is_time = convert is seconds_of
                shown = duration_text(bound) if is_time else f"{bound:g}"
                raise argparse.ArgumentTypeError(f"expected {words} {shown}, found {text}")
        return value

    return read_value


def _text_of(path: str) -> str:
    """Return the text of a file that only its owner can read; ValueError for another file."""
    if not path:  # the default
        return ""
    try:
        return journal_key.read(Path(path))
    except ContainerUpdateError as error:
        raise ValueError(str(error)) from None


def _split(text: str) -> tuple[str, ...]:
    """Split the items of a list at its commas."""
    return tuple(filter(None, text.split(",")))


def read(parsed: argparse.Namespace) -> Options:
    """Return the settings with the values of the arguments; those without one have their default.

    :raises ContainerUpdateError: a value is below its minimum.
    """
    try:
        return Options(
            render=True, **{name: getattr(parsed, name) for name in ALL if name in parsed}
        )
    except ValueError as error:
        raise ContainerUpdateError(str(error)) from error


# --- durations and sizes as people write them ---------------------------------------------------

_TIMES = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_TIME = re.compile("".join(f"(?:({_NUMBER}){unit}(?![a-z]))?" for unit in _TIMES))
_SIZES = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "kB": 1000, "MB": 1000**2, "GB": 1000**3}
_SIZE = re.compile(rf"([0-9]+)\s*({'|'.join(_SIZES)})")


def seconds_of(text: str) -> float:
    """Return the seconds of a duration; a number alone is seconds.

    >>> seconds_of("1h30m"), seconds_of("500ms"), seconds_of("90")
    (5400.0, 0.5, 90.0)

    :raises ValueError: it is none.
    """
    if re.fullmatch(f"-?{_NUMBER}", text):
        return float(text)
    match = _TIME.fullmatch(text)
    if not text or match is None:
        raise ValueError(
            f'expected a duration such as 5m, 1h30m, 500ms or a number of seconds, found "{text}"'
        )
    parts = zip(match.groups(), _TIMES.values(), strict=True)
    return sum(float(number) * unit for number, unit in parts if number)


def bytes_of(text: str) -> int:
    """Return the bytes of a size; a number alone is bytes.

    >>> bytes_of("8MiB"), bytes_of("100")
    (8388608, 100)

    :raises ValueError: it is none.
    """
    match = _SIZE.fullmatch(text)
    if match:
        return int(match[1]) * _SIZES[match[2]]
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f'expected a size such as 8MiB, 500kB or a number of bytes, found "{text}"'
        ) from None


def duration_text(seconds: float) -> str:
    """Return a duration in its largest units.

    >>> duration_text(5400), duration_text(0.1), duration_text(0)
    ('1h30m', '100ms', '0s')
    """
    text, left = "", seconds
    for unit, size in _TIMES.items():
        number = round(left / size, 6) if unit == "ms" else left // size
        if number:
            text += f"{number:g}{unit}"
            left -= number * size
    return text or "0s"
