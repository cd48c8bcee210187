# SPDX-License-Identifier: Apache-2.0
"""The requests for lists whose time is measured: filters of every kind, selectors, pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import cycle, islice
from urllib.parse import quote

from benchmarks.records import API, identity, start_of
from container_update.vnfm.api.queries.lists import marker_of

OPERATIONS = f"/vnflcm/{API}/vnf_lcm_op_occs"
INSTANCES = f"/vnflcm/{API}/vnf_instances"
SUBSCRIPTIONS = f"/vnflcm/{API}/subscriptions"
PACKAGES = "/vnfpkgm/v1/vnf_packages"

_VNFC = "resourceChanges/affectedVnfcs"
_INFO = "instantiatedVnfInfo"

_FILTERS: Mapping[str, tuple[str, ...]] = {
    OPERATIONS: (
        "(eq,id,{operation})",
        "(neq,id,{operation})",
        "(in,id,{operation},{instance})",
        "(gt,id,ffff)",
        "(lt,id,0001)",
        "(cont,id,{part})",
        "(cont,id,nowhere)",
        "(ncont,id,-)",
        "(eq,operationState,COMPLETED)",
        "(eq,operationState,PROCESSING)",
        "(nin,operationState,COMPLETED,FAILED)",
        "(cont,operationState,BACK)",
        "(gte,operationState,ROLLED_BACK)",
        "(eq,operation,HEAL)",
        "(cont,operation,PKG)",
        "(gt,operation,ZZZ)",
        "(ncont,operation,E,A)",
        "(eq,vnfInstanceId,{instance})",
        "(cont,vnfInstanceId,{part})",
        "(gte,vnfInstanceId,ffff)",
        "(gt,startTime,{late})",
        "(lt,startTime,{early})",
        "(eq,startTime,{early})",
        "(nin,startTime,{early})",
        "(cont,startTime,T23:59)",
        "(gt,startTime,9)",
        "(gte,stateEnteredTime,{late})",
        "(lt,stateEnteredTime,2020-01-01T00:00:00Z)",
        "(cont,stateEnteredTime,2031)",
        "(eq,isAutomaticInvocation,true)",
        "(eq,isCancelPending,true)",
        "(neq,isCancelPending,true)",
        "(cont,_links/self/href,{part})",
        "(eq,_links/retry/href,nowhere)",
        "(eq,absent,1)",
        "(eq,operationParams/vnfdId,{vnfd})",
        "(eq,operationParams/additionalParams/number,{last})",
        "(eq,operationParams/additionalParams/note,'change request {last}')",
        "(cont,operationParams/additionalParams/note,'request {last}')",
        "(gt,operationParams/additionalParams/number,{last})",
        "(neq,operationParams/additionalParams/vdu_params/vdu_id,VDU0)",
        "(ncont,operationParams/additionalParams/note,change)",
        "(eq,operationParams/@key,nowhere)",
        "(eq,operationParams/nowhere,1)",
        "(eq,error/status,404)",
        "(eq,error/detail,'pod 3 does not start')",
        "(cont,error/detail,nowhere)",
        f"(eq,{_VNFC}/vduId,VDU1)",
        f"(eq,{_VNFC}/vduId,VDU9)",
        f"(neq,{_VNFC}/changeType,MODIFIED)",
        f"(ncont,{_VNFC}/vduId,VDU)",
        f"(gt,{_VNFC}/vduId,VDU5)",
        f"(cont,{_VNFC}/computeResource/resourceId,'{{resource}}')",
        f"(eq,{_VNFC}/id,vnfc-{{last}}-0)",
        f"(eq,{_VNFC}/vduId,VDU1);(eq,{_VNFC}/id,vnfc-{{last}}-0)",
        "(eq,changedInfo/vnfSoftwareVersion,1.{last})",
        "(gt,changedInfo/vnfSoftwareVersion,2)",
        "(eq,modificationsTriggeredByVnfPkgChange/vnfdId,{vnfd})",
        "(eq,operation,SCALE);(eq,operationState,FAILED);(cont,error/detail,nowhere)",
    ),
    INSTANCES: (
        "(eq,id,{instance})",
        "(cont,vnfdId,{part})",
        "(eq,instantiationState,NOT_INSTANTIATED)",
        "(eq,vnfInstanceName,'CNF number 3')",
        "(gt,vnfInstanceName,'D')",
        "(cont,vnfProductName,nowhere)",
        f"(eq,{_INFO}/vnfcResourceInfo/vduId,VDU9)",
        f"(eq,{_INFO}/scaleStatus/scaleLevel,7)",
        "(eq,vimConnectionInfo/@key,nowhere)",
    ),
    PACKAGES: (
        "(eq,vnfdId,{vnfd})",
        "(eq,usageState,NOT_IN_USE)",
        "(eq,userDefinedData/site,'site 9')",
        "(gt,userDefinedData/number,{last})",
        "(cont,vnfSoftwareVersion,nowhere)",
    ),
    SUBSCRIPTIONS: (
        "(eq,filter/operationTypes,NOTHING)",
        "(cont,callbackUri,nowhere)",
        "(eq,verbosity,SHORT)",
    ),
}
_SELECTORS: Mapping[str, tuple[str, ...]] = {
    OPERATIONS: ("all_fields", "exclude_fields=resourceChanges", "fields=error,operationParams"),
    INSTANCES: ("all_fields", f"fields={_INFO}/vnfcResourceInfo"),
    PACKAGES: ("all_fields", "exclude_default"),
    SUBSCRIPTIONS: ("all_fields",),
}


_SCANS = (
    "(gt,operationParams/additionalParams/number,{last})",
    f"(neq,{_VNFC}/changeType,MODIFIED)",
    f"(gt,{_VNFC}/vduId,VDU5)",
    "(gt,id,ffff)",
    "(cont,_links/self/href,{part})",
    f"(eq,{_VNFC}/vduId,VDU9)",
    "(cont,error/detail,nowhere)",
    "(eq,isCancelPending,true)",
)
"""Filters that find nothing, or little, in all operations."""


def requests(operations: int) -> Iterator[str]:
    """Yield the path of each request, for a database with so many operations."""
    for path, selectors in _SELECTORS.items():
        yield path
        yield from (f"{path}?{selector}" for selector in selectors)
        yield from (_filtered(path, text, operations) for text in _FILTERS[path])
    behind = max(0, operations - 101)
    marker = marker_of((start_of(behind), identity("operation", behind)))
    yield f"{OPERATIONS}?nextpage_opaque_marker={quote(marker)}&all_fields"


def scans(operations: int, number: int) -> list[str]:
    """Return the paths of so many requests whose filters judge many rows and find few."""
    return [_filtered(OPERATIONS, text, operations) for text in islice(cycle(_SCANS), number)]


def _filtered(path: str, text: str, operations: int) -> str:
    last = operations - 1
    values = {
        "operation": identity("operation", last),
        "instance": identity("instance", 0),
        "vnfd": identity("vnfd", 3),
        "part": identity("instance", 0)[2:12],
        "early": _shown(start_of(0)),
        "late": _shown(start_of(last - last // 10)),
        "last": last,
        "resource": f"{last:08x}-00000",
    }
    return f"{path}?filter={quote(text.format(**values))}"


def _shown(moment: datetime) -> str:
    return f"{moment.isoformat(timespec='milliseconds')}Z"
