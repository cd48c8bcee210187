# SPDX-License-Identifier: Apache-2.0
"""Which manifest of the new package stands for which object of the old one. Pure.

By identity: first in the listed files (``configmap_secret_paths``), then in the def-file of the
same path, then in any def-file of the new package. An object found nowhere is left alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from container_update.model.errors import ChangeNeededError, PackageError
from container_update.model.objects import Manifest, ObjectKey
from container_update.workloads import config_references, pod_template
from container_update.workloads.registry import is_workload

ByPath = Mapping[str, tuple[Manifest, ...]]
"""Def-file to the manifests it holds, in the order of the list of def-files."""


NO_FILES: ByPath = MappingProxyType({})
_CHANGE = "change the package as a whole, which creates and deletes objects"
_RENAME = f"An update cannot rename an object: keep its name, or {_CHANGE}"


@dataclass(frozen=True)
class Matching:
    """The old package's objects with what the new one has for them."""

    pairs: tuple[tuple[Manifest, Manifest | None], ...]
    """Each old manifest with its new one, None where the new package has none."""
    added: tuple[Manifest, ...]
    """ConfigMaps and Secrets that are new in a listed file, or in a kept one where no file is
    listed: to be created."""
    not_added: tuple[Manifest, ...]
    """Other objects that are new in a listed or kept file: they do not take effect."""
    def_files: tuple[str, ...]
    """The instance's def-files after the update."""
    unlisted: frozenset[ObjectKey] = frozenset()
    """ConfigMaps and Secrets of the new package that the request does not list although it lists
    files: they are not written."""
    listed: frozenset[ObjectKey] = frozenset()
    """What is in the files that the request lists: it takes effect, whatever others have changed.
    """
    removed: tuple[Manifest, ...] = ()
    """ConfigMaps and Secrets that go; only a way back has any."""


def index(by_path: ByPath) -> dict[ObjectKey, Manifest]:
    """Return identity to manifest; PackageError where an object is there twice."""
    by_key: dict[ObjectKey, Manifest] = {}
    for manifest in _all(by_path):
        first = by_key.setdefault(manifest.key, manifest)
        if first is not manifest:
            raise PackageError(
                f"{manifest.source}: {manifest.key} is there twice, first at {first.source}: "
                "expected each object once, remove one of them"
            )
    return by_key


def unmatched_keys(old: ByPath, listed: ByPath, kept: ByPath = NO_FILES) -> frozenset[ObjectKey]:
    """Return the old objects that are neither in a listed file nor in a file that kept its path."""
    new = {manifest.key for manifest in (*_all(listed), *_all(kept))}
    return frozenset(manifest.key for manifest in _all(old)) - new


def match(
    old: ByPath, listed: ByPath, kept: ByPath, others: ByPath, *, whole: bool = False
) -> Matching:
    """Find the new manifest of every old object.

    :param old: the old package's def-files of this instance.
    :param listed: the new package's files named by the request.
    :param kept: the new package's files at the paths of old def-files, where they are there.
    :param others: the new package's remaining def-files; may be empty where *unmatched* is.
    :param whole: all of the new package's files are the CNF's, and what is new in any of them is
        reported.
    :raises PackageError: an object is there twice, a listed object is none of the CNF's, a
        ConfigMap or Secret was renamed, alone or with the references to it, or a def-file is gone
        from the new package with objects that are nowhere else.
    """
    old_by_key = index(old)
    new_listed, new_kept = index(listed), index(kept)
    missing = unmatched_keys(old, listed, kept)
    every = {manifest.key: manifest for manifest in _all(others)} if whole else {}
    # of the other files only what is needed: they may hold the same object many times over
    needed = {p: tuple(m for m in others[p] if m.key in missing) for p in others}
    new_by_key = {**index(needed), **new_kept, **new_listed}
    _refuse_strangers(old_by_key, new_by_key, new_listed)
    _refuse_renamed(old, kept, new_by_key)
    _refuse_renamed_references(old_by_key, new_by_key)
    _refuse_lost_files(old, {*kept, *listed}, new_by_key)
    unlisted = {key for key in new_by_key if key.is_config} - new_listed.keys() if listed else set()
    new_here = [m for m in {**new_kept, **new_listed}.values() if m.key not in old_by_key]
    added = [m for m in new_here if m.key.is_config and m.key not in unlisted]
    staying = {path for path in kept if not old.get(path)} | {m.source.path for m in new_here}
    return Matching(
        pairs=tuple((m, new_by_key.get(m.key)) for m in old_by_key.values()),
        added=tuple(added),
        not_added=tuple(
            manifest
            for key, manifest in {**every, **{m.key: m for m in new_here}}.items()
            if key not in old_by_key and manifest not in added
        ),
        def_files=_def_files(old, tuple(listed), new_by_key, staying),
        unlisted=frozenset(unlisted),
        listed=frozenset(new_listed),
    )


