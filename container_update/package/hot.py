"""Heat templates as data: where a VDU's server stands, what a value comes from. Pure.

Source: Heat's template guide; which of a server's resources are whose is Tacker's convention: the
server's resource is named as the VDU (or its ``name`` property is), a volume's as the storage node.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.package.yaml11 import Limits, documents

SERVER, GROUP = "OS::Nova::Server", "OS::Heat::AutoScalingGroup"
_NESTED_ENDINGS = (".yaml", ".yml", ".template")


@dataclass(frozen=True)
class Body:
    """All that makes a stack: what Heat is sent, and what it gives back."""

    template: Json
    parameters: Json = field(default_factory=dict)
    """As given; what is not given has the template's default."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The nested templates and other files, by the names that the templates use."""
    environment: Json = field(default_factory=dict)
    """The environment without its parameters."""

    @property
    def hidden(self) -> frozenset[str]:
        """The parameters whose values Heat does not tell (``hidden: true``, in the template or in
        one nested in it): a body that was read has none for them."""
        names = [name for name in self.files if is_nested(name)]
        nested = [self.file(name) for name in names if _may_hide(self.files[name])]
        return frozenset(
            name
            for template in (self.template, *nested)
            for name, schema in (template.get("parameters") or {}).items()
            if str((schema or {}).get("hidden")).lower() == "true"
        )

    def as_request(self) -> Json:
        """For a create, or for an update that keeps nothing (PUT)."""
        return {
            "template": self.template,
            "parameters": self.parameters,
            "files": dict(self.files),
            "environment": self.environment,
        }

    def as_update(self) -> tuple[Json, bool]:
        """For an update: the request, and whether it is a PATCH. Hidden parameters can only be
        left as they are, which PUT cannot; what else is not given is cleared, as PUT does."""
        schemata = set(self.template.get("parameters") or {})
        left = (self.hidden & schemata) - set(self.parameters)
        if not left:
            return self.as_request(), False
        cleared = sorted(schemata - left - set(self.parameters))
        return self.as_request() | {"clear_parameters": cleared}, True

    def file(self, name: str) -> Json:
        """A nested template. PackageError where it is missing or no template."""
        if name not in self.files:
            raise PackageError(
                f"{name}: a template uses it as a resource's type, and the package has no such "
                "file beside the top template or in the folder nested: add it"
            )
        return parse(self.files[name], name)


def parse(text: str | bytes, source: str, limits: Limits | None = None) -> Json:
    """A template. PackageError where it is none; dates stay text."""
    raw = text.encode() if isinstance(text, str) else text
    found = [document.value for document in documents(raw, source, limits or Limits())]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise PackageError(f"{source}: expected one YAML document with a HEAT template")
    template: Json = found[0]
    for section in ("parameters", "resources"):
        if not isinstance(template.get(section) or {}, dict):
            raise PackageError(f"{source}: expected a mapping under {section}")
    if "heat_template_version" not in template or not template.get("resources"):
        raise PackageError(f"{source}: expected heat_template_version and resources")
    return template


def _may_hide(text: str) -> bool:
    """Whether it may be a template with hidden parameters: user data can have the same ending."""
    return "heat_template_version" in text and "hidden" in text


def is_nested(kind: object) -> bool:
    """Whether a resource of this type is a template of its own."""
    return isinstance(kind, str) and kind.endswith(_NESTED_ENDINGS)


# --- where a server stands ----------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a tree of templates defines a server."""

    head: str
    """The resource of the top template: the server itself, or what holds it."""
    grouped: bool = False
    """The head is a scaling group with a member for each server."""
    file: str | None = None
    """The nested template that the server is in."""
    server: str | None = None
    """Its name there, or at the top; None: a group's member is itself the server."""

    def __str__(self) -> str:
        return ".".join(filter(None, (self.head, "*" * self.grouped, self.file and self.server)))


def servers(body: Body) -> Iterator[tuple[Place, Json]]:
    """Every server of a tree with its definition."""
    for head, definition in body.template["resources"].items():
        kind = definition.get("type")
        if kind == SERVER:
            yield Place(head, server=head), definition
            continue
        grouped = kind == GROUP
        inner: Json = (definition.get("properties") or {}).get("resource") or {}
        inner = inner if grouped else definition
        kind = inner.get("type")
        if grouped and kind == SERVER:
            yield Place(head, grouped=True), inner
        elif isinstance(kind, str) and is_nested(kind):
            for name, found in body.file(kind)["resources"].items():
                if found.get("type") == SERVER:
                    yield Place(head, grouped, kind, name), found


