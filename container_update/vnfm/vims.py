# SPDX-License-Identifier: Apache-2.0
"""VIMs: the registered ones and those in an instance's vimConnectionInfo, as connections.

A connection is a VimConnectionInfo of the v2 API: ``vimId, vimType, interfaceInfo {endpoint,
ssl_ca_cert}, accessInfo {bearer_token | username, password | oidc_token_url, ...}``; of an
OpenStack ``interfaceInfo {endpoint, ssl_ca_cert, skipCertificateVerification}, accessInfo
{username, password, userDomain, project, projectDomain, region}``.
"""

from __future__ import annotations

import logging
import tempfile
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from container_update.cluster.credentials import checked_url, pem
from container_update.cluster.responses import MALFORMED
from container_update.drivers.vim import connect_to
from container_update.engine.goals.upgrade_types import VIMS
from container_update.model import context_threads, errors
from container_update.model.objects import Json, ObjectKey, merge_patch
from container_update.model.options import Options
from container_update.vnfm.problems import ProblemError, without_folder
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import VimRow

if TYPE_CHECKING:
    from container_update.openstack.client import Heat


LOG = logging.getLogger(__name__)

KUBERNETES, OPENSTACK = "kubernetes", "openstack"
"""The kinds of VIM."""

_VERIFICATION = frozenset({"ssl_ca_cert", "cert_verify"})
"""What is no credential in the auth_cred of a registered VIM, but says how its peer is verified."""


def register(service: ServiceContext, session: Session, body: Json) -> VimRow:
    """Register a VIM.

    :param body: name, auth_url, auth_cred, and attributes that are stored unchanged.
    :raises ProblemError: 409: there is one of that name.
    """
    own = ("auth_cred", "name", "is_default")
    vim = VimRow(
        id=str(uuid.uuid4()),
        created=now(),
        name=body["name"],
        is_default=body.get("is_default", False),
        body={key: value for key, value in body.items() if key not in own},
        sealed=service.vault.seal(body.get("auth_cred") or {}),
    )
    _store(session, vim)
    return vim


def change(service: ServiceContext, session: Session, vim: VimRow, body: Json) -> None:
    """Change attributes of a VIM.

    :raises ProblemError: 409: there is another of that name.
    :raises PackageError: its credentials would go to another server than before, and are not all in
        the request.
    """
    before, sent = connection_of(service, vim), body.get("auth_cred") or {}
    access = {**service.vault.open(vim.sealed), **sent}
    vim.sealed = service.vault.seal(access)
    vim.name = body.get("name") or vim.name
    if body.get("is_default") is not None:
        vim.is_default = body["is_default"]
    own = ("auth_cred", "name", "is_default", "type")
    vim.body = {**vim.body, **{key: value for key, value in body.items() if key not in own}}
    stored = access.keys() - _VERIFICATION
    _check_peers("vim", before, connection_of(service, vim), stored - sent.keys(), "auth_cred")
    _store(session, vim)


def _store(session: Session, vim: VimRow) -> None:
    name = vim.name  # a failed flush expires it
    session.add(vim)
    try:
        session.flush()
    except IntegrityError as error:
        raise ProblemError(409, f"VIM {name}: there is one of this name already") from error
    if vim.is_default:
        session.execute(update(VimRow).where(VimRow.id != vim.id).values(is_default=False))


# --- connections --------------------------------------------------------------------------------


def kind_of(connection: Mapping[str, Any]) -> str | None:
    """Return :data:`KUBERNETES` or :data:`OPENSTACK`; None for an unknown vimType."""
    return VIMS.get(str(connection.get("vimType")))


def require(kind: str | None) -> None:
    """Raise a PackageError if the library for a kind of VIM is not installed."""
    if kind == OPENSTACK and find_spec("openstack") is None:
        raise errors.PackageError(
            "VIMs of type openstack need openstacksdk, which is not installed: "
            "pip install 'container-update[openstack]', then start the service again"
        )


def connection(service: ServiceContext, session: Session, given: Any) -> Json:
    """Return the connection to an instance's VIM, with its endpoint and credentials.

    :param given: vimConnectionInfo: a list (v1) or a map (v2); if empty, the default VIM.
    :raises PackageError: there is no VIM of a known kind.
    """
    complete = _complete(service, session, given)
    require(kind_of(complete))
    return complete


def modify_connections(recorded: Any, request: Mapping[str, Any]) -> Any:
    """Return an instance's vimConnectionInfo as a request modifies it (SOL003, 5.5.2.12).

    Entries are merged by name in v2, where null removes one, and by id in v1. Those that
    vimConnectionInfoDeleteIds lists are removed.
    """
    patch = request.get("vimConnectionInfo") or ()
    removed = request.get("vimConnectionInfoDeleteIds") or ()
    if not patch and not removed:
        return recorded
    if isinstance(patch or recorded, Mapping):
        return merge_patch(recorded, {**dict(patch), **dict.fromkeys(removed)})
    entries = [entry for entry in recorded or () if entry.get("id") not in removed]
    places = {entry["id"]: place for place, entry in enumerate(entries) if entry.get("id")}
    for entry in patch:
        if (place := places.get(entry.get("id"))) is None:
            entries.append(entry)
        else:
            entries[place] = merge_patch(entries[place], entry)
    return entries


