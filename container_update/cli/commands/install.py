# SPDX-License-Identifier: Apache-2.0
"""``container-update install`` and ``uninstall``: the beginning and the end of a VNF instance."""

from __future__ import annotations

import argparse
from typing import TextIO

from container_update.cli import connection, operate
from container_update.model.requests import InstallRequest, TerminateRequest


def add_install_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``install``."""
    add = command.add_argument
    add("package", metavar="PACKAGE", help=connection.PACKAGE)
    _add_common(command)


def add_uninstall_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``uninstall``."""
    add = command.add_argument
    add("package", metavar="PACKAGE", nargs="?",
        help="what the instance runs from, where there is no record of it")  # fmt: skip
    add("--delete-data", action="store_true",
        help="delete its PersistentVolumeClaims too, and with them the data")  # fmt: skip
    add("--delete-shared", action="store_true",
        help="delete what is in no namespace too, and its Namespaces with all that is in "
        "them")  # fmt: skip
    _add_common(command)


def _add_common(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--def-file", action="append", default=[], metavar="PATH",
        help="a def-file of the instance (repeatable; default: all of PACKAGE)")  # fmt: skip
    add("--leave-failed", action="store_true",
        help="leave what fails for resume or rollback instead of undoing it")  # fmt: skip
    operate.add_arguments(command)


def run(verb: str, parsed: argparse.Namespace, out: TextIO) -> int:
    """Create the objects of a package, or delete those of an instance; return the exit status.

    :param verb: which: ``install`` or ``uninstall``.
    """

    def request() -> InstallRequest | TerminateRequest:
        where = parsed.package, tuple(parsed.def_file), parsed.namespace
        if verb == "install":
            return InstallRequest(*where, instance_id=parsed.instance_id)
        return TerminateRequest(
            *where,
            instance_id=parsed.instance_id,
            delete_data=parsed.delete_data,
            delete_shared=parsed.delete_shared,
        )

    return (operate.show if parsed.plan else operate.carry_out)(parsed, out, request)
