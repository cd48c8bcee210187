# SPDX-License-Identifier: Apache-2.0
"""What differs: live configuration against the new package, old manifests against new ones.

Pure. A Secret's value never leaves this module: the reasons of a change name its keys.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import FieldPath, Json, Manifest
from container_update.model.plan import (
    HIDDEN,
    VOLUME,
    ConfigChange,
    ConfigDifference,
    FieldChange,
    ImageChange,
    KeyChange,
    Reason,
    image_place,
)
from container_update.planning.comparison import meaning
from container_update.workloads import pod_template
from container_update.workloads.api_resources import is_built_in
from container_update.workloads.registry import is_workload


@dataclass(frozen=True)
class Content:
    """What a ConfigMap or Secret holds, however it is spelled."""

    data: Mapping[str, bytes]
    """``data``, ``binaryData`` and ``stringData`` as bytes by key."""
    type: str
    """A Secret's type, '' for a ConfigMap."""
    immutable: bool


_FIELDS = {
    "Secret": {"data": True, "stringData": False},
    "ConfigMap": {"data": False, "binaryData": True},
}
"""The fields with content by kind, each with whether its values are base64."""


def key_names(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys of a ConfigMap or Secret, live or from a manifest."""
    entries = [body.get(field) for field in _FIELDS.get(str(body.get("kind")), ())]
    return frozenset(str(key) for each in entries if isinstance(each, Mapping) for key in each)


def content(body: Mapping[str, Any]) -> Content:
    """Return the content of a ConfigMap or Secret, live or from a manifest.

    Source: API reference, ConfigMap and Secret; ``stringData`` overwrites ``data``.

    :raises ValueError: a value that the server would refuse; the message names the field only.
    """
    secret = body.get("kind") == "Secret"
    data: dict[str, bytes] = {}
    for field, encoded in _FIELDS["Secret" if secret else "ConfigMap"].items():
        entries = body.get(field)
        if entries is not None and not isinstance(entries, Mapping):
            raise ValueError(f"{field}: expected a map of strings")
        for key, value in (entries or {}).items():
            data[str(key)] = _bytes(f"{field}.{key}", value, encoded=encoded)
    kind = str(body.get("type") or "Opaque") if secret else ""
    return Content(data, kind, bool(body.get("immutable")))


def _bytes(field: str, value: object, *, encoded: bool) -> bytes:
    if value is None:
        return b""
    if not isinstance(value, str):
        raise ValueError(
            f"{field}: expected a string, found a value of type {type(value).__name__}: "
            "put it in quotes"
        )
    if not encoded:
        return value.encode()
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{field}: expected base64, found something else") from None


def stated_content(manifest: Manifest, body: Json | None = None) -> Content:
    """Return the content that a manifest states, or PackageError; *body*: in place of its own."""
    try:
        return content(manifest.body if body is None else body)
    except ValueError as error:
        raise PackageError(f"{manifest.source}: {manifest.key}: {error}") from None


def as_created(new: Manifest, old: Manifest | None, live: Json | None) -> Manifest:
    """Return the new manifest as the program that created the live object reads it.

    ``kubectl`` ends the last line of a file that has no line end, Tacker does not. So a text that
    ends such a file is one byte longer for one than for the other, which is no change. How it is
    read where the live object does not tell is the option ``file_end``.

    :param new: the new manifest of a ConfigMap or Secret.
    :param live: the object in the cluster, None where there is none.
    """
    if live is None or new.otherwise is None:
        return new
    is_other = any(each and _is_read_otherwise(each, live) for each in (new, old))
    return replace(new, body=new.otherwise) if is_other else new


def _is_read_otherwise(manifest: Manifest, live: Json) -> bool:
    """Tell whether the live object has the end of the file as the other program reads it."""
    if manifest.otherwise is None:
        return False
    now, read = content(live).data, stated_content(manifest).data
    other = stated_content(manifest, manifest.otherwise).data
    return any(value != read.get(key) and value == now.get(key) for key, value in other.items())


def config_change(
    old: Manifest | None, new: Manifest, live: Json | None, after: Json
) -> ConfigDifference | None:
    """Return how the live object differs from its manifest; None where it does not.

    Labels and annotations are of no key: they alone change nothing for a container.

    :param new: the manifest of a ConfigMap or Secret.
    :param live: the object in the cluster, None where there is none.
    :param after: the object as it is to be.
    """
    if live is None:
        keys = key_names(after)
        return ConfigDifference(new.key, ConfigChange.CREATE, keys, True, new.source, ())
    now, then = content(live), content(after)
    labels = _label_changes(old or new, new, live, after)
    if now == then and not labels:
        return None
    changes = key_changes(now.data, then.data)
    keys = frozenset(change.key for change in changes)
    retyped = then.type != now.type
    again = retyped or (now.immutable and now != then)
    how = ConfigChange.RECREATE if again else ConfigChange.REPLACE
    reasons = (*(Reason(str(change), change) for change in changes), *_details(now, then), *labels)
    return ConfigDifference(new.key, how, keys, retyped, new.source, reasons)


def _label_changes(old: Manifest, new: Manifest, live: Json, after: Json) -> tuple[Reason, ...]:
    """Return what happens to labels and annotations, with their places in the manifests."""
    before = replace(old, body=live)
    return tuple(
        Reason(f"{change.path} differs ({change.place})", change)
        for change in field_changes(before, replace(new, body=after))
    )


def key_changes(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> tuple[KeyChange, ...]:
    """Return what happens to each key that has not the same value in both, sorted."""
    changes = []
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            how = "new" if key not in old else "changed" if key in new else "removed"
            changes.append(KeyChange(key, how))
    return tuple(changes)


def drift(old: Manifest, new: Manifest, live: Json) -> tuple[KeyChange, ...]:
    """Return what was changed in a live object since it was made from the old package, sorted by
    key; what is already as the new package says is no drift, nor is a key that neither has.

    :param old: the old manifest of a ConfigMap or Secret; with a wrong value nothing is drift.
    """
    try:
        said = content(as_created(old, new, live).body).data
    except ValueError:
        return ()
    now, desired = content(live).data, stated_content(new).data
    named = said.keys() | desired.keys()
    return tuple(
        each
        for each in key_changes(said, now)
        if each.key in named and now.get(each.key) != desired.get(each.key)
    )


def _details(now: Content, desired: Content) -> Iterator[Reason]:
    if desired.type != now.type:
        yield Reason(f"type: {now.type} -> {desired.type}")
    if desired.immutable != now.immutable:
        old, new = str(now.immutable).lower(), str(desired.immutable).lower()
        yield Reason(f"immutable: {old} -> {new}")
    if now.immutable and now != desired:
        yield Reason("is immutable: deleted and created again")


def image_changes(old: Manifest, new: Manifest) -> tuple[ImageChange, ...]:
    """Return the containers and volumes of the old manifest that the new one gives another image,
    in order.

    A volume that is no image any more is a field that does not take effect.

    :raises PackageError: a container of the old manifest is not in the new one, or has no image.
    """
    desired = pod_template.images(new.body)
    run_once = {
        str(container.get("name"))
        for group, container in pod_template.containers(pod_template.pod_spec(old.body))
        if pod_template.runs_to_its_end(group, container)
    }
    names = [name for name in desired if not name.startswith(VOLUME)]
    changes = []
    for name, image in pod_template.images(old.body).items():
        if name not in desired and name.startswith(VOLUME):
            continue
        if name not in desired:
            raise PackageError(
                f"{new.source}: {new.key}: expected a container {name} as in {old.source}, found "
                f"{', '.join(names) or 'none'}: containers are matched by name, so keep the name"
            )
        if image and not desired[name]:
            raise PackageError(
                f"{new.source}: {new.key}: {image_place(name)}: expected an image, as in "
                f"{old.source}, found none"
            )
        if desired[name] != image:
            changes.append(ImageChange(name, image, desired[name], name in run_once))
    return tuple(changes)


_CONTENT_FIELDS = frozenset({"apiVersion", "data", "binaryData", "stringData", "type", "immutable"})


def field_changes(
    old: Manifest, new: Manifest, *, by_meaning: bool = False, live: Json | None = None
) -> tuple[FieldChange, ...]:
    """Return the fields that differ between two manifests, in order.

    Everything but the version of the API, which is how an object is told and not what it is,
    configuration content and container images. Lists of named things (containers,
    volumes, env, ports) are matched by name, so that one insertion is one field.

    :param by_meaning: leave out differences of spelling, as no server is asked.
    :param live: the object in the cluster: what the new manifest says and it has already is no
        difference, as after an export (``kubectl get -o yaml``).
    """
    old_body, new_body = old.body, new.body
    if old_body is new_body:  # it was read once, for both packages
        return ()
    if is_workload(old.key):
        old_body = pod_template.with_images(old_body, pod_template.images(new_body))
    left_out = _CONTENT_FIELDS if old.key.is_config else frozenset({"apiVersion"})
    old_body, new_body = (
        {field: value for field, value in body.items() if field not in left_out}
        for body in (old_body, new_body)
    )
    if by_meaning and is_built_in(old.key.group):
        new_body = meaning.respell(new_body, old_body)
    changes = []
    built_in = is_built_in(old.key.group)
    for path, before, after, now in _differing(_Field(old_body), _Field(new_body), live):
        names = tuple(name for name in after.at if isinstance(name, str))
        is_known = now is not None and after.is_there
        has_it = is_known and meaning.has(now, after.value, names, built_in=built_in)
        if has_it or _says_its_namespace(path, before, after, new):
            continue
        values = _shorten(before.text(), after.text())
        source = new.source.of(after.at) if after.is_there else old.source.of(before.at)
        changes.append(FieldChange(path, *values, source))
    return tuple(changes)


def _says_its_namespace(path: str, before: _Field, after: _Field, new: Manifest) -> bool:
    """Tell whether one of two manifests says in which namespace the object of both is."""
    values = [each.value for each in (before, after) if each.value]
    return path == "metadata.namespace" and values == [new.key.namespace]


def are_alike(old: Manifest, new: Manifest, live: Json) -> bool:
    """Tell whether a live object stays as it is where a manifest takes the place of its own."""
    if meaning.is_same(old.body, new.body):
        return True
    then, now = pod_template.images(new.body), pod_template.images(live)
    has_images = all(now.get(name) == image for name, image in then.items())
    return has_images and not field_changes(old, new, by_meaning=True, live=live)


@dataclass(frozen=True)
class _Field:
    """A field of one of two manifests."""

    value: Any
    at: FieldPath = ()
    is_there: bool = True
    is_hidden: bool = False
    """It is part of a Secret."""

    def part(self, step: str | int | None) -> _Field:
        """Return a field in this one; None: one that it does not have."""
        if step is None:
            return _Field(None, self.at, is_there=False)
        is_hidden = self.is_hidden or _is_secret(self.value) or step == _LAST_APPLIED
        return _Field(self.value[step], (*self.at, step), is_hidden=is_hidden)

    def text(self) -> str | None:
        """Return the value as compact JSON without hidden parts; None if absent."""
        if not self.is_there or self.is_hidden:
            return HIDDEN if self.is_there else None
        text = json.dumps(_hide_secrets(self.value), ensure_ascii=False, separators=(",", ":"))
        return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which ``kubectl`` keeps a manifest, that of a Secret too."""


def _is_secret(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") == "Secret"


def _hide_secrets(value: Any) -> Any:
    """Return a value in which all Secrets are hidden."""
    if isinstance(value, list):
        return [_hide_secrets(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _is_secret(value):
        return HIDDEN
    return {
        name: HIDDEN if name == _LAST_APPLIED else _hide_secrets(v) for name, v in value.items()
    }


_LENGTH = 60
"""Of a value in a message."""
_LEAD = 20
"""What is shown of two long values before they begin to differ."""


def _shorten(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Return two values so short that both fit into a line, with the place where they differ."""
    pairs = enumerate(zip(old or "", new or "", strict=False))
    same = next((index for index, (one, other) in pairs if one != other), 0)
    start = same - _LEAD if same > _LENGTH - _LEAD else 0
    return _cut(old, start), _cut(new, start)


def _cut(text: str | None, start: int) -> str | None:
    if text is None or len(text) <= _LENGTH:
        return text
    lead = "..." if start else ""
    rest = text[start:]
    room = _LENGTH - len(lead)
    return lead + (rest if len(rest) <= room else f"{rest[: room - 3]}...")


def _differing(
    before: _Field, after: _Field, live: Any, path: str = ""
) -> Iterator[tuple[str, _Field, _Field, Any]]:
    """Yield the fields that differ, with the live value; None where that is not known."""
    old, new = _steps(before.value), _steps(after.value)
    if old is not None and new is not None and type(before.value) is type(after.value):
        now = _steps(live) or {}
        for name in {**old, **new}:
            below = f"{path}{name}".removeprefix(".")
            value = live[now[name]] if name in now else None
            fields = before.part(old.get(name)), after.part(new.get(name))
            yield from _differing(*fields, value, below)
    elif before.value != after.value and not (_is_empty(before.value) and _is_empty(after.value)):
        yield path, before, after, live


def _steps(value: object) -> Mapping[str, str | int] | None:
    """Return keys as ``.field``, or indexes as ``[name]``; None of a value without such parts."""
    if isinstance(value, dict):
        return {f".{field}": field for field in value}
    return meaning.named_items(value) if isinstance(value, list) else None


def _is_empty(value: object) -> bool:
    return value is None or value in ({}, [])


# --- what a step changes, key by key, as a reviewer reads it ------------------------------------
# Of a Secret only the names of its keys leave this module: no value, no length, no hash.

_CONTEXT = 3
"""Unchanged lines around each change."""
_MOST_LINES = 5000
"""Of both values together: the time of a comparison may grow with the square of their number."""
_DIGITS = 12
"""Of a hash."""


@dataclass(frozen=True)
class KeyDiff:
    """The difference between two values of one key."""

    change: KeyChange
    lines: tuple[str, ...] = ()
    """A unified diff without file names: '@@ -1 +1 @@', '-old', '+new'. Every character of it can
    be printed, tabs too."""
    summary: str = ""
    """Instead of lines where a value is binary or too long: sizes and hashes."""


def content_diff(before: Json | None, after: Json) -> tuple[KeyDiff, ...]:
    """Return the differences between two states of a ConfigMap or Secret, sorted by key.

    >>> before = {"kind": "ConfigMap", "data": {"a": "1"}}
    >>> [key_diff] = content_diff(before, {"kind": "ConfigMap", "data": {"a": "2"}})
    >>> key_diff.lines[:2]
    ('@@ -1 +1 @@', '-1')

    :param before: the object as it is; None where it does not exist.
    :raises ValueError: a value that the server would refuse.
    """
    old, new = content(before).data if before else {}, content(after).data
    changes = key_changes(old, new)
    if after.get("kind") == "Secret":
        return tuple(map(KeyDiff, changes))
    return tuple(_key_diff(each, old.get(each.key), new.get(each.key)) for each in changes)


def _key_diff(change: KeyChange, old: bytes | None, new: bytes | None) -> KeyDiff:
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        return KeyDiff(change, summary=f"binary, {_sizes(old, new)}")
    if len(before) + len(after) > _MOST_LINES:
        return KeyDiff(change, summary=f"{len(before)} -> {len(after)} lines, {_sizes(old, new)}")
    return KeyDiff(change, tuple(_unified_diff(before, after)))


def _lines(value: bytes | None) -> list[str] | None:
    """Return the lines of a text, each with its line end; None where the value is binary."""
    try:
        text = (value or b"").decode()
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    *ended, last = text.split("\n")
    return [f"{line}\n" for line in ended] + ([last] if last else [])


def _unified_diff(before: list[str], after: list[str]) -> Iterator[str]:
    """Yield a unified diff, with a mark of a missing line end where that differs."""
    is_marked = bool(before and after) and _is_ended(before) != _is_ended(after)
    for line in list(difflib.unified_diff(before, after, n=_CONTEXT, lineterm=""))[2:]:
        yield printable(line.removesuffix("\n"))
        if is_marked and not line.startswith("@@") and not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _is_ended(lines: list[str]) -> bool:
    return lines[-1].endswith("\n")


def printable(text: str) -> str:
    """Return a text in which what would control a terminal is an escape sequence of Python."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text
    )


def printable_lines(text: str) -> str:
    """Return a text of several lines, each as :func:`printable` returns it."""
    return "\n".join(map(printable, text.split("\n")))


def _sizes(old: bytes | None, new: bytes | None) -> str:
    return f"{_size(old)} -> {_size(new)}"


def _size(value: bytes | None) -> str:
    if value is None:
        return "none"
    return f"{len(value)} bytes (sha256 {hashlib.sha256(value).hexdigest()[:_DIGITS]})"