def places_named(body: Body, vdu_id: str, vdu_name: str) -> list[Place]:
    """Every place where a VDU's server may stand."""
    return [
        place
        for place, definition in servers(body)
        if {place.server or place.head, (definition.get("properties") or {}).get("name")}
        & {vdu_id, vdu_name}
    ]


def place_of(body: Body, vdu_id: str, vdu_name: str, source: str) -> Place:
    """Where a VDU's server stands. PackageError where there is none, or more than one."""
    found = places_named(body, vdu_id, vdu_name)
    if len(found) != 1:
        known = ", ".join(str(place) for place, _ in servers(body)) or "none"
        raise PackageError(
            f"{source}: expected one {SERVER} for {vdu_id}, a resource of that name or one whose "
            f'property name is "{vdu_name}"; found {len(found)} (the servers are: {known})'
        )
    return found[0]


def holder(body: Body, place: Place) -> Json:
    """The definition with which the top template asks for a nested template."""
    definition: Json = body.template["resources"][place.head]
    return definition["properties"]["resource"] if place.grouped else definition


def needed(template: Mapping[str, Any], names: set[str]) -> set[str]:
    """The resources, and all that they need within the template."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= (_references(template["resources"][name]) & set(template["resources"])) - found
    return found


def _references(definition: Json) -> set[str]:
    explicit = definition.get("depends_on") or []
    found = {explicit} if isinstance(explicit, str) else set(explicit)
    for name, argument in _calls(definition.get("properties") or {}):
        if name == "get_resource":
            found.add(argument)
        elif name == "get_attr":
            found.add(argument[0])
    return found


def _calls(value: Any) -> Iterator[tuple[str, Any]]:
    """Every use of an intrinsic function, wherever it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if len(value) == 1 and key.startswith("get_"):
                yield key, inner
            else:
                yield from _calls(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _calls(inner)


# --- values and where they come from --------------------------------------------------------------


Path = tuple[str | int, ...]
"""A parameter's name, then keys and indices within its value."""


def parameter_path(value: Any) -> Path | None:
    """What a ``get_param`` points at; None for anything else."""
    if not isinstance(value, dict) or set(value) != {"get_param"}:
        return None
    argument = value["get_param"]
    path = tuple(argument) if isinstance(argument, list) else (argument,)
    return path if all(isinstance(step, (str, int)) for step in path) else None


def traced(body: Body, place: Place, value: Any) -> Path | None:
    """The top parameter that a value of the server's template comes from; None: from elsewhere."""
    path = parameter_path(value)
    if path is None or place.file is None:
        return path
    name, *rest = path
    above = parameter_path((holder(body, place).get("properties") or {}).get(name))
    return None if above is None else (*above, *rest)


def get_at(parameters: Mapping[str, Any], path: Path) -> Any:
    """The value at a path; None where there is none."""
    value: Any = parameters
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def set_at(parameters: Json, path: Path, value: Any) -> Json:
    """The parameters with another value at a path."""
    changed = copy.deepcopy(parameters)
    inner: Any = changed
    for step in path[:-1]:
        inner = inner.setdefault(step, {}) if isinstance(inner, dict) else inner[step]
    inner[path[-1]] = value
    return changed


def typed(template: Mapping[str, Any], parameters: Mapping[str, Any]) -> Json:
    """The parameters with those of type json as values, which may come as text."""
    schemata = template.get("parameters") or {}
    return {
        name: json.loads(value)
        if schemata.get(name, {}).get("type") == "json" and isinstance(value, str)
        else value
        for name, value in parameters.items()
    }


def in_force(body: Body) -> Json:
    """Every parameter's value: as given, else the template's default. Hidden ones that are not
    given are left out: what is in force is not known."""
    schemata: Mapping[str, Json] = body.template.get("parameters") or {}
    hidden = body.hidden
    known = {name: schema for name, schema in schemata.items() if name not in hidden}
    defaults = {name: schema["default"] for name, schema in known.items() if "default" in schema}
    return typed(body.template, {**defaults, **body.parameters})


def bound(value: Any, parameters: Mapping[str, Any], names: set[str]) -> Any:
    """The value with ``get_param`` of these names replaced by what they give."""
    path = parameter_path(value)
    if path is not None and path[0] in names:
        return get_at(parameters, path)
    if isinstance(value, dict):
        return {key: bound(inner, parameters, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [bound(inner, parameters, names) for inner in value]
    return value


def is_plain(value: Any) -> bool:
    """Whether there is no intrinsic function left in it."""
    if isinstance(value, dict):
        functions = ("get_", "str_", "list_", "map_", "yaql", "repeat", "digest", "resource_facade")
        if len(value) == 1 and str(next(iter(value))).startswith(functions):
            return False
        return all(is_plain(inner) for inner in value.values())
    return not isinstance(value, list) or all(is_plain(inner) for inner in value)
