# SPDX-License-Identifier: Apache-2.0
"""``container-update completion``: the completion of commands and options in a shell."""

from __future__ import annotations

import argparse
import os
from typing import TextIO


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    command.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(parsed: argparse.Namespace, out: TextIO) -> int:
    """Write what a shell has to run for the completion; return the exit status."""
    from container_update.cli import extras  # noqa: PLC0415, slow to load
    from container_update.cli.terminal.output import DONE  # noqa: PLC0415, slow to load

    with extras.needed_by("completion", "completion"):
        from argcomplete.shell_integration import shellcode  # noqa: PLC0415, an extra
    out.write(shellcode(["container-update"], shell=parsed.shell))
    return DONE


def answer(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks what can follow, and end; do nothing where none asks."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete  # noqa: PLC0415, an extra, which this shell has

        argcomplete.autocomplete(parser, print_suppressed=True)
