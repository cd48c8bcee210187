"""A plan in a file, to be approved by somebody and carried out later: exactly that one, or none.

The file says from which packages the plan was made, what it does, and in which version each object
was that it changes. ``apply`` makes the plan again and compares: so the file needs no content of a
Secret, and what has changed since is found by the same rules.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from container_update.cli.arguments.parser import UsageError
from container_update.cli.reports import json_report
from container_update.model.errors import PlanError
from container_update.model.objects import Json
from container_update.model.plan import Plan
from container_update.model.requests import STANDARD_INPUT
from container_update.planning.steps import object_steps

KIND = "SavedPlan"
UPDATE = "update"
"""The verb of a plan that does not say another one."""

_COMPARED = ("namespace", "instanceId", "steps", "unchanged", "ignored", "notes", "defFiles")
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


def save(path: Path, plan: Plan, request: Mapping[str, Any], server: str) -> None:
    """Write a plan to a file; an older saved plan is replaced.

    :param request: what the command was asked for, with its ``verb``.

    :raises UsageError: the file exists and is something else, or cannot be written.
    """
    body = json_report.document(
        KIND,
        {
            "server": server,
            "request": dict(request),
            "plan": json_report.plan_dict(plan),
            "versions": _versions(plan),
        },
    )
    if path.exists() and _read(path) is None:
        raise UsageError(f"--out {path}: expected no file, or a saved plan, found another file")
    try:
        path.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {path}: cannot be written: {error.strerror}") from error


def load(path: Path) -> Mapping[str, Any] | None:
    """Return a saved plan; None where the file is none."""
    body = _read(path)
    if body is None:
        return None
    return {**body, "request": {"verb": UPDATE, **body["request"]}}


def refuse_another(saved: Mapping[str, Any], plan: Plan, server: str) -> None:
    """Raise StalePlanError where the plan that is made now is not the saved one; one with nothing
    to do is no other one: the saved plan was carried out."""
    differences = list(_differences(saved, plan, server))
    if differences and not plan.is_empty:
        raise StalePlanError(
            f"the saved plan cannot be carried out any more: {'; '.join(differences)}"
        )


def _differences(saved: Mapping[str, Any], plan: Plan, server: str) -> Iterator[str]:
    if server != saved["server"]:
        yield f"it was made for the cluster {saved['server']}, this is {server}"
    for side, was, now in zip(
        ("old", "new"), saved["plan"]["packages"], plan.packages, strict=False
    ):
        if was["sha256"] != now.sha256:
            yield f"the {side} package {now.source} is another one than then"
    versions, before = _versions(plan), saved["versions"]
    moved = [name for name in before if before[name] != versions.get(name)]
    if moved:
        yield f"{', '.join(moved)} changed since"
    body: Json = json.loads(json.dumps(json_report.plan_dict(plan)))
    parts = [name for name in _COMPARED if body[name] != saved["plan"][name]]
    if parts and not moved:
        yield f"the plan is another one now ({', '.join(parts)})"


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


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(body, dict) and body.get("apiVersion") == json_report.API_VERSION
    return body if is_ours and body.get("kind") == KIND else None
