# SPDX-License-Identifier: Apache-2.0
"""Rules about the metadata of a package and the files that it lists."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from container_update.model.errors import PackageError
from container_update.package import csar, csar_metadata
from container_update.package.tools.lint import no_manifests
from container_update.package.tools.lint.finding import Finding
from container_update.package.tools.lint.subject import Subject, located

_ROOT = "."
"""The package as a whole."""


def metadata(subject: Subject) -> Iterator[Finding]:
    """Check that TOSCA.meta names a VNFD in Definitions/, which Tacker's v2 API requires."""
    if not any(
        name.startswith(csar.NO_MANIFESTS) or name.endswith(".mf") for name in subject.names
    ):
        yield Finding.note(
            csar_metadata.TOSCA_META,
            "missing: these are manifests without a package, which Tacker does not take",
            "nothing, if Tacker is not to have them; else: container-update csar build",
        )
        return
    if csar_metadata.TOSCA_META not in subject.names:
        yield Finding.error(
            csar_metadata.TOSCA_META,
            "missing: Tacker's v2 API refuses the package (invalid VNFD format)",
            "write it with: container-update csar build",
        )
    if not subject.package.entry_definitions:
        yield Finding.error(
            csar_metadata.TOSCA_META,
            "does not name Entry-Definitions: the package has no VNFD",
            "put the VNFD into Definitions/ as NAME.vnfd.yaml and build the package again",
        )
    elif not subject.package.entry_definitions.startswith("Definitions/"):
        yield Finding.error(
            subject.package.entry_definitions,
            "is not in Definitions/, where Tacker's v2 API looks for the VNFD",
            "move it there and build the package again",
        )


def wrong_hashes(subject: Subject) -> Iterator[Finding]:
    """Check that every listed file exists and has its hash."""
    for artifact in subject.package.artifacts:
        if artifact.path.startswith("Files/images/"):
            continue  # gigabytes that an update does not use
        try:
            subject.package.check_hash(artifact)
        except PackageError as error:
            yield located(error, artifact.path)


def unreadable_manifests(subject: Subject) -> Iterator[Finding]:
    """Check that every manifest is valid, whatever its hash."""
    for path, objects in subject.objects.items():
        if isinstance(objects, PackageError):
            yield located(objects, path)


def unlisted_files(subject: Subject) -> Iterator[Finding]:
    """Check that the metadata lists every manifest: Tacker refuses other def-files."""
    listed = {posixpath.normpath(artifact.path) for artifact in subject.package.artifacts}
    unlisted = sorted(subject.names - listed) if listed else ()
    for name in unlisted:
        is_candidate = name.startswith("Files/") and subject.package.may_hold_manifests(name)
        if is_candidate and subject.holds_manifests(name):
            yield Finding.error(
                name,
                "is not listed in the metadata: Tacker refuses it as a def-file",
                "build the package again: container-update csar build",
            )


def without_manifests(subject: Subject) -> Iterator[Finding]:
    """Check that there is something to install; a chart is installed by Tacker alone."""
    package = subject.package
    if subject.manifests or package.has_templates or not subject.is_complete:
        return
    found, advice = no_manifests.found(package)
    if package.charts:
        message = f"found {found} and no manifests: an update does not read charts"
        yield Finding.note(_ROOT, message, advice)
    else:
        yield Finding.error(_ROOT, f"expected manifests, found {found}", advice)
