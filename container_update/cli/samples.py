"""``container-update samples``: list the samples, or copy one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

DONE = 0


def add_command(commands: Any, parents: Sequence[argparse.ArgumentParser]) -> None:
    """Add the command.

    :param commands: the subparsers of argparse.
    :param parents: parsers whose arguments the command has too.
    """
    text = "list the samples, or copy one: packages, requests, scripts, roles"
    command = commands.add_parser("samples", help=text, description=text, parents=parents)
    command.add_argument("name", metavar="NAME", nargs="?", help="the sample to copy")
    command.add_argument("folder", metavar="FOLDER", nargs="?", type=Path,
        help="the folder to create (default: NAME)")  # fmt: skip
    command.set_defaults(run=_run)


def _run(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.package import samples  # noqa: PLC0415

    if parsed.name:
        out.write(f"{samples.copy(parsed.name, parsed.folder or Path(parsed.name))}\n")
        return DONE
    titles = samples.titles()
    width = max(map(len, titles))
    for name, title in titles.items():
        out.write(f"{name:{width}}  {title}\n")
    return DONE
