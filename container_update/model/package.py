"""A package as planning sees it: the :class:`Package` protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Package(Protocol):
    """An opened CSAR, as the update needs it."""

    source: str
    """What it was opened from, for messages."""

    def read(self, path: str) -> bytes:
        """The bytes of a def-file (a path in the package, or a URL). PackageError where missing."""

    def has(self, path: str) -> bool:
        """Whether the package has this path; URLs are taken to exist."""

    def manifest_files(self) -> Sequence[str]:
        """Every file listed in the package that may hold Kubernetes manifests, in listed order."""

    def vdus(self) -> Mapping[str, str]:
        """VDU id to the name of its workload (the VDU node's ``properties.name``)."""
