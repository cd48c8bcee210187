"""Resources as SOL003 and SOL005 show them, from rows. Pure; nothing here ever sees a credential,
but for the vimConnectionInfo that is handed in opened and goes out without its accessInfo.
"""

from __future__ import annotations

from typing import Any

from container_update.model.objects import Json
from container_update.vnfm.store.database import timestamp
from container_update.vnfm.store.rows import Instance, Operation, Package, Step, Subscription, Vim


def package(row: Package) -> Json:
    """VnfPkgInfo (SOL005, 9.5.2.5), with links as Tacker writes them: without a host."""
    self = f"/vnfpkgm/v1/vnf_packages/{row.id}"
    return {
        "id": row.id,
        "onboardingState": row.onboarding_state,
        "operationalState": row.operational_state,
        "userDefinedData": row.user_data,
        **row.body,
        "_links": {
            "self": {"href": self},
            "packageContent": {"href": f"{self}/package_content"},
        },
    }


def instance(row: Instance, vims: Any, base_url: str) -> Json:
    """VnfInstance (SOL003, 5.5.2.2).

    :param vims: vimConnectionInfo: a list in v1, a map in v2; None where there is none.
    """
    self = f"{base_url}/vnflcm/{row.api}/vnf_instances/{row.id}"
    actions = ["terminate"] if row.instantiated else ["instantiate"]
    if row.instantiated and row.api == "v2":
        actions.append("changeVnfPkg")
    paths = {"changeVnfPkg": "change_vnfpkg"}
    body: Json = {
        "id": row.id,
        "vnfdId": row.vnfd_id,
        "instantiationState": "INSTANTIATED" if row.instantiated else "NOT_INSTANTIATED",
        **row.body,
        "_links": {
            "self": {"href": self},
            **{name: {"href": f"{self}/{paths.get(name, name)}"} for name in actions},
        },
    }
    if row.api == "v1":
        body.setdefault("vnfPkgId", row.body.get("vnfPkgId"))
    if vims:
        body["vimConnectionInfo"] = _without_access(vims)
    return body


def _without_access(vims: Any) -> Any:
    if isinstance(vims, dict):
        return {name: _one_vim(vim) for name, vim in vims.items()}
    return [_one_vim(vim) for vim in vims]


def _one_vim(vim: Json) -> Json:
    """Only what tells which one it is: the rest may be a credential."""
    interface = {
        name: value
        for name, value in (vim.get("interfaceInfo") or {}).items()
        if name in ("endpoint", "ssl_ca_cert")
    }
    kept = {name: vim[name] for name in ("id", "vimId", "vimType") if vim.get(name)}
    return {**kept, "interfaceInfo": interface} if interface else kept


def operation(row: Operation, base_url: str) -> Json:
    """VnfLcmOpOcc (SOL003, 5.5.2.13)."""
    root = f"{base_url}/vnflcm/{row.api}"
    self = f"{root}/vnf_lcm_op_occs/{row.id}"
    links = {"self": self, "vnfInstance": f"{root}/vnf_instances/{row.instance_id}"}
    if row.state == "FAILED_TEMP":
        links |= {name: f"{self}/{name}" for name in ("retry", "rollback", "fail")}
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
        "_links": {name: {"href": href} for name, href in links.items()},
    }
    if row.error is not None:
        body["error"] = row.error
    if row.changes:
        body["resourceChanges"] = row.changes
    if row.operation == "MODIFY_INFO" and row.state == "COMPLETED":
        body["changedInfo"] = {
            name: value for name, value in row.params.items() if name != "vimConnectionInfo"
        }
    return body


def progress(row: Operation, steps: list[Step]) -> Json:
    """How far an operation is; an extension of ours."""
    return {
        "operationState": row.state,
        "steps": [
            {
                "object": step.object,
                "action": step.action,
                "state": step.state,
                "reasons": step.reasons,
                "message": step.message,
                "seconds": step.seconds,
            }
            for step in steps
        ],
    }


def vim(row: Vim) -> Json:
    """Return a VIM as Tacker's legacy API shows it, without its credentials."""
    return {
        "id": row.id,
        "name": row.name,
        "is_default": row.is_default,
        "status": "ACTIVE",
        **row.body,
        "created_at": timestamp(row.created),
        "updated_at": None,
    }


def subscription(row: Subscription, base_url: str) -> Json:
    """LccnSubscription (SOL003, 5.5.2.16)."""
    self = f"{base_url}/vnflcm/{row.api}/subscriptions/{row.id}"
    body: Json = {
        "id": row.id,
        "callbackUri": row.callback_uri,
        "_links": {"self": {"href": self}},
    }
    return {**body, "filter": row.filter} if row.filter else body
