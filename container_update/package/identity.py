"""What identifies a package for people: product, version, hash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from container_update.model import context_threads
from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.model.options import DEFAULTS, Options
from container_update.model.requests import PackageIdentity
from container_update.package import csar

_CHUNK = 1 << 20


def identity_of(source: str, options: Options = DEFAULTS) -> PackageIdentity:
    """Return what identifies a package.

    :param source: the path of a folder or of a zip file.
    :raises PackageError: it does not exist, is unsafe, or exceeds the limits.
    """
    with csar.open_package(source, options=options) as package:
        try:
            product = next((dict(f.product) for f in package.flavours if f.product), {})
        except PackageError:
            product = {}  # an old package may be one that would not be accepted today
        version = product.get("software_version") or product.get("descriptor_version", "")
        return PackageIdentity(source, product.get("product_name", ""), version, _hash(package))


class _Known(Protocol):
    """What runs from a package that was read before."""

    @property
    def package(self) -> PackageIdentity | None:
        """That package, where it is known."""


def identities_of(
    old: str | _Known, new: str, options: Options = DEFAULTS
) -> Callable[[], tuple[PackageIdentity, ...]]:
    """Begin to read what identifies two packages; return what waits for it.

    It is read beside everything else: most of the time a process parses the VNFD.

    :param old: the path of the old package, or what says which it was.
    :returns: a function that returns both; () where one of them cannot be read, which the operation
        says in its own words.
    """

    def both() -> tuple[PackageIdentity, ...]:
        before = identity_of(old, options) if isinstance(old, str) else old.package
        return (before, identity_of(new, options)) if before else ()

    read = context_threads.in_background(both)

    def result() -> tuple[PackageIdentity, ...]:
        try:
            return read()
        except (ContainerUpdateError, OSError):
            return ()

    return result


def _hash(package: csar.Csar) -> str:
    path = Path(package.source)
    digest = hashlib.sha256()
    if path.is_file():
        with path.open("rb") as file:
            for chunk in iter(partial(file.read, _CHUNK), b""):
                digest.update(chunk)
    else:
        for name in package.names():
            digest.update(f"{package.digest(name)}  {name}\n".encode())
    return digest.hexdigest()
