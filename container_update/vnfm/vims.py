"""VIMs: the registered ones, and what an instance says about its own, as one kind of connection.

A connection is a VimConnectionInfo of the v2 API: ``vimId, vimType, interfaceInfo {endpoint,
ssl_ca_cert}, accessInfo {bearer_token | username, password | oidc_token_url, ...}``; of an
OpenStack ``interfaceInfo {endpoint, ssl_ca_cert, skipCertificateVerification}, accessInfo
{username, password, userDomain, project, projectDomain, region}``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from container_update.drivers import vim as drivers_vim
from container_update.model.cluster import Cluster
from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.operations.upgrade_types import VIMS
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import Vim

KUBERNETES, OPENSTACK = "kubernetes", "openstack"
"""The kinds of VIMs, as they are registered."""


def get(session: Session, vim_id: str) -> Vim:
    """Return a registered VIM, or ProblemError 404."""
    found = session.get(Vim, vim_id)
    if found is None:
        raise ProblemError(404, f"VIM {vim_id}: there is none with this id")
    return found


def register(service: ServiceContext, session: Session, body: Json) -> Vim:
    """Register a VIM.

    :param body: name, auth_url, auth_cred, and whatever else is shown as it came.
    :raises ProblemError: 409: there is one of that name.
    """
    shown = {key: value for key, value in body.items() if key not in ("auth_cred", "name")}
    created = Vim(
        id=str(uuid.uuid4()),
        created=now(),
        name=body["name"],
        is_default=bool(shown.pop("is_default", False)),
        body=shown,
        sealed=service.vault.seal(body.get("auth_cred") or {}),
    )
    _refuse_same_name(session, created)
    _only_default(session, created)
    session.add(created)
    return created


def change(service: ServiceContext, session: Session, vim: Vim, body: Json) -> None:
    """Lay other attributes over a VIM's.

    :raises ProblemError: 409: there is another of that name.
    """
    if body.get("auth_cred"):
        access = {**service.vault.open(vim.sealed), **body["auth_cred"]}
        vim.sealed = service.vault.seal(access)
    vim.name = body.get("name") or vim.name
    if body.get("is_default") is not None:
        vim.is_default = bool(body["is_default"])
    own = ("auth_cred", "name", "is_default", "type")
    vim.body = {**vim.body, **{key: value for key, value in body.items() if key not in own}}
    _refuse_same_name(session, vim)
    _only_default(session, vim)


def _refuse_same_name(session: Session, vim: Vim) -> None:
    with session.no_autoflush:
        same = select(Vim.id).where(Vim.name == vim.name, Vim.id != vim.id)
        if session.scalar(same) is not None:
            raise ProblemError(409, f"VIM {vim.name}: there is one of this name already")


def _only_default(session: Session, vim: Vim) -> None:
    if vim.is_default:
        session.execute(update(Vim).where(Vim.id != vim.id).values(is_default=False))


# --- connections --------------------------------------------------------------------------------


def kind_of(connection: Mapping[str, Any]) -> str | None:
    """Which kind of VIM it is: :data:`KUBERNETES`, :data:`OPENSTACK`; None for an unknown one."""
    return VIMS.get(str(connection.get("vimType")))


def require(kind: str | None) -> None:
    """PackageError where what a kind of VIM needs is not installed."""
    if kind == OPENSTACK and find_spec("openstack") is None:
        raise PackageError(
            "VIMs of type openstack need openstacksdk, which is not installed: "
            "pip install 'container-update[openstack]', then start the service again"
        )


def connection(service: ServiceContext, session: Session, given: Any) -> Json:
    """Where an instance runs: the entry of its vimConnectionInfo that is known here, complete.

    :param given: a list (v1) or a map (v2); none: the default VIM.
    :raises PackageError: it leads to no VIM of a known kind.
    """
    found = _complete(service, session, given)
    require(kind_of(found))
    return found


def _complete(service: ServiceContext, session: Session, given: Any) -> Json:
    entries = list(given.values()) if isinstance(given, dict) else list(given or ())
    if not entries:
        return _default(service, session)
    chosen = _chosen(entries)
    if chosen.get("accessInfo") or chosen.get("interfaceInfo"):
        return dict(chosen)
    registered = session.get(Vim, chosen.get("vimId") or "")
    if registered is None:
        raise PackageError(
            f"vimConnectionInfo: the VIM {chosen.get('vimId')} is not registered: register it, or "
            "give its interfaceInfo and accessInfo"
        )
    return _registered(service, registered)


def _chosen(entries: Sequence[Json]) -> Json:
    for kind in (KUBERNETES, OPENSTACK):
        for entry in entries:
            if kind_of(entry) == kind:
                return entry
    found = sorted(str(entry.get("vimType")) for entry in entries)
    raise PackageError(
        f"vimConnectionInfo: expected an entry of vimType {', '.join(VIMS)}; found "
        f"{', '.join(found)}"
    )


def _default(service: ServiceContext, session: Session) -> Json:
    found = session.scalar(select(Vim).where(Vim.is_default))
    if found is None:
        raise PackageError(
            "vimConnectionInfo: expected one, or a registered default VIM, and found neither"
        )
    return _registered(service, found)


def _registered(service: ServiceContext, vim: Vim) -> Json:
    kind = str(vim.body.get("type", KUBERNETES))
    interface, access = _FROM_LEGACY[kind](vim.body, service.vault.open(vim.sealed))
    return {"vimId": vim.id, "vimType": kind, "interfaceInfo": interface, "accessInfo": access}


def _kubernetes(body: Json, credentials: Json) -> tuple[Json, Json]:
    access = dict(credentials)
    authority = access.pop("ssl_ca_cert", None)
    interface = {"endpoint": body.get("auth_url", "")}
    return interface | ({"ssl_ca_cert": authority} if authority else {}), access


def _openstack(body: Json, credentials: Json) -> tuple[Json, Json]:
    """cert_verify comes as a text."""
    project = body.get("vim_project") or {}
    interface, _ = _kubernetes(body, credentials)
    interface["skipCertificateVerification"] = credentials.get("cert_verify") in ("False", False)
    access = {
        "username": credentials.get("username"),
        "password": credentials.get("password"),
        "userDomain": credentials.get("user_domain_name"),
        "project": project.get("name"),
        "projectDomain": project.get("project_domain_name"),
        "region": (body.get("extra") or {}).get("region"),
    }
    return interface, {name: value for name, value in access.items() if value}


_FROM_LEGACY: Mapping[str, Callable[[Json, Json], tuple[Json, Json]]] = {
    KUBERNETES: _kubernetes,
    OPENSTACK: _openstack,
}
"""A registered VIM's attributes and credentials as interfaceInfo and accessInfo."""


def cluster(service: ServiceContext, connection: Json) -> Cluster:
    """Return the cluster that a connection leads to; the caller closes it.

    :raises ClusterError: what it says is incomplete or refused.
    """
    interface = connection.get("interfaceInfo") or {}
    return drivers_vim.connect(
        interface.get("endpoint", ""),
        connection.get("accessInfo") or {},
        interface.get("ssl_ca_cert"),
        service.options,
    )
