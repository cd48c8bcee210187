"""The request for an update, and the attribute that lists an instance's def-files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEF_FILES: Final = "lcm-kubernetes-def-files"
"""The attribute that lists the files a CNF is made of: in additionalParams of requests and of v1
instances, in the metadata of v2 instances. Paths in the package, or URLs."""

CONFIG_PATHS: Final = "configmap_secret_paths"
"""The attribute of a modify request's metadata that lists files of ConfigMaps and Secrets."""

UPGRADE_TYPE: Final = "upgrade_type"
"""The attribute that says how a package is changed; a modify request with it changes the package.
"""


@dataclass(frozen=True)
class UpdateRequest:
    """A request to update an instance from one package to another.

    >>> UpdateRequest(old="packages/v1", new="packages/v2", namespace="cnf").one_namespace
    False
    """

    old: str
    """The old package: a folder, a CSAR zip, or the path of a package that Tacker unpacked."""
    new: str
    def_files: tuple[str, ...] = ()
    """The instance's def-files: paths in the package or URLs. Empty: every manifest it lists."""
    config_paths: tuple[str, ...] = ()
    """``configmap_secret_paths`` of the request: paths in the new package. May be empty."""
    namespace: str = "default"
    """The namespace of manifests that name none."""
    one_namespace: bool = False
    """All objects are in *namespace*, whatever their manifests say: as Tacker creates them."""
    instance_id: str | None = None
    """The VNF instance; objects that bear another one's label are refused."""
