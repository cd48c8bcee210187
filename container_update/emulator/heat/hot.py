# SPDX-License-Identifier: Apache-2.0
"""Heat Orchestration Templates: parameters, dependencies and intrinsic functions. Pure.

Source: Heat's template guide. Only the functions that BaseHOTs use are implemented.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from container_update.emulator.heat.api_errors import bad_request
from container_update.emulator.json_type import Json

TEMPLATE_ENDINGS = (".yaml", ".yml", ".template")
"""A resource type with such an ending names a nested template."""


class _Loader(yaml.SafeLoader):
    """Reads ``heat_template_version: 2013-05-23`` as a text, not as a date."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse(template: object) -> Json:
    """Return a template that a request or its files hold as text or as JSON."""
    try:
        body = yaml.load(template, _Loader) if isinstance(template, str) else template  # noqa: S506
    except yaml.YAMLError as error:
        message = f"Template not in valid format: {error}"
        raise bad_request(message, "HTTPBadRequest") from error
    if not isinstance(body, dict) or "heat_template_version" not in body:
        raise bad_request("Template format version not found.", "InvalidTemplateVersion")
    return body


def is_nested(kind: str) -> bool:
    """Return whether a resource of this type is a nested stack."""
    return kind.endswith(TEMPLATE_ENDINGS)


def resources(template: Mapping[str, Any]) -> Mapping[str, Json]:
    """Return the definitions of the template's resources by name."""
    return template.get("resources") or {}


# --- parameters ---------------------------------------------------------------------------------


def parameters(template: Mapping[str, Any], given: Mapping[str, Any]) -> Json:
    """Return every parameter's value: the given one, else the default.

    :raises OpenStackApiError: 400 for a parameter without a value, or that is not defined.
    """
    schemata = template.get("parameters") or {}
    for name in given:
        if name not in schemata:
            raise bad_request(
                f"The Parameter ({name}) was not defined in template.", "UnknownUserParameter"
            )
    values = {}
    for name, schema in schemata.items():
        value = given.get(name, schema.get("default"))
        if value is None:
            raise bad_request(f"The Parameter ({name}) was not provided.", "UserParameterMissing")
        values[name] = _convert(name, value, str(schema.get("type", "string")))
    return values


def _convert(name: str, value: Any, kind: str) -> Any:
    try:
        if kind == "number" and isinstance(value, str):
            number = float(value)
            return int(value) if value.strip().lstrip("+-").isdigit() else number
        if kind == "json" and isinstance(value, str):
            return json.loads(value)
    except ValueError as error:
        raise bad_request(f"Parameter '{name}' is invalid: {error}") from error
    if kind == "comma_delimited_list" and isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if kind == "string" and not isinstance(value, str):
        return str(value)
    return value


# --- dependencies -------------------------------------------------------------------------------


def in_order(template: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the resources' names, each after those that it depends on."""
    definitions = resources(template)
    waiting = {name: dependencies(body) & set(definitions) for name, body in definitions.items()}
    done: list[str] = []
    while waiting:
        ready = [name for name, needed in waiting.items() if needed <= set(done)]
        if not ready:
            raise bad_request(f"Circular Dependency Found: {sorted(waiting)}", "CircularDependency")
        done += ready
        waiting = {name: needed for name, needed in waiting.items() if name not in ready}
    return tuple(done)


def dependencies(definition: Json) -> set[str]:
    """Return the names of the resources that this one depends on."""
    explicit = definition.get("depends_on") or []
    names = {explicit} if isinstance(explicit, str) else set(explicit)
    return names | set(_references(definition.get("properties") or {}))


def attributes_used(template: Json, name: str) -> Iterator[list[Any]]:
    """Yield the paths of the attributes of one resource that the template reads."""
    waiting: list[Any] = [template]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            path = value.get("get_attr")
            if isinstance(path, list) and path and path[0] == name:
                yield path[1:]


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "get_resource":
                yield inner
            elif key == "get_attr":
                yield inner[0]
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


# --- functions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TemplateScope:
    """What a template's functions look up."""

    parameters: Mapping[str, Any]
    resource_id: Callable[[str], str | None]
    attribute: Callable[[str, list[Any]], Any]
    files: Mapping[str, str]


def resolve(value: Any, scope: TemplateScope) -> Any:
    """Return the value with every function replaced by its result."""
    if isinstance(value, list):
        return [resolve(inner, scope) for inner in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, argument),) = value.items()
        function = _FUNCTIONS.get(name)
        if function is not None:
            return function(argument, scope)
    return {key: resolve(inner, scope) for key, inner in value.items()}


def _get_param(argument: Any, scope: TemplateScope) -> Any:
    """Return a parameter, or what is at a path in it: an empty text where there is nothing."""
    name, *path = argument if isinstance(argument, list) else [argument]
    if name not in scope.parameters:
        raise bad_request(f"The Parameter ({name}) was not provided.", "UserParameterMissing")
    return walk(scope.parameters[name], [resolve(step, scope) for step in path], missing="")


def walk(value: Any, path: list[Any], missing: Any = None) -> Any:
    """Return the value at a path of keys and indices, or *missing*."""
    for step in path:
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return missing
    return value


def _get_resource(argument: Any, scope: TemplateScope) -> Any:
    return scope.resource_id(argument)


def _get_attr(argument: Any, scope: TemplateScope) -> Any:
    name, *path = argument
    return scope.attribute(name, [resolve(step, scope) for step in path])


def _get_file(argument: Any, scope: TemplateScope) -> Any:
    if argument not in scope.files:
        raise bad_request(f"No content found in the files section for get_file path: {argument}")
    return scope.files[argument]


def _str_replace(argument: Any, scope: TemplateScope) -> Any:
    text = str(resolve(argument["template"], scope))
    for name, value in resolve(argument["params"], scope).items():
        text = text.replace(name, value if isinstance(value, str) else json.dumps(value))
    return text


def _list_join(argument: Any, scope: TemplateScope) -> Any:
    delimiter, *lists = argument
    return str(delimiter).join(str(item) for items in lists for item in resolve(items, scope))


_FUNCTIONS: Mapping[str, Callable[[Any, TemplateScope], Any]] = {
    "get_param": _get_param,
    "get_resource": _get_resource,
    "get_attr": _get_attr,
    "get_file": _get_file,
    "str_replace": _str_replace,
    "list_join": _list_join,
}
