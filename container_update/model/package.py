"""A package as planning sees it: the :class:`Package` protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Package(Protocol):
    """An opened CSAR, as the update needs it."""

    source: str
    """What it was opened from, for messages."""

    def read(self, path: str) -> bytes:
        """Return the content of a def-file: a path in the package, or a URL.

        :raises PackageError: it does not exist.
        """

    def has(self, path: str) -> bool:
        """Return whether the package has this path; a URL is assumed to exist."""

    def manifest_files(self) -> Sequence[str]:
        """Return the listed files that may hold Kubernetes manifests, in listed order."""

    def vdus(self) -> Mapping[str, str]:
        """Return the name of each VDU's workload (``properties.name``), by VDU id."""
