# SPDX-License-Identifier: Apache-2.0
"""What Heat finds wrong with a request's template, its parameters and files before it begins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from container_update.emulator.heat import hot, resource_types
from container_update.emulator.heat.api_errors import bad_request
from container_update.emulator.json_type import Json

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")
_FIRST_WITH_CONDITIONS = "2016-10-14"
"""The version of a template (HOT specification); the later ones are called newton, ocata, ..."""


def check_name(name: str) -> None:
    """Refuse a stack's name that Heat does not allow."""
    if not _NAME.fullmatch(name):
        raise bad_request(
            f"Invalid stack name {name}: letters, digits and _-. after a letter, 255 at most."
        )


def check(
    template: Json, given: Mapping[str, Any], files: Mapping[str, str], images: set[str] | None
) -> None:
    """Refuse a template with its parameters. Of nested ones, only whether they are there.

    :raises OpenStackApiError: 400.
    """
    version = str(template.get("heat_template_version"))
    if "conditions" in template and version < _FIRST_WITH_CONDITIONS:
        raise bad_request("The template section is invalid: conditions")
    hot.parameters(template, given)
    hot.in_order(template)
    for name, definition in hot.resources(template).items():
        if not isinstance(definition, dict) or "type" not in definition:
            raise bad_request(f"resources.{name}: Resource has no type")
        for kind in _kinds(definition):
            if not resource_types.is_known(kind):
                raise bad_request(f"The Resource Type ({kind}) could not be found.")
            if hot.is_nested(kind) and kind not in files:
                raise bad_request(
                    f'resources.{name}<nested_stack>: : Could not fetch remote template "{kind}"'
                )
    missing = missing_image(template, given, files, images)
    if missing is not None:
        raise bad_request("Property error: : {}: : {}".format(*missing))


def missing_image(
    template: Json, given: Mapping[str, Any], files: Mapping[str, str], images: set[str] | None
) -> tuple[str, str] | None:
    """Return the property and what is wrong with it, if a resource names an image without being.

    :param images: those that there are; None: every one.
    """
    if images is None:
        return None
    scope = hot.TemplateScope(
        hot.parameters(template, given), lambda _: None, lambda _name, _path: None, files
    )
    for name, definition in hot.resources(template).items():
        for path, value in _images(definition):
            image = hot.resolve(value, scope)
            if image and image not in images:
                text = f"No images matching {{'name': '{image}'}}."
                place = f"resources.{name}.properties.{path}"
                return place, f"Error validating value '{image}': {text}"
    return None


def _images(definition: Json) -> Iterator[tuple[str, Any]]:
    properties = definition.get("properties") or {}
    if definition["type"] in (resource_types.SERVER, resource_types.VOLUME):
        yield "image", properties.get("image")
    disks = properties.get("block_device_mapping_v2") or []
    for number, disk in enumerate(disks if isinstance(disks, list) else []):
        if isinstance(disk, dict):
            yield f"block_device_mapping_v2[{number}].image", disk.get("image")


def _kinds(definition: Json) -> Iterator[str]:
    yield definition["type"]
    if definition["type"] == resource_types.GROUP:
        member = (definition.get("properties") or {}).get("resource") or {}
        if isinstance(member.get("type"), str):
            yield member["type"]
