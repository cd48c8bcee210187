# SPDX-License-Identifier: Apache-2.0
"""``container-update heat``: the commands for a VNF that is a Heat stack."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from container_update.cli import connection, extras, operate
from container_update.cli.arguments import option_arguments
from container_update.cli.arguments.parser import UsageError
from container_update.cli.commands import change, recover
from container_update.cli.terminal import approval, output
from container_update.model.cancellation import CancelToken
from container_update.model.errors import ClusterError
from container_update.model.options import PACKAGE_OPTIONS
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Action
from container_update.reports.lines import Header

if TYPE_CHECKING:
    from container_update.openstack.client import Heat
    from container_update.openstack.stack_instance import StackInstance

HELP = "a VNF that is a Heat stack: change, status, resume, rollback"
_VIM = "openstack"
_SETTINGS = (
    *("timeout", "retry_seconds", "undo_timeout", "lease_seconds", "request_timeout"),
    *("coordination_seconds",),
    *("journal_key", "no_journal_key", "insecure_skip_tls_verify", *PACKAGE_OPTIONS),
)
"""What a change of a stack uses, of all settings; the others are about pods."""


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands by a function that takes name, function and help."""
    text = "change the VNF package: Blue-Green or rolling update"
    command = add("change", _change, text)
    change.add_change_arguments(
        command, types="Blue-Green, RollingUpdate", vdus="required", recorded=False
    )
    command.add_argument("--flavour-id", metavar="ID",
        help="the deployment flavour, if NEW has several")  # fmt: skip
    command.set_defaults(canary_steps="", hold=False)  # of a cluster alone
    _add_stack(command)
    command = add("status", _status, "show an operation that runs or was interrupted")
    _add_stack(command, output.DOCUMENTS, used=option_arguments.READING)
    for name, back, text in (
        ("resume", False, "finish an operation that was interrupted"),
        ("rollback", True, "undo an operation that was interrupted"),
    ):
        command = add(name, partial(_recover, back=back), text)
        command.add_argument("--request", metavar="FILE", type=Path,
            help="the request of the change, if its coordination scripts need "
            "passwords")  # fmt: skip
        output.add_approval_arguments(command)
        output.add_detailed_exitcode(command)
        _add_stack(command)


def _add_stack(
    command: argparse.ArgumentParser,
    formats: Sequence[str] = output.FORMATS,
    used: Sequence[str] = _SETTINGS,
) -> None:
    """Add the arguments that say which stack it is, as connection.add_cluster_arguments does."""
    add = command.add_argument
    add("--stack", metavar="NAME",
        help="the VNF is this Heat stack: its name, or NAME/ID")  # fmt: skip
    add("--os-cloud", metavar="CLOUD",
        help="the cloud of the stack in clouds.yaml (default: $OS_CLOUD, or the other OS_* "
        "variables)")  # fmt: skip
    add("--instance-id", metavar="ID",
        help="the id of the VNF instance (default: the stack's id)")  # fmt: skip
    connection.add_output(command, formats)
    option_arguments.add_arguments(command, used=used)
    command.set_defaults(family=" heat", addressed_by=("stack", "os_cloud", "instance_id"))


def _change(parsed: argparse.Namespace, out: TextIO) -> int:
    """Plan or carry out the change that the arguments describe; return the exit status."""
    body = change.body_of(parsed, _VIM)
    connection.expect_packages(parsed)
    with (
        approval.stopped_by_signals(leave=parsed.leave_on_signal) as cancel,
        _connect(parsed) as heat,
    ):
        from container_update.openstack.change import StackChange  # noqa: PLC0415, an extra

        parsed.header = _header(parsed)
        request, options = change.request_of(parsed, body), option_arguments.read(parsed)
        goal = StackChange(request, heat, parsed.stack, options, flavour_id=parsed.flavour_id)
        if parsed.plan:
            return output.show_plan(goal.preview(), parsed, out)

        def run(progress: Progress) -> Outcome:
            return goal.run(cancel=cancel, progress=progress, leave_failed=parsed.leave_failed)

        follow = partial(_follow, parsed)
        return operate.carry_out_change(goal, request, run, parsed, out, follow=follow)


def _status(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show an operation that runs or was interrupted; return the exit status."""
    with _connect(parsed) as heat:
        return recover.show_status(_instance(parsed, heat).status(), (), parsed, out)


def _recover(parsed: argparse.Namespace, out: TextIO, *, back: bool) -> int:
    """Finish or undo the operation that was interrupted; return the exit status."""
    from container_update.records.instance_file import json_file  # noqa: PLC0415, slow to load

    def end(cancel: CancelToken, progress: Progress) -> Outcome | None:
        request = json_file(parsed.request) if parsed.request else None
        with _connect(parsed) as heat:
            from container_update.openstack import change  # noqa: PLC0415, an extra

            instance = replace(_instance(parsed, heat), progress=progress, cancel=cancel)
            outcome, scripts = change.recover_stack(instance, request, back=back)
        output.show_scripts(scripts, parsed, out)
        return outcome

    return recover.recover_and_show(end, parsed, out)


# --- the stack ----------------------------------------------------------------------------------


def _connect(parsed: argparse.Namespace) -> AbstractContextManager[Heat]:
    """Connect to the OpenStack cloud that the arguments name, for a ``with`` block."""
    if not parsed.stack:
        raise UsageError("--stack: expected the name of the VNF's Heat stack, found none: name it")
    with extras.needed_by("--stack", "openstack", ClusterError):
        from container_update.openstack.client import connect  # noqa: PLC0415, an extra
    return connect(parsed.os_cloud, options=option_arguments.read(parsed))


def _header(parsed: argparse.Namespace) -> Header:
    cloud = parsed.os_cloud or os.environ.get("OS_CLOUD") or os.environ.get("OS_AUTH_URL", "")
    return Header((("Cloud", cloud), ("Stack", parsed.stack)))


def _follow(parsed: argparse.Namespace, outcome: Outcome) -> None:
    """Name the stack that the VNF is after the change: a new one, if the change created it."""
    created = (step.key.name for step in outcome.plan.steps if step.action is Action.CREATE)
    parsed.stack = next(created, parsed.stack)


def _instance(parsed: argparse.Namespace, heat: Heat) -> StackInstance:
    from container_update.openstack import stack_instance as instances  # noqa: PLC0415, an extra

    instance_id = parsed.instance_id or instances.instance_id_of(heat, parsed.stack)
    options = option_arguments.read(parsed)
    return instances.StackInstance(heat, instance_id, options, stack=parsed.stack)
