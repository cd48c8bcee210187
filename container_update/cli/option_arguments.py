"""The settings of an update as arguments of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any

from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options

ALL = tuple(option.name for option in fields(Options))


def add_arguments(command: argparse.ArgumentParser, names: Collection[str] = ALL) -> None:
    """One argument for each option of these names."""
    for option in fields(Options):
        if option.name not in names:
            continue
        name = "--" + option.name.replace("_", "-")
        text = option.metadata["help"].rstrip(".")
        if option.default is False:
            command.add_argument(name, action="store_true", help=text)
            continue
        is_list = isinstance(option.default, tuple)
        kind: Callable[[str], Any] = _listed if is_list else type(option.default)
        command.add_argument(
            name, type=kind, default=option.default, metavar="A,B" if is_list else "N",
            help=f"{text} (default: %(default)s)",
        )  # fmt: skip


def _listed(text: str) -> tuple[str, ...]:
    """An option that is a list, written with commas."""
    return tuple(filter(None, text.split(",")))


def read(parsed: argparse.Namespace, names: Collection[str] = ALL) -> Options:
    """What the arguments say of the options of these names; the others have their defaults.

    :raises ContainerUpdateError: a value is out of its bounds.
    """
    try:
        return Options(**{name: getattr(parsed, name) for name in names})
    except ValueError as error:
        raise ContainerUpdateError(str(error)) from error
