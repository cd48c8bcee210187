# SPDX-License-Identifier: Apache-2.0
"""The parser of a command: its errors, its two helps, and its exit status for wrong usage.

argparse stays: it is in the standard library, and all that is missing is here.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from container_update.cli.arguments import sources
from container_update.model.errors import ContainerUpdateError, NextStep, PackageError

USAGE = 64
"""The exit status for wrong usage (EX_USAGE): 2 means "nothing to do" here."""


class UsageError(ContainerUpdateError):
    """The options do not say what to do, which no single one of them shows."""

    exit_status = USAGE
    next_step = NextStep.FIX_REQUEST


class CommandParser(argparse.ArgumentParser):
    """A parser that takes no abbreviations, which would break scripts when an option is added.

    :param configured: options get their defaults from the environment and the configuration file.
    """

    def __init__(self, *, configured: bool = False, **how: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"allow_abbrev": False, "formatter_class": formatter, **how})
        self._configured = configured

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments of this command, with the defaults that are configured."""
        arguments = list(sys.argv[1:] if args is None else args)
        try:
            lists = sources.configure(self, arguments) if self._configured else {}
        except PackageError as error:
            self.error(str(error))
        parsed, extras = super().parse_known_args(arguments, namespace)
        if self.get_default("run") is not None and extras:
            self._refuse(extras)
        for name, values in lists.items():
            if not getattr(parsed, name):  # an option that can be repeated replaces, adds nothing
                setattr(parsed, name, values)
        return parsed, extras

    def _refuse(self, unknown: Sequence[str]) -> NoReturn:
        name = unknown[0].partition("=")[0]
        if not name.startswith("-"):
            self.error(f'found "{name}", which is one argument too many')
        known = [text for action in self._actions for text in action.option_strings]
        self.error(f"there is no option {name}{_nearest(name, known)}")

    def format_help(self) -> str:
        """Return the help, whose usage does not list each option again."""
        if self.usage is None and self.get_default("run") is not None:
            words = [_as_argument(each) for each in self._actions if not each.option_strings]
            self.usage = " ".join(["%(prog)s [OPTION ...]", *words])
        return super().format_help()

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


def _as_argument(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    return f"[{name}]" if action.nargs in ("?", "*") else name


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
    """List the commands below a command in groups in its help.

    :param choices: the subparsers of argparse.
    :param groups: the title of each, and the names in it.
    """
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
