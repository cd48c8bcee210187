# SPDX-License-Identifier: Apache-2.0
"""The settings of :class:`Options` as arguments of the command line."""

from __future__ import annotations

import argparse
import operator
import os
from collections.abc import Callable, Collection
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from container_update.cli.arguments import parser, values
from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options

_LONGEST_TEXT = 4096
"""Characters of a file with a secret text."""

ALL = tuple(option.name for option in fields(Options) if option.name != "render")
"""Who uses the command line names the packages, so that folders are rendered."""
DAILY = ("timeout", "grace_period", "retry_seconds", "history", "workers", "drain_seconds")
"""The settings that ``--help`` shows; the others are shown by ``--help-all``."""
READING = (
    *("retry_seconds", "request_timeout", "page_size", "watch_seconds"),
    *("journal_key", "insecure_skip_tls_verify"),
)
"""The settings of a command that only reads the cluster."""


def add_arguments(
    command: argparse.ArgumentParser,
    names: Collection[str] = ALL,
    *,
    shown: Collection[str] = DAILY,
    used: Collection[str] = ALL,
) -> None:
    """Add an argument for each of these settings, in a group of its own in the help.

    :param shown: those that ``--help`` shows.
    :param used: those that ``--help-all`` shows; the others are taken, so that one list of options
        fits all commands.
    """
    group = command.add_argument_group("settings")
    for option in fields(Options):
        if option.name in names:
            action = _add_argument(group, option)
            if option.name not in used:
                action.help = argparse.SUPPRESS
            elif option.name not in shown:
                parser.hide(action)
    command.add_argument("--help-all", action=parser.HelpAll, help="show all options, and exit")


def _add_argument(group: argparse._ArgumentGroup, option: Field[Any]) -> argparse.Action:
    name, default = "--" + option.name.replace("_", "-"), option.default
    text = option.metadata["help"].rstrip(".")
    text = text[0].lower() + text[1:].replace(" in seconds", "").replace(" in bytes", "")
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
        name, type=_checked(option, convert), default=default, metavar=metavar, help=help_text
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
        return values.seconds_of, "TIME", values.duration_text(default)
    if option.name.endswith("_bytes"):
        return values.bytes_of, "SIZE", values.size_text(int(str(default)))
    return int, "N", str(default)


def _checked(option: Field[Any], convert: Callable[[str], Any]) -> Callable[[str], Any]:
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
                is_time = convert is values.seconds_of
                shown = values.duration_text(bound) if is_time else f"{bound:g}"
                raise argparse.ArgumentTypeError(f"expected {words} {shown}, found {text}")
        return value

    return read_value


def _text_of(path: str) -> str:
    """Return the text of a file that only its owner can read.

    :raises ValueError: it is no such file.
    """
    if not path:  # the default
        return ""
    try:
        with Path(path).open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise ValueError(
                    f"{path}: expected a file that only its owner can read: chmod 600 {path}"
                )
            text = file.read(_LONGEST_TEXT).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected a file with a text: {error}") from None
    if not text:
        raise ValueError(f"{path}: expected a text, and it is empty")
    return text


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
