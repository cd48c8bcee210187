"""What a build can set: the names of images and flavours, which belong to a cloud, not to the VNF.

A package has each of them twice: in the VNFD, from which an update takes it, and in the templates,
as the default with which Heat alone creates the stack. The place in the templates is found as an
update finds the parameter: by following ``get_param`` from the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.package import hot, vnfd
from container_update.package.csar import Csar
from container_update.package.hot import Path, Place
from container_update.package.hot_files import Templates, templates_of
from container_update.package.values.yaml_text import with_texts
from container_update.package.vnfd import Flavour

_LONGEST = 255
"""Characters of a name in Glance and Nova."""

Position = tuple[str, Path]
"""A file of the package, and the path of a text in it."""


@dataclass(frozen=True)
class Value:
    """An image or a flavour that a VDU or storage of a deployment flavour has."""

    name: str
    """``FLAVOUR.NODE.image`` or ``FLAVOUR.NODE.flavor``."""
    text: str
    """What the VNFD says."""
    positions: tuple[Position, ...]
    """Where the package has it."""

    def is_named(self, name: str) -> bool:
        """Return whether this is its name, or the end of it."""
        return f".{self.name}".endswith(f".{name}")

    def __str__(self) -> str:
        return f"{self.name} ({self.text})"


def contents_with(values: Iterable[tuple[str, str]], package: Csar) -> Mapping[str, bytes]:
    """Return the files that change when values are set, with their new content.

    :param values: names with texts. A name may lack its beginning if all that end so have the same
        text: with one VDU ``image`` is enough.
    :raises PackageError: there is no such value, it is not clear which one is meant, or a text is
        no name of an image or flavour.
    """
    known = tuple(settable(package))
    wanted: dict[Value, str] = {}
    for name, text in values:
        _check(name, text)
        for value in _named(name, known, package.source):
            if wanted.setdefault(value, text) != text:
                raise PackageError(f"{value.name} is set to {wanted[value]} and to {text}")
    texts: dict[str, dict[Path, str]] = {}
    for file, path in (position for value in wanted for position in value.positions):
        texts.setdefault(file, {})[path] = _agreed((file, path), known, wanted)
    return {file: with_texts(package.read(file), file, paths) for file, paths in texts.items()}


def _check(name: str, text: str) -> None:
    if not text or len(text) > _LONGEST or not text.isprintable() or text != text.strip():
        raise PackageError(
            f"{name}: expected the name or id of an image or flavour, at most {_LONGEST} printable "
            f"characters without spaces around them, found {text[:_LONGEST]!a}"
        )


def _named(name: str, known: Sequence[Value], source: str) -> list[Value]:
    """Return the values that a name stands for."""
    found = [value for value in known if value.is_named(name)]
    if not found:
        names = f"one of {_listed(known)}, or the end of it" if known else "nothing to be set"
        why = "" if known else ": only packages with HEAT templates (BaseHOT) have values to set"
        raise PackageError(f"{source}: expected {names}, found {name}{why}")
    if len({value.text for value in found}) > 1:
        raise PackageError(
            f"{source}: {name} may be {_listed(found)}: set each of them by its own name"
        )
    return found


def _agreed(position: Position, known: Iterable[Value], wanted: Mapping[Value, str]) -> str:
    """Return the text for a position; several values may have it in common."""
    sharing = [value for value in known if position in value.positions]
    texts = {wanted.get(value, value.text) for value in sharing}
    if len(texts) > 1:
        file, path = position
        raise PackageError(
            f"{file}: {'.'.join(map(str, path))} is {_listed(sharing)}: set all of them, to the "
            "same text"
        )
    return texts.pop()


def _listed(values: Iterable[Value]) -> str:
    return ", ".join(map(str, values))


# --- what there is ------------------------------------------------------------------------------


def settable(package: Csar) -> Iterator[Value]:
    """Yield each value of a package with templates; nothing for another package.

    :raises PackageError: the VNFD or the templates are wrong.
    """
    if not package.has_templates:
        return
    for flavour in package.flavours:
        templates = templates_of(package, flavour.id)
        places = {
            vdu_id: hot.place_of(templates.body, vdu_id, name, package.source)
            for vdu_id, name in flavour.vdus.items()
        }
        found = [
            (node, "image", text, (*vnfd.IMAGE, "name")) for node, text in flavour.images.items()
        ] + [
            (vdu_id, "flavor", text, vnfd.COMPUTE_FLAVOUR)
            for vdu_id, text in flavour.compute_flavours.items()
        ]
        for node, what, text, path in found:
            in_vnfd = _in_vnfd(
                package, flavour, ("topology_template", "node_templates", node, *path)
            )
            in_templates = _in_templates(templates, places, node, what)
            name = ".".join(filter(None, (flavour.id, node, what)))
            yield Value(name, text, tuple(dict.fromkeys((*in_vnfd, *in_templates))))


def _in_vnfd(package: Csar, flavour: Flavour, path: Path) -> Iterator[Position]:
    files = package.definitions.files
    for file in dict.fromkeys((flavour.path, *files)):
        if hot.get_at(files[file], path) is not None:
            yield file, path
            return


def _in_templates(
    templates: Templates, places: Mapping[str, Place], node: str, what: str
) -> Iterator[Position]:
    """Yield where the templates have the image or flavour of a server or of its volume."""
    for vdu_id, place in places.items():
        template = templates.body.file(place.file) if place.file else templates.body.template
        if vdu_id == node:
            inner = () if place.server else ("properties", "resource")
            resources = [(place.server or place.head, *inner)]
        else:
            needed = hot.with_dependencies(template, {place.server}) if place.server else set()
            resources = [(node,)] if node in needed - {place.server} else []
        for path in resources:
            yield from _origin(templates, place, template, ("resources", *path, "properties", what))


def _origin(templates: Templates, place: Place, template: Json, path: Path) -> Iterator[Position]:
    """Yield where a property's text is written: there, or where its ``get_param`` leads."""
    file = templates.paths[place.file] if place.file else templates.top
    value = hot.get_at(template, path)
    parameter = hot.parameter_path(value)
    if parameter is not None and place.file:
        outer = ("resources", place.head, *(("properties", "resource") if place.grouped else ()))
        above = (*outer, "properties", parameter[0])
        value = hot.get_at(templates.body.template, above)
        if value is not None:
            file, template, path = templates.top, templates.body.template, (*above, *parameter[1:])
            higher = hot.parameter_path(value)
            parameter = None if higher is None else (*higher, *parameter[1:])
    if parameter is not None:
        path = ("parameters", parameter[0], "default", *parameter[1:])
        _check_default(template, path, file)
    if isinstance(hot.get_at(template, path), str):
        yield file, path


def _check_default(template: Json, path: Path, file: str) -> None:
    """Refuse a default of type json that is written as text: what is in it cannot be set."""
    default: Any = hot.get_at(template, path[:3])
    if len(path) > 3 and isinstance(default, str):
        raise PackageError(
            f"{file}: expected a mapping or a list as {'.'.join(map(str, path[:3]))}, found text: "
            "write it as YAML"
        )
