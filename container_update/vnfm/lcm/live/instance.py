# SPDX-License-Identifier: Apache-2.0
"""An instance whose live resources are asked for: its record, its VIM, what its packages say."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from sqlalchemy import select

from container_update.engine.read_packages import described_by
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.package import csar
from container_update.planning.comparison.package_pair import Placing
from container_update.vnfm import instances, packages, vims
from container_update.vnfm.lcm.operation_context import VnfRecord, known_flavour
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import UNSETTLED
from container_update.vnfm.store.rows import Instance, OperationRow, Package
from container_update.workloads.registry import is_workload

_PACKAGES_KEPT = 256

Kinds = frozenset[tuple[str, str]]
"""Kinds of objects: group and kind."""


@dataclass(frozen=True)
class LiveInstance:
    """An instance, for one look at it."""

    id: str
    record: VnfRecord = field(repr=False)
    connection: Json = field(repr=False)
    """Its VIM, with credentials."""
    folders: Mapping[str, Path]
    """Its packages by VNFD: that of an unsettled operation, then the recorded one."""

    def vdus(self, options: Options) -> tuple[tuple[str, str], ...]:
        """Return each VDU with the name of its workload or server, of the recorded package last;
        a VDU whose name changes is there twice."""
        flavour_id = self.record.flavour_id
        found = (_vdus(folder, flavour_id, options) for folder in self.folders.values())
        return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))

    def kinds(self, options: Options) -> Kinds:
        """Return the kinds of the workloads that the packages describe."""
        return frozenset().union(*self._kinds(options))

    def _kinds(self, options: Options) -> Iterator[Kinds]:
        for vnfd_id, folder in self.folders.items():
            is_recorded = vnfd_id == self.record.vnfd_id
            yield _workload_kinds(folder, self.record.def_files if is_recorded else (), options)


def read(service: ServiceContext, wanted: Instance | str) -> LiveInstance:
    """Read an instance from the database; one that is not instantiated has no VIM and no packages.

    :param wanted: its row or its id.
    :raises ProblemError: 404: there is none.
    :raises PackageError: there is no VIM of a known kind.
    """
    with service.database.reading() as session:
        instance_id = wanted if isinstance(wanted, str) else wanted.id
        row = session.get(Instance, instance_id)
        if row is None:
            raise ProblemError(
                404, f"VNF instance {instance_id[:64]!r}: there is none with this id"
            )
        recorded = instances.vims_of(service, row)
        record = VnfRecord(row.vnfd_id, row.instantiated, row.body, recorded)
        if not row.instantiated:
            return LiveInstance(row.id, record, {}, {})
        unsettled = (OperationRow.instance_id == row.id, OperationRow.state.in_(UNSETTLED))
        target = session.scalar(select(OperationRow.vnfd_id).where(*unsettled))
        folders = {
            vnfd_id: packages.unpacked(service, package_id)
            for vnfd_id in dict.fromkeys(filter(None, (target, row.vnfd_id)))
            for package_id in session.scalars(select(Package.id).where(Package.vnfd_id == vnfd_id))
        }
        return LiveInstance(row.id, record, vims.connection(service, session, recorded), folders)


# --- what a package says: it stays as it is once it is onboarded --------------------------------


@lru_cache(_PACKAGES_KEPT)
def _vdus(folder: Path, flavour_id: str | None, options: Options) -> tuple[tuple[str, str], ...]:
    with csar.open_package(str(folder), options=options) as package:
        return tuple(package.vdus(known_flavour(package, flavour_id)).items())


@lru_cache(_PACKAGES_KEPT)
def _workload_kinds(folder: Path, def_files: tuple[str, ...], options: Options) -> Kinds:
    described = described_by(str(folder), Placing(def_files, one_namespace=True), options)
    keys = (manifest.key for manifest in described)
    return frozenset((key.group, key.kind) for key in keys if is_workload(key))
