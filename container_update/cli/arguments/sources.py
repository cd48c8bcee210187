# SPDX-License-Identifier: Apache-2.0
"""Values of options that come from the environment or from the configuration file.

An argument is worth more than an environment variable, that more than the file, that more than the
default.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from oslo_config import iniparser

from container_update.model.errors import PackageError
from container_update.model.options import GROUP, Options

PREFIX = "CONTAINER_UPDATE_"
"""Of the environment variables; the option ``--os-cloud`` is ``CONTAINER_UPDATE_OS_CLOUD``."""
CONFIG_FILE = "--config-file"
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def default_file() -> Path:
    """Return where the configuration file is if no argument names one."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base, "container-update", "container-update.conf").expanduser()


def add_argument(command: argparse.ArgumentParser) -> argparse.Action:
    """Add the argument that names the configuration file; return it."""
    return command.add_argument(CONFIG_FILE, metavar="FILE",
        help=f"a file with default values in its section [{GROUP}]: namespace = core "
        "(default: ~/.config/container-update/container-update.conf)")  # fmt: skip


def configure(
    command: argparse.ArgumentParser, arguments: Sequence[str]
) -> Mapping[str, list[str]]:
    """Give the options of a command the default values that are configured.

    :returns: the values of options that can be repeated, by name.
    :raises PackageError: a value, or the file, is wrong.
    """
    lists: dict[str, list[str]] = {}
    file = _read(arguments)
    for action in _options(command):
        for source, text in _values(action.dest, file):
            value = _value(command, action, source, text)
            if isinstance(action, argparse._AppendAction):
                lists[action.dest] = value
            else:
                action.default = value
                command.set_defaults(**{action.dest: value})
            break
    return lists


def _options(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in command._actions:
        if action.option_strings and action.dest not in {"help", "help_all", "config_file"}:
            yield action


def _values(name: str, file: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield where an option has a value, and the value; what counts most comes first."""
    variable = f"{PREFIX}{name.upper()}"
    if text := os.environ.get(variable):
        yield f"environment variable {variable}", text
    if name in file:
        yield file[name]


def _value(
    command: argparse.ArgumentParser, action: argparse.Action, source: str, text: str
) -> Any:
    if action.nargs == 0:
        if text.lower() not in _WORDS:
            raise PackageError(f'{source}: expected true or false, found "{text}"')
        return _WORDS[text.lower()]
    is_list = isinstance(action, argparse._AppendAction)
    texts = [part.strip() for part in text.split(",") if part.strip()] if is_list else [text]
    try:
        values = [command._get_value(action, each) for each in texts]
        for value in values:
            command._check_value(action, value)
    except argparse.ArgumentError as error:
        raise PackageError(f"{source}: {error.message}") from None
    return values if is_list else values[0]


class _Section(iniparser.BaseParser):
    """The values of our section of a file, in oslo.config's syntax. Its ``cfg``, which has such a
    parser too, takes 0.1 seconds to load."""

    def __init__(self) -> None:
        super().__init__()
        self._name = ""
        self.values: dict[str, str] = {}

    def new_section(self, section: str) -> None:
        """Remember which section the values below are in."""
        self._name = section

    def assignment(self, key: str, value: list[str]) -> None:
        """Keep a value of our section."""
        if not self._name:
            raise iniparser.ParseError("expected a section before the first value", self.lineno, "")
        if self._name == GROUP:
            self.values[key] = "\n".join(value)


def _read(arguments: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """Return the values of the file by name, each with its place."""
    named = _named_file(arguments)
    path = Path(named) if named else default_file()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        if named:
            raise PackageError(f"{CONFIG_FILE}: {path}: there is no such file") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise PackageError(f"{path}: the configuration file cannot be read: {error}") from None
    parser = _Section()
    try:
        parser.parse(text.splitlines())
    except iniparser.ParseError as error:
        raise PackageError(f"{path}:{error.lineno}: {error.msg}") from None
    section = parser.values
    places = {name: _line(text, name) for name in section}
    unknown = [name for name in section if name not in _KNOWN]
    if unknown:
        name = unknown[0]
        raise PackageError(f"{path}:{places[name]}: there is no option {name} in [{GROUP}]")
    return {name: (f"{path}:{places[name]}: {name}", value) for name, value in section.items()}


def _named_file(arguments: Sequence[str]) -> str | None:
    for position, text in enumerate(arguments):
        if text == CONFIG_FILE and position + 1 < len(arguments):
            return arguments[position + 1]
        if text.startswith(f"{CONFIG_FILE}="):
            return text.partition("=")[2]
    return None


def _line(text: str, name: str) -> int:
    lines = text.splitlines()
    names = (line.partition("=")[0].partition(":")[0].strip().lower() for line in lines)
    return next((number for number, each in enumerate(names, 1) if each == name), 1)


_KNOWN = {option.name for option in fields(Options)}
"""The options that a file may set; those of the commands are added when they are known."""


def know(command: argparse.ArgumentParser) -> None:
    """Accept the options of a command in the file, for whichever command it is read."""
    _KNOWN.update(action.dest for action in _options(command))
