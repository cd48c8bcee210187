# SPDX-License-Identifier: Apache-2.0
"""The resources of SOL003 and SOL005, and how their attributes are made of columns. Pure.

The only credentials that come in are those of a decrypted vimConnectionInfo; they are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from container_update.engine.progress import NO_ACTION
from container_update.model.objects import Json
from container_update.model.outcome import StepState
from container_update.vnfm import packages, states
from container_update.vnfm.api.queries.rest_resources import RestResource
from container_update.vnfm.store.database import timestamp
from container_update.vnfm.store.rows import (
    CHANGED_BY_PACKAGE,
    CHANGED_INFO,
    Instance,
    OperationRow,
    Package,
    StepRow,
    Subscription,
    VimRow,
    api_root,
    changed_name,
)


def _package_links(row: Any) -> Json:
    self = f"/vnfpkgm/v1/vnf_packages/{row.id}"
    return _links({"self": self, "packageContent": f"{self}/package_content"})


PACKAGE = RestResource(
    (Package.id, Package.onboarding_state, Package.operational_state, Package.user_data,
     Package.vnfd_id, Package.body, packages.IN_USE),
    {
        "id": attrgetter("id"),
        "onboardingState": attrgetter("onboarding_state"),
        "operationalState": attrgetter("operational_state"),
        "userDefinedData": attrgetter("user_data"),
        "vnfdId": attrgetter("vnfd_id"),
        "error": lambda row: (row.body.get("onboardingFailureDetails") or {}).get("detail"),
        "_links": _package_links,
        "usageState": lambda row: "IN_USE" if row.in_use else "NOT_IN_USE",
    },
    has_body=True,
)  # fmt: skip
"""VnfPkgInfo (SOL005, 9.5.2.5), with links as Tacker writes them: without a host.

