# SPDX-License-Identifier: Apache-2.0
"""A package's HEAT templates: which files belong to a flavour. Pure except for the package itself.

Source: Tacker's user guide for VNF packages. They are in ``BaseHOT/<flavour>/`` at the package's
root: one top template, and its nested templates beside it or in ``nested/``.
"""

from __future__ import annotations

import posixpath

from container_update.model.errors import PackageError
from container_update.package import hot
from container_update.package.csar import Csar

_ENDINGS = (".yaml", ".yml")


def base_hot(package: Csar, flavour_id: str) -> hot.StackBody:
    """Read the top template of a flavour and the files that it uses; without parameters.

    :raises PackageError: there is no top template, there are several, or one is not a template.
    """
    folder = f"BaseHOT/{flavour_id}/"
    texts = _texts(package, folder)
    if not texts:
        raise PackageError(
            f"{package.source}: expected a folder {folder} with the flavour's HEAT templates, "
            "found none"
        )
    templates = {
        name: hot.parse(text, name, package.options, package.reading)
        for name, text in texts.items()
        if name.endswith(_ENDINGS) and "/" not in name[len(folder) :]
    }
    # types of resources, or of members of groups
    values = (each for template in templates.values() for each in hot.every(template["resources"]))
    types = (each.get("type") for each in values if isinstance(each, dict))
    used = {kind for kind in types if hot.is_nested(kind)}
    tops = [name for name in templates if posixpath.basename(name) not in used]
    if len(tops) != 1:
        raise PackageError(
            f"{package.source}: expected one top template in {folder}, found "
            f"{', '.join(tops) or 'none'}: put nested ones into {folder}nested/"
        )
    nested = {}
    for name in (name for name in texts if name != tops[0]):
        path = name[len(folder) :]  # which is its name in templates that use it, else the base name
        nested[path if path in used else posixpath.basename(path)] = texts[name]
    return hot.StackBody(templates[tops[0]], files=nested)


def _texts(package: Csar, folder: str) -> dict[str, str]:
    """Return the files of a folder by their paths: all of them are sent in one request."""
    texts: dict[str, str] = {}
    free = limit = package.options.yaml_characters
    for name in sorted(package.names()):
        if name.startswith(folder):
            try:
                texts[name] = package.read(name).decode()
            except UnicodeDecodeError as error:
                raise PackageError(f"{name}: expected text in UTF-8") from error
            free -= len(texts[name])
        if free < 0:
            raise PackageError(
                f"{name}: expected at most {limit} characters in the files of {folder} together "
                "(option yaml_characters), found more"
            )
    return texts
