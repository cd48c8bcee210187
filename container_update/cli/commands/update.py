# SPDX-License-Identifier: Apache-2.0
"""The commands with a goal that is planned, saved or carried out: ``container-update plan``,
``apply``, ``undo``, ``install`` and ``uninstall``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TextIO

from container_update.cli import connection, operate
from container_update.cli.arguments.parser import UsageError, hide
from container_update.cli.terminal import output
from container_update.model.requests import (
    ChangePackageRequest,
    InstallRequest,
    Saveable,
    TerminateRequest,
    UndoRequest,
    UpdateRequest,
)


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands by a function that takes name, function and help."""
    text = "show what an update would write and restart, and why"
    command = add("plan", _plan, text)
    connection.add_package_arguments(command)
    operate.add_saving_arguments(command)
    _add_common(command)

    command = add("apply", _apply, "update the CNF to a new package")
    connection.add_package_arguments(command, saved=True)
    command.add_argument("--install", action="store_true",
        help="install NEW where the instance is not installed yet")  # fmt: skip
    operate.add_message_argument(command)
    _add_common(command)
    output.add_approval_arguments(command)

    text = "undo finished updates: restore the state before"
    command = add("undo", partial(operate.run, _undo_request), text)
    command.add_argument("revision", metavar="REV", type=int, nargs="?",
        help="undo this update and all after it (default: the newest)")  # fmt: skip
    command.add_argument("--package", metavar="PACKAGE", action="append", default=[],
        help="of the change to undo (repeatable); both, if it had scripts")  # fmt: skip
    operate.add_arguments(command)

    text = "create the objects of a package and wait for them"
    command = add("install", partial(operate.run, _install_request), text)
    command.add_argument("package", metavar="PACKAGE", help=connection.PACKAGE)
    command.add_argument("--create-namespace", action="store_true",
        help="create the namespace if it does not exist"
    )  # fmt: skip
    _add_instance(command)

    text = "delete the objects of an instance and wait for that"
    command = add("uninstall", partial(operate.run, _uninstall_request), text)
    command.add_argument("package", metavar="PACKAGE", nargs="?",
        help="the package it runs from, if no record has it")  # fmt: skip
    command.add_argument("--delete-data", action="store_true",
        help="delete its PersistentVolumeClaims and the data too")  # fmt: skip
    command.add_argument("--delete-shared", action="store_true",
        help="delete Namespaces and cluster-scoped objects too")  # fmt: skip
    _add_instance(command)


def _add_common(command: argparse.ArgumentParser) -> None:
    hide(command.add_argument("--config-path", action="append", default=[], metavar="PATH",
        help="a file of NEW with ConfigMaps or Secrets to update, as in configmap_secret_paths "
        "(repeatable; default: all that differ)"))  # fmt: skip
    output.add_plan_arguments(command)
    connection.add_cluster_arguments(command)


def _add_instance(command: argparse.ArgumentParser) -> None:
    command.add_argument("--def-file", action="append", default=[], metavar="PATH",
        help="a def-file of the package (repeatable; default: all)")  # fmt: skip
    command.add_argument("--leave-failed", action="store_true",
        help="leave a failure for resume or rollback")  # fmt: skip
    operate.add_arguments(command)


def _plan(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show what an update would do; return the exit status."""
    connection.expect_packages(parsed)
    return operate.show(parsed, out, partial(request_of, parsed))


def _apply(parsed: argparse.Namespace, out: TextIO) -> int:
    """Update the CNF, or carry out a saved plan; return the exit status."""
    from container_update.engine import saved_plan  # noqa: PLC0415, slow to load

    saved = saved_plan.load(Path(parsed.old)) if parsed.new is None else None
    if saved is None:
        connection.expect_packages(parsed)
        return operate.carry_out(parsed, out, partial(request_of, parsed))
    request = saved_plan.request_of(saved)
    _take_over(parsed, request)
    parsed.server = saved["request"]["server"]
    if isinstance(request, ChangePackageRequest):
        connection.expect_packages(parsed)
    return operate.carry_out(parsed, out, lambda: request, saved)


def _take_over(parsed: argparse.Namespace, request: Saveable) -> None:
    """Set the arguments to those of a saved plan, which was approved; UsageError for others."""
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


# --- requests -----------------------------------------------------------------------------------


def request_of(parsed: argparse.Namespace) -> UpdateRequest:
    """Return the request of an update that the arguments describe."""
    return UpdateRequest(
        old=parsed.old,
        new=parsed.new,
        def_files=tuple(parsed.def_file),
        config_paths=tuple(parsed.config_path),
        namespace=parsed.namespace,
        instance_id=parsed.instance_id,
    )


def _undo_request(parsed: argparse.Namespace) -> UndoRequest:
    packages = tuple(parsed.package)
    return UndoRequest(parsed.revision, packages, parsed.namespace, parsed.instance_id)


def _install_request(parsed: argparse.Namespace) -> InstallRequest:
    return InstallRequest(
        parsed.package,
        def_files=tuple(parsed.def_file),
        namespace=parsed.namespace,
        instance_id=parsed.instance_id or None,
        create_namespace=parsed.create_namespace,
    )


def _uninstall_request(parsed: argparse.Namespace) -> TerminateRequest:
    return TerminateRequest(
        parsed.package,
        def_files=tuple(parsed.def_file),
        namespace=parsed.namespace,
        instance_id=parsed.instance_id,
        delete_data=parsed.delete_data,
        delete_shared=parsed.delete_shared,
    )
