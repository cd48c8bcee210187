# SPDX-License-Identifier: Apache-2.0
"""A plan in a file, to be approved by somebody and carried out later: exactly that one, or none.

The file says from which packages the plan was made, what it does, and in which version each object
was that it changes. ``apply`` makes the plan again and compares: so the file needs no content of a
Secret, and what has changed since is found by the same rules.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from container_update.cli.arguments.parser import UsageError
from container_update.cli.reports import json_report
from container_update.model.errors import PlanError
from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import Event, Progress
from container_update.model.plan import Plan
from container_update.model.requests import STANDARD_INPUT, UpdateRequest
from container_update.model.schema import (
    MAPPING,
    TEXT,
    TRUTH,
    WHOLE,
    Fields,
    ListOf,
    OneOf,
    Schema,
    complete,
    or_null,
)
from container_update.planning.steps import object_steps

KIND = "SavedPlan"
UPDATE = "update"
"""The verb of a plan that does not say another one."""
CHANGE = "change"
"""The verb of a change of the package."""

_LISTS = ("steps", "unchanged", "ignored", "notes", "defFiles")
_COMPARED = ("namespace", "instanceId", *_LISTS)
_GIVEN = {"verb": UPDATE, "configPaths": [], "server": False}
"""What a plan of an earlier version, or of another verb, does not say."""


def _request(**fields: Schema) -> Fields:
    common = {"namespace": TEXT, "instanceId": _OPTIONAL, "server": TRUTH, "verb": OneOf(_VERBS)}
    fields |= common | dict.fromkeys(("defFiles", "configPaths"), ListOf(TEXT))
    return Fields(fields, fields.keys(), whole="saved request")


_OPTIONAL = or_null(TEXT)
_VERBS = (UPDATE, CHANGE, "install", "uninstall", "undo")
_PACKAGE = {"package": _OPTIONAL, "deleteData": TRUTH, "deleteShared": TRUTH}
_REQUESTS: Mapping[str, Fields] = {
    UPDATE: _request(old=TEXT, new=TEXT),
    CHANGE: _request(old=TEXT, new=TEXT, body=MAPPING, instance=_OPTIONAL, records=_OPTIONAL),
    "install": _request(**_PACKAGE),
    "uninstall": _request(**_PACKAGE),
    "undo": _request(revision=or_null(WHOLE), packages=ListOf(TEXT)),
}
"""What each verb's request has, and nothing else."""
_PLAN = complete(
    packages=ListOf(complete(sha256=TEXT)),
    namespace=TEXT,
    instanceId=_OPTIONAL,
    **dict.fromkeys(_LISTS, Schema(list, "a list")),
)
_DOCUMENT = complete(server=TEXT, request=MAPPING, versions=MAPPING, plan=_PLAN)
_PATHS = ("old", "new", "package")
_LARGEST = 256 * 1024**2
"""In bytes."""
_NOT_CONTENT = ("managedFields", "resourceVersion", "generation")


class StalePlanError(PlanError):
    """What a saved plan was made from is not what is there: nothing was written."""


def refuse_standard_input(*packages: str | None) -> None:
    """Raise UsageError for a package that nobody can read again when the plan is carried out."""
    if STANDARD_INPUT in packages:
        raise UsageError(
            "--out: expected packages that can be read again later, found - (standard input): "
            "write it to a file"
        )


def absolute(package: str) -> str:
    """Return a package's path for a file that another command reads elsewhere."""
    from container_update.package.fetch import is_url  # noqa: PLC0415, slow to load

    return package if not package or is_url(package) else str(Path(package).absolute())


def requested(verb: str, parsed: argparse.Namespace, **more: Any) -> dict[str, Any]:
    """Return what the arguments of a command ask for, as values that a saved plan keeps.

    :param more: what only this verb has.
    """
    return {
        "verb": verb,
        "defFiles": list(getattr(parsed, "def_file", ())),
        "namespace": parsed.namespace,
        "instanceId": parsed.instance_id,
        **more,
    }


def update_request(request: UpdateRequest) -> dict[str, Any]:
    """Return the request for an update as values that a saved plan keeps."""
    return {
        "verb": UPDATE,
        "old": request.old,
        "new": request.new,
        "defFiles": list(request.def_files),
        "configPaths": list(request.config_paths),
        "namespace": request.namespace,
        "instanceId": request.instance_id,
    }


