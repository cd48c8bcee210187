# SPDX-License-Identifier: Apache-2.0
"""``freeze`` and ``unfreeze``: no operation of an instance begins until that is lifted."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import TextIO

from container_update.cli import connection, operate
from container_update.cli.arguments import option_arguments
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE
from container_update.model.times import time_of


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands; see :mod:`container_update.cli.commands.update`."""
    text = "refuse new operations of an instance"
    command = add("freeze", _freeze, text, f"{text}; one under way can end")
    command.add_argument("--until", metavar="TIME", type=_time,
        help="when it ends: 8h, or 2026-12-31T06:00+01:00 (default: with unfreeze)")  # fmt: skip
    operate.add_message_argument(command)
    connection.add_cluster_arguments(command, (output.TEXT,), used=option_arguments.READING)
    command = add("unfreeze", _unfreeze, "accept operations of an instance again")
    output.add_detailed_exitcode(command)
    connection.add_cluster_arguments(command, (output.TEXT,), used=option_arguments.READING)


def _time(text: str) -> datetime:
    """Return a time that is to come, in UTC."""
    now = datetime.now(timezone.utc)
    try:
        time = time_of(text).astimezone(timezone.utc)
    except ValueError:
        try:
            time = now + timedelta(seconds=option_arguments.seconds_of(text))
        except (ValueError, OverflowError):
            time = now
    if time <= now:
        raise argparse.ArgumentTypeError(
            f"expected a time in the future, such as 8h or 2026-12-31T06:00+01:00, found {text}"
        )
    return time


def _freeze(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.engine import freezing  # noqa: PLC0415, slow to load

    how = {"until": parsed.until, "why": parsed.message}
    with connection.connected_instance(parsed) as (cluster, where):
        frozen = freezing.freeze(cluster, option_arguments.read(parsed), **where, **how)
    out.write(f"The VNF instance is {frozen}.\n")
    return DONE


def _unfreeze(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.engine import freezing  # noqa: PLC0415, slow to load

    with connection.connected_instance(parsed) as (cluster, where):
        lifted = freezing.unfreeze(cluster, option_arguments.read(parsed), **where)
    if lifted is None:
        return output.write_nothing("The VNF instance was not frozen.", parsed, out)
    out.write(f"Operations may begin again; the VNF instance was {lifted}.\n")
    return DONE
