# SPDX-License-Identifier: Apache-2.0
"""A manifest and its live object: which one stands for it, whether it has all that the manifest
says, and what another client wrote into it. Pure."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from container_update.model.objects import Json, ObjectKey, Source, get_at
from container_update.model.plan import image_place
from container_update.planning.comparison import meaning
from container_update.workloads.api_resources import is_built_in
from container_update.workloads.registry import kind_of_body

# --- which live Deployment stands in for one that a manifest names ------------------------------
# A Blue-Green change whose new Deployment bears the old one's name has to give it another one while
# both run. An annotation says which manifest it is of, until the pods are handed over.

NAME_ANNOTATION = "container-update/stands-for"
"""On a Deployment: the name that its manifest gives it."""


def live_names(live: Mapping[ObjectKey, Json]) -> dict[ObjectKey, ObjectKey]:
    """Return the identity in a manifest to the identity of the live object that stands in for it,
    of a change that did not come to its end.

    An object that has its own name in the cluster needs no stand-in.
    """
    names: dict[ObjectKey, ObjectKey] = {}
    for key, body in live.items():
        if key.kind == "Deployment":
            named = replace(key, name=manifest_name(body))
            if named not in live:
                names[named] = key
    return names


def manifest_name(live: Json) -> str:
    """Return the name that the manifest of a live object has."""
    metadata = live["metadata"]
    return str((metadata.get("annotations") or {}).get(NAME_ANNOTATION) or metadata["name"])


def rename(body: Json, name: str) -> None:
    """Give a manifest with annotations the name of its live object, and note its own there."""
    metadata = body["metadata"]
    if metadata["name"] != name:
        metadata["annotations"][NAME_ANNOTATION] = metadata["name"]
        metadata["name"] = name


# --- whether it has everything ------------------------------------------------------------------


def covers(live: Json, manifest: Json) -> bool:
    """Tell whether a live object has everything that its manifest says.

    What else it has does not count: the server adds defaults, and may spell the same otherwise.
    Replicas do not count: an autoscaler or an operator owns them.
    """
    fields = {name: value for name, value in manifest.items() if name not in NOT_CONTENT}
    spec = fields.get("spec")
    if isinstance(spec, dict):
        fields["spec"] = {name: value for name, value in spec.items() if name != "replicas"}
    metadata = {name: manifest["metadata"].get(name) for name in ("labels", "annotations")}
    return meaning.has(live, {**fields, "metadata": metadata}, built_in=_is_built_in(live))


def _is_built_in(body: Json) -> bool:
    version = str(body.get("apiVersion", ""))
    return is_built_in(version.rpartition("/")[0])


NOT_CONTENT = frozenset({"apiVersion", "kind", "metadata", "status"})


def as_made_by(live: Json, manifest: Json) -> Json:
    """Return a live object with its manifest's selector, or a Pod with its tolerations."""
    spec, said = live.get("spec") or {}, manifest.get("spec") or {}
    if (live.get("apiVersion"), live.get("kind")) == ("v1", "Pod"):  # admission adds to these
        return {**live, "spec": {**spec, "tolerations": said.get("tolerations")}}
    template = spec.get("template")
    labels = (said.get("selector") or {}).get("matchLabels") if "template" in said else None
    if not (labels and isinstance(template, dict)):
        return live
    metadata = template.get("metadata") or {}
    both = {**(metadata.get("labels") or {}), **labels}
    template = {**template, "metadata": {**metadata, "labels": both}}
    return {**live, "spec": {**spec, "selector": said["selector"], "template": template}}


# --- three ways ---------------------------------------------------------------------------------
# Ours is what the new manifest states differently from the old one. A field on which both agree and
# that another client has changed since stays as it is.

_IDENTIFIES = (
    *("name", "containerPort", "port", "mountPath", "devicePath", "ip", "topologyKey", "key"),
)
"""What an element of a list is told by (API reference: patchMergeKey)."""


_IMAGE = re.compile(r"ontainers\[([^]]+)\]\.image$")
"""The path of a container's image."""


@dataclass(frozen=True)
class Drift:
    """A field on which two manifests agree, and which another client has changed."""

    path: str
    said: Any = field(repr=False)
    live: Any = field(repr=False)
    """None where it has been taken away."""

    def note(self, source: Source) -> str:
        """Return what to say of it: no value but an image's."""
        if image := _IMAGE.search(self.path):
            now = f"has image {self.live}, both packages say {self.said}"
            return f"drift: {image_place(image[1])} {now}: left alone"
        agree = f"was changed in the cluster, both packages ({source}) agree: left alone"
        return f"drift: {self.path} {agree}"


