"""A plan in a file, to be approved by somebody and carried out later: exactly that one, or none.

The file says from which packages the plan was made, what it does, and in which version each object
was that it changes. ``apply`` makes the plan again and compares: so the file needs no content of a
Secret, and what has changed since is found by the same rules.
"""

from __future__ import annotations

import hashlib
import json
import os
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
CHANGE = "change"
"""The verb of a change of the package."""

_COMPARED = ("namespace", "instanceId", "steps", "unchanged", "ignored", "notes", "defFiles")
_OPTIONAL = (str, type(None))
_COMMON = {
    "namespace": str,
    "instanceId": _OPTIONAL,
    "defFiles": [str],
    "configPaths": [str],
    "server": bool,
}
_GIVEN = {"verb": UPDATE, "configPaths": [], "server": False}
"""What a plan of an earlier version, or of another verb, does not say."""
_PACKAGE = {"package": _OPTIONAL, "deleteData": bool, "deleteShared": bool}
_REQUESTS: Mapping[str, Mapping[str, Any]] = {
    UPDATE: {**_COMMON, "old": str, "new": str},
    CHANGE: {
        **{**_COMMON, "old": str, "new": str, "body": dict},
        **dict.fromkeys(("instance", "records"), _OPTIONAL),
    },
    "install": {**_COMMON, **_PACKAGE},
    "uninstall": {**_COMMON, **_PACKAGE},
    "undo": {**_COMMON, "revision": (int, type(None))},
}
"""The types of what each verb's request has; a list says of what type each item is."""
_SHAPE = {
    "server": str,
    "request": dict,
    "versions": dict,
    "plan": {**dict.fromkeys(_COMPARED, object), "packages": [{"sha256": str}]},
}
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
    wrong = next(_wrong(body, _SHAPE, "the document"), None)
    if wrong is None:
        body = {**body, "request": {**_GIVEN, **body["request"]}}
        verb = str(body["request"]["verb"])
        shape = _REQUESTS.get(verb, {})
        wrong = next(_wrong(body["request"], shape, "request"), None)
        others = sorted(body["request"].keys() - shape.keys() - {"verb"})
        wrong = wrong or (f"request with {others[0]}" if others else None)
        wrong = wrong if shape else f"the verb {verb}"
    if wrong is not None:
        raise PlanError(
            f"{path}: expected a saved plan as plan --out wrote it, found {wrong}: make it again"
        )
    return body


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


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read: what is approved with it, nobody else shall have
    changed; not through a link to another one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)


def _wrong(value: object, shape: Any, name: str) -> Iterator[str]:
    """Yield what is not of the types that it shall have."""
    if isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{name} that is no list"
            return
        for item in value:
            yield from _wrong(item, shape[0], f"an item of {name}")
    elif isinstance(shape, Mapping):
        if not isinstance(value, dict):
            yield f"{name} that is no object"
            return
        for key, inner in shape.items():
            if key in value:
                yield from _wrong(value[key], inner, key)
            else:
                yield f"{name} without {key}"
    elif not isinstance(value, shape):
        yield f"{name} of another type"


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    is_ours = isinstance(body, dict) and body.get("apiVersion") == json_report.API_VERSION
    return body if is_ours and body.get("kind") == KIND else None
