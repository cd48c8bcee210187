# SPDX-License-Identifier: Apache-2.0
"""``container-update install`` and ``uninstall``: the beginning and the end of a VNF instance."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from container_update.cli import connection, operate, saved_plan
from container_update.cli.arguments import option_arguments

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster
    from container_update.engine.goal import Goal
    from container_update.engine.goals.install import Install
    from container_update.planning.comparison.package_pair import Placing


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


def install(parsed: argparse.Namespace, out: TextIO) -> int:
    """Create the objects of a package; return the exit status."""

    def goal_of(cluster: KubernetesCluster, instance_id: str | None) -> Goal:
        goal = install_goal(request_of("install", parsed), parsed)
        if instance_id is None:
            goal.refuse_taken(cluster)
        return goal

    return _run(parsed, out, goal_of, "install", finds=False)


def uninstall(parsed: argparse.Namespace, out: TextIO) -> int:
    """Delete the objects of an instance; return the exit status."""

    def goal_of(_: KubernetesCluster, instance_id: str | None) -> Goal:
        request = {**request_of("uninstall", parsed), "instanceId": instance_id}
        return uninstall_goal(request, parsed)

    return _run(parsed, out, goal_of, "uninstall")


def _run(
    parsed: argparse.Namespace,
    out: TextIO,
    goal_of: operate.GoalOf,
    verb: str,
    *,
    finds: bool = True,
) -> int:
    if parsed.plan:

        def request() -> dict[str, Any]:
            package = saved_plan.absolute(parsed.package) if parsed.package else None
            return {**request_of(verb, parsed), "package": package}

        return operate.show(parsed, out, goal_of, request, finds=finds)
    return operate.carry_out(parsed, out, goal_of, finds=finds)


def request_of(verb: str, parsed: argparse.Namespace) -> dict[str, Any]:
    """Return what the arguments ask for, as values that a saved plan keeps."""
    return {
        "verb": verb,
        "package": parsed.package,
        "defFiles": list(parsed.def_file),
        "namespace": parsed.namespace,
        "instanceId": parsed.instance_id,
        "deleteData": getattr(parsed, "delete_data", False),
        "deleteShared": getattr(parsed, "delete_shared", False),
    }


def install_goal(request: Mapping[str, Any], parsed: argparse.Namespace) -> Install:
    """Return the goal of an installation."""
    from container_update.engine.goals.install import Install  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    return Install(request["package"], _placing(request), request["instanceId"], options)


def uninstall_goal(request: Mapping[str, Any], parsed: argparse.Namespace) -> Goal:
    """Return the goal of an uninstallation."""
    from container_update.engine.goals.uninstall import Uninstall  # noqa: PLC0415, slow to load
    from container_update.planning.uninstall import Included  # noqa: PLC0415, slow to load

    return Uninstall(
        request["package"],
        _placing(request),
        request["instanceId"],
        option_arguments.read(parsed),
        Included(data=request["deleteData"], shared=request["deleteShared"]),
    )


def _placing(request: Mapping[str, Any]) -> Placing:
    from container_update.planning.comparison.package_pair import Placing  # noqa: PLC0415

    return Placing(tuple(request["defFiles"]), request["namespace"])