def three_ways(new: Json, old: Json, live: Json) -> tuple[Json, tuple[Drift, ...]]:
    """Return the new manifest with the live values of what both manifests state in the same way,
    and where these are others.

    Of the metadata labels and annotations count. Replicas have a rule of their own.
    """
    drift: list[Drift] = []
    mine, before, now = (_comparable(body) for body in (new, old, live))
    merged = _merge(mine, before, now, (), drift, _is_built_in(new))
    metadata = {**new["metadata"], **merged.pop("metadata")}
    rest = {name: value for name, value in new.items() if name not in mine}
    result = copy.deepcopy({**rest, **merged, "metadata": metadata})
    if "replicas" in (new.get("spec") or {}):
        result["spec"]["replicas"] = new["spec"]["replicas"]
    return result, tuple(drift)


def _comparable(body: Json) -> Json:
    """Return what two manifests may agree on."""
    fields = {name: value for name, value in body.items() if name not in NOT_CONTENT}
    if isinstance(fields.get("spec"), dict):
        fields["spec"] = {n: v for n, v in fields["spec"].items() if n != "replicas"}
    metadata = body["metadata"]
    own = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    return {**fields, "metadata": own}


def _merge(  # noqa: PLR0913, PLR0917
    new: Any, old: Any, live: Any, path: meaning.Path, drift: list[Drift], built_in: bool
) -> Any:
    mine, before, now = (_elements(value) for value in (new, old, live))
    if (
        type(new) is type(old) is type(live)
        and mine is not None
        and before is not None
        and now is not None
    ):
        kept = {}
        for name, value in mine.items():
            place = f"[{name[1]}]" if isinstance(name, tuple) else name
            below = (*path, place)
            merged = _merge(value, before.get(name), now.get(name), below, drift, built_in)
            if merged is not None or value is None:
                kept[name] = merged
        return [*kept.values()] if isinstance(new, list) else kept
    fields = tuple(name for name in path if not name.startswith("["))
    is_there = meaning.has(live, new, fields, built_in=built_in)
    if is_there or not meaning.is_same(new, old, fields, built_in=built_in):
        return new
    drift.append(Drift(".".join(path).replace(".[", "["), new, live))
    return live


def _elements(value: Any) -> Mapping[Any, Any] | None:
    """Return the parts of a mapping or list by what each is told by; None of one whole value."""
    if isinstance(value, dict):
        return value
    if not (isinstance(value, list) and value and all(isinstance(each, dict) for each in value)):
        return None
    for name in _IDENTIFIES:
        # ports of one number may differ in the protocol, tolerations of one key in the effect
        more = _DEFAULT_KEYS.items()
        named = {
            (name, str(each[name]), *(str(each.get(n) or default) for n, default in more)): each
            for each in value
            if each.get(name)
        }
        if len(named) == len(value):
            return named
    return None


# --- what another client wrote -------------------------------------------------------------------
# Who did is in ``metadata.managedFields``. A manager that wrote anything of what the manifest says
# is one of those who deployed the object, and its other fields are defaults. What all others wrote
# is theirs: an injected CA, aggregated rules, the settings of an operator. The object's own labels
# and annotations have rules elsewhere; to a pod template no server adds any, so that what no
# manifest says is another client's. Source: Kubernetes documentation, "Server-Side Apply",
# FieldsV1.

_DEFAULT_KEYS = {"protocol": "TCP", "effect": ""}
"""What identifies an element of a list also where a manifest leaves it out."""

_Tree = Mapping[str, Any]
"""Fields as FieldsV1 has them: ``f:NAME`` of a mapping, ``k:{...}`` of a list, ``.`` itself."""
_Step = str | Mapping[str, Any]
"""The name of a field, or what identifies an element of a list."""


@dataclass(frozen=True)
class Manager:
    """A client that wrote fields of an object, and nothing that its manifest says."""

    name: str
    applies: bool
    """By server-side apply: it says itself that the fields are its own."""
    fields: _Tree


def managers(said: Json, live: Json) -> Iterator[Manager]:
    """Yield the others who wrote into a live object; *said*: its manifest."""
    for entry in live["metadata"].get("managedFields") or ():
        fields = {**(entry.get("fieldsV1") or {}), "f:metadata": None, "f:status": None}
        applies = entry.get("operation") == "Apply"
        if not _has_written(fields, said, live, applies):
            yield Manager(str(entry.get("manager")), applies, fields)


