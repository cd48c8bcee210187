"""An operation that has ended, and its form as the data of a Secret. Pure.

Of a Secret only what a way back needs is kept: its content before the operation. The new content is
in the cluster; here its place is taken by a mark that says which keys changed.
"""

from __future__ import annotations

import base64
import contextlib
import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from datetime import datetime
from typing import Any

from container_update.cluster.history import schemas
from container_update.model.errors import PlanError
from container_update.model.objects import Json, ObjectKey
from container_update.model.packing import DAMAGED, packed, unpacked
from container_update.model.plan import UNDO, UPDATE
from container_update.model.requests import PackageIdentity
from container_update.planning.comparison import diff
from container_update.planning.steps import ConfigStep, ObjectStep
from container_update.planning.steps.codec import step_from_dict, step_to_dict

UPDATES = frozenset({UPDATE, UNDO})
"""Those that change configuration and images only, and can be undone."""

_FORMAT = 1
_SUMMARY, _CONTENT, _INSTANCE = "summary", "content", "instance"
_LIMIT = 900_000
"""Bytes of the content; the API server allows 1 MiB for all data of a Secret."""
_NEW_VALUE = base64.b64encode(b"another value").decode()
_TEXTS = ("operation", "started", "ended", "cause")
_NO_FIELDS = ("managedFields", "resourceVersion", "generation")


class Result(enum.Enum):
    """How an operation ended."""

    DONE = "done"
    UNDONE = "undone"
    """It failed or was stopped, and everything was put back."""


@dataclass(frozen=True)
class Origin:
    """Who asked for an operation, and for which; kept in the journal while it is under way."""

    kind: str
    """:data:`UPDATE`, :data:`UNDO` or an upgrade type."""
    user: str
    """The login name."""
    host: str
    packages: tuple[PackageIdentity, ...] = ()
    """The old one and the new one; () where they are not known."""
    undoes: int | None = None
    """The first revision that an :data:`UNDO` undoes; it undoes all after that one too."""

    @property
    def who(self) -> str:
        """The user on the host: 'ann@workstation'."""
        return f"{self.user}@{self.host}"

    @property
    def title(self) -> str:
        """What it is, for people: 'update', 'undo of 14'."""
        return self.kind if self.undoes is None else f"{self.kind} of {self.undoes}"

    def as_dict(self) -> Json:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Origin:
        """Return the origin of :meth:`as_dict`."""
        packages = tuple(PackageIdentity(**package) for package in values["packages"])
        origin = cls(**{**values, "packages": packages})
        texts([origin.kind, origin.user, origin.host, *(t for p in packages for t in astuple(p))])
        return origin


@dataclass(frozen=True)
class Revision:
    """One operation that has ended.

    >>> for revision in history(cluster, namespace="cnf"):  # doctest: +SKIP
    ...     print(revision.number, revision.origin.title, revision.result.value)
    2 undo of 1 done
    1 update done

    :param steps: what it did, with what was there before; empty where it was undone or its content
        is too large for a Secret.
    :param objects: every object of the CNF at its end.
    """

    number: int
    operation: str
    origin: Origin
    started: str
    """In UTC (RFC 3339), as is *ended*."""
    ended: str
    seconds: float
    result: Result
    changes: int
    """How many objects it changed, or was to change."""
    cause: str = ""
    """Why it was undone."""
    is_kept: bool = True
    """What it did is kept, so that it can be undone."""
    steps: tuple[ObjectStep, ...] = field(default=(), repr=False)
    objects: tuple[ObjectKey, ...] = field(default=(), repr=False)
    def_files: tuple[str, ...] = ()
    instance: bytes = field(default=b"", repr=False)
    """What the VNF instance runs from since, an encoded
    :class:`~container_update.cluster.history.instance_record.InstanceRecord`; empty: not known."""

    @property
    def can_be_undone(self) -> bool:
        """It is a finished update, or an undo of one, and what was there before it is kept."""
        is_update = self.origin.kind in UPDATES
        return is_update and self.is_kept and self.result is Result.DONE


