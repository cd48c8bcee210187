# SPDX-License-Identifier: Apache-2.0
"""What identifies a package for people: product, version, hash."""

from __future__ import annotations

from collections.abc import Callable

from container_update.model import context_threads
from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.model.requests import PackageIdentity
from container_update.package.csar import Csar


def identity_of(package: Csar) -> PackageIdentity:
    """Return what identifies an opened package.

    :raises PackageError: a file of it cannot be read.
    """
    try:
        product = next((dict(f.product) for f in package.flavours if f.product), {})
    except PackageError:
        product = {}  # an old package may be one that would not be accepted today
    version = product.get("software_version") or product.get("descriptor_version", "")
    name = product.get("product_name", "")
    return PackageIdentity(package.source, name, version, package.sha256())


def identities_of(
    old: Csar | PackageIdentity | None, new: Csar, after: Callable[[], object] = lambda: None
) -> Callable[[], tuple[PackageIdentity, ...]]:
    """Begin to read what identifies two opened packages; return what waits for it.

    It is read beside everything else: most of the time a process parses the VNFD.

    :param old: the old package, or which it was; None: that is not known.
    :param after: waits until somebody else has read the VNFD of the new one.
    :returns: a function that returns both; () where one of them cannot be read, which the operation
        says in its own words.
    """

    def read() -> tuple[PackageIdentity, ...]:
        before = identity_of(old) if isinstance(old, Csar) else old
        after()
        return (before, identity_of(new)) if before else ()

    reading = context_threads.in_background(read)

    def result() -> tuple[PackageIdentity, ...]:
        try:
            return reading()
        except (ContainerUpdateError, OSError):
            return ()

    return result
