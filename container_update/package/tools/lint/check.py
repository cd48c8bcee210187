# SPDX-License-Identifier: Apache-2.0
"""Check a package before it is uploaded: what would fail in Tacker.

The message of each finding says what Tacker does, because that is what an operator would see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from container_update.model.options import DEFAULTS, Options
from container_update.package import csar
from container_update.package.tools.lint import files, objects, vnfd
from container_update.package.tools.lint.finding import Finding, Severity
from container_update.package.tools.lint.subject import Subject

__all__ = ["Finding", "Severity", "check"]

RULES: tuple[Callable[[Subject], Iterable[Finding]], ...] = (
    files.metadata,
    files.wrong_hashes,
    files.unreadable_manifests,
    files.unlisted_files,
    files.without_manifests,
    vnfd.unreadable_vnfd,
    vnfd.imports_by_url,
    vnfd.vdus,
    vnfd.templates,
    vnfd.interfaces,
    vnfd.driver_files,
    vnfd.keys_that_v1_expects,
    objects.duplicates,
    objects.references,
    objects.namespaces,
    objects.recommendations,
)


def check(package_path: str, *, options: Options = DEFAULTS) -> tuple[Finding, ...]:
    """Return everything that is wrong or unusual in a package, errors first.

    :param package_path: as ``UpdateRequest.old``.
    :raises PackageError: the package cannot be opened.
    """
    with csar.open_package(package_path, options=options, check_hashes=False) as package:
        subject = Subject(package)
        findings = {finding: None for rule in RULES for finding in rule(subject)}
        findings |= dict.fromkeys(package.findings)
    return tuple(sorted(findings, key=lambda finding: finding.severity.value))
