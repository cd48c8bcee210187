# SPDX-License-Identifier: Apache-2.0
"""An operation that has ended, what the VNF instance runs from since, and their form as the data of
Secrets. Pure.

Of a Secret only what a way back needs is kept: its content before the operation. The new content is
in the cluster; here its place is taken by a mark that says which keys changed.
"""

from __future__ import annotations

import base64
import contextlib
import enum
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from container_update.cluster.history import schemas
from container_update.cluster.keeping import MAX_PARTS, split
from container_update.model.errors import PlanError
from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.model.packing import DAMAGED, packed, unpacked
from container_update.model.plan import INSTALL, UNDO, UPDATE, Plan, Step
from container_update.model.requests import PackageIdentity
from container_update.package.object_schemas import NAMESPACE
from container_update.planning.comparison import diff
from container_update.planning.steps import ConfigStep, ObjectStep
from container_update.planning.steps.codec import step_from_dict, step_to_dict
from container_update.planning.steps.new_objects import settled

Value = TypeVar("Value")

UPDATES = frozenset({UPDATE, UNDO})
"""Those that change configuration and images only; of others the whole package is changed back."""

_FORMAT = 1
_SUMMARY, _CONTENT, _INSTANCE = "summary", "content", "instance"
_ELSEWHERE = "elsewhere"
"""Stands for a step whose content is kept in that namespace."""
_PART_NAME = re.compile(rf"{_INSTANCE}|{_CONTENT}(/{NAMESPACE.pattern})?")
_LIMIT = 900_000
"""Bytes of one Secret; the API server allows 1 MiB for all its data."""
_NEW_VALUE = base64.b64encode(b"another value").decode()


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
    """The first revision that it undoes, with all after that one; None: it goes forward."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """What the request of a change says of coordination scripts, by the names that it has there."""

    @property
    def who(self) -> str:
        """The user on the host: 'ann@workstation'."""
        return f"{self.user}@{self.host}"

    @property
    def title(self) -> str:
        """What it is, for people: 'update', 'undo of 14'."""
        return self.kind if self.undoes is None else f"{UNDO} of {self.undoes}"

    def as_dict(self) -> Json:
        """Return it as plain values; an earlier version knows no scripts."""
        values = asdict(self)
        return values if self.scripts else {n: v for n, v in values.items() if n != "scripts"}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Origin:
        """Return the origin of :meth:`as_dict`."""
        packages = tuple(PackageIdentity(**package) for package in values["packages"])
        return cls(**{**values, "packages": packages})


@dataclass(frozen=True)
class Revision:
    """One operation that has ended.

    >>> for revision in history(cluster, namespace="cnf"):  # doctest: +SKIP
    ...     print(revision.number, revision.origin.title, revision.result.value)
    2 undo of 1 done
    1 update done

    :param steps: what it did, with what was there before; empty where that is not kept.
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
    report: tuple[str, ...] = field(default=(), repr=False)
    """What failing pods reported, a line each: their Events and the end of their logs."""
    is_kept: bool = True
    """What it did is kept, so that it can be shown and, if it was not undone, undone."""
    steps: tuple[ObjectStep, ...] = field(default=(), repr=False)
    objects: tuple[ObjectKey, ...] = field(default=(), repr=False)
    def_files: tuple[str, ...] = ()
    namespaces: frozenset[str] = frozenset()
    """The other namespaces in which it has a Secret."""
    instance: bytes = field(default=b"", repr=False)
    """What the VNF instance runs from since, an encoded
    :class:`~container_update.cluster.history.revision.InstanceRecord`; empty: not known."""
    journal: str = field(default="", repr=False)
    """The UID of the Secret that was its journal; empty: not known."""

    @property
    def can_be_undone(self) -> bool:
        """It has ended well, and what was there before it is kept; a change of the package is
        undone from what the revision before it says too."""
        has_before = self.origin.kind != INSTALL and self.is_kept
        return has_before and self.result is Result.DONE


