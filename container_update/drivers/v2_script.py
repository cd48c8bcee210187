# SPDX-License-Identifier: Apache-2.0
"""The fields of Tacker's input that the v2 script reads, checked once, before anything is done.

What a request may have of a change of the package is in :mod:`.change_by_modify`, how a VIM is
reached in :mod:`.vim`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from container_update.drivers import v2_memory
from container_update.model.objects import FieldPath, Json, ObjectKey
from container_update.model.requests import CONFIG_PATHS, DEF_FILES
from container_update.model.schema import (
    FILLED,
    LINE,
    MAPPING,
    PLAIN,
    TEXTS,
    Fields,
    ListOf,
    MapOf,
    OneOf,
    Schema,
    Violation,
)
from container_update.records.resource_lists import LINKS, STORAGES, VNFCS, ResourceList
from container_update.records.vnf_records import VDU_RESES
from container_update.workloads import object_schemas


@dataclass(frozen=True)
class _Workload(Schema):
    """The manifest of a workload."""

    type: type = field(default=dict, init=False)
    description: str = field(default="a manifest", init=False)

    def _inside(self, value: Json, path: FieldPath) -> Iterator[Violation]:
        wrong = _IDENTITY.first_violation(value)
        wrong = wrong or object_schemas.first_violation(ObjectKey.of(value), value)
        if wrong is not None:
            yield Violation((*path, *wrong.path), wrong.expected, wrong.found)


_IDENTITY = Fields(
    {
        "apiVersion": object_schemas.API_VERSION,
        "kind": object_schemas.KIND,
        "metadata": Fields({"name": FILLED}, {"name"}),
        "spec": MAPPING,
    },
    {"apiVersion", "kind", "metadata", "spec"},
)


def _entries(resources: ResourceList) -> ListOf:
    handle = Fields({"resourceId": LINE})
    fields: dict[str, Schema] = {"id": FILLED, resources.name: LINE, resources.handle: handle}
    return ListOf(Fields(fields, {"id", resources.name}))


_INFO = Fields(
    {
        "metadata": Fields(
            {
                "namespace": object_schemas.ANY_NAMESPACE,
                DEF_FILES: TEXTS,
                VDU_RESES: MapOf(LINE, _Workload(), nullable=False),
            }
        ),
        **{each.attribute: _entries(each) for each in (VNFCS, LINKS, STORAGES)},
        "vnfcInfo": ListOf(Fields({"vnfcResourceInfoId": LINE})),
    }
)
_SCRIPT = Fields(
    {
        "request": Fields(
            {
                "vnfdId": LINE,
                "metadata": Fields({CONFIG_PATHS: TEXTS}),
                "vnfcInstanceId": TEXTS,
            }
        ),
        "grant_request": Fields({"vnfLcmOpOccId": LINE}),
        "vnf_instance": Fields(
            {
                "id": FILLED,
                "metadata": MAPPING,
                "vimConnectionInfo": MapOf(LINE, Fields({"vimType": LINE}), nullable=False),
                "instantiatedVnfInfo": _INFO,
            },
            {"id"},
        ),
        "tmp_csar_dir": FILLED,
        "new_csar_dir": FILLED,
        v2_memory.KEPT: Fields(
            {
                v2_memory.OURS: Fields(
                    {
                        "state": OneOf(v2_memory.STATES),
                        v2_memory.BEFORE: _INFO,
                    }
                )
            }
        ),
    },
    {"request", "vnf_instance", "tmp_csar_dir"},
)


def check(script: Any) -> None:
    """Check what Tacker sent; PackageError names the field that is wrong."""
    _SCRIPT.check(script)
    PLAIN.check(script)
