# SPDX-License-Identifier: Apache-2.0
"""``container-update change``: a change of the VNF package."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from container_update.cli import connection, operate
from container_update.cli.arguments.parser import UsageError, hide
from container_update.cli.terminal import output
from container_update.model.errors import PackageError
from container_update.model.requests import DEF_FILES, ChangePackageRequest


def add_commands(add_command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; see :mod:`container_update.cli.commands.update`."""
    command = add_command(
        "change",
        _change,
        "change the VNF package: Blue-Green, canary or rolling update",
        "Change the VNF package (SOL003): everything in the new package takes effect.",
    )
    add_change_arguments(command, types="Blue-Green, Canary, RollingUpdate", vdus="default: all")
    add = command.add_argument
    add("--canary-steps", metavar="N,...",
        help="percent of new pods after each step (10,50,100)")  # fmt: skip
    add("--hold", action="store_true",
        help="wait for promote or abort before the switch, or between a canary's steps"
    )  # fmt: skip
    operate.add_message_argument(command)
    operate.add_saving_arguments(command, "with --plan: ")
    connection.add_cluster_arguments(command)


def add_change_arguments(
    command: argparse.ArgumentParser, *, types: str, vdus: str, recorded: bool = True
) -> None:
    """Add what a change is asked with, wherever the VNF runs.

    :param types: the upgrade types of this project.
    :param vdus: which VDUs are changed where none is named.
    :param recorded: a record may stand for the old package.
    """
    connection.add_package_arguments(command, recorded=recorded)
    add = command.add_argument
    add("--plan", action="store_true", help="show what the change would do; write nothing")
    add("--upgrade-type", metavar="TYPE",
        help=f"{types}, or a plugin's")  # fmt: skip
    add("--request", metavar="FILE", type=Path,
        help="a JSON file with a ChangeCurrentVnfPkgRequest")  # fmt: skip
    add("--vdu", action="append", default=[], metavar="VDU",
        help=f"the id of a VDU to change (repeatable; {vdus})")  # fmt: skip
    hide(add("--coordinate-new", metavar="PATH[:CLASS]",
        help="the coordination script for the new VNF: in NEW, else in OLD"))  # fmt: skip
    hide(add("--coordinate-old", metavar="PATH[:CLASS]",
        help="the coordination script for the old VNF: in OLD, else in NEW"))  # fmt: skip
    hide(add("--new-def-file", action="append", default=[], metavar="PATH",
        help=f"a def-file of NEW, as in {DEF_FILES} (repeatable)"))  # fmt: skip
    hide(add("--instance", metavar="FILE", type=Path,
        help="a JSON file with the VnfInstance, which scripts and --records need"))  # fmt: skip
    hide(add("--records", metavar="FILE", type=Path,
        help="the file to write the VnfInstance to after the change"))  # fmt: skip
    add("--leave-failed", action="store_true",
        help="leave a failure for resume or rollback")  # fmt: skip
    output.add_plan_arguments(command)
    output.add_approval_arguments(command)


def _change(parsed: argparse.Namespace, out: TextIO) -> int:
    """Plan or carry out the change that the arguments describe; return the exit status."""
    body = body_of(parsed, "kubernetes")  # what is wrong with it is said before the connection
    connection.expect_packages(parsed)
    return operate.run(partial(request_of, body=body), parsed, out)


# --- request ------------------------------------------------------------------------------------


def request_of(parsed: argparse.Namespace, body: Mapping[str, Any]) -> ChangePackageRequest:
    """Return the request that the arguments describe; body: its part of SOL003."""
    instance, records = (path and str(path) for path in (parsed.instance, parsed.records))
    return ChangePackageRequest(
        body,
        old=parsed.old,
        new=parsed.new,
        def_files=tuple(parsed.def_file),
        namespace=getattr(parsed, "namespace", ""),
        instance_id=parsed.instance_id,
        instance=instance,
        records=records,
    )


def body_of(parsed: argparse.Namespace, vim_type: str) -> dict[str, Any]:
    """Return the request of the file, overridden by the options.

    :raises UsageError: neither has an upgrade type, or no strategy is installed for the option's.
    """
    from container_update.engine.goals import request_schema, upgrade_types  # noqa: PLC0415
    from container_update.records.instance_file import json_file  # noqa: PLC0415, slow to load

    body = dict(json_file(parsed.request)) if parsed.request else {}
    params = body.get("additionalParams") or {}
    if not isinstance(params, dict):
        return body  # reported when the request is validated
    options = {
        "upgrade_type": parsed.upgrade_type,
        "vdu_params": [{"vdu_id": vdu} for vdu in parsed.vdu],
        DEF_FILES: parsed.new_def_file,
        **_pauses(parsed),
    }
    params = {**params, **{name: value for name, value in options.items() if value}}
    if not params.get("upgrade_type"):
        known = upgrade_types.installed_types().get(upgrade_types.kind_of_vim(vim_type), ())
        raise UsageError(
            f"--upgrade-type: expected one of {', '.join(known)}, found none: name one, or a "
            "--request file with additionalParams.upgrade_type"
        )
    if parsed.upgrade_type:
        try:
            upgrade_types.resolve(parsed.upgrade_type, vim_type, name="--upgrade-type")
        except PackageError as error:
            raise UsageError(str(error)) from None
    for name, script in (
        (request_schema.COORDINATE_NEW, parsed.coordinate_new),
        (request_schema.COORDINATE_OLD, parsed.coordinate_old),
    ):
        path, _, class_name = (script or "").partition(":")
        if path:
            params |= {name: path, f"{name}-class": class_name or None}
    return {**body, "additionalParams": params}


def _pauses(parsed: argparse.Namespace) -> dict[str, Any]:
    """Return the steps of a canary, and what waits for a person; UsageError for no percentages."""
    if not parsed.canary_steps:
        return {"hold": parsed.hold}
    texts = parsed.canary_steps.split(",")
    percents = [int(text) if text.strip().isdecimal() else 0 for text in texts]
    if min(percents) < 1 or max(percents) > 100:
        raise UsageError(
            "--canary-steps: expected whole numbers from 1 to 100 like 10,50,100, found "
            f"{parsed.canary_steps}"
        )
    if not parsed.hold:
        return {"canary_steps": percents}
    held = [{"percent": percent, "hold": True} for percent in percents[:-1]]
    return {"canary_steps": [*held, *percents[-1:]]}
