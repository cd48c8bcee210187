# SPDX-License-Identifier: Apache-2.0
"""Heat templates as data: the definition of a VDU's server, the parameter of a value. Pure.

Source: Heat's template guide. The names are Tacker's convention: the resource of a server, or its
property ``name``, is named like the VDU; the resource of a volume like the storage node.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from container_update.model.errors import PackageError
from container_update.model.objects import FieldPath, Json, get_at
from container_update.model.options import DEFAULTS, Options
from container_update.model.schema import LINE, MAPPING, TEXT, Fields, MapOf
from container_update.package.findings import Reading
from container_update.package.yaml11 import FieldLines, mapping

SERVER, GROUP = "OS::Nova::Server", "OS::Heat::AutoScalingGroup"
_RESOURCE = Fields({"type": TEXT, "properties": MAPPING})
TEMPLATE = Fields(
    {
        "parameters": MapOf(LINE, MAPPING, nullable=False),
        "resources": MapOf(LINE, _RESOURCE, nullable=False),
    }
)
"""What is read of a template, in a package and in what Heat answers."""
_NESTED_ENDINGS = (".yaml", ".yml", ".template")


@dataclass(frozen=True)
class StackBody:
    """Everything that defines a stack, as Heat takes and returns it."""

    template: Json
    parameters: Json = field(default_factory=dict)
    """The values that were set; other parameters have the template's default."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The nested templates and other files, by the names in the templates."""
    environment: Json = field(default_factory=dict)
    """The environment without its parameters."""

    @property
    def hidden(self) -> frozenset[str]:
        """The parameters whose values Heat does not show (``hidden: true`` in the template or in a
        nested one): a body that was read from Heat has no values for them."""
        nested = [
            self.file(name)
            for name, text in self.files.items()
            # others are no templates, or too big to be parsed for nothing
            if is_nested(name) and "heat_template_version" in text and "hidden" in text
        ]
        return frozenset(
            name
            for template in (self.template, *nested)
            for name, schema in (template.get("parameters") or {}).items()
            if str((schema or {}).get("hidden")).lower() == "true"
        )

    @property
    def parameter_defaults(self) -> Json:
        """The environment's defaults, for parameters of any template."""
        return self.environment.get("parameter_defaults") or {}

    def as_request(self) -> Json:
        """Return the request of a create, or of an update that keeps nothing (PUT)."""
        return {
            "template": self.template,
            "parameters": self.parameters,
            "files": dict(self.files),
            "environment": self.environment,
        }

    def as_update(self) -> tuple[Json, bool]:
        """Return the request of an update, and whether it must be a PATCH.

        PATCH keeps hidden parameters that have no value here, which PUT cannot do; all other
        parameters without a value are cleared, as PUT does.
        """
        names = set(self.template.get("parameters") or {})
        kept = (self.hidden & names) - set(self.parameters)
        if not kept:
            return self.as_request(), False
        cleared = sorted(names - kept - set(self.parameters))
        return self.as_request() | {"clear_parameters": cleared}, True

    def file(self, name: str) -> Json:
        """Return a nested template; PackageError where the file is missing or no template."""
        if name not in self.files:
            raise PackageError(
                f"{name}: a template has a resource of this type, but the package has no such file "
                "beside the top template or in the folder nested: add the file"
            )
        return parse(self.files[name], name)


def parse(
    text: str, source: str, options: Options = DEFAULTS, reading: Reading | None = None
) -> Json:
    """Parse a template, dates stay text; PackageError: it is not a template."""
    content = text.encode()
    template = mapping(content, source, options, "a HEAT template", reading)
    for wrong in TEMPLATE.violations(template):
        line = FieldLines(content).line(0, wrong.path)
        raise PackageError(
            f"{source}:{line}: expected {wrong.expected} as {wrong.field}, found {wrong.found}"
        )
    if "heat_template_version" not in template or not template.get("resources"):
        raise PackageError(f"{source}: expected heat_template_version and resources")
    return template


def is_nested(kind: object) -> TypeGuard[str]:
    """Return whether a resource of this type is a nested template."""
    return isinstance(kind, str) and kind.endswith(_NESTED_ENDINGS)


