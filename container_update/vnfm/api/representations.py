# SPDX-License-Identifier: Apache-2.0
"""The resources of SOL003 and SOL005, and how their attributes are made of columns. Pure.

The only credentials that come in are those of a decrypted vimConnectionInfo; they are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from container_update.engine.progress import NO_ACTION
from container_update.model.objects import Json
from container_update.model.outcome import StepState
from container_update.vnfm import packages, states
from container_update.vnfm.api.queries.rest_resources import (
    ABSENT,
    Attribute,
    RestResource,
    choice,
    constant,
    document,
    text,
    time,
)
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


def _failure(row: Any) -> Any:
    failure = row.body.get("onboardingFailureDetails")
    return failure["detail"] if failure else ABSENT


PACKAGE = RestResource(
    {
        "id": text(Package.id),
        "onboardingState": text(Package.onboarding_state),
        "operationalState": text(Package.operational_state),
        "userDefinedData": document(Package.user_data, required=True),
        "vnfdId": text(Package.vnfd_id),
        "error": Attribute((Package.body,), _failure),
        "_links": Attribute((Package.id,), _package_links),
        "usageState": choice(packages.IN_USE, {True: "IN_USE", False: "NOT_IN_USE"}),
    },
    Package.body,
)
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
        if not vims:
            return ABSENT
        if isinstance(vims, dict):
            return {name: _without_access(vim) for name, vim in vims.items()}
        return [_without_access(vim) for vim in vims]

    return RestResource(
        {
            "id": text(Instance.id),
            "vnfdId": text(Instance.vnfd_id),
            "instantiationState": choice(
                Instance.instantiated, {True: "INSTANTIATED", False: "NOT_INSTANTIATED"}
            ),
            "_links": Attribute(
                (Instance.id, Instance.api, Instance.instantiated, Instance.body), links
            ),
            "vimConnectionInfo": Attribute((Instance.sealed,), connections),
        },
        Instance.body,
    )


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

    return RestResource(
        {
            "id": text(OperationRow.id),
            "operationState": choice(
                OperationRow.state, {state.value: state.value for state in states.State}
            ),
            "stateEnteredTime": time(OperationRow.entered),
            "startTime": time(OperationRow.started),
            "vnfInstanceId": text(OperationRow.instance_id),
            "operation": text(OperationRow.operation),
            "isAutomaticInvocation": constant(False),
            "operationParams": document(OperationRow.params, required=True),
            "isCancelPending": Attribute(
                (OperationRow.state, OperationRow.kept), states.is_cancel_pending
            ),
            "cancelMode": Attribute(
                (OperationRow.state, OperationRow.kept),
                lambda row: row.kept[states.CANCELLED] if states.is_cancel_pending(row) else ABSENT,
            ),
            "_links": Attribute(
                (OperationRow.id, OperationRow.api, OperationRow.instance_id,
                 OperationRow.operation, OperationRow.state, OperationRow.kept, OperationRow.due),
                links,
            ),
            "error": document(OperationRow.error),
            "resourceChanges": document(OperationRow.changes),
            **{name: _changed_attribute(name) for name in (CHANGED_INFO, CHANGED_BY_PACKAGE)},
        },
        absent=frozenset(
            {"grantId", "changedExtConnectivity", "vnfSnapshotInfoId", "warnings",
             "lcmCoordinations", "rejectedLcmCoordinations"}
        ),
    )  # fmt: skip


def _changed_attribute(name: str) -> Attribute:
    """Return the definition of one of the two attributes with what changed."""

    def of(row: Any) -> Any:
        return row.changed if row.changed and changed_name(row.operation) == name else ABSENT

    return Attribute((OperationRow.changed, OperationRow.operation), of)


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

    def verbosity(row: Any) -> Any:
        return row.verbosity if row.api == "v2" else ABSENT

    return RestResource(
        {
            "id": text(Subscription.id),
            "callbackUri": text(Subscription.callback_uri),
            "_links": Attribute((Subscription.id, Subscription.api), links),
            "filter": document(Subscription.filter),
            "verbosity": Attribute((Subscription.verbosity, Subscription.api), verbosity),
        }
    )