def with_fields_of_others(
    new: Json, old: Json | None, live: Json, *, is_whole: bool = False
) -> Json:
    """Return the new manifest with what others wrote where neither manifest says anything.

    :param is_whole: this program has written all of the live object, from one of them.
    """
    result, kind = copy.deepcopy(new), kind_of_body(live)
    bodies = result, old or {}, live
    if kind is None or kind.is_pod or not is_whole:
        for manager in managers(new if old is None else old, live):
            _lay(*bodies, manager.fields)
    if kind is not None and not kind.is_pod:
        path = ("spec",) if is_whole else (*kind.template_path, "metadata")
        into, before, now = (get_at(body, path) or {} for body in bodies)
        _add_unstated(into, before, now, path)
        if into:
            get_at(result, path[:-1])[path[-1]] = into
    return result


_OWN_RULES = {("spec", "replicas"), ("spec", "selector")}
"""Fields of a workload that have rules of their own."""


def _add_unstated(into: Any, old: Any, live: Any, path: meaning.Path) -> None:
    """Add what a live value has beside defaults, and neither manifest states."""
    if isinstance(into, list):
        now, mine, before = (_elements(value) if value else {} for value in (live, into, old))
        if now is None or mine is None or before is None:
            return
        for name, element in now.items():
            if name in mine:
                _add_unstated(mine[name], before.get(name), element, path)
            elif name not in before:
                into.append(copy.deepcopy(element))
    elif isinstance(into, dict) and isinstance(live, dict) and not _is_variant(into, live):
        for name in meaning.normal(live, path) or ():
            below = (*path, name)
            mine, before, value = into.get(name), _part(old, name), live[name]
            if below in _OWN_RULES:
                continue
            if not _is_unsaid(mine):
                _add_unstated(mine, before, value, below)
            elif _is_unsaid(before):
                into[name] = copy.deepcopy(value)
            elif isinstance(value, list) or name in meaning.MAPS:
                rest = type(value)()  # the new manifest takes away what the old one has
                _add_unstated(rest, before, value, below)
                into.update({name: rest} if rest else {})


def _is_variant(one: Json, other: Json) -> bool:
    """Tell whether two mappings are of different types, or volumes of different sources."""
    both = one.keys() & other.keys()
    is_named = both == {"name"} and min(len(one), len(other)) > 1
    return is_named or ("type" in both and one["type"] != other["type"])


def _has_written(
    tree: _Tree, said: Any, live: Any, applies: bool, key: Container[str] = ()
) -> bool:
    """Tell whether a manager wrote the stated value.

    :param key: the names by which the element of a list is told: who applies anything of it applies
        them too.
    """
    for step, below, value in _parts(tree, live):
        mine, named = _part(said, step), isinstance(step, str)
        if _is_unsaid(mine) or (applies and named and step in key):
            continue
        is_same = meaning.is_same(mine, value)
        if _is_branch(below):
            is_same = _has_written(below, mine, value, applies, () if named else step)
        if is_same:
            return True
    return False


def _lay(into: Any, old: Any, live: Any, tree: _Tree) -> None:
    for step, below, value in _parts(tree, live):
        mine = _part(into, step)
        if not _is_unsaid(mine):
            if not _is_branch(below):  # all of it is another client's
                _add_unstated(mine, _part(old, step), value, (str(step),))
            _lay(mine, _part(old, step), value, below)
        elif not _is_unsaid(_part(old, step)):
            continue  # the new manifest takes it away
        elif isinstance(step, str) and isinstance(into, dict):
            into[step] = _only(value, below)
        elif isinstance(into, list) and (not below or "." in below):
            into.append(_only(value, below))


def _only(value: Any, tree: _Tree) -> Any:
    """Return a value with only the fields that a tree names; all of it where it names none."""
    if not _is_branch(tree):
        return copy.deepcopy(value)
    parts = [(step, _only(part, below)) for step, below, part in _parts(tree, value)]
    return dict(parts) if isinstance(value, dict) else [part for _, part in parts]


def _parts(tree: _Tree, live: Any) -> Iterator[tuple[_Step, _Tree, Any]]:
    """Yield the fields and elements of a live value that a tree names, with what is below."""
    for name, below in tree.items():
        sort, _, text = name.partition(":")
        if sort in ("f", "k"):
            step: _Step = text if sort == "f" else json.loads(text)
            value = _part(live, step)
            if value is not None and isinstance(below, Mapping):
                yield step, below, value


def _part(value: Any, step: _Step) -> Any:
    """Return a field of a mapping or an element of a list; None where there is none."""
    if isinstance(step, str):
        return value.get(step) if isinstance(value, Mapping) else None
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping) and all(
            (item.get(name) or _DEFAULT_KEYS.get(name, item.get(name))) == said
            for name, said in step.items()
        ):
            return item
    return None


def _is_branch(tree: _Tree) -> bool:
    return any(step != "." for step in tree)


def _is_unsaid(value: Any) -> bool:
    """Tell whether a manifest leaves a value to the server: it says '' or []."""
    return value is None or value in ("", {}, [])
