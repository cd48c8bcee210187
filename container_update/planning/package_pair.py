"""Both packages of a change as one value: every object of either, and the VDUs they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from container_update.model.objects import Manifest, ObjectKey
from container_update.workloads.registry import is_workload

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
        """Tell whether the object may change: it runs no containers, or its VDU was selected."""
        if self.chosen is None or not is_workload(key):
            return True
        packages = (self.old_vdus, self.new_vdus)
        return any(vdus.get(vdu) == key.name for vdus in packages for vdu in self.chosen)

    def vdu_of(self, key: ObjectKey) -> str:
        """Return the id of a workload's VDU; its own name where the VNFD has none for it."""
        vdus = (*self.new_vdus.items(), *self.old_vdus.items())
        return next((vdu for vdu, name in vdus if name == key.name), key.name)


@dataclass(frozen=True)
class Placing:
    """Which def-files make up the VNF, and where their objects go."""

    def_files: tuple[str, ...] = ()
    """The instance's; empty: every manifest that the old package lists."""
    namespace: str = "default"
    """For manifests that name none."""
    one_namespace: bool = False
    """Every namespaced object is in that namespace, also where its manifest names another."""
