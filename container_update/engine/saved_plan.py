# SPDX-License-Identifier: Apache-2.0
"""A plan in a file, to be approved by a person and carried out later: exactly that one, or none.

The file says from which packages the plan was made, what it does, and in which version each object
was that it changes. ``apply`` makes the plan again and compares: so the file needs no content of a
Secret, and what has changed since is found by the same rules.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from container_update.model import schema
from container_update.model.errors import ContainerUpdateError, NextStep, PlanError
from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import Event, Progress
from container_update.model.plan import Obstacle, Plan
from container_update.model.requests import (
    STANDARD_INPUT,
    ChangePackageRequest,
    InstallRequest,
    Saveable,
    TerminateRequest,
    UndoRequest,
    UpdateRequest,
)
from container_update.planning import plan_json
from container_update.planning.steps import object_steps
from container_update.planning.steps.new_objects import stable_part

KIND = "SavedPlan"
_VERBS: Mapping[str, type[Saveable]] = {
    "update": UpdateRequest,
    "change": ChangePackageRequest,
    "install": InstallRequest,
    "uninstall": TerminateRequest,
    "undo": UndoRequest,
}

_LISTS = ("steps", "unchanged", "ignored", "notes", "defFiles")
_COMPARED = ("namespace", "instanceId", *_LISTS)
_OPTIONAL = schema.or_null(schema.TEXT)
_VALUES = {
    "verb": schema.OneOf(_VERBS),
    "server": schema.TRUTH,
    **dict.fromkeys(("namespace", "old", "new", "package"), schema.TEXT),
    **dict.fromkeys(("instance_id", "instance", "records"), schema.TEXT),
    **dict.fromkeys(("one_namespace", "delete_data", "delete_shared"), schema.TRUTH),
    "create_namespace": schema.TRUTH,
    **dict.fromkeys(("def_files", "config_paths", "packages"), schema.ListOf(schema.TEXT)),
    "revision": schema.WHOLE,
    "body": schema.MAPPING,
}
"""What a file has of each field of a request, or null where that is the default."""


def _names(kind: type[Saveable]) -> dict[str, str]:
    """Return what the file calls each field of a request: ``defFiles`` for ``def_files``."""
    return {f.name: re.sub("_(.)", lambda part: part[1].upper(), f.name) for f in fields(kind)}


def _schema(kind: type[Saveable]) -> schema.Fields:
    names, known = _names(kind), {name: _VALUES[name] for name in ("verb", "server")}
    for each in fields(kind):
        value = _VALUES[each.name]
        known[names[each.name]] = schema.or_null(value) if each.default is None else value
    return schema.Fields(known, known.keys(), whole="saved request")


_REQUESTS = {verb: _schema(kind) for verb, kind in _VERBS.items()}
_PLAN = schema.complete(
    packages=schema.ListOf(schema.complete(sha256=schema.TEXT)),
    namespace=schema.TEXT,
    instanceId=_OPTIONAL,
    **dict.fromkeys(_LISTS, schema.Schema(list, "a list")),
)
_DOCUMENT = schema.complete(
    server=schema.TEXT, request=schema.MAPPING, versions=schema.MAPPING, plan=_PLAN
)
_PATHS = ("old", "new", "package", "instance", "records")
_LARGEST = 256 * 1024**2
"""In bytes."""


class NotSavedError(ContainerUpdateError):
    """A plan cannot be kept in this file, or in any."""

    exit_status = 64
    next_step = NextStep.FIX_REQUEST


class StalePlanError(PlanError):
    """The cluster or a package has changed since the plan was saved: nothing was written."""


def refuse_unfit(request: Saveable) -> None:
    """Refuse a request that no file shall keep: with standard input, or with a password."""
    from container_update.engine.goals.change_request import secrets_in  # noqa: PLC0415, slow

    values = asdict(request)
    if STANDARD_INPUT in (*values.get("packages", ()), *map(values.get, _PATHS)):
        raise NotSavedError(
            "a saved plan: expected packages that can be read again later, found - (standard "
            "input): write it to a file"
        )
    if next(secrets_in(values.get("body")), None) is not None:
        raise NotSavedError(
            "a saved plan: expected a request without passwords and tokens, found one: remove it, "
            "because the file keeps the request"
        )


def _absolute(path: str) -> str:
    """Return a path for a file that another command reads elsewhere."""
    from container_update.package.fetch import is_url  # noqa: PLC0415, slow to load

    return path if not path or is_url(path) else str(Path(path).absolute())


def _request_dict(request: Saveable) -> dict[str, Any]:
    """Return a request as the values that a file keeps; its paths are as from everywhere."""
    values, names = asdict(request), _names(type(request))
    values |= {name: _absolute(values[name]) for name in _PATHS if values.get(name)}
    if isinstance(request, UndoRequest):
        values["packages"] = [_absolute(each) for each in request.packages]
    verb = next(verb for verb, kind in _VERBS.items() if kind is type(request))
    return {"verb": verb, **{names[name]: value for name, value in values.items()}}


def request_of(saved: Mapping[str, Any]) -> Saveable:
    """Return what a saved plan was made for."""
    given = {n: tuple(v) if isinstance(v, list) else v for n, v in saved["request"].items()}
    kind: Any = _VERBS[saved["request"]["verb"]]
    request: Saveable = kind(**{field: given[name] for field, name in _names(kind).items()})
    return request


def save(path: Path, plan: Plan, request: Saveable, server: str) -> None:
    """Write a plan and its request to a file; only an older saved plan is replaced."""
    refuse_unfit(request)
    lasting = tuple(note for note in plan.notes if not isinstance(note, Obstacle))
    plan = replace(plan, notes=lasting)
    body = plan_json.document(
        KIND,
        {
            "server": server,
            "request": {**_request_dict(request), "server": plan.writes > 0},
            "plan": plan_json.plan_dict(plan),
            "versions": _versions(plan),
        },
    )
    if path.exists() and _read(path) is None:
        raise NotSavedError(f"{path} is not a saved plan: choose another name")
    try:
        _write(path, json.dumps(body, indent=2) + "\n")
    except OSError as error:
        raise NotSavedError(f"{path}: cannot be written: {error.strerror}") from error


def load(path: Path) -> Mapping[str, Any] | None:
    """Return a saved plan; None where the file is none; PlanError where it is damaged."""
    body = _read(path)
    if body is None:
        return None
    wrong = _DOCUMENT.first_violation(body)
    if wrong is None:
        verb = body["request"].get("verb")
        expected = _REQUESTS[verb if verb in tuple(_VERBS) else "update"]
        wrong = expected.first_violation(body["request"], ("request",))
    if wrong is not None:
        raise PlanError(f"{path}: the saved plan is damaged: {wrong}: make it again")
    return body


def refuse_other_plan(progress: Progress, saved: Mapping[str, Any] | None, server: str) -> Progress:
    """Return a progress callback that raises StalePlanError for another plan than the one that was
    saved; one with nothing to do is no other one: the saved plan was carried out.

    :param saved: None: any plan is carried out.
    """

    def report(event: Event) -> None:
        plan = event if isinstance(event, Plan) and not event.is_empty else None
        if saved and plan and (differences := list(_differences(saved, plan, server))):
            raise StalePlanError(
                f"the saved plan cannot be carried out any more: {'; '.join(differences)}"
            )
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
            yield f"{side} {now.source} has another hash than then"
    versions, before = _versions(plan), saved["versions"]
    moved = [name for name in before if before[name] != versions.get(name)]
    if moved:
        yield f"{', '.join(moved)} changed since"
    body: Json = json.loads(json.dumps(plan_json.plan_dict(plan)))
    parts = [name for name in _COMPARED if body[name] != saved["plan"][name]]
    if parts and not moved:
        new = (e for n in parts if n in _LISTS for e in body[n] if e not in saved["plan"][n])
        objects = ", ".join(dict.fromkeys(map(_object_of, new)))
        yield f"changed since the plan was saved: {objects or ', '.join(parts)}"


def _object_of(entry: Any) -> str:
    """Return which object an entry of a plan's list is about."""
    if isinstance(entry, str):  # a def-file
        return entry
    return str(ObjectKey(**entry.get("object", entry)))


def _versions(plan: Plan) -> dict[str, str]:
    """Return what shows whether the objects that a plan changes are still the same."""
    return {str(step.key): _version(step.before) for step in object_steps(plan)}


def _version(body: Json | None) -> str:
    if body is None:
        return ""
    if "status" not in body:
        return str(body["metadata"].get("resourceVersion"))
    text = json.dumps(stable_part(body), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _write(path: Path, text: str) -> None:
    """Write a file that its owner alone can read or change, not through a link to another."""
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
    is_ours = body.get("apiVersion") == plan_json.API_VERSION
    return body if is_ours and body.get("kind") == KIND else None
