# SPDX-License-Identifier: Apache-2.0
"""``container-update try samples``: list the samples, or copy one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TextIO

from container_update.cli.terminal.output import DONE


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    command.add_argument("name", metavar="NAME", nargs="?", help="the sample to copy")
    command.add_argument("folder", metavar="FOLDER", nargs="?", type=Path,
        help="the folder to create (default: NAME)")  # fmt: skip


def run(parsed: argparse.Namespace, out: TextIO) -> int:
    """Copy the sample that is named, else list all; return the exit status."""
    from container_update.package.tools import samples  # noqa: PLC0415

    if parsed.name:
        out.write(f"{samples.copy(parsed.name, parsed.folder or Path(parsed.name))}\n")
        return DONE
    titles = samples.titles()
    width = max(map(len, titles))
    out.writelines(f"{name:{width}}  {title}\n" for name, title in titles.items())
    return DONE