def encode(revision: Revision) -> dict[str, bytes]:
    """Return the revision as the data of a Secret; without its steps where it would be too large,
    or where one is about a Secret of another namespace, whose content is nobody's business here."""
    content = b""
    if revision.is_kept:
        payload = {
            "steps": [step_to_dict(_reduced(step)) for step in revision.steps],
            "objects": [asdict(key) for key in revision.objects],
            "defFiles": list(revision.def_files),
        }
        with contextlib.suppress(PlanError):  # it is too large
            content = packed(payload)
    is_kept = 0 < len(content) <= _LIMIT - len(revision.instance)
    summary = {
        "format": _FORMAT,
        "number": revision.number,
        "operation": revision.operation,
        "origin": revision.origin.as_dict(),
        "started": revision.started,
        "ended": revision.ended,
        "seconds": round(revision.seconds, 3),
        "result": revision.result.value,
        "changes": revision.changes,
        "cause": revision.cause,
        "isKept": is_kept,
    }
    data = {_SUMMARY: json.dumps(summary).encode(), _INSTANCE: revision.instance}
    data |= {_CONTENT: content} if is_kept else {}
    return {name: value for name, value in data.items() if value}


def has_way_back(data: Mapping[str, Any]) -> bool:
    """Tell whether the data of a revision has what was there before it."""
    return _CONTENT in data


def decode(data: Mapping[str, bytes]) -> Revision:
    """Return the revision of :func:`encode`.

    :raises ValueError: another version of this program, or somebody else, wrote it.
    """
    try:
        values = json.loads(data[_SUMMARY])
        found = int(values["format"])
        if found == _FORMAT:
            return _decoded(values, data)
    except DAMAGED as error:
        raise ValueError("is damaged") from error
    raise ValueError(f"has format {found}, expected {_FORMAT}")


def _decoded(values: Json, data: Mapping[str, bytes]) -> Revision:
    schemas.refuse_other(schemas.SUMMARY, values)
    payload = unpacked(data[_CONTENT]) if values["isKept"] else {}
    schemas.refuse_other(schemas.CONTENT, payload)
    operation, started, ended, cause = texts(values[name] for name in _TEXTS)
    for moment in (started, ended):
        datetime.fromisoformat(moment)
    return Revision(
        number=int(values["number"]),
        operation=operation,
        started=started,
        ended=ended,
        changes=int(values["changes"]),
        cause=cause,
        seconds=float(values["seconds"]),
        origin=Origin.of(values["origin"]),
        result=Result(values["result"]),
        is_kept=bool(values["isKept"]),
        steps=tuple(map(checked_step, payload.get("steps", ()))),
        objects=tuple(map(object_key, payload.get("objects", ()))),
        def_files=texts(payload.get("defFiles", ())),
        instance=data.get(_INSTANCE, b""),
    )


def checked_step(values: Mapping[str, Any]) -> ObjectStep:
    """Return the step that somebody may have written, with a name that leads nowhere else.

    :raises: one of :data:`DAMAGED`.
    """
    schemas.refuse_other_step(values)
    object_key(values["key"])
    return step_from_dict(values)


def object_key(values: Mapping[str, Any]) -> ObjectKey:
    """Return the key that somebody may have written: its parts go into URLs.

    :raises: one of :data:`DAMAGED`.
    """
    key = ObjectKey(**values)
    for part in texts(astuple(key)):
        if not part.isprintable() or set(part) & set("/?%") or part in (".", ".."):
            raise ValueError("expected the name of an object")
    return key


def texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Return values that are texts.

    :raises ValueError: one is something else.
    """
    found = tuple(values)
    if not all(isinstance(value, str) for value in found):
        raise ValueError("expected texts")
    return found


def is_private(steps: Sequence[ObjectStep], namespace: str) -> bool:
    """Tell whether the content of one of the steps may not be kept in a namespace: a Secret's of
    another one. Who may read Secrets in one namespace is to learn nothing of another one's."""
    return any(step.key.kind == "Secret" and step.key.namespace != namespace for step in steps)


def _reduced(step: ObjectStep) -> ObjectStep:
    """Return the step without what no way back needs."""
    before = step.before
    if before is not None:
        kept = {name: v for name, v in before["metadata"].items() if name not in _NO_FIELDS}
        body = {name: value for name, value in before.items() if name != "status"}
        step = replace(step, before={**body, "metadata": kept})
    if isinstance(step, ConfigStep) and step.key.kind == "Secret":
        step = replace(step, content=_marked(step.content, before or {}))
    return step


def _marked(content: Json, before: Json) -> Json:
    """Return a Secret's manifest with its old values, and a mark for each that is another one."""
    old, new = diff.content(before).data if before else {}, diff.content(content).data
    data = {
        key: base64.b64encode(value).decode() if old.get(key) == value else _NEW_VALUE
        for key, value in new.items()
    }
    without = {name: value for name, value in content.items() if name != "stringData"}
    return {**without, "data": data}
