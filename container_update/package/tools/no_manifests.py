# SPDX-License-Identifier: Apache-2.0
"""Why a package has no Kubernetes manifests: what it has instead, and where.

An update from or to nothing has nothing to do, which reads like success; mostly the files are
there, one folder too high or too low.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from container_update.model.errors import PackageError
from container_update.package import archive
from container_update.package.csar import Csar
from container_update.package.csar_metadata import TOSCA_META


def refusal(package: Csar, listed: Sequence[str] = ()) -> PackageError:
    """Return the error about a package whose def-files have no manifests."""
    if listed:
        place, instead = f"in {_some(listed, 'file')}", "none"
        advice = "name files with objects"
    else:
        place = "in its YAML files" if package.is_flat else "below Files/"
        if package.artifacts:
            place = "among the files that its metadata lists"
        instead, advice = describe_content(package)
    return PackageError(f"{package.source}: expected manifests {place}, found {instead}: {advice}")


def describe_content(package: Csar) -> tuple[str, str]:
    """Return what a package has in place of manifests, and what to do."""
    return next(_reasons(package))


def _reasons(package: Csar) -> Iterator[tuple[str, str]]:
    """Yield what it has, and what to do, the most likely mistake first."""
    inside, looked_at = package.packages_inside, package.manifest_files()
    if inside and "" not in inside:
        yield _a_package(package, inside)
    others = (name for name in package.names() if name not in looked_at)
    yaml = (name for name in others if name.endswith(archive.MANIFEST_ENDINGS))
    if elsewhere := list(filter(package.may_hold_manifests, yaml)):
        place = "among those listed" if package.artifacts else "there"
        advice = f"put them below Files/, or list them in {TOSCA_META}: container-update csar build"
        yield f"{_some(elsewhere, 'YAML file')}, not {place}", advice
    if package.has_templates:
        yield "HEAT templates in BaseHOT/", "name the stack: heat change --stack NAME"
    if package.charts:
        chart = package.charts[0].rstrip("/") or "."
        yield f"the Helm chart {chart}", f"render it: helm template NAME {chart} > web.yaml"
    if len(looked_at) == 1 and not package.read(looked_at[0]).strip():
        yield f"{looked_at[0]}, which is empty", "look whether what makes it has failed"
    if looked_at:
        advice = "write apiVersion and kind into the objects"
        yield f"{_some(looked_at, 'file')} with neither apiVersion nor kind", advice
    if names := package.names():
        yield f"{_some(names, 'file')}, no manifest", "name the folder with the manifests"
    yield "no files at all", "name the folder with the manifests"


def _a_package(package: Csar, inside: Sequence[str]) -> tuple[str, str]:
    folder = inside[0].rstrip("/")
    if len(inside) > 1:
        return f"packages in {_some(inside, 'folder')}", "name one of them"
    nested = f"a package in its folder {folder}"
    if Path(package.source).is_dir():
        return nested, f"name that: {package.source.rstrip('/')}/{folder}"
    return nested, f"zip what is in {folder}, not {folder} itself"


def _some(names: Sequence[str], what: str) -> str:
    """Return the first name, and how many others there are."""
    others = len(names) - 1
    more = f" and {others} other {what}{'s' if others > 1 else ''}" if others else ""
    return f"{names[0]}{more}"
