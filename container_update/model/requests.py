# SPDX-License-Identifier: Apache-2.0
"""The requests for operations, of users and from records of a VNFM."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
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


@dataclass(frozen=True, kw_only=True)
class Placing:
    """Which def-files make up a VNF, and where their objects go: what most requests say."""

    def_files: tuple[str, ...] = ()
    """Of the instance: paths in its package, or URLs; empty: every manifest that it lists."""
    namespace: str = "default"
    """The namespace of manifests that name none."""
    one_namespace: bool = False
    """All objects are in *namespace*, as Tacker creates them; that of a manifest is ignored."""
    instance_id: str | None = None
    """The VNF instance; objects that bear another one's label are refused."""

    @property
    def placing(self) -> dict[str, Any]:
        """These four fields, for another request about the same instance."""
        return {each.name: getattr(self, each.name) for each in fields(Placing)}


@dataclass(frozen=True)
class UpdateRequest(Placing):
    """A request to update an instance from one package to another.

    >>> UpdateRequest(old="packages/v1", new="packages/v2", namespace="cnf").one_namespace
    False
    """

    old: str
    """The old package: a folder, a CSAR zip, a YAML file, or ``-`` for standard input, which is
    read once. A folder may be a package, as Tacker unpacks it, or just have YAML files. Empty: what
    the record of the instance in the cluster says."""
    new: str
    config_paths: tuple[str, ...] = ()
    """``configmap_secret_paths`` of the request: the files of the new package whose ConfigMaps and
    Secrets are written, and no others; empty: the packages alone decide."""


@dataclass(frozen=True)
class InstallRequest(Placing):
    """A request to create what a package describes.

    Without an id the instance gets the product's name, where no instance has it yet.

    >>> InstallRequest("packages/v1", namespace="cnf").instance_id is None
    True
    """

    package: str
    """A folder, a CSAR zip, a YAML file, or ``-`` for standard input."""
    create_namespace: bool = False
    """Create *namespace* where it does not exist. It is no part of the package."""


@dataclass(frozen=True)
class TerminateRequest(Placing):
    """A request to delete the objects of a VNF instance; without an id, of one installed so.

    Objects that hold data and cluster-scoped objects stay, unless they are included.

    >>> TerminateRequest(instance_id="vnf-1", delete_data=True).delete_shared
    False
    """

    package: str | None = None
    """What the instance runs from: its kinds are looked through, beside those of the instance's
    record and of workloads and what belongs to them. None: there is no need to."""
    delete_data: bool = False
    """The PersistentVolumeClaims too, and with them the data."""
    delete_shared: bool = False
    """What is in no namespace too, and Namespaces with all that is in them."""


@dataclass(frozen=True)
class UndoRequest:
    """A request to undo finished operations.

    >>> UndoRequest(revision=3).packages
    ()
    """

    revision: int | None = None
    """The first operation to undo; all after it are undone too. None: the newest that has not been
    undone."""
    packages: tuple[str, ...] = ()
    """Those of a change that is undone, in any order: needed where it had coordination scripts,
    which nothing in the cluster is trusted about, or is about other namespaces, objects in no
    namespace or RBAC."""
    namespace: str = "default"
    instance_id: str | None = None


@dataclass(frozen=True)
class ChangePackageRequest(Placing):
    """A ChangeCurrentVnfPkgRequest with what it does not say.

    >>> body = {"additionalParams": {"upgrade_type": "Blue-Green"}}
    >>> ChangePackageRequest(body, old="packages/v1", new="packages/v2").instance_id is None
    True
    """

    body: Mapping[str, Any] = field(repr=False)
    """Its JSON; without ``vnfdId`` that of the new package counts."""
    old: str
    """The package that the VNF runs from, as ``UpdateRequest.old``."""
    new: str
    instance: str | None = None
    """A JSON file with the VnfInstance, which scripts and *records* need."""
    records: str | None = None
    """The file to write the VnfInstance to after the change."""


@dataclass(frozen=True)
class _UpkeepRequest(Placing):
    package: str
    """What the VNF runs from."""
    request_id: str = field(default="", kw_only=True)
    """Two tries of one request have the same; empty: it is tried once."""


@dataclass(frozen=True)
class HealRequest(_UpkeepRequest):
    """A request to replace broken pods, or to make the whole VNF what its package says.

    >>> HealRequest("packages/v1", vnfcs=(("VDU1", "web-0"),)).namespace
    'default'
    """

    vnfcs: tuple[tuple[str, str], ...] = ()
    """VDU id and pod name of each VNFC; empty: the whole VNF."""


@dataclass(frozen=True)
class ScaleRequest(_UpkeepRequest):
    """A request for other numbers of pods, so many of them Ready and no more there.

    >>> ScaleRequest("packages/v1", numbers={"VDU1": 3}).instance_id is None
    True
    """

    numbers: Mapping[str, int]
    """VDU id to number of pods."""


Saveable = UpdateRequest | InstallRequest | TerminateRequest | UndoRequest | ChangePackageRequest
"""The requests that a file can keep with their plan."""
Request = Saveable | HealRequest | ScaleRequest
"""What an instance of a VNF in a cluster can be asked for."""


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