def checked_modification(
    service: ServiceContext, session: Session, recorded: Any, request: Mapping[str, Any]
) -> Json:
    """Return the connection to an instance's VIM as a request modifies it.

    :raises PackageError: the request does not leave the VNF the VIM that it runs in.
    """
    before, patch = _entries(recorded), request.get("vimConnectionInfo") or ()
    ids = [name for name, _ in before]
    changed = patch if isinstance(patch, Mapping) else [entry.get("id") for entry in patch]
    for entry_id in request.get("vimConnectionInfoDeleteIds") or ():
        if entry_id not in ids or entry_id in changed:
            raise errors.PackageError(
                f"vimConnectionInfoDeleteIds: expected ids of entries ({', '.join(map(str, ids))}) "
                f"that vimConnectionInfo does not modify, found {entry_id}"
            )
    after = modify_connections(recorded, request)
    if before and not after:
        raise errors.PackageError(
            "vimConnectionInfo: expected an entry to be left, since the VNF runs in its VIM; found "
            "that the request removes all"
        )
    entries, given = dict(before), dict(_entries(patch))
    for name, entry in _entries(after):
        if name in entries:
            sent = (given.get(name) or {}).get("accessInfo") or {}
            missing = set(entry.get("accessInfo") or ()) - set(sent)
            _check_peers(f"vimConnectionInfo.{name}", entries[name], entry, missing)
    new, old_type = connection(service, session, after), type_of(recorded)
    if old_type and VIMS.get(old_type) != kind_of(new):
        raise errors.PackageError(
            f"vimConnectionInfo: expected one that leaves the VNF in its VIM of vimType "
            f"{old_type}, found one that leads to vimType {new.get('vimType')}"
        )
    return new


def _check_peers(
    path: str, before: Json, after: Json, missing: Collection[str], access: str = "accessInfo"
) -> None:
    """Check that no stored credentials go to another server: the sender may not know them."""
    if missing and _peers(before) != _peers(after):
        raise errors.PackageError(
            f"{path}: expected all of {access} in a request that changes where it is sent (the "
            "endpoint, oidc_token_url) or how that is verified; found no "
            f"{', '.join(sorted(missing))}: send what the VIM needs, and null for the rest"
        )


def _peers(entry: Json) -> tuple[Any, ...]:
    """Return who gets the credentials of an entry, and how we know that it is them."""
    interface = entry.get("interfaceInfo") or {}
    access = entry.get("accessInfo") or {}
    return {name: value for name, value in interface.items() if value}, access.get("oidc_token_url")


def type_of(given: Any) -> str | None:
    """Return the vimType of the VIM that an instance runs in; None for the default VIM."""
    chosen = _choose([entry for _, entry in _entries(given)])
    return None if chosen is None else str(chosen["vimType"])


def connection_id(session: Session, given: Any) -> str | None:
    """Return the id of the connection to an instance's VIM: the name of its entry in v2, its id in
    v1; of the default VIM the id under which it is registered."""
    entries = _entries(given)
    if not entries:
        return session.scalar(select(VimRow.id).where(VimRow.is_default))
    chosen = _choose([entry for _, entry in entries])
    names = (name or entry.get("vimId") for name, entry in entries if entry is chosen)
    return next(names, None)


def _entries(given: Any) -> list[tuple[str | None, Json]]:
    """Return the entries of a vimConnectionInfo with their names (v2) or ids (v1)."""
    if isinstance(given, Mapping):
        return list(given.items())
    return [(entry.get("id"), entry) for entry in given or ()]


def _choose(entries: Sequence[Json]) -> Json | None:
    """Return the entry of the VIM that the VNF runs in; None where none is of a known kind."""
    known = [entry for entry in entries if kind_of(entry) is not None]
    return min(known, key=lambda entry: kind_of(entry) != KUBERNETES, default=None)


def _complete(service: ServiceContext, session: Session, given: Any) -> Json:
    entries = [entry for _, entry in _entries(given)]
    if not entries:
        default = session.scalar(select(VimRow).where(VimRow.is_default))
        if default is None:
            raise errors.PackageError(
                "vimConnectionInfo: expected one, or a registered default VIM, and found neither"
            )
        return connection_of(service, default)
    chosen = _choose(entries)
    if chosen is None:
        types = ", ".join(sorted(str(entry.get("vimType")) for entry in entries))
        raise errors.PackageError(
            f"vimConnectionInfo: expected an entry of vimType {', '.join(VIMS)}; found {types}"
        )
    if chosen.get("accessInfo") or chosen.get("interfaceInfo"):
        return dict(chosen)
    row = session.get(VimRow, chosen.get("vimId") or "")
    if row is None:
        raise errors.PackageError(
            f"vimConnectionInfo: the VIM {chosen.get('vimId')} is not registered: register it, or "
            "give its interfaceInfo and accessInfo"
        )
    return connection_of(service, row)