def _all(by_path: ByPath) -> Iterable[Manifest]:
    return (manifest for manifests in by_path.values() for manifest in manifests)


def _refuse_strangers(
    old: Mapping[ObjectKey, Manifest],
    new: Mapping[ObjectKey, Manifest],
    listed: Mapping[ObjectKey, Manifest],
) -> None:
    """Refuse listed objects of others: kind, namespace and name cannot change (user guide)."""
    lost = [key for key in old if key.is_config and key not in new]
    namespaces = {key.namespace for key in old}
    for key in [key for key in listed if key not in old]:
        what = f"{listed[key].source}: {key} is"
        if not key.is_config:
            raise PackageError(
                f"{what} no object of the CNF: configmap_secret_paths names files with the CNF's "
                "ConfigMaps and Secrets, remove the file from the request"
            )
        if lost:
            raise ChangeNeededError(
                f"{what} no object of the CNF, and {lost[0]} ({old[lost[0]].source}) is nowhere in "
                f"the new package. {_RENAME}"
            )
        if key.namespace not in namespaces:
            raise PackageError(
                f"{what} in a namespace where the CNF has no objects (it has some in "
                f"{', '.join(sorted(filter(None, namespaces)))}): correct the namespace"
            )


def _refuse_renamed(old: ByPath, kept: ByPath, new: Mapping[ObjectKey, Manifest]) -> None:
    """Refuse another ConfigMap or Secret in place of an old one, in a kept file."""
    known = {manifest.key for manifest in _all(old)}
    for path, manifests in old.items():
        lost = [m for m in manifests if m.key.is_config and m.key not in new]
        strange = [m for m in kept.get(path, ()) if m.key.is_config and m.key not in known]
        if lost and strange:
            raise ChangeNeededError(
                f"{strange[0].source}: {strange[0].key} is no object of the CNF, and "
                f"{lost[0].key} ({lost[0].source}) is nowhere in the new package. {_RENAME}"
            )


def _refuse_renamed_references(
    old: Mapping[ObjectKey, Manifest], new: Mapping[ObjectKey, Manifest]
) -> None:
    """Refuse a reference to another object in place of one that is gone (a hash in its name)."""
    lost = old.keys() - new.keys()
    for key in [key for key in old if lost and is_workload(key) and key in new]:
        before, after = _references(old[key]), _references(new[key])
        for gone in sorted((before - after) & lost):
            if others := sorted(each for each in after - before if each.kind == gone.kind):
                raise ChangeNeededError(
                    f"{new[key].source}: {key} refers to {others[0]} in place of {gone} "
                    f"({old[gone].source}), which is nowhere in the new package. {_RENAME}"
                )


def _references(workload: Manifest) -> frozenset[ObjectKey]:
    return frozenset(
        ObjectKey("", use.kind, workload.key.namespace, use.name)
        for use in config_references.uses(pod_template.pod_spec(workload.body))
    )


def _refuse_lost_files(
    old: ByPath, new_paths: Container[str], new: Mapping[ObjectKey, Manifest]
) -> None:
    for path, manifests in old.items():
        for manifest in manifests:
            if path not in new_paths and manifest.key not in new:
                raise ChangeNeededError(
                    f"{path}: the new package does not have this def-file, and {manifest.key} of "
                    "it is in no other file. An update deletes nothing: put the object back, or "
                    f"{_CHANGE}"
                )


def _def_files(
    old: ByPath,
    listed: Sequence[str],
    new: Mapping[ObjectKey, Manifest],
    staying: Container[str],
) -> tuple[str, ...]:
    """Return the new list of def-files.

    An old path whose objects are all elsewhere is replaced by their paths; a file that still holds
    an object stays. No object drops out, because the VNFM terminates from this list.
    """
    result: list[str] = []
    for path, manifests in old.items():
        homes = [new[m.key].source.path if m.key in new else path for m in manifests]
        if path in homes or path in staying:
            result.append(path)
        result += homes
    return tuple(dict.fromkeys([*result, *listed]))
