# SPDX-License-Identifier: Apache-2.0
"""``container-update plan`` and ``apply``: an update to a new package, or a plan that was saved."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TextIO

from container_update.cli import connection, operate, saved_plan
from container_update.cli.arguments import option_arguments
from container_update.cli.arguments.parser import UsageError, hide
from container_update.cli.commands import change
from container_update.cli.terminal import output
from container_update.model.errors import ChangeNeededError
from container_update.model.requests import ChangePackageRequest, Request, UpdateRequest


def add_plan_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``plan``."""
    connection.add_package_arguments(command)
    operate.add_saving_arguments(command)
    _add_common(command, shown=())


def add_apply_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``apply``."""
    connection.add_package_arguments(command, saved=True)
    command.add_argument("--install", action="store_true",
        help="install NEW where the instance is not installed yet")  # fmt: skip
    _add_common(command)
    output.add_approval_arguments(command)


def _add_common(
    command: argparse.ArgumentParser, shown: Collection[str] = option_arguments.DAILY
) -> None:
    hide(command.add_argument("--config-path", action="append", default=[], metavar="PATH",
        help="a file of NEW with ConfigMaps or Secrets to update, as in configmap_secret_paths "
        "(repeatable; default: all that differ)"))  # fmt: skip
    output.add_plan_arguments(command)
    connection.add_cluster_arguments(command, shown=shown)


def plan(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show what an update would do; return the exit status."""
    connection.expect_packages(parsed)
    try:
        return operate.show(parsed, out, partial(request_of, parsed))
    except ChangeNeededError as error:
        error.exit_status = output.CHANGES_PENDING  # the message names what makes them
        raise


def apply(parsed: argparse.Namespace, out: TextIO) -> int:
    """Update the CNF, or carry out a saved plan; return the exit status."""
    saved = saved_plan.load(Path(parsed.old)) if parsed.new is None else None
    if saved is None:
        connection.expect_packages(parsed)
        return operate.carry_out(parsed, out, partial(request_of, parsed))
    request = saved_plan.request_of(saved)
    _take_over(parsed, request)
    parsed.server = saved["request"]["server"]
    if isinstance(request, ChangePackageRequest):
        return change.apply_saved(saved, parsed, out)
    return operate.carry_out(parsed, out, lambda: request, saved)


def _take_over(parsed: argparse.Namespace, request: Request) -> None:
    """Set the arguments as they were when the plan was saved; it was approved, nobody is asked.

    :raises UsageError: another one was given.
    """
    for name, value in (
        ("namespace", request.namespace),
        ("instance_id", request.instance_id),
        ("def_file", list(getattr(request, "def_files", ()))),
        ("config_path", list(getattr(request, "config_paths", ()))),
    ):
        given = getattr(parsed, name)
        if given and given != value:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option}: the saved plan has its own: expected none, found {given}")
        setattr(parsed, name, value)
    parsed.old, parsed.new = getattr(request, "old", ""), getattr(request, "new", "")
    parsed.yes = True


def request_of(parsed: argparse.Namespace) -> UpdateRequest:
    """Return the request that the arguments describe."""
    return UpdateRequest(
        old=parsed.old,
        new=parsed.new,
        def_files=tuple(parsed.def_file),
        config_paths=tuple(parsed.config_path),
        namespace=parsed.namespace,
        instance_id=parsed.instance_id,
    )