@dataclass(frozen=True)
class Encoded:
    """A revision as the data of its Secret and, where that is too large for one, of others."""

    head: Mapping[str, bytes]
    parts: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """What is not in the head, by its name there; of another namespace it has a name with that
    namespace, and is kept there: see :func:`place_of`."""

    @property
    def has_way_back(self) -> bool:
        """What was there before the operation is kept."""
        return _CONTENT in {*self.head, *self.parts}


def encode(revision: Revision, namespace: str) -> Encoded:
    """Return the revision as the data of Secrets; without its steps where these would be too many.

    :param namespace: where it is kept, but for the steps of another one: what is kept there says
        that who wrote it may write there.
    """
    instance = {_INSTANCE: revision.instance} if revision.instance else {}
    for kept in ({**_contents(revision, namespace), **instance}, instance):
        here = {name: value for name, value in kept.items() if not place_of(name)}
        if sum(map(len, here.values())) > _LIMIT:
            here = {}
        parts = {name: split(value) for name, value in kept.items() if name not in here}
        numbers = {name: len(chunks) for name, chunks in parts.items()}
        if sum(numbers.values()) <= MAX_PARTS:
            break
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
        "isKept": _CONTENT in kept,
        "parts": numbers,
        "digests": {name: _digest(b"".join(chunks)) for name, chunks in parts.items()},
        "journal": revision.journal,
    }
    return Encoded({_SUMMARY: json.dumps(summary).encode(), **here}, parts)


def _contents(revision: Revision, namespace: str) -> dict[str, bytes]:
    """Return what the operation did as compressed bytes; empty where it is not kept."""
    own = {"", namespace}
    steps, elsewhere = separated(map(_reduced, revision.steps), lambda k: k.namespace not in own)
    payload = {
        "steps": steps,
        "objects": [key.as_dict() for key in revision.objects],
        "defFiles": list(revision.def_files),
        "report": list(revision.report),
    }
    with contextlib.suppress(PlanError):  # it is too large
        if revision.is_kept:
            others = {f"{_CONTENT}/{other}": packed(each) for other, each in elsewhere.items()}
            return {_CONTENT: packed(payload), **others}
    return {}


def separated(
    steps: Iterable[Step], belongs_elsewhere: Callable[[ObjectKey], bool]
) -> tuple[list[Json], dict[str, list[Json]]]:
    """Return steps as plain values, and by namespace those that are kept in that of their object:
    who may read Secrets in one namespace is to learn nothing of another one's."""
    here: list[Json] = []
    elsewhere: dict[str, list[Json]] = {}
    for step in steps:
        body = step_to_dict(step)
        if belongs_elsewhere(step.key):
            elsewhere.setdefault(step.key.namespace, []).append(body)
            body = {_ELSEWHERE: step.key.namespace}
        here.append(body)
    return here, elsewhere


def joined(steps: Iterable[Json], elsewhere: Mapping[str, Iterable[Json]]) -> list[Json]:
    """Return the plain values of all steps of :func:`separated`.

    :raises: one of :data:`DAMAGED`: another client wrote it.
    """
    others = {namespace: iter(bodies) for namespace, bodies in elsewhere.items()}
    return [next(others[s[_ELSEWHERE]], {}) if _ELSEWHERE in s else s for s in steps]


def part_numbers(data: Mapping[str, bytes]) -> Mapping[str, int]:
    """Return how many parts a revision has beside its head, by the name of what is in them.

    :raises: one of :data:`DAMAGED`: another client wrote it.
    """
    numbers = {name: int(number) for name, number in _parts(json.loads(data[_SUMMARY])).items()}
    is_known = all(map(_PART_NAME.fullmatch, numbers)) and min(numbers.values(), default=1) > 0
    if not is_known or sum(numbers.values()) > MAX_PARTS:
        raise ValueError(f"parts: expected {MAX_PARTS} at most")
    return numbers


