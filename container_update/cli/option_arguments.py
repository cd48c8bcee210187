"""The options of the configuration file as arguments of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import Field, fields
from typing import Any

from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options

ALL = tuple(option.name for option in fields(Options))


def add_arguments(command: argparse.ArgumentParser, names: Collection[str] = ALL) -> None:
    """Add an argument for each of these options, in a group of its own in the help."""
    group = command.add_argument_group("settings")
    for option in fields(Options):
        if option.name in names:
            _add_argument(group, option)


def _add_argument(group: Any, option: Field[Any]) -> None:
    name, default = "--" + option.name.replace("_", "-"), option.default
    text = option.metadata["help"].rstrip(".")
    text = text[0].lower() + text[1:]
    if default is False:
        group.add_argument(name, action="store_true", help=text)
    elif isinstance(default, tuple):
        help_text = f"{text} (default: {','.join(default) or 'none'})"
        group.add_argument(name, type=_split, default=default, metavar="A,B", help=help_text)
    else:
        help_text = f"{text} (default: {default:.12g})"
        group.add_argument(name, type=type(default), default=default, metavar="N", help=help_text)


def _split(text: str) -> tuple[str, ...]:
    """Split the items of a list at its commas."""
    return tuple(filter(None, text.split(",")))


def read(parsed: argparse.Namespace, names: Collection[str] = ALL) -> Options:
    """Return the options with the values of the arguments.

    :param names: the options that have arguments; the others get their defaults.
    :raises ContainerUpdateError: a value is below its minimum.
    """
    try:
        return Options(**{name: getattr(parsed, name) for name in names})
    except ValueError as error:
        raise ContainerUpdateError(str(error)) from error