``error`` is an extension: the detail of onboardingFailureDetails, whose value the openstack client
does not print, as it knows no such attribute and reads others by names in lower case.
"""


def instance(base_url: str, vims_of: Callable[[Any], Any]) -> RestResource:
    """Return the definition of a VnfInstance (SOL003, 5.5.2.2).

    :param vims_of: returns vimConnectionInfo of a row: a list in v1, a map in v2; None where there
        is none.
    """

    def links(row: Any) -> Json:
        self = f"{base_url}/vnflcm/{row.api}/vnf_instances/{row.id}"
        action = "terminate" if row.instantiated else "instantiate"
        hrefs = {"self": self, action: f"{self}/{action}"}
        if row.instantiated:
            hrefs["heal"] = f"{self}/heal"
        if (row.body.get("instantiatedVnfInfo") or {}).get("scaleStatus"):
            hrefs["scale"] = f"{self}/scale"
        if row.instantiated and row.api == "v2":
            hrefs["changeVnfPkg"] = f"{self}/change_vnfpkg"
        return _links(hrefs)

    def connections(row: Any) -> Any:
        vims = vims_of(row)
        if isinstance(vims, dict):
            return {name: _without_access(vim) for name, vim in vims.items()} or None
        return [_without_access(vim) for vim in vims or ()] or None

    return RestResource(
        (Instance.id, Instance.api, Instance.vnfd_id, Instance.instantiated, Instance.body,
         Instance.sealed),
        {
            "id": attrgetter("id"),
            "vnfdId": attrgetter("vnfd_id"),
            "instantiationState": lambda row: (
                "INSTANTIATED" if row.instantiated else "NOT_INSTANTIATED"
            ),
            "_links": links,
            "vimConnectionInfo": connections,
        },
        has_body=True,
    )  # fmt: skip


def _links(hrefs: dict[str, str]) -> Json:
    return {name: {"href": href} for name, href in hrefs.items()}


def _without_access(vim: Json) -> Json:
    """Return only what identifies a VIM: the rest may be a credential."""
    interface = {
        name: value
        for name, value in (vim.get("interfaceInfo") or {}).items()
        if name in ("endpoint", "ssl_ca_cert")
    }
    kept = {name: vim[name] for name in ("id", "vimId", "vimType") if vim.get(name)}
    return {**kept, "interfaceInfo": interface} if interface else kept


def operation_url(row: Any, base_url: str) -> str:
    """Return the URL of an operation occurrence."""
    return f"{base_url}/vnflcm/{row.api}/vnf_lcm_op_occs/{row.id}"


def operation(base_url: str) -> RestResource:
    """Return the definition of a VnfLcmOpOcc (SOL003, 5.5.2.13)."""

    def links(row: Any) -> Json:
        self = operation_url(row, base_url)
        instance_url = f"{base_url}/vnflcm/{row.api}/vnf_instances/{row.instance_id}"
        links = {"self": {"href": self}, "vnfInstance": {"href": instance_url}}
        if row.state in states.REQUESTS:  # most are not, and filters judge many of them
            requests = states.allowed_to(row)
            links |= _links({request.value: f"{self}/{request.value}" for request in requests})
        return links

    def show_changed(name: str) -> Callable[[Any], Any]:
        return lambda row: (changed_name(row.operation) == name and row.changed) or None

    table = OperationRow
    return RestResource(
        (table.id, table.api, table.instance_id, table.operation, table.state, table.started,
         table.entered, table.due, table.params, table.kept, table.changes, table.changed,
         table.error),
        {
            "id": attrgetter("id"),
            "operationState": attrgetter("state"),
            "stateEnteredTime": lambda row: timestamp(row.entered),
            "startTime": lambda row: timestamp(row.started),
            "vnfInstanceId": attrgetter("instance_id"),
            "operation": attrgetter("operation"),
            "isAutomaticInvocation": lambda _: False,
            "operationParams": attrgetter("params"),
            "isCancelPending": states.is_cancel_pending,
            "cancelMode": lambda row: (
                row.kept[states.CANCELLED] if states.is_cancel_pending(row) else None
            ),
            "_links": links,
            "error": lambda row: row.error or None,
            "resourceChanges": lambda row: row.changes or None,
            **{name: show_changed(name) for name in (CHANGED_INFO, CHANGED_BY_PACKAGE)},
        },
        absent=frozenset(
            {"grantId", "changedExtConnectivity", "vnfSnapshotInfoId", "warnings",
             "lcmCoordinations", "rejectedLcmCoordinations"}
        ),
    )  # fmt: skip


def progress(row: OperationRow, steps: Iterable[StepRow]) -> Json:
    """Return the progress of an operation; an extension of SOL003."""
    names = ("object", "action", "state", "reasons", "diff", "message", "problem", "seconds")
    entries = [{name: getattr(step, name) for name in names} for step in steps]
    shown = [entry for entry in entries if entry["state"] != NO_ACTION]
    return {
        "operationState": row.state,
        "requestedBy": row.requested_by,
        "why": row.why,
        "vnfInstanceName": row.instance_name,
        "oldPackage": row.old_package,
        "newPackage": row.new_package,
        "done": sum(entry["state"] == StepState.DONE.value for entry in shown),
        "total": len(shown),
        "steps": shown,
        "remarks": [
            {"object": entry["object"], "kind": entry["action"], "text": entry["message"]}
            for entry in entries
            if entry["state"] == NO_ACTION
        ],
    }


def vim(row: VimRow, status: str) -> Json:
    """Return a VIM as Tacker's legacy API shows it, without its credentials."""
    return {
        "id": row.id,
        "name": row.name,
        "is_default": row.is_default,
        "status": status,
        **row.body,
        "created_at": timestamp(row.created),
    }


def subscription(base_url: str) -> RestResource:
    """Return the definition of an LccnSubscription (SOL003, 5.5.2.16) or a PkgmSubscription."""

    def links(row: Any) -> Json:
        return _links({"self": f"{base_url}{api_root(row.api)}/subscriptions/{row.id}"})

    table = Subscription
    return RestResource(
        (table.id, table.api, table.callback_uri, table.filter, table.verbosity),
        {
            "id": attrgetter("id"),
            "callbackUri": attrgetter("callback_uri"),
            "_links": links,
            "filter": lambda row: row.filter or None,
            "verbosity": lambda row: row.verbosity if row.api == "v2" else None,
        },
    )
