"""Both packages of a change as one value: every object of either, and the VDUs they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from container_update import matching
from container_update.change_vnfpkg.request import ChangeRequest
from container_update.change_vnfpkg.strategy import Order
from container_update.model.errors import PackageError
from container_update.model.objects import Manifest, ObjectKey
from container_update.package import csar, manifests

Objects = Mapping[ObjectKey, Manifest]


@dataclass(frozen=True)
class Packages:
    """What the old and the new package say, without a look at the cluster."""

    old: Objects
    new: Objects
    old_vdus: Mapping[str, str]
    """VDU id to the name of its workload."""
    new_vdus: Mapping[str, str]
    vnfd_id: str
    """The new VNFD's."""
    def_files: tuple[str, ...]
    """The instance's def-files after the change."""
    chosen: frozenset[str] | None = None
    """The ids of the VDUs that change; None: all."""

    @property
    def keys(self) -> tuple[ObjectKey, ...]:
        """Every object of either package: new ones in their order, then what is gone."""
        return (*self.new, *(key for key in self.old if key not in self.new))

    def concerns(self, key: ObjectKey) -> bool:
        """The object may change: it runs no containers, or is of a VDU that was chosen."""
        if self.chosen is None or not key.is_workload:
            return True
        return any(
            vdus.get(vdu) == key.name
            for vdus in (self.old_vdus, self.new_vdus)
            for vdu in self.chosen
        )

    def vdu_of(self, key: ObjectKey) -> str:
        """The id of the VDU that a workload is of; its own name where the VNFD has none for it."""
        for vdus in (self.new_vdus, self.old_vdus):
            for vdu, name in vdus.items():
                if name == key.name:
                    return vdu
        return key.name


@dataclass(frozen=True)
class Placing:
    """Which def-files make up the VNF, and where their objects go."""

    def_files: tuple[str, ...] = ()
    """The instance's; empty: every manifest that the old package lists."""
    namespace: str = "default"
    """For manifests that name none."""
    one_namespace: bool = False
    """Everything that lives in a namespace lives in that one, whatever its manifest says."""


def read(order: Order, placing: Placing) -> Packages:
    """Read what a change needs of both packages.

    :raises PackageError: a package or the request is wrong.
    """
    request, settings = order.request, csar.Settings.of(order.options)
    with (
        csar.open_package(order.old, settings=settings) as before,
        csar.open_package(order.new, settings=settings) as after,
    ):
        old_files = placing.def_files or tuple(before.manifest_files())
        new_files = request.def_files or _same_files(placing.def_files, after)
        packages = Packages(
            old=_objects(before, old_files, placing),
            new=_objects(after, new_files, placing),
            old_vdus=dict(before.vdus()),
            new_vdus=dict(after.vdus()),
            vnfd_id=_vnfd_id(request, after),
            def_files=new_files,
            chosen=frozenset(vdu.vdu_id for vdu in request.vdu_params) or None,
        )
        for script in (request.coordinate_old, request.coordinate_new):
            if script is not None:
                after.read(script.path)
    _refuse_unknown_vdus(request, packages)
    return packages


def _same_files(def_files: Sequence[str], after: csar.Csar) -> tuple[str, ...]:
    """The def-files where the request names none: those that there were."""
    if not def_files:
        return tuple(after.manifest_files())
    for path in def_files:
        if not after.has(path):
            raise PackageError(
                f"{path}: this def-file of the VNF is not in the new package {after.source}: name "
                "the new files in additionalParams.lcm-kubernetes-def-files"
            )
    return tuple(def_files)


def _objects(package: csar.Csar, paths: Sequence[str], placing: Placing) -> Objects:
    limits = package.settings.yaml
    return matching.index(
        {
            path: tuple(
                _placed(manifest, placing)
                for manifest in manifests.parse(
                    package.read(path), path, placing.namespace, limits=limits
                )
            )
            for path in dict.fromkeys(paths)
        }
    )


def _placed(manifest: Manifest, placing: Placing) -> Manifest:
    if not (placing.one_namespace and manifest.key.namespace):
        return manifest
    return replace(manifest, key=replace(manifest.key, namespace=placing.namespace))


def _vnfd_id(request: ChangeRequest, after: csar.Csar) -> str:
    if after.vnfd_id and after.vnfd_id != request.vnfd_id:
        raise PackageError(
            f"vnfdId: expected {after.vnfd_id}, which the VNFD in {after.source} has, found "
            f"{request.vnfd_id}: this is not the package that the request asks for"
        )
    return request.vnfd_id


def _refuse_unknown_vdus(request: ChangeRequest, packages: Packages) -> None:
    workloads = {key.name for key in packages.new if key.is_workload}
    for number, vdu in enumerate(request.vdu_params):
        place = f"additionalParams.vdu_params[{number}].vdu_id"
        name = packages.new_vdus.get(vdu.vdu_id)
        if name is None:
            known = ", ".join(packages.new_vdus) or "none"
            raise PackageError(
                f"{place}: expected a VDU of the new package (it has {known}), found {vdu.vdu_id}"
            )
        if name not in workloads:
            raise PackageError(
                f"{place}: {vdu.vdu_id} is run by {name}, which no def-file of the new package "
                "describes: correct the VDU's properties.name or the def-files"
            )
