# SPDX-License-Identifier: Apache-2.0
"""Both packages of a change as one value: what is applied, what stays, and the VDUs. Pure.

``lcm-kubernetes-def-files`` says what is applied. An old object that the new package describes in
another file stays as it is; only one that no file of the new package describes is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from container_update.model.objects import Json, Manifest, ObjectKey, get_at
from container_update.model.requests import PackageIdentity
from container_update.planning.comparison.match import ByPath, index
from container_update.planning.release_labels import pod_labels
from container_update.workloads import config_references, pod_template
from container_update.workloads.registry import is_workload
from container_update.workloads.traffic import matches, scales, selects

Objects = Mapping[ObjectKey, Manifest]
Vdus = Mapping[str, str]
"""VDU id to the name of its workload."""


@dataclass(frozen=True)
class Packages:
    """What the old and the new package say, without a look at the cluster."""

    old: Objects
    new: Objects
    """What is applied."""
    old_vdus: Vdus
    new_vdus: Vdus
    vnfd_id: str
    """The new VNFD's."""
    def_files: tuple[str, ...]
    """The instance's def-files after the change."""
    chosen: frozenset[str] | None = None
    """The ids of the VDUs that change; None: all."""
    kept: Objects = field(default_factory=dict)
    """The new manifests of old objects that stay as they are."""
    out_of_scope: Objects = field(default_factory=dict)
    """Listed objects that are not applied: they are of VDUs that do not change."""
    identities: tuple[PackageIdentity, ...] = ()
    """The old package and the new one; empty where they are not known."""
    former: Mapping[ObjectKey, Json] | None = None
    """The objects as they were before the operations that an undo takes back; None: it is none."""

    @property
    def keys(self) -> tuple[ObjectKey, ...]:
        """Every object of the VNF: new ones in their order, what stays, then what is gone."""
        return tuple(dict.fromkeys([*self.new, *self.kept, *self.old]))

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """What both say about them."""
        return (*self.new.values(), *self.kept.values(), *self.old.values())

    @property
    def vdus(self) -> Vdus:
        """The VDUs after the change: one that does not change keeps its workload."""
        named = {key.name for key in (*self.new, *self.kept) if is_workload(key)}
        staying = {
            vdu: name
            for vdu, name in self.old_vdus.items()
            if (self.chosen is not None and vdu not in self.chosen)
            or self.new_vdus.get(vdu, name) not in named
        }
        return {**self.new_vdus, **staying}

    def concerns(self, key: ObjectKey) -> bool:
        """Tell whether an object may change: not where it is only of VDUs that do not."""
        if not is_workload(key):
            return key not in self._of_other_vdus
        packages = (self.old_vdus, self.new_vdus)
        return self.chosen is None or any(
            vdus.get(vdu) == key.name for vdus in packages for vdu in self.chosen
        )

    def vdu_of(self, key: ObjectKey) -> str:
        """Return the id of a workload's VDU; its own name where the VNFD has none for it."""
        vdus = (*self.new_vdus.items(), *self.old_vdus.items())
        return next((vdu for vdu, name in vdus if name == key.name), key.name)

    def unlisted_successor(self, key: ObjectKey) -> str | None:
        """Return the new workload of an old one's VDU, where the request lists no file with it."""
        name = self.new_vdus.get(self.vdu_of(key))
        if not is_workload(key) or name in (None, key.name):
            return None
        return None if any(is_workload(new) and new.name == name for new in self.new) else name

    @cached_property
    def _of_other_vdus(self) -> frozenset[ObjectKey]:
        if self.chosen is None:
            return frozenset()
        objects = [*self.old.values(), *self.new.values(), *self.kept.values()]
        return used_only_by_others(objects, self.concerns)


def pair(  # noqa: PLR0913
    old: ByPath,
    listed: ByPath,
    others: ByPath,
    *,
    old_vdus: Vdus,
    new_vdus: Vdus,
    vnfd_id: str,
    chosen: frozenset[str] | None = None,
) -> Packages:
    """Return the packages of a change; *chosen*: the VDUs that change, None: all."""
    before, applied = index(old), index(listed)
    kept: dict[ObjectKey, Manifest] = {}
    for manifest in _in_files(others, first=old):
        if manifest.key in before and manifest.key not in applied:
            kept.setdefault(manifest.key, manifest)
    packages = Packages(before, applied, old_vdus, new_vdus, vnfd_id, (), chosen, kept)
    beyond = {
        key: manifest
        for key, manifest in applied.items()
        if not is_workload(key) and not packages.concerns(key)
    }
    kept |= {key: manifest for key, manifest in beyond.items() if key in before}
    new = {key: manifest for key, manifest in applied.items() if key not in beyond}
    describing = {**kept, **applied}
    homes = [describing[m.key].source.path for m in _in_files(old) if m.key in describing]
    files = dict.fromkeys([*homes, *listed])
    def_files = tuple(dict.fromkeys([*(path for path in old if path in files), *files]))
    return Packages(before, new, old_vdus, new_vdus, vnfd_id, def_files, chosen, kept, beyond)


def _in_files(files: ByPath, first: Iterable[str] = ()) -> Iterator[Manifest]:
    for path in dict.fromkeys([*(path for path in first if path in files), *files]):
        yield from files[path]


# --- which objects belong to which workload -----------------------------------------------------
# Source: Kubernetes API reference: PodSpec, Service, HorizontalPodAutoscaler, PodDisruptionBudget,
# NetworkPolicy.

_SELECTORS = {
    ("networking.k8s.io", "NetworkPolicy"): ("podSelector", matches),
    ("policy", "PodDisruptionBudget"): ("selector", matches),
    ("", "Service"): ("selector", selects),
}
"""Where the spec of a kind selects pods by their labels, and how."""


def used_only_by_others(
    objects: Sequence[Manifest], is_concerned: Callable[[ObjectKey], bool]
) -> frozenset[ObjectKey]:
    """Return the objects of both packages that belong only to workloads not concerned."""
    own: set[ObjectKey] = set()
    others: set[ObjectKey] = set()
    for workload in objects:
        if is_workload(workload.key):
            belonging = own if is_concerned(workload.key) else others
            belonging.update(belongs_to(workload, objects))
    return frozenset(others - own)


def belongs_to(workload: Manifest, objects: Sequence[Manifest]) -> Iterator[ObjectKey]:
    """Yield the identities of the objects that belong to a workload."""
    namespace, spec = workload.key.namespace, pod_template.pod_spec(workload.body)
    for use in config_references.uses(spec):
        yield ObjectKey("", use.kind, namespace, use.name)
    for claim in pod_template.claims(workload.body).values():
        yield ObjectKey("", "PersistentVolumeClaim", namespace, claim)
    yield ObjectKey("", "ServiceAccount", namespace, str(spec.get("serviceAccountName")))
    pods = pod_labels(workload.body)
    for manifest in objects:
        if _points_at(manifest, workload.key, pods):
            yield manifest.key


def _points_at(manifest: Manifest, workload: ObjectKey, pods: Json) -> bool:
    if pointer := _SELECTORS.get((manifest.key.group, manifest.key.kind)):
        name, is_selected = pointer
        is_near = manifest.key.namespace == workload.namespace
        return is_near and is_selected(get_at(manifest.body, ("spec", name)), pods)
    return scales(manifest, workload)
