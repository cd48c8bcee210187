# SPDX-License-Identifier: Apache-2.0
"""The request for an update, and what it is read from: requests of users, records of a VNFM."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

DEF_FILES: Final = "lcm-kubernetes-def-files"
"""The attribute that lists the files a CNF is made of: in additionalParams of requests and of v1
instances, in the metadata of v2 instances. Paths in the package, or URLs."""

CONFIG_PATHS: Final = "configmap_secret_paths"
"""The attribute of a modify request's metadata that lists files of ConfigMaps and Secrets."""

UPGRADE_TYPE: Final = "upgrade_type"
"""The attribute that says how a package is changed; a modify request with it changes the package.
"""

STANDARD_INPUT: Final = "-"
"""The package that is one YAML file on standard input."""

_HASH_DIGITS = 12
"""Of a hash, as people compare it."""


@dataclass(frozen=True)
class UpdateRequest:
    """A request to update an instance from one package to another.

    >>> UpdateRequest(old="packages/v1", new="packages/v2", namespace="cnf").one_namespace
    False
    """

    old: str
    """The old package: a folder, a CSAR zip, a YAML file, or ``-`` for standard input, which is
    read once. A folder may be a package, as Tacker unpacks it, or just have YAML files. Empty: what
    the record of the instance in the cluster says."""
    new: str
    def_files: tuple[str, ...] = ()
    """The instance's def-files: paths in the package or URLs. Empty: every manifest it lists."""
    config_paths: tuple[str, ...] = ()
    """``configmap_secret_paths`` of the request: the files of the new package whose ConfigMaps and
    Secrets are written, and no others; empty: the packages alone decide."""
    namespace: str = "default"
    """The namespace of manifests that name none."""
    one_namespace: bool = False
    """All objects are in *namespace*, whatever their manifests say: as Tacker creates them."""
    instance_id: str | None = None
    """The VNF instance; objects that bear another one's label are refused."""


@dataclass(frozen=True)
class InstallRequest:
    """A request to create what a package describes, with the parameters of ``install``.

    >>> InstallRequest("packages/v1", namespace="cnf").instance_id is None
    True
    """

    package: str
    def_files: tuple[str, ...] = ()
    namespace: str = "default"
    one_namespace: bool = False
    instance_id: str | None = None


@dataclass(frozen=True)
class TerminateRequest:
    """A request to delete what is a VNF instance's, with the parameters of ``terminate``.

    >>> TerminateRequest(instance_id="vnf-1", delete_data=True).delete_shared
    False
    """

    package: str | None = None
    def_files: tuple[str, ...] = ()
    namespace: str = "default"
    one_namespace: bool = False
    instance_id: str | None = None
    delete_data: bool = False
    """The PersistentVolumeClaims too, and with them the data."""
    delete_shared: bool = False
    """What is in no namespace too, and Namespaces with all that is in them."""


@dataclass(frozen=True)
class UndoRequest:
    """A request to undo finished operations, with the parameters of ``undo``.

    >>> UndoRequest(revision=3).packages
    ()
    """

    revision: int | None = None
    packages: tuple[str, ...] = ()
    namespace: str = "default"
    instance_id: str | None = None


@dataclass(frozen=True)
class ChangePackageRequest:
    """A ChangeCurrentVnfPkgRequest with what it does not say, as ``change_package`` takes both.

    >>> body = {"additionalParams": {"upgrade_type": "Blue-Green"}}
    >>> ChangePackageRequest(body, old="packages/v1", new="packages/v2").instance_id is None
    True
    """

    body: Mapping[str, Any] = field(repr=False)
    """Its JSON; without ``vnfdId`` that of the new package counts."""
    old: str
    new: str
    def_files: tuple[str, ...] = ()
    namespace: str = "default"
    one_namespace: bool = False
    instance_id: str | None = None
    instance: str | None = None
    """A JSON file with the VnfInstance, which scripts and *records* need."""
    records: str | None = None
    """The file to write the VnfInstance to after the change."""


Request = UpdateRequest | InstallRequest | TerminateRequest | UndoRequest | ChangePackageRequest
"""What an instance of a VNF in a cluster can be asked for, in a form that a file can keep."""


@dataclass(frozen=True)
class PackageIdentity:
    """A package as its VNFD and its bytes identify it.

    >>> str(PackageIdentity("upf.zip", "upf", "1.3", "91bc" + 60 * "0"))
    'upf 1.3 (sha256 91bc00000000)'
    """

    source: str
    """The path it was read from."""
    product: str
    """``product_name`` of the VNFD; '' where that cannot be read."""
    version: str
    """``software_version`` of the VNFD, or else its ``descriptor_version``."""
    sha256: str
    """Of the zip; of a folder, of the names and the hashes of its files."""

    def __str__(self) -> str:
        name = f"{self.product} {self.version}".strip() or posixpath.basename(self.source)
        return f"{name} (sha256 {self.sha256[:_HASH_DIGITS]})"


def names(packages: Sequence[PackageIdentity]) -> str:
    """Return packages by product and version, a common product once; '' for none.

    >>> names([PackageIdentity(f"{v}.zip", "upf", v, sha256="") for v in ("1.2", "1.3")])
    'upf 1.2 -> 1.3'
    """
    products = {package.product for package in packages}
    if len(products) == 1 and (product := products.pop()):
        return f"{product} {' -> '.join(package.version for package in packages)}"
    return " -> ".join(
        f"{package.product} {package.version}".strip() or posixpath.basename(package.source)
        for package in packages
    )