def is_part(name: str, whole: bytes, head: Mapping[str, bytes]) -> bool:
    """Tell whether the parts of a name are those that were written with a head."""
    try:
        return bool(json.loads(head[_SUMMARY])["digests"][name] == _digest(whole))
    except DAMAGED:
        return False


def _digest(whole: bytes) -> str:
    return hashlib.sha256(whole).hexdigest()


def place_of(part: str) -> str:
    """Return the namespace of a part by its name; empty: that of the revision."""
    return part.partition("/")[2]


def _parts(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(summary.get("parts", {}))  # an earlier version had none


def decode(data: Mapping[str, bytes]) -> Revision:
    """Return the revision of :func:`encode`, without what is in parts that are not among the data.

    :raises ValueError: another version of this program, or another client, wrote it.
    """
    return _read(lambda: json.loads(data[_SUMMARY]), lambda values: _decoded(values, data))


def _read(values_of: Callable[[], Json], decoded: Callable[[Json], Value]) -> Value:
    """Return what is decoded of values in the format of this version; raise ValueError for all
    other ones."""
    try:
        values = values_of()
        number = int(values["format"])
        if number == _FORMAT:
            return decoded(values)
    except DAMAGED as error:
        raise ValueError("is damaged") from error
    raise ValueError(f"has format {number}, expected {_FORMAT}")


def _decoded(values: Json, data: Mapping[str, bytes]) -> Revision:
    schemas.refuse_other(schemas.SUMMARY, values)
    missing = {name for name in _parts(values) if name not in data and name != _INSTANCE}
    is_kept = bool(values["isKept"]) and not missing
    payload = unpacked(data[_CONTENT]) if is_kept else {}
    schemas.refuse_other(schemas.CONTENT, payload)
    others = {name: unpacked(data[name]) for name in data if place_of(name)} if is_kept else {}
    elsewhere = {place_of(name): bodies for name, bodies in others.items()}
    for moment in ("started", "ended"):
        datetime.fromisoformat(values[moment])
    return Revision(
        **{name: values[name] for name in ("operation", "started", "ended", "cause")},
        journal=values.get("journal") or "",
        number=int(values["number"]),
        changes=int(values["changes"]),
        seconds=float(values["seconds"]),
        origin=Origin.of(values["origin"]),
        result=Result(values["result"]),
        is_kept=is_kept,
        steps=tuple(
            step
            for step in map(checked_step, joined(payload.get("steps", ()), elsewhere))
            if isinstance(step, ObjectStep)
        ),
        objects=tuple(map(object_key, payload.get("objects", ()))),
        def_files=tuple(payload.get("defFiles") or ()),
        report=tuple(payload.get("report") or ()),
        instance=data.get(_INSTANCE, b""),
    )


def checked_step(values: Mapping[str, Any]) -> Step:
    """Return the step that another client may have written, with a name that leads nowhere else.

    :raises: one of :data:`DAMAGED`.
    """
    schemas.refuse_other_step(values)
    step = step_from_dict(values)
    if isinstance(step, ObjectStep):
        object_key(values["key"])
    return step


def object_key(values: Mapping[str, Any]) -> ObjectKey:
    """Return the key that another client may have written: its parts go into URLs.

    :raises: one of :data:`DAMAGED`.
    """
    key = ObjectKey(**values)
    for part in key.as_dict().values():
        if not part.isprintable() or set(part) & set("/?%") or part in (".", ".."):
            raise ValueError("expected the name of an object")
    return key


def _reduced(step: ObjectStep) -> ObjectStep:
    """Return the step without what no way back needs."""
    before = step.before
    if before is not None:
        step = replace(step, before=settled(before))
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


# --- what a VNF instance runs from --------------------------------------------------------------
# With it an operation needs no old package. It is in the Secret of the operation that led there.

_LARGEST = 8_000_000
"""Compressed bytes of the manifests; beyond it only the identities of the objects are kept. The
journal has them too, and most of its room is for what the operation does."""


@dataclass(frozen=True)
class InstanceRecord:
    """What a VNF instance runs from.

    >>> record = InstanceRecord(None, (), ("Files/web.yaml",))
    >>> InstanceRecord.decode(record.encode("cnf")) == record
    True
    """

    package: PackageIdentity | None
    """None where it is not known."""
    manifests: tuple[Manifest, ...] = field(repr=False)
    """In force, under the names that the package gives; see :attr:`is_whole`."""
    def_files: tuple[str, ...] = ()
    vdus: Mapping[str, str] = field(default_factory=dict)
    """VDU id to the name of its workload in the manifests."""
    is_whole: bool = True
    """False: the manifests are too large to be kept, only their identities are known."""

    @classmethod
    def of(cls, plan: Plan, vdus: Mapping[str, str]) -> InstanceRecord:
        """Return the record of an instance once a plan is carried out."""
        package = plan.packages[-1] if plan.packages else None
        return cls(package, tuple(map(_named, plan.manifests)), plan.def_files, dict(vdus))

    @property
    def by_path(self) -> dict[str, tuple[Manifest, ...]]:
        """The manifests by their def-file."""
        files: dict[str, tuple[Manifest, ...]] = {}
        for manifest in self.manifests:
            path = manifest.source.path
            files[path] = (*files.get(path, ()), manifest)
        return files

    def encode(self, namespace: str) -> bytes:
        """Return the record as compressed bytes.

        Who may read Secrets in one namespace is to learn nothing of another one's: of a Secret of
        another namespace only the names of its keys are kept.

        :param namespace: where the bytes are kept.
        :returns: empty where even the identities are too large.
        """
        whole = [_body(manifest, namespace) for manifest in self.manifests]
        for bodies in (whole, [None] * len(whole)):
            with contextlib.suppress(PlanError):  # it is too large
                data = self._bytes(bodies)
                if len(data) <= _LARGEST:
                    return data
        return b""

    def _bytes(self, bodies: Sequence[Json | None]) -> bytes:
        values = {
            "format": _FORMAT,
            "package": self.package and asdict(self.package),
            "manifests": [
                [manifest.key.as_dict(), manifest.source.path, manifest.source.line, body]
                for manifest, body in zip(self.manifests, bodies, strict=True)
            ],
            "defFiles": list(self.def_files),
            "vdus": dict(self.vdus),
        }
        return packed(values)

    @classmethod
    def decode(cls, data: bytes) -> InstanceRecord:
        """Return the record of :meth:`encode`.

        :raises ValueError: another version of this program, or another client, wrote it.
        """
        return _read(lambda: unpacked(data), cls._of)

    @classmethod
    def _of(cls, values: Json) -> InstanceRecord:
        schemas.refuse_other(schemas.INSTANCE, values)
        entries, package = values["manifests"], values.get("package")
        vdus = dict(values["vdus"])
        for key, _, _, body in entries:
            schemas.refuse_other_object(object_key(key), body)
        return cls(
            package and PackageIdentity(**package),
            tuple(
                Manifest(object_key(key), dict(body or {}), Source(path, line))
                for key, path, line, body in entries
            ),
            tuple(values["defFiles"]),
            vdus,
            all(body is not None for *_, body in entries),
        )


def _named(manifest: Manifest) -> Manifest:
    """Return a manifest under its own name, whatever name its object has in the cluster."""
    key, name = manifest.key, str(manifest.body["metadata"]["name"])
    return manifest if key.name == name else replace(manifest, key=replace(key, name=name))


def _body(manifest: Manifest, namespace: str) -> Json:
    body, key = manifest.body, manifest.key
    if key.kind != "Secret" or key.namespace == namespace:
        return body
    names = [*(body.get("data") or ()), *(body.get("stringData") or ())]
    kept = {name: value for name, value in body.items() if name != "stringData"}
    return {**kept, "data": dict.fromkeys(names, "")}