def save(path: Path, plan: Plan, request: Mapping[str, Any], server: str) -> None:
    """Write a plan to a file; an older saved plan is replaced.

    :param request: what the command was asked for, with its ``verb``; its packages are named as
        from everywhere.

    :raises UsageError: the file exists and is something else, or cannot be written.
    """
    body = json_report.document(
        KIND,
        {
            "server": server,
            "request": {**request, **{n: absolute(request[n]) for n in _PATHS if request.get(n)}},
            "plan": json_report.plan_dict(plan),
            "versions": _versions(plan),
        },
    )
    if path.exists() and _read(path) is None:
        raise UsageError(f"--out {path}: expected no file, or a saved plan, found another file")
    try:
        _write(path, json.dumps(body, indent=2) + "\n")
    except OSError as error:
        raise UsageError(f"--out {path}: cannot be written: {error.strerror}") from error


def load(path: Path) -> Mapping[str, Any] | None:
    """Return a saved plan; None where the file is none.

    :raises PlanError: the file was a saved plan, and is damaged.
    """
    body = _read(path)
    if body is None:
        return None
    wrong = _DOCUMENT.first_violation(body)
    if wrong is None:
        request = _GIVEN | body["request"]
        verb = request["verb"] if request["verb"] in _VERBS else UPDATE
        wrong = _REQUESTS[verb].first_violation(request, ("request",))
    if wrong is not None:
        raise PlanError(f"{path}: no saved plan as plan --out wrote it: {wrong}: make it again")
    return {**body, "request": request}


def refuse_another(saved: Mapping[str, Any], plan: Plan, server: str) -> None:
    """Raise StalePlanError where the plan that is made now is not the saved one; one with nothing
    to do is no other one: the saved plan was carried out."""
    differences = list(_differences(saved, plan, server))
    if differences and not plan.is_empty:
        raise StalePlanError(
            f"the saved plan cannot be carried out any more: {'; '.join(differences)}"
        )


def checked(progress: Progress, saved: Mapping[str, Any] | None, server: str) -> Progress:
    """Return a progress callback that refuses another plan than the one that was saved.

    :param saved: None: any plan is carried out.
    """

    def report(event: Event) -> None:
        if saved is not None and isinstance(event, Plan):
            refuse_another(saved, event, server)
        progress(event)

    return report


def _differences(saved: Mapping[str, Any], plan: Plan, server: str) -> Iterator[str]:
    if server != saved["server"]:
        yield f"it was made for the cluster {saved['server']}, this is {server}"
    packages = saved["plan"]["packages"]
    if len(packages) != len(plan.packages):
        yield f"it names {len(packages)} packages, the plan now {len(plan.packages)}"
    sides = ("the old package", "the new package") if len(packages) > 1 else ("the package",)
    for side, was, now in zip(sides, packages, plan.packages, strict=False):
        if was["sha256"] != now.sha256:
            yield f"{side} {now.source} is another one than then"
    versions, before = _versions(plan), saved["versions"]
    moved = [name for name in before if before[name] != versions.get(name)]
    if moved:
        yield f"{', '.join(moved)} changed since"
    body: Json = json.loads(json.dumps(json_report.plan_dict(plan)))
    parts = [name for name in _COMPARED if body[name] != saved["plan"][name]]
    if parts and not moved:
        new = (e for n in parts if n in _LISTS for e in body[n] if e not in saved["plan"][n])
        objects = ", ".join(dict.fromkeys(map(_object_of, new)))
        yield f"the plan is another one now: see {objects or ', '.join(parts)}"


def _object_of(entry: Any) -> str:
    """Return which object an entry of a plan's list is about."""
    named = entry["object"] if isinstance(entry, dict) else entry
    return str(ObjectKey(**named)) if isinstance(named, dict) else str(named)


def _versions(plan: Plan) -> dict[str, str]:
    """Return what shows whether an object that the plan changes is still the same.

    That is its resourceVersion; of an object with a status, whose controller moves that all the
    time, a digest of everything else.
    """
    return {str(step.key): _version(step.before) for step in object_steps(plan)}


def _version(body: Json | None) -> str:
    if body is None:
        return ""
    if "status" not in body:
        return str(body["metadata"].get("resourceVersion"))
    metadata = {name: v for name, v in body["metadata"].items() if name not in _NOT_CONTENT}
    content = {name: value for name, value in body.items() if name != "status"}
    text = json.dumps({**content, "metadata": metadata}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read: what is approved with it, nobody else shall have
    changed; not through a link to another one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)


def _read(path: Path) -> Mapping[str, Any] | None:
    """Return a file's document if that is a saved plan; others may be endless, or no files."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        with path.open(encoding="utf-8") as file:
            if file.read(1) != "{":
                return None
            file.seek(0)
            body = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    is_ours = body.get("apiVersion") == json_report.API_VERSION
    return body if is_ours and body.get("kind") == KIND else None
