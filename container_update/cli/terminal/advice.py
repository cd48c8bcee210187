# SPDX-License-Identifier: Apache-2.0
"""The next step after an error, as a sentence for the operator of the command line."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from container_update.cli.terminal.approval import NotApprovedError
from container_update.engine.saved_plan import StalePlanError
from container_update.model.errors import (
    ChangeNeededError,
    ContainerUpdateError,
    InstalledError,
    MissingError,
    NextStep,
    NoNamespaceError,
    NotInstalledError,
    UpdateFailedError,
)
from container_update.planning.summary import count_noun
from container_update.workloads.pod_status import NEVER_PULLS, PULLS

if TYPE_CHECKING:
    from container_update.engine.goals.change_request import ChangeRequest
    from container_update.model.outcome import Outcome
    from container_update.model.plan import Plan

SENTENCES: Mapping[NextStep, str] = {
    NextStep.RETRY: "Run the same command again, perhaps a little later",
    NextStep.WAIT: "Wait until that has ended, then run the same command again; see: {status}",
    NextStep.FIX_AND_RETRY: "Correct the cause, then run the same command again",
    NextStep.FIX_AND_ROLLBACK: "Fix the cause named here, then go back: {rollback}",
    NextStep.RESUME_OR_ROLLBACK: "Finish it: {resume}; or go back: {rollback}",
    NextStep.RESUME: "It can only be finished: {resume}",
    NextStep.PROMOTE_OR_ABORT: "Let it go on: {promote}; or undo it: {abort}",
    NextStep.NAME_PACKAGES: "If it is yours, name its packages: {rollback} OLD NEW, or update to "
    "the old one with both; else delete the Secret",
    NextStep.NAME_BOTH_PACKAGES: "If it is yours, run the same command again and name both "
    "packages, {both}; else delete the Secret",
    NextStep.GRANT_RIGHTS: "The Role that an update needs: {rbac}",
    NextStep.UNFREEZE: "To let operations begin again: {unfreeze}",
    NextStep.CHECK_STATUS: "See whether another run goes on with it: {status}; if none does, "
    "finish it: {resume}; or go back: {rollback}",
}

_OF_PACKAGE = ("request", "coordinate_new", "coordinate_old", "new_def_file", "flavour_id")
"""Options of a change of the package that have another value for another package."""

_OTHER_VERBS = (
    (NotInstalledError, "install it: {} install", "new"),
    (InstalledError, "update it: {} apply", "package"),
)
"""The verb that fits instead, and the argument that has its package."""


def advice(error: ContainerUpdateError, parsed: argparse.Namespace) -> str:
    """Return what to do next; '' where the message has said it."""
    if special := _of_class(error, parsed):
        return special
    if error.next_step in (NextStep.FIX_REQUEST, NextStep.FIX_TARGET):
        creates = isinstance(error, NoNamespaceError) and hasattr(parsed, "create_namespace")
        return "To have it created: --create-namespace" if creates else ""  # the message said more
    return next_sentence(error.next_step, parsed)


def _of_class(error: ContainerUpdateError, parsed: argparse.Namespace) -> str:
    """Return what to do after an error whose class says more than its next step; or nothing."""
    if isinstance(error, NotApprovedError):
        return "Run the same command again and answer y, or use --yes"
    if isinstance(error, StalePlanError):
        return "Make the plan again, have it approved, then run the same command again"
    if isinstance(error, (ChangeNeededError, MissingError)) and not getattr(parsed, "family", ""):
        packages = [getattr(parsed, name, "") for name in ("old", "new")]
        return f"To do that: {_change_command(packages, parsed)}"
    for kind, does, argument in _OTHER_VERBS:
        if isinstance(error, kind) and (package := getattr(parsed, argument, "")):
            command = f"{does.format(_program(parsed))} {shlex.quote(package)}"
            return f"To {command}{_address(parsed)}"
    if isinstance(error, UpdateFailedError) and error.next_step is NextStep.FIX_AND_RETRY:
        return f"{_cause_to_fix(error.outcome)}, then run the same command again"
    return ""


def _cause_to_fix(outcome: Outcome) -> str:
    """Return what to fix of what failed, by what its pods report."""
    reasons = {each.diagnosis.reason for each in outcome.results if each.diagnosis}
    is_image = reasons and reasons <= PULLS | NEVER_PULLS
    return "Correct the image, or make it available" if is_image else "Correct the cause"


def next_sentence(step: NextStep, parsed: argparse.Namespace) -> str:
    """Return a next step with the commands that it takes."""
    program, options = _program(parsed), _address(parsed)
    family = getattr(parsed, "family", "")
    given = _options(parsed, ("request",)) if family else _packages(parsed)
    verbs = ("resume", "rollback", "promote", "abort")
    return SENTENCES[step].format(
        **{verb: f"{program}{family} {verb}{given}{options}" for verb in verbs},
        status=f"{program}{family} status{options}",
        rbac=f"{program} try samples rbac",
        unfreeze=f"{program} unfreeze{options}",
        both="--package OLD --package NEW" if hasattr(parsed, "revision") else "OLD NEW",
    )


def revision_command(verb: str, revision: int, parsed: argparse.Namespace) -> str:
    """Return the command that undoes or shows a revision."""
    return f"{_program(parsed)} {verb} {revision}{_address(parsed)}"


def uninstalled_sentence(parsed: argparse.Namespace) -> str:
    """Return the sentence that names the command for what was uninstalled."""
    every = getattr(parsed, "all_namespaces", False)
    where = ("kubeconfig", "context", *(() if every else ("namespace",)))
    more = " --all-namespaces" if every else ""
    command = f"{_program(parsed)} list --uninstalled{more}{_options(parsed, where)}"
    return f"What was uninstalled: {command}"


def update_back_command(parsed: argparse.Namespace) -> str:
    """Return the command that updates to the old package again; '' where none was named."""
    old, new = getattr(parsed, "old", ""), getattr(parsed, "new", "")
    if not (old and new):
        return ""
    return f"{_program(parsed)} apply {shlex.join([new, old])}{_address(parsed)}"


def change_command(plan: Plan, parsed: argparse.Namespace) -> str:
    """Return the command that changes the package as a whole, which deletes too."""
    new = plan.packages[-1].source if plan.packages else "NEW"
    return _change_command([getattr(parsed, "old", ""), new], parsed)


def rest_sentence(plan: Plan, parsed: argparse.Namespace) -> str:
    """Return what a plan leaves, and which command deletes it."""
    if not hasattr(parsed, "delete_data"):
        names = ", ".join(map(str, plan.left))
        command = change_command(plan, parsed)
        return f"Not in the new package, left alone: {names}. To delete: {command}"
    is_data = [key.kind == "PersistentVolumeClaim" for key in plan.left]
    options = " --delete-data" * (parsed.delete_data or any(is_data))
    options += " --delete-shared" * (parsed.delete_shared or not all(is_data))
    package = plan.packages[-1].source if plan.packages else "PACKAGE"
    command = f"{_program(parsed)} uninstall {shlex.quote(package)}{_address(parsed)}{options}"
    return f"Stays: {count_noun(len(plan.left), 'object')}. To delete: {command}"


def _change_command(packages: Sequence[str], parsed: argparse.Namespace) -> str:
    named = shlex.join(filter(None, packages))
    return f"{_program(parsed)} change {named} --upgrade-type RollingUpdate{_address(parsed)}"


def change_back_command(request: ChangeRequest, old: str, parsed: argparse.Namespace) -> str:
    """Return the command that changes the package back.

    What its request says of the other package, its scripts for example, only the operator knows.
    """
    packages = shlex.join([parsed.new, old] if parsed.old else [old])
    of_options = () if getattr(parsed, "request", None) else request.vdu_params
    vdus = "".join(f" --vdu {shlex.quote(vdu.vdu_id)}" for vdu in of_options)
    program = f"{_program(parsed)}{parsed.family}"
    command = f"{program} change {packages} --upgrade-type {request.upgrade_type}"
    names = [f"--{name.replace('_', '-')}" for name in _OF_PACKAGE if getattr(parsed, name, None)]
    more = f", with {', '.join(names)} for that package" if names else ""
    return f"{command}{vdus}{_address(parsed)}{more}"


def _packages(parsed: argparse.Namespace) -> str:
    """Return the packages of a change, without which its journal is not trusted."""
    packages = (parsed.old, parsed.new) if hasattr(parsed, "upgrade_type") else ()
    return "".join(f" {shlex.quote(each)}" for each in packages if each)


def _program(parsed: argparse.Namespace) -> str:
    return getattr(parsed, "program", "container-update")


def _address(parsed: argparse.Namespace) -> str:
    """Return the options that say where the VNF runs."""
    without_id = " --instance-id ''" if getattr(parsed, "is_without_id", False) else ""
    return f"{_options(parsed, getattr(parsed, 'addressed_by', ()))}{without_id}"


def _options(parsed: argparse.Namespace, names: tuple[str, ...]) -> str:
    """Return the options with these names that have a value, for a shell."""
    values = ((name.replace("_", "-"), getattr(parsed, name, None)) for name in names)
    return "".join(f" --{name} {shlex.quote(str(value))}" for name, value in values if value)
