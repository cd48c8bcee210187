# SPDX-License-Identifier: Apache-2.0
"""The parser of a command: its errors, its two helps, its exit status for wrong usage, and where
else the values of its options come from.

argparse stays: it is in the standard library, and all that is missing is here.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from oslo_config import iniparser

from container_update.cluster.private_file import user_folder
from container_update.model.errors import ContainerUpdateError, NextStep, PackageError
from container_update.model.options import GROUP, Options

USAGE = 64
"""The exit status for wrong usage (EX_USAGE): 2 means "nothing to do" here."""


_OF_WRITING = {"--dry-run", "-y", "--yes", "--install", "--leave-on-signal"}
"""Options that a command has no use for which only plans."""
_WRITING = ("apply", "install", "change")
_OF_OTHERS = {
    "-f": "name the folder or the file itself, - for standard input",
    "--filename": "name the folder or the file itself, - for standard input",
    "--wait": "the command always waits; --timeout says how long",
    "--set": "render the chart first: helm template NAME CHART --set ... > NEW/all.yaml",
    "--prune": "use container-update change --upgrade-type RollingUpdate, which deletes what the"
    " new package does not have",
}
"""Options of kubectl and Helm, by which those who know them look for something we have."""


class UsageError(ContainerUpdateError):
    """The options do not say what to do, which no single one of them shows."""

    exit_status = USAGE
    next_step = NextStep.FIX_REQUEST


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Writes the value of an option once, after all its names: ``-n, --namespace NAME``."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class CommandParser(argparse.ArgumentParser):
    """A parser that takes no abbreviations, which would break scripts when an option is added.

    :param configured: options get their defaults from the environment and the configuration file.
    """

    def __init__(self, *, configured: bool = False, **how: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": _Formatter, **how})
        self.register("type", int, _whole_number)
        self._configured = configured

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments of this command, with the defaults that are configured."""
        arguments = list(sys.argv[1:] if args is None else args)
        try:
            lists = configure(self, arguments) if self._configured else {}
        except PackageError as error:
            self.error(str(error))
        parsed, extras = super().parse_known_args(arguments, namespace)
        if self.get_default("run") is not None and extras:
            self._refuse(extras, arguments)
        for name, values in lists.items():
            if not getattr(parsed, name):  # an option that can be repeated replaces, adds nothing
                setattr(parsed, name, values)
        return parsed, extras

    def _refuse(self, unknown: Sequence[str], arguments: Sequence[str]) -> NoReturn:
        name = unknown[0].partition("=")[0]
        if name == "--dry-run" and (command := self._plan_command(arguments)):
            self.error(f"there is no option {name}: use {command}")
        words = self.prog.split()
        commands = _WRITING if name == "--wait" else (*_WRITING, "plan")
        if name in _OF_OTHERS and words[-1] in commands and "heat" not in words:
            self.error(f"there is no option {name}: {_OF_OTHERS[name]}")
        if not name.startswith("-"):
            self.error(f'found "{name}", which is one argument too many')
        known = [text for action in self._actions for text in action.option_strings]
        self.error(f"there is no option {name}{_nearest(name, known)}")

    def _plan_command(self, arguments: Sequence[str]) -> str:
        """Return the command that shows what this one would do; '' where none does."""
        words = [word for word in arguments if word.partition("=")[0] not in _OF_WRITING]
        named = {name for action in self._actions for name in action.option_strings}
        if "--plan" in named:
            return shlex.join([*self.prog.split(), *words, "--plan"])
        program, _, verb = self.prog.rpartition(" ")
        return shlex.join([*program.split(), "plan", *words]) if verb in {"apply", "plan"} else ""

    def format_help(self) -> str:
        """Return the help, whose usage does not list each option again."""
        if self.get_default("run") is not None:
            self.usage = self.synopsis()
        return super().format_help()

    def synopsis(self) -> str:
        """Return how the command is written, without each of its options."""
        shown = (each for each in self._actions if each.help != argparse.SUPPRESS)
        words = [_as_argument(each) for each in shown if not each.option_strings]
        return self.usage or " ".join([self.prog, "[OPTION ...]", *words])

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action,
                f'expected one of {", ".join(choices)}; found "{value}"'
                f"{_nearest(str(value), choices)}",
            )

    def error(self, message: str) -> NoReturn:
        """End with the status for wrong usage."""
        text = message.removeprefix("argument ")
        self.exit(USAGE, f"{self.prog}: {text}\n{self.prog} --help shows the arguments\n")


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'expected a number, found "{text}"') from None


