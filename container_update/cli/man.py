# SPDX-License-Identifier: Apache-2.0
"""The man page of all commands, from their parsers; ``setup.py`` puts it into the wheel."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from container_update.cli.arguments import option_arguments
from container_update.cli.main import root_parser
from container_update.model import errors

_NOT_LISTED = {"help", "help_all", "verbose", "version"}
"""Options of every command, or of none."""


def page() -> str:
    """Return the page, in the macros of man(7)."""
    root = root_parser()
    lines = [
        f'.TH "{root.prog.upper()}" 1',
        *(".SH NAME", rf"{_plain(root.prog)} \- {_plain(root.description)}"),
        *(".SH SYNOPSIS", rf"\fB{_plain(root.prog)}\fR [OPTION ...] COMMAND ..."),
    ]
    below = [command for command, _ in commands(root)]
    for command in below:
        lines += [f'.SH "{_plain(command.prog)}"', _plain(command.description)]
        for action in list_arguments(command):
            if action.dest not in option_arguments.ALL:
                lines += _argument(action)
        examples = map(_plain, (command.epilog or "").splitlines())
        lines += [".PP", ".nf", *examples, ".fi"]
    used = (action for command in below for action in command._actions)
    every = {action.dest: action for action in used if help_of(action) != argparse.SUPPRESS}
    lines += [".SH SETTINGS", _plain("Of all commands that use them; --help-all lists them.")]
    for name in option_arguments.ALL:
        lines += _argument(every[name])
    lines += [".SH EXIT STATUS", ".nf", *map(_plain, _statuses()), ".fi"]
    return "\n".join(lines) + "\n"


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Yield the parser of each command below another, and its help in the list of commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:  # without an old name, which has no help
                command = action.choices[choice.dest]
                if command.get_default("run") is None:
                    yield from commands(command)
                elif choice.help != argparse.SUPPRESS:
                    yield command, choice.help or ""


def list_arguments(command: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments of a command, what is no option first."""
    shown = (action for action in command._actions if help_of(action) != argparse.SUPPRESS)
    actions = [action for action in shown if action.dest not in _NOT_LISTED]
    return sorted(actions, key=lambda action: bool(action.option_strings))


def names_of(action: argparse.Action) -> str:
    """Return how an argument is written, with what stands for its value."""
    value = value_of(action)
    return ", ".join(f"{name} {value}".rstrip() for name in action.option_strings) or value


def value_of(action: argparse.Action) -> str:
    """Return what stands for the value of an argument, '' for an option that has none."""
    if action.nargs == 0:
        return ""
    return str(action.metavar or f"{{{','.join(map(str, action.choices or ()))}}}")


def help_of(action: argparse.Action) -> str:
    """Return the whole help of an argument."""
    text: str = getattr(action, "full_help", action.help) or ""
    return text % vars(action)


def _argument(action: argparse.Action) -> Sequence[str]:
    return ".TP", rf"\fB{_plain(names_of(action))}\fR", _plain(help_of(action))


def _statuses() -> Iterator[str]:
    asked = "with --detailed-exitcode:"
    yield from ("0   done", f"2   {asked} nothing to do", f"3   {asked} a plan has changes")
    yield "64  wrong usage"
    for kind in vars(errors).values():
        is_error = isinstance(kind, type) and issubclass(kind, errors.ContainerUpdateError)
        if is_error and "exit_status" in vars(kind):
            yield f"{kind.exit_status:<3} {(kind.__doc__ or '').partition(chr(10))[0]}"


def _plain(text: str | None) -> str:
    """Return a text in which nothing is a macro or an escape."""
    shown = (text or "").replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{shown}" if shown.startswith((".", "'")) else shown
