# SPDX-License-Identifier: Apache-2.0
"""The desired stack: the new package's templates and software, the old parameters. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.openstack.templates import groups, nfv_parameter
from container_update.openstack.templates.nfv_parameter import NFV
from container_update.package import hot
from container_update.package.hot import Place, StackBody


@dataclass(frozen=True)
class VnfdSoftware:
    """The images and flavours of the VDUs in the VNFD."""

    images: Mapping[str, str] = field(default_factory=dict)
    """VDU or storage node to the name of its image."""
    flavours: Mapping[str, str] = field(default_factory=dict)
    """VDU to the name of its flavour."""


def desired_stack(  # noqa: PLR0913
    package: StackBody,
    live: StackBody,
    places: Mapping[str, Place],
    software: VnfdSoftware,
    sizes: Mapping[str, int],
    *,
    points: Mapping[str, Json] = {},
    nfv: Mapping[str, Any] = {},
) -> StackBody:
    """Return the whole stack after the change.

    :param live: the stack as it is, whose parameters are carried over.
    :param places: VDU id to where its server is defined in *package*.
    :param sizes: scaling group to how many members it has now, which it keeps.
    :raises PackageError: a new parameter has neither a default nor a value in the old stack, or
        the new template asks for what no template gives.
    """
    carried = _carry_parameters(package, live)
    if NFV in (package.template.get("parameters") or {}):
        grouped = {vdu: sizes[p.head] for vdu, p in places.items() if p.head in sizes}
        vnfd = nfv_parameter.of_vnfd(software.images, software.flavours, grouped)
        before = carried.get(NFV) or {}
        carried[NFV] = nfv_parameter.compute_nfv(package, vnfd, points, nfv, before)
    body = replace(package, parameters=carried, environment=live.environment)
    body = _with_software(body, places, software)
    for head, size in sizes.items():
        if (body.template["resources"].get(head) or {}).get("type") == hot.GROUP:
            body = groups.with_size(body, head, size)
    return body


def initial_stack(  # noqa: PLR0913
    package: StackBody,
    given: Mapping[str, Any],
    places: Mapping[str, Place],
    software: VnfdSoftware,
    *,
    points: Mapping[str, Json] = {},
    sizes: Mapping[str, int] = {},
) -> StackBody:
    """Return the stack of a VNF that is to be created.

    :param given: values for the top template's parameters; image and flavour are the VNFD's.
    :param sizes: VDU id to the number of its servers at the instantiation level.
    :raises PackageError: a parameter without a default has no value, or a given one does not exist.
    """
    schemata = package.template.get("parameters") or {}
    given = nfv_parameter.without_script(given)
    unknown = sorted(set(given) - set(schemata))
    if unknown:
        raise PackageError(
            f"{', '.join(unknown)}: expected parameters of the top template, which has "
            f"{', '.join(schemata) or 'none'}"
        )
    if NFV in schemata:
        vnfd = nfv_parameter.of_vnfd(software.images, software.flavours, sizes)
        given[NFV] = nfv_parameter.compute_nfv(package, vnfd, points, given.get(NFV) or {})
    body = _with_software(replace(package, parameters=given), places, software)
    missing = _without_value(schemata, body.parameters)
    if missing:
        raise PackageError(
            f"parameters of the top template: {', '.join(missing)} have no default and no value: "
            "give them"
        )
    return body


def _carry_parameters(package: StackBody, live: StackBody) -> Json:
    schemata = package.template.get("parameters") or {}
    given = hot.parse_json(live.template, live.parameters)
    hidden = live.hidden & set(live.template.get("parameters") or {})
    missing = _without_value(schemata, {*given, *hidden, *live.parameter_defaults, NFV})
    if missing:
        raise PackageError(
            f"parameters of the new top template: {', '.join(missing)} have no default, and the "
            "old stack has no such parameters to carry over: give them defaults"
        )
    return {name: value for name, value in given.items() if name in schemata}


def _without_value(schemata: Mapping[str, Json], values: Container[str]) -> list[str]:
    return [
        name for name, schema in schemata.items() if name not in values and "default" not in schema
    ]


def _with_software(
    body: StackBody, places: Mapping[str, Place], software: VnfdSoftware
) -> StackBody:
    """Return the body with images and flavours as the VNFD says, where parameters set them."""
    parameters = body.parameters
    for vdu_id, place in places.items():
        template = body.file(place.file) if place.file else body.template
        resources = template["resources"]
        server = resources[place.server] if place.server else hot.outer_definition(body, place)
        settings = [
            (server, "image", software.images.get(vdu_id)),
            (server, "flavor", software.flavours.get(vdu_id)),
        ]
        needed = hot.with_dependencies(template, {place.server}) if place.server else set()
        for name in needed - {place.server}:
            settings.append((resources[name], "image", software.images.get(name)))
        for definition, name, value in settings:
            path = hot.top_parameter(body, place, (definition.get("properties") or {}).get(name))
            if path is not None and value is not None:
                parameters = hot.set_at(parameters, path, value)
    return replace(body, parameters=parameters)


# --- a part of it -------------------------------------------------------------------------------


def overlay(old: StackBody, new: StackBody, names: Iterable[str], source: str) -> StackBody:
    """Return the old stack with some resources, and what they depend on, taken from the new one.

    Servers that these depend on stay as they are: they have steps of their own, or do not change.
    A parameter or a file that others use as well keeps its old value for them: the taken resources
    have the new value written in.

    :raises PackageError: a nested file differs, and resources that are not taken use it too; or the
        taken ones use conditions that differ.
    """
    others = _heads(new).intersection(old.template["resources"]).difference(names)
    taken = hot.with_dependencies(new.template, set(names), others)
    definitions = hot.bind({name: new.template["resources"][name] for name in taken}, new)
    if _has_other_conditions(definitions, old, new):
        raise PackageError(
            f"conditions of {source}: expected those of the live stack, because the resources "
            f"{', '.join(sorted(taken))}, which use conditions, are updated by themselves first: "
            "put the server into a nested template, which has its own, or use Blue-Green"
        )
    resources = {**old.template["resources"], **definitions}
    files = {**old.files, **{name: new.files[name] for name in _files_of(definitions, new)}}
    left = {name: resources[name] for name in resources if name not in taken}
    for name in _files_of(left, old):
        if files[name] != old.files[name]:
            raise PackageError(
                f"{name} of {source} is another file than in the old package, and resources that "
                f"are not to change use it too ({', '.join(sorted(left))}): give the new file a "
                "name of its own, or list their VDUs in vdu_params"
            )
    schemata = old.template.get("parameters") or {}
    unseen = {
        name: schema
        for name, schema in (new.template.get("parameters") or {}).items()
        if name in new.hidden and name not in schemata
    }
    template = {**old.template, "resources": resources}
    if unseen:
        template["parameters"] = {**schemata, **unseen}
    parameters = hot.parse_json(old.template, old.parameters)
    return replace(old, template=template, parameters=parameters, files=files)


def _has_other_conditions(value: Any, old: StackBody, new: StackBody) -> bool:
    """Return whether a value depends on conditions, and these differ."""
    mappings = (each for each in hot.every(value) if isinstance(each, dict))
    conditions, before = (hot.bind(side.template.get("conditions"), side) for side in (new, old))
    depends = any("condition" in each or set(each) == {"if"} for each in mappings)
    return depends and conditions != before


def _heads(body: StackBody) -> set[str]:
    return {place.head for place, _ in hot.servers(body)}


def _files_of(definitions: Mapping[str, Json], body: StackBody) -> set[str]:
    """Return the files that resources use, and those that nested ones of these use."""
    files: set[str] = set()
    queue: list[Any] = [definitions]
    while queue:
        value = queue.pop()
        if isinstance(value, dict):
            kind = value.get("type")
            if isinstance(kind, str) and kind in body.files and kind not in files:
                files.add(kind)
                queue.append(body.file(kind))
            files |= {hot.file_name(value)} & set(body.files)
            queue += value.values()
        elif isinstance(value, list):
            queue += value
    return files


def added_resources(old: StackBody, new: StackBody, places: Mapping[str, Place]) -> set[str]:
    """Return the top resources of the new stack that have to be there before a VNFC is updated by
    itself: those that a nested template or a group's member gets the id of, with all that belongs
    to them, such as the subnet of a network."""
    existing, resources = old.template["resources"], new.template["resources"]
    wanted = {
        argument
        for place in places.values()
        if place.head in existing and (place.file or place.grouped)
        for name, argument in hot.calls(hot.outer_definition(new, place).get("properties") or {})
        if name == "get_resource" and argument in resources and argument not in existing
    }
    needed = hot.with_dependencies(new.template, wanted) - set(existing)
    servers = _heads(new)
    beside = {
        name
        for name in set(resources) - set(existing)
        if needed & (closure := hot.with_dependencies(new.template, {name}))
        and not servers & closure
    }
    return needed | beside


def is_known(value: Any, added: Collection[str]) -> bool:
    """Return whether a value is known once these resources have been created."""
    return hot.is_literal(hot.with_ids(value, dict.fromkeys(added, "-")))


def nested_body(  # noqa: PLR0913, PLR0917
    place: Place,
    new: StackBody,
    old: StackBody,
    live: StackBody,
    ids: Mapping[str, str | None],
    added: Collection[str] = (),
) -> StackBody:
    """Return the body of a nested stack with a VDU's server as the new package says it.

    :param new: the whole new stack.
    :param old: the whole stack as it is.
    :param live: the nested stack as it is.
    :param ids: the top stack's resources to their physical ids.
    :param added: those that get an id before this stack is updated.
    :raises PackageError: a property of the nested template is not known before the whole stack
        is updated.
    """
    assert place.file is not None
    template = new.file(place.file)
    before = hot.bind(_properties_above(old, place), old)
    parameters = {}
    properties = hot.outer_definition(new, place).get("properties") or {}
    for name, bound in hot.bind(properties, new).items():
        value = hot.with_ids(bound, ids)
        if not is_known(value, added):
            stays = before.get(name) == bound and not _has_other_conditions(bound, old, new)
            if stays and name in live.hidden:
                continue  # its value is not known: the update keeps it
            if name not in live.parameters or not stays:
                raise PackageError(
                    f"{place.file}: its property {name} comes from {properties[name]}, which is "
                    "only known when the whole stack is updated: use get_param or get_resource, or "
                    "Blue-Green"
                )
            value = live.parameters[name]
        parameters[name] = value
    return StackBody(template, parameters, new.files, live.environment)


def _properties_above(old: StackBody, place: Place) -> Json:
    """Return the properties that the old top template sets for the nested one, if it has it."""
    definition = old.template["resources"].get(place.head) or {}
    properties: Json = definition.get("properties") or {}
    if place.grouped:
        properties = (properties.get("resource") or {}).get("properties") or {}
    return properties


# --- comparing ----------------------------------------------------------------------------------


def is_same(one: StackBody, other: StackBody) -> bool:
    """Return whether Heat would have nothing to do: same template, values and files in use."""
    return _in_use(one) == _in_use(other)


def has_same_resources(one: StackBody, other: StackBody) -> bool:
    """Return whether two bodies define the same resources, however their values are written."""
    return _bound(one) == _bound(other)


def _bound(body: StackBody) -> tuple[Json, Json]:
    bound: Json = hot.bind(body.template["resources"], body)
    return bound, {name: body.files[name] for name in _files_of(bound, body)}


def _in_use(body: StackBody) -> tuple[Json, Json, Json]:
    # as text: Heat returns a number as it was given, as a number or as text
    values = {name: str(value) for name, value in hot.effective_parameters(body).items()}
    files = {name: body.files[name] for name in _files_of(body.template["resources"], body)}
    return body.template, values, files


class Replacement(enum.Enum):
    """What Heat does with a server in an update of its stack."""

    REBUILT = "Heat rebuilds the server from the new image, it keeps its id"
    RESIZED = "Heat resizes the server, it keeps its id"
    BOTH = "Heat resizes the server and rebuilds it from the new image, it keeps its id"
    UPDATED = "Heat updates the server in place, it keeps its id"
    REPLACED = "Heat replaces the server by another one with another id"


_IN_PLACE = frozenset(
    {
        "admin_pass", "deployment_swift_data", "flavor", "flavor_update_policy", "image",
        "image_update_policy", "metadata", "name", "networks", "software_config_transport", "tags",
        "user_data", "user_data_update_policy",
    }
)  # fmt: skip
"""What Heat can update of a server; source: its resource type reference, OS::Nova::Server."""

_POLICIES = ("image", "flavor", "user_data")
"""Properties with a policy beside them that may have the server replaced all the same."""


def server_changes(
    old: StackBody, new: StackBody, name: str
) -> tuple[tuple[str, ...], Replacement]:
    """Return what Heat does with a server between two bodies of its own stack.

    :returns: the differences as sentences, and what Heat does. By the specification's note a server
        keeps its id from image to image; with a volume of another image it is another server.
    """
    before, after = _resolve(old, name), _resolve(new, name)
    differ = {key for key in before | after if before.get(key) != after.get(key)}
    reasons = []
    for key in sorted(differ):
        values = before.get(key), after.get(key)
        is_text = all(isinstance(value, str | None) for value in values)
        if is_text and key in ("image", "flavor"):
            reasons.append(f"{key} {values[0]} -> {values[1]}")
        else:
            reasons.append(f"its property {key} changes")
    old_images, new_images = _volume_images(old, name), _volume_images(new, name)
    if old_images != new_images:
        reasons.append(f"image of its volumes {_join(old_images)} -> {_join(new_images)}")
    sentences = tuple(reasons) or ("the template around the server changes",)
    return sentences, _replacement(differ, after, another_volume=old_images != new_images)


def _replacement(
    differ: set[str], after: Mapping[str, Any], *, another_volume: bool
) -> Replacement:
    replaced = any(
        after.get(f"{name}_update_policy", "REPLACE" if name == "user_data" else "") == "REPLACE"
        for name in differ & set(_POLICIES)
    )
    if replaced or another_volume or differ - _IN_PLACE:
        return Replacement.REPLACED
    return {
        (True, True): Replacement.BOTH,
        (True, False): Replacement.REBUILT,
        (False, True): Replacement.RESIZED,
    }.get(("image" in differ, "flavor" in differ), Replacement.UPDATED)


def _resolve(body: StackBody, name: str) -> Json:
    definition = body.template["resources"].get(name) or {}
    resolved: Json = hot.bind(definition.get("properties") or {}, body)
    return resolved


def _volume_images(body: StackBody, server: str) -> dict[str, str]:
    if server not in body.template["resources"]:
        return {}
    names = hot.with_dependencies(body.template, {server}, _heads(body)) - {server}
    images = {name: _resolve(body, name).get("image") for name in names}
    return {name: image for name, image in sorted(images.items()) if isinstance(image, str)}


def _join(images: Mapping[str, str]) -> str:
    return ", ".join(images.values()) or "none"