def _as_argument(action: argparse.Action) -> str:
    choices = action.choices and f"{{{','.join(action.choices)}}}"
    name = str(action.metavar or choices or action.dest)
    return {"?": f"[{name}]", "*": f"[{name} ...]"}.get(str(action.nargs), name)


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=2)
    return f": did you mean {' or '.join(near)}?" if near else ""


class HelpAll(argparse.Action):
    """Show the help with the options that ``--help`` leaves out, and end."""

    def __init__(self, option_strings: Sequence[str], dest: str, **how: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **{"default": argparse.SUPPRESS, **how})

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002
        values: object,  # noqa: ARG002
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """See the class."""
        for action in parser._actions:
            action.help = getattr(action, "full_help", action.help)
        parser.print_help()
        parser.exit()


def hide(action: argparse.Action) -> None:
    """Leave an option out of ``--help``; ``--help-all`` shows it."""
    action.full_help = action.help  # type: ignore[attr-defined]
    action.help = argparse.SUPPRESS


def group(
    command: argparse.ArgumentParser, choices: Any, groups: Mapping[str, Sequence[str]]
) -> None:
    """List the commands below a command in groups, by title, in its help."""
    choices.help = argparse.SUPPRESS
    helps = {action.dest: action for action in choices._choices_actions}
    listed = {name for names in groups.values() for name in names}
    plugins = [name for name in helps if name not in listed]
    for title, names in {**groups, "of plugins": plugins}.items():
        command.add_argument_group(title)._group_actions += [
            helps[name] for name in names if name in helps
        ]


def verbosity(arguments: Sequence[str]) -> tuple[list[str], int]:
    """Return the arguments without ``-v`` and ``--verbose``, and how often they were there.

    They may be anywhere, before the command too.
    """
    rest: list[str] = []
    count = 0
    for position, text in enumerate(arguments):
        if text == "--":
            return [*rest, *arguments[position:]], count
        if text == "--verbose":
            count += 1
        elif text.startswith("-v") and not text.strip("v-"):
            count += len(text) - 1
        else:
            rest.append(text)
    return rest, count


_ANYWHERE = ("-n", "--namespace", "--context", "--kubeconfig", "--instance-id")


def command_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the command before the options that say where it works.

    They may be before the command, as for kubectl and Helm.
    """
    rest, where = list(arguments), list[str]()
    while rest and rest[0].partition("=")[0] in _ANYWHERE:
        taken = 1 if "=" in rest[0] else 2
        where, rest = [*where, *rest[:taken]], rest[taken:]
    words = [*itertools.takewhile(lambda word: not word.startswith("-"), rest)]
    return [*words, *where, *rest[len(words) :]] if words else rest


# --- values from the environment or from the configuration file ---------------------------------

PREFIX = "CONTAINER_UPDATE_"
"""Of the environment variables; the option ``--os-cloud`` is ``CONTAINER_UPDATE_OS_CLOUD``."""
CONFIG_FILE = "--config-file"
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def default_file() -> Path:
    """Return where the configuration file is if no argument names one."""
    return user_folder() / "container-update.conf"


def add_argument(command: argparse.ArgumentParser) -> argparse.Action:
    """Add the argument that names the configuration file; return it."""
    return command.add_argument(CONFIG_FILE, metavar="FILE",
        help=f"a file with default values in its section [{GROUP}]: namespace = core "
        "(default: ~/.config/container-update/container-update.conf)")  # fmt: skip


def configure(
    command: argparse.ArgumentParser, arguments: Sequence[str]
) -> Mapping[str, list[str]]:
    """Give the options of a command the default values that are configured: an argument is worth
    more than an environment variable, that more than the file, that more than the default.

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
    """Our section of a file in oslo.config's syntax, whose own parser takes 0.1 seconds to load."""

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


def has_file(arguments: Sequence[str]) -> bool:
    """Tell whether there is a configuration file for these arguments."""
    return _named_file(arguments) is not None or os.path.exists(default_file())


def _named_file(arguments: Sequence[str]) -> str | None:
    named = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    named.add_argument(CONFIG_FILE, nargs="?")  # the command says that a value is missing
    file: str | None = named.parse_known_args(arguments)[0].config_file
    return file


def _line(text: str, name: str) -> int:
    lines = text.splitlines()
    names = (line.partition("=")[0].partition(":")[0].strip().lower() for line in lines)
    return next((number for number, each in enumerate(names, 1) if each == name), 1)


_KNOWN = {option.name for option in fields(Options)}
"""The options that a file may set; those of the commands are added when they are known."""


def know(command: argparse.ArgumentParser) -> None:
    """Accept the options of a command in the file, for whichever command it is read."""
    _KNOWN.update(action.dest for action in _options(command))