# --- where a server is defined ------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where the top template and its nested templates define a server."""

    head: str
    """The resource of the top template: the server itself, or the one that contains it."""
    grouped: bool = False
    """The head is a scaling group with one member per server."""
    file: str | None = None
    """The nested template that defines the server; None: the top template does."""
    server: str | None = None
    """The server's resource in its template; None: the group's member is the server."""

    def __str__(self) -> str:
        return ".".join(filter(None, (self.head, "*" * self.grouped, self.file and self.server)))


def servers(body: StackBody) -> Iterator[tuple[Place, Json]]:
    """Yield every server of the templates with its definition."""
    for head, definition in body.template["resources"].items():
        grouped = definition.get("type") == GROUP
        member = (definition.get("properties") or {}).get("resource")
        inner: Any = member if grouped else definition
        kind = inner.get("type") if isinstance(inner, dict) else None
        if kind == SERVER:
            yield Place(head, grouped, server=None if grouped else head), inner
        elif is_nested(kind):
            for name, resource in body.file(kind)["resources"].items():
                if resource.get("type") == SERVER:
                    yield Place(head, grouped, kind, name), resource


def places_named(body: StackBody, vdu_id: str, vdu_name: str) -> list[Place]:
    """Return every place with a server that is named like the VDU."""
    names = (vdu_id, vdu_name)
    return [
        place
        for place, definition in servers(body)
        if (place.server or place.head) in names
        or (definition.get("properties") or {}).get("name") in names
    ]


def places_in(body: StackBody, vdus: Mapping[str, str]) -> dict[str, Place]:
    """Return the place of the server of each VDU that has one, of VDUs by id with their names."""
    return {
        vdu_id: place for vdu_id, name in vdus.items() for place in places_named(body, vdu_id, name)
    }


def place_of(body: StackBody, vdu_id: str, vdu_name: str, source: str) -> Place:
    """Return the place of a VDU's server; PackageError: there is none, or more than one."""
    places = places_named(body, vdu_id, vdu_name)
    if len(places) != 1:
        names = ", ".join(str(place) for place, _ in servers(body)) or "none"
        raise PackageError(
            f"{source}: expected one {SERVER} for {vdu_id}, a resource with that name or one whose "
            f'property name is "{vdu_name}"; found {len(places)} (the servers are: {names})'
        )
    return places[0]


def outer_definition(body: StackBody, place: Place) -> Json:
    """Return the top template's definition of the resource that is a nested template."""
    definition: Json = body.template["resources"][place.head]
    return definition["properties"]["resource"] if place.grouped else definition


def with_dependencies(
    template: Mapping[str, Any], names: set[str], without: Collection[str] = ()
) -> set[str]:
    """Return the names of the resources and of everything that they depend on in the template.

    :param without: where to stop: what only these depend on is left out too.
    """
    known = set(template["resources"]).difference(without)
    closure: set[str] = set()
    queue = set(names)
    while queue:
        name = queue.pop()
        closure.add(name)
        queue |= (references(template["resources"][name]) & known) - closure
    return closure


def references(definition: Json) -> set[str]:
    """Return the names of the resources that a resource depends on."""
    explicit = definition.get("depends_on") or []
    named = [explicit] if isinstance(explicit, str) else explicit
    for function, argument in calls(definition.get("properties") or {}):
        if function == "get_resource":
            named = [*named, argument]
        elif function == "get_attr" and isinstance(argument, list):
            named = [*named, *argument[:1]]
    return {name for name in named if isinstance(name, str)}


