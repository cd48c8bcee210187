# SPDX-License-Identifier: Apache-2.0
"""The package that is checked, and the conversion of errors to findings."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial

from container_update.model.errors import PackageError
from container_update.model.objects import FieldPath, Json, Manifest, Source
from container_update.package.csar import Csar
from container_update.package.tools.lint.finding import Finding
from container_update.package.vnfd import Flavour, InterfaceScript
from container_update.workloads.registry import is_workload

NAMESPACE = "default"
"""A placeholder for the namespace that an operator chooses at instantiation."""

_LOCATION = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+): (?P<text>.*)", re.DOTALL)


class Subject:
    """A package, and the parts of it that several rules need, each read once."""

    def __init__(self, package: Csar) -> None:
        self.package = package
        self.names = frozenset(package.names())

    @cached_property
    def vnfd(self) -> tuple[Flavour, ...] | PackageError:
        """The flavours, or why they cannot be read: found out once, as it may take long."""
        try:
            return self.package.flavours
        except PackageError as error:
            return error

    @property
    def flavours(self) -> tuple[Flavour, ...]:
        """The flavours; empty if the VNFD cannot be read, which :func:`unreadable_vnfd` reports."""
        return () if isinstance(self.vnfd, PackageError) else self.vnfd

    @cached_property
    def scripts(self) -> tuple[tuple[Flavour, InterfaceScript], ...]:
        """The scripts of every flavour."""
        return tuple(
            (flavour, script) for flavour in self.flavours for script in flavour.scripts.values()
        )

    @cached_property
    def objects(self) -> Mapping[str, tuple[Manifest, ...] | PackageError]:
        """The objects of each manifest file by its path, or why it cannot be read.

        Of objects that run no containers only what the rules need: a package may be large.
        """
        objects: dict[str, tuple[Manifest, ...] | PackageError] = {}
        for path in self.package.manifest_files():
            try:
                objects[path] = tuple(map(_needed, self.package.each_manifest(path, NAMESPACE)))
            except PackageError as error:
                cause = error.__cause__  # without the package, which the reader knows
                objects[path] = cause if isinstance(cause, PackageError) else error
        return objects

    @cached_property
    def manifests(self) -> tuple[Manifest, ...]:
        """The objects of every manifest file that can be read."""
        files = self.objects.values()
        return tuple(each for file in files if isinstance(file, tuple) for each in file)

    @property
    def is_complete(self) -> bool:
        """Every manifest can be read: what is in none of them is missing."""
        return not any(isinstance(each, PackageError) for each in self.objects.values())

    @cached_property
    def workloads(self) -> tuple[Manifest, ...]:
        """The manifests that run containers."""
        return tuple(manifest for manifest in self.manifests if is_workload(manifest.key))

    def holds_manifests(self, path: str) -> bool:
        """Tell whether a file that the metadata does not list has objects, or cannot be read."""
        try:
            return any(True for _ in self.package.each_manifest(path, NAMESPACE))
        except PackageError:
            return True

    def source(self, flavour: Flavour, *path: str | int) -> Source:
        """Return where a field of a flavour's file is written."""
        return self.package.definitions.source(flavour.path, path)

    def script_path(self, script: InterfaceScript) -> tuple[str, str] | None:
        """Return the API that a script is for ('v1' or 'v2'), and its path in the package.

        A path in a VNFD is relative to the root of the package in v1, to Definitions/ in v2.

        :returns: None if the file does not exist.
        """
        file = script.file or ""
        v2_path = posixpath.normpath(posixpath.join("Definitions", file))
        for api, path in (("v1", posixpath.normpath(file)), ("v2", v2_path)):
            if path in self.names:
                return api, path
        return None


def _needed(manifest: Manifest) -> Manifest:
    """Return an object without what no rule looks at: of content the keys are enough."""
    if is_workload(manifest.key):
        return manifest
    key, body, metadata = manifest.key, manifest.body, manifest.body["metadata"]
    needed: Json = {
        name: body[name] for name in ("apiVersion", "kind", "immutable") if name in body
    }
    needed["metadata"] = {name: metadata.get(name) for name in ("name", "namespace")}
    fields: list[FieldPath] = [("metadata", "namespace")] if metadata.get("namespace") else []
    if key.is_config:
        fields.append(("immutable",))
        for name in ("data", "binaryData", "stringData"):
            needed[name] = dict.fromkeys(body.get(name) or ())
    source = manifest.source
    lines = {field: source.of(field).line for field in fields}
    # not a closure, which would keep the source and with it the whole object
    line_of = partial(_line, lines, source.line)
    return replace(manifest, body=needed, source=replace(source, line_of=line_of))


def _line(lines: Mapping[FieldPath, int], line: int, field: FieldPath) -> int:
    return lines.get(field, line)


def located(error: PackageError, path: str) -> Finding:
    """Convert an error to a finding, with file and line if the message begins with them.

    :param path: the file, if the message does not name one.
    """
    if match := _LOCATION.fullmatch(str(error)):
        source = Source(match["file"], int(match["line"]))
        return Finding.error(source, match["text"], "correct it")
    return Finding.error(path, str(error), "correct it and build the package again")
