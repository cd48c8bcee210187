# SPDX-License-Identifier: Apache-2.0
"""The attributes of a VnfPkgInfo that the package itself gives (SOL005, 9.5.2.5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.package.csar import Csar
from container_update.package.vnfd import Flavour

PRODUCT: Mapping[str, str] = {
    "vnfProvider": "provider",
    "vnfProductName": "product_name",
    "vnfSoftwareVersion": "software_version",
    "vnfdVersion": "descriptor_version",
}
"""The attributes that an instance takes from its package, with their names in the VNFD."""

_CHUNK = 1024 * 1024


def read(package: Csar, content: Path) -> Json:
    """Return the attributes of an opened package.

    :param content: the zip that was uploaded.
    :raises PackageError: the VNFD has no id.
    """
    if not package.vnfd_id:
        raise PackageError("expected a VNFD with a descriptor_id, found none")
    product = package.flavours[0].product
    return {
        "vnfdId": package.vnfd_id,
        **{name: product.get(key, "") for name, key in PRODUCT.items()},
        "checksum": {"algorithm": "SHA-512", "hash": _digest(content)},
        "softwareImages": list(software_images(package.flavours)),
        "additionalArtifacts": [
            {
                "artifactPath": artifact.path,
                "checksum": {"algorithm": artifact.algorithm, "hash": artifact.hash},
                "metadata": {},
            }
            for artifact in package.artifacts
        ],
    }


def software_images(flavours: Iterable[Flavour]) -> Iterator[Json]:
    """Yield a VnfPackageSoftwareImageInfo (SOL005, 9.5.3.2) for each image of the VNFD.

    Its id is the VDU or storage that has the image, as the VNFD knows no other.
    """
    images = {node: image for each in flavours for node, image in each.software_images.items()}
    for node, image in images.items():
        given = image.get("checksum")
        checksum = given if isinstance(given, dict) else {}
        info = {
            "id": node,
            "name": image.get("name"),
            "provider": image.get("provider"),
            "version": image.get("version"),
            "checksum": {name: checksum.get(name) for name in ("algorithm", "hash")},
            "containerFormat": _upper(image.get("container_format")),
            "diskFormat": _upper(image.get("disk_format")),
            "minDisk": _number(image.get("min_disk"), "B"),
            "minRam": _number(image.get("min_ram"), "B"),
            "size": _number(image.get("size"), "B"),
            "imagePath": image.get("image_path"),
        }
        yield {name: value for name, value in info.items() if value is not None}


def _upper(value: Any) -> str | None:
    return None if value is None else str(value).upper()


def _number(value: Any, unit: str) -> int | None:
    """Return a size of TOSCA (``2 GB``) in bytes; None for what is none."""
    from toscaparser.elements.scalarunit import ScalarUnit_Size  # noqa: PLC0415, slow to load

    if value is None:
        return None
    try:
        return int(ScalarUnit_Size(str(value)).get_num_from_scalar_unit(unit))
    except (TypeError, ValueError):
        return None


def _digest(path: Path) -> str:
    digest = hashlib.sha512()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