def calls(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and argument of every intrinsic function in a value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if len(value) == 1 and key.startswith("get_"):
                yield key, inner
            else:
                yield from calls(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from calls(inner)


# --- parameters and the values that refer to them -----------------------------------------------


def parameter_path(value: Any) -> FieldPath | None:
    """Return the path of a ``get_param``: the parameter's name, then keys and indexes within its
    value; None for any other value."""
    if not isinstance(value, dict) or set(value) != {"get_param"}:
        return None
    argument = value["get_param"]
    path = tuple(argument) if isinstance(argument, list) else (argument,)
    return path if all(isinstance(step, (str, int)) for step in path) else None


def top_parameter(body: StackBody, place: Place, value: Any) -> FieldPath | None:
    """Return the top template's parameter that a value of a server comes from; None if none."""
    path = parameter_path(value)
    if path is None or place.file is None:
        return path
    name, *rest = path
    top_path = parameter_path((outer_definition(body, place).get("properties") or {}).get(name))
    return None if top_path is None else (*top_path, *rest)


def set_at(parameters: Json, path: FieldPath, value: Any) -> Json:
    """Return a copy of the parameters with another value at a path; what is missing on the way is
    made, a list where the next step is an index."""
    changed = copy.deepcopy(parameters)
    inner: Any = changed
    for step, following in itertools.pairwise(path):
        inner = _get_or_make(inner, step, [] if isinstance(following, int) else {})
    _get_or_make(inner, path[-1], None)
    inner[path[-1]] = value
    return changed


def _get_or_make(inner: Any, step: str | int, empty: Any) -> Any:
    """Return the value at a key or an index; make it *empty* where there is none."""
    if isinstance(inner, list) and isinstance(step, int):
        inner += [None] * (step + 1 - len(inner))
        if inner[step] is None:
            inner[step] = empty
        return inner[step]
    return inner.setdefault(step, empty)


def parse_json(template: Mapping[str, Any], parameters: Mapping[str, Any]) -> Json:
    """Return the parameters; parse those of type json, which Heat may return as text."""
    schemas = template.get("parameters") or {}
    return {
        name: json.loads(value)
        if schemas.get(name, {}).get("type") == "json" and isinstance(value, str)
        else value
        for name, value in parameters.items()
    }


def effective_parameters(body: StackBody) -> Json:
    """Return every parameter's value: the one that was set, or the default of the environment, or
    that of the template.

    Hidden parameters without a value are left out: their values are not known.
    """
    schemas: Mapping[str, Json] = body.template.get("parameters") or {}
    known = {name: schema["default"] for name, schema in schemas.items() if "default" in schema}
    known |= body.parameter_defaults
    defaults = {name: known[name] for name in schemas.keys() & known.keys() - body.hidden}
    return parse_json(body.template, {**defaults, **body.parameters})


def bind(value: Any, body: StackBody) -> Any:
    """Return a value of a stack's template with the values of parameters (``get_param``) and the
    contents of files (``get_file``) written in, as far as they are known.

    Where nothing is at the path in a parameter, that is an empty text, as in Heat.
    """
    parameters = effective_parameters(body)

    def bind_value(value: Any) -> Any:
        path = parameter_path(value)
        if path is not None and path[0] in parameters:
            inside = get_at(parameters, path)
            return "" if inside is None and len(path) > 1 else inside
        if (name := file_name(value)) in body.files:
            return body.files[name]
        if isinstance(value, dict):
            return {key: bind_value(inner) for key, inner in value.items()}
        return [bind_value(inner) for inner in value] if isinstance(value, list) else value

    return bind_value(value)


def file_name(value: Any) -> str:
    """Return the name in a ``get_file``; empty for any other value."""
    if not isinstance(value, dict) or set(value) != {"get_file"}:
        return ""
    return str(value["get_file"])


def with_ids(value: Any, ids: Mapping[str, str | None]) -> Any:
    """Return the value with each ``get_resource`` of a resource that has an id replaced by it."""
    if isinstance(value, dict):
        if set(value) == {"get_resource"} and ids.get(value["get_resource"]):
            return ids[value["get_resource"]]
        return {key: with_ids(inner, ids) for key, inner in value.items()}
    return [with_ids(inner, ids) for inner in value] if isinstance(value, list) else value


def is_literal(value: Any) -> bool:
    """Return whether a value contains no intrinsic function."""
    families = ("get_", "str_", "list_", "map_", "yaql", "repeat", "digest", "resource_facade")
    others = {"if", "filter", "contains", "make_url"}
    mappings = (each for each in every(value) if isinstance(each, dict) and len(each) == 1)
    names = (str(next(iter(each))) for each in mappings)
    return not any(name.startswith(families) or name in others for name in names)


def every(value: Any) -> Iterator[Any]:
    """Yield a value, and all values in it."""
    yield value
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, dict | list) else ():
        yield from every(part)
