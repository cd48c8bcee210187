"""A package as the rules see it, and how an error about it becomes a finding."""

from __future__ import annotations

import posixpath
import re
from functools import cached_property

from container_update.model.errors import PackageError
from container_update.model.objects import Manifest
from container_update.package import archive, manifests
from container_update.package.csar import Csar, Flavour, InterfaceScript
from container_update.package.lint.finding import Finding

NAMESPACE = "default"
"""Stands for the namespace that an operator chooses when instantiating."""

_PLACE = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+): (?P<text>.*)", re.DOTALL)


class Subject:
    """A package and what several rules want to know of it, read once."""

    def __init__(self, package: Csar, files: archive.Archive) -> None:
        self.package = package
        self.names = frozenset(files.names())
        files.close()

    @cached_property
    def flavours(self) -> tuple[Flavour, ...]:
        """The flavours; none where the VNFD cannot be read, which a rule of its own reports."""
        try:
            return self.package.flavours
        except PackageError:
            return ()

    @cached_property
    def scripts(self) -> tuple[tuple[Flavour, InterfaceScript], ...]:
        """What runs at the operations of each flavour."""
        return tuple(
            (flavour, script) for flavour in self.flavours for script in flavour.scripts.values()
        )

    @cached_property
    def manifests(self) -> tuple[Manifest, ...]:
        """The objects of every manifest that can be read."""
        found: list[Manifest] = []
        for path in self.package.manifest_files():
            try:
                text, limits = self.package.read(path), self.package.settings.yaml
                found += manifests.parse(text, path, NAMESPACE, limits=limits)
            except PackageError:
                continue  # reported by unreadable_files
        return tuple(found)

    @cached_property
    def workloads(self) -> tuple[Manifest, ...]:
        """The manifests that run containers."""
        return tuple(manifest for manifest in self.manifests if manifest.key.is_workload)

    @property
    def has_templates(self) -> bool:
        """It is a package of virtual machines: HEAT templates say what runs."""
        return any("BaseHOT" in name.split("/")[:-1] for name in self.names)

    def script_path(self, script: InterfaceScript) -> tuple[str, str] | None:
        """The API that a script is for and its path in the package: v1 counts from the root of the
        package, v2 from the folder of the VNFD. None where there is no such file."""
        file = script.file or ""
        beside = posixpath.normpath(posixpath.join("Definitions", file))
        for api, path in (("v1", posixpath.normpath(file)), ("v2", beside)):
            if path in self.names:
                return api, path
        return None


def located(error: PackageError, path: str) -> Finding:
    """A finding from an error, which says file and line where it knows them."""
    place = _PLACE.fullmatch(str(error))
    if place:
        return Finding.error(place["file"], place["text"], "correct it", line=int(place["line"]))
    return Finding.error(path, str(error), "correct it and build the package again")