def connection_of(service: ServiceContext, vim: VimRow) -> Json:
    """Return the connection that a registered VIM's attributes and credentials describe."""
    kind = str(vim.body.get("type", KUBERNETES))
    access = dict(service.vault.open(vim.sealed))
    interface = {"endpoint": vim.body.get("auth_url", "")}
    if authority := access.pop("ssl_ca_cert", None):
        interface["ssl_ca_cert"] = authority
    if kind == OPENSTACK:  # cert_verify comes as text
        interface["skipCertificateVerification"] = access.get("cert_verify") in ("False", False)
        access = _openstack_access(vim.body, access)
    return {"vimId": vim.id, "vimType": kind, "interfaceInfo": interface, "accessInfo": access}


def _openstack_access(body: Json, credentials: Json) -> Json:
    project = body.get("vim_project") or {}
    access = {
        "username": credentials.get("username"),
        "password": credentials.get("password"),
        "userDomain": credentials.get("user_domain_name"),
        "project": project.get("name"),
        "projectDomain": project.get("project_domain_name"),
        "region": (body.get("extra") or {}).get("region"),
    }
    return {name: value for name, value in access.items() if value}


# --- connecting to them -------------------------------------------------------------------------


ACTIVE, ERROR = "ACTIVE", "ERROR"
"""The status of a registered VIM, which is asked when it is shown."""
_SECONDS = 3.0
"""Maximum time for the answer of a VIM that is shown."""
_AT_ONCE = 8


@contextmanager
def heat(connection: Json, options: Options) -> Iterator[Heat]:
    """Connect to Heat of a connection for a ``with`` block.

    :raises ClusterError: the connection is incomplete or refused; its endpoint is no URL, or holds
        a user name.
    """
    from container_update.openstack.client import connect  # noqa: PLC0415, an extra

    interface = connection.get("interfaceInfo") or {}
    authority = interface.get("ssl_ca_cert")
    access = connection.get("accessInfo") or {}
    verify: bool | str = not interface.get("skipCertificateVerification")
    with tempfile.TemporaryDirectory() as folder:
        if verify and authority:
            verify = str(Path(folder, "authority.pem"))
            Path(verify).write_text(pem(authority))
        auth = {  # keystoneauth1's arguments
            "auth_url": checked_url(interface.get("endpoint"), "the endpoint of the VIM"),
            "username": str(access.get("username", "")),
            "password": str(access.get("password", "")),
            "project_name": str(access.get("project", "")),
            "user_domain_name": str(access.get("userDomain") or "Default"),
            "project_domain_name": str(access.get("projectDomain") or "Default"),
        }
        region = access.get("region")
        with connect(auth=auth, options=options, region=region, verify=verify) as connected:
            yield connected


@contextmanager
def explain_failures(service: ServiceContext) -> Iterator[None]:
    """Turn an error of the ``with`` block, in a request, into a ProblemError: 502 the VIM does not
    answer, refuses, or answers something else; 409 the live resources are in no state for it; 422
    a package, the request or the VIM's description is wrong."""
    try:
        yield
    except errors.ContainerUpdateError as error:
        kinds = ((errors.ClusterError, 502), (errors.PlanError, 409))
        status = next((status for kind, status in kinds if isinstance(error, kind)), 422)
        detail = without_folder(str(error), service.settings.folder)
        raise ProblemError(status, detail) from error
    except MALFORMED as error:
        LOG.exception("an answer of a VIM cannot be read")
        kind = type(error).__name__
        detail = f"an answer of the VIM is not what a VIM sends ({kind}): the log has more"
        raise ProblemError(502, detail) from error


def impatient(options: Options) -> Options:
    """Return the options for requests that a user waits for: a short time limit, no retries."""
    return replace(options, request_timeout=_SECONDS, retry_seconds=0)


def statuses(service: ServiceContext, rows: Sequence[VimRow]) -> Mapping[str, str]:
    """Return ACTIVE for each VIM that answers with its credentials, else ERROR, by its id."""
    connections = {vim.id: connection_of(service, vim) for vim in rows}
    options = impatient(service.options)
    with context_threads.pool(_AT_ONCE) as pool:
        answers = pool.map(lambda connection: _status(connection, options), connections.values())
        return dict(zip(connections, answers, strict=True))


def _status(connection: Json, options: Options) -> str:
    try:
        require(kind_of(connection))
        if kind_of(connection) == OPENSTACK:
            with heat(connection, options) as service:
                service.stacks()
        else:
            with closing(connect_to(connection, options)) as api_server:
                api_server.get(ObjectKey("", "Namespace", "", "default"))
    except errors.ContainerUpdateError as error:
        if getattr(error, "status", None) != 403:  # it answers, and not every account may do this
            LOG.info("VIM %s: %s", connection["vimId"], error)
            return ERROR
    except MALFORMED:
        LOG.exception("VIM %s: its answer cannot be read", connection["vimId"])
        return ERROR
    return ACTIVE
