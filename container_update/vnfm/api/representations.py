"""The resources of SOL003 and SOL005, from rows. Pure.

The only credentials that come in are those of a decrypted vimConnectionInfo; they are removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from container_update.model.objects import Json
from container_update.model.outcome import StepState
from container_update.operations.progress import NO_ACTION
from container_update.vnfm import states
from container_update.vnfm.store.database import timestamp
from container_update.vnfm.store.rows import Instance, Operation, Package, Step, Subscription, Vim


def package(row: Package) -> Json:
    """Return a VnfPkgInfo (SOL005, 9.5.2.5), with links as Tacker writes them: without a host.

    ``error`` is an extension: the detail of onboardingFailureDetails, whose value the openstack
    client does not print, as it knows no such attribute and reads others by names in lower case.
    """
    self = f"/vnfpkgm/v1/vnf_packages/{row.id}"
    failure = row.body.get("onboardingFailureDetails")
    return {
        "id": row.id,
        "onboardingState": row.onboarding_state,
        "operationalState": row.operational_state,
        "userDefinedData": row.user_data,
        **row.body,
        **({"error": failure["detail"]} if failure else {}),
        "_links": _links({"self": self, "packageContent": f"{self}/package_content"}),
    }


def instance(row: Instance, vims: Any, base_url: str) -> Json:
    """Return a VnfInstance (SOL003, 5.5.2.2).

    :param vims: vimConnectionInfo: a list in v1, a map in v2; None where there is none.
    """
    self = f"{base_url}/vnflcm/{row.api}/vnf_instances/{row.id}"
    action = "terminate" if row.instantiated else "instantiate"
    links = {"self": self, action: f"{self}/{action}"}
    if row.instantiated:
        links["heal"] = f"{self}/heal"
    if (row.body.get("instantiatedVnfInfo") or {}).get("scaleStatus"):
        links["scale"] = f"{self}/scale"
    if row.instantiated and row.api == "v2":
        links["changeVnfPkg"] = f"{self}/change_vnfpkg"
    body: Json = {
        "id": row.id,
        "vnfdId": row.vnfd_id,
        "instantiationState": "INSTANTIATED" if row.instantiated else "NOT_INSTANTIATED",
        **row.body,
        "_links": _links(links),
    }
    if row.api == "v1":
        body.setdefault("vnfPkgId", None)
    if vims:
        body["vimConnectionInfo"] = (
            {name: _without_access(vim) for name, vim in vims.items()}
            if isinstance(vims, dict)
            else [_without_access(vim) for vim in vims]
        )
    return body


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


def operation_url(row: Operation, base_url: str) -> str:
    """Return the URL of an operation occurrence."""
    return f"{base_url}/vnflcm/{row.api}/vnf_lcm_op_occs/{row.id}"


def operation(row: Operation, base_url: str) -> Json:
    """Return a VnfLcmOpOcc (SOL003, 5.5.2.13)."""
    self = operation_url(row, base_url)
    instance_url = f"{base_url}/vnflcm/{row.api}/vnf_instances/{row.instance_id}"
    links = {"self": self, "vnfInstance": instance_url}
    undoable = states.is_undoable(row.operation, row.kept)
    requests = states.allowed(states.State(row.state), undoable=undoable)
    links |= {request.value: f"{self}/{request.value}" for request in requests}
    body: Json = {
        "id": row.id,
        "operationState": row.state,
        "stateEnteredTime": timestamp(row.entered),
        "startTime": timestamp(row.started),
        "vnfInstanceId": row.instance_id,
        "operation": row.operation,
        "isAutomaticInvocation": False,
        "operationParams": row.params,
        "isCancelPending": False,
        "_links": _links(links),
    }
    if row.error is not None:
        body["error"] = row.error
    if row.changes:
        body["resourceChanges"] = row.changes
    if row.changed:
        body[row.changed_name] = row.changed
    return body


def progress(row: Operation, steps: Iterable[Step]) -> Json:
    """Return the progress of an operation; an extension of SOL003."""
    names = ("object", "action", "state", "reasons", "diff", "message", "seconds")
    entries = [{name: getattr(step, name) for name in names} for step in steps]
    shown = [entry for entry in entries if entry["state"] != NO_ACTION]
    return {
        "operationState": row.state,
        "requestedBy": row.requested_by,
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


def vim(row: Vim, status: str) -> Json:
    """Return a VIM as Tacker's legacy API shows it, without its credentials."""
    return {
        "id": row.id,
        "name": row.name,
        "is_default": row.is_default,
        "status": status,
        **row.body,
        "created_at": timestamp(row.created),
    }


def subscription(row: Subscription, base_url: str) -> Json:
    """Return an LccnSubscription (SOL003, 5.5.2.16)."""
    self = f"{base_url}/vnflcm/{row.api}/subscriptions/{row.id}"
    body = {"id": row.id, "callbackUri": row.callback_uri, "_links": _links({"self": self})}
    if row.filter:
        body["filter"] = row.filter
    if row.api == "v2":
        body["verbosity"] = row.verbosity
    return body
