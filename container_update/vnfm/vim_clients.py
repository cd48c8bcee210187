# SPDX-License-Identifier: Apache-2.0
"""Connections to VIMs, and the status of registered ones: they are asked when they are shown."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from container_update.cluster.credentials import checked_url, pem
from container_update.cluster.responses import MALFORMED
from container_update.drivers.vim import connect_to
from container_update.model import context_threads
from container_update.model.errors import ClusterError, ContainerUpdateError, PlanError
from container_update.model.objects import Json, ObjectKey
from container_update.model.options import Options
from container_update.vnfm import vims
from container_update.vnfm.http.redaction import without_folder
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import VimRow

if TYPE_CHECKING:
    from container_update.openstack.client import Heat

LOG = logging.getLogger(__name__)

ACTIVE, ERROR = "ACTIVE", "ERROR"
_SECONDS = 3.0
"""Maximum time for the answer of a VIM that is shown."""
_AT_ONCE = 8


@contextmanager
def heat(connection: Json, options: Options) -> Iterator[Heat]:
    """Connect to Heat of a connection for a ``with`` block.

    :raises ClusterError: the connection is incomplete or refused.
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
        auth, region = _auth(interface, access), access.get("region")
        with connect(auth=auth, options=options, region=region, verify=verify) as connected:
            yield connected


def _auth(interface: Mapping[str, Any], access: Mapping[str, Any]) -> dict[str, str]:
    """Return keystoneauth1's arguments for the access data of SOL003.

    :raises ClusterError: the endpoint is no URL, or holds a user name.
    """
    return {
        "auth_url": checked_url(interface.get("endpoint"), "the endpoint of the VIM"),
        "username": str(access.get("username", "")),
        "password": str(access.get("password", "")),
        "project_name": str(access.get("project", "")),
        "user_domain_name": str(access.get("userDomain") or "Default"),
        "project_domain_name": str(access.get("projectDomain") or "Default"),
    }


@contextmanager
def answered(service: ServiceContext) -> Iterator[None]:
    """Turn what fails in the ``with`` block while somebody waits into a ProblemError: 502 the VIM
    does not answer, refuses, or answers something else; 409 what runs is in no state for it; 422 a
    package, the request or the VIM's description is wrong."""
    try:
        yield
    except ContainerUpdateError as error:
        kinds = ((ClusterError, 502), (PlanError, 409))
        status = next((status for kind, status in kinds if isinstance(error, kind)), 422)
        detail = without_folder(str(error), service.settings.folder)
        raise ProblemError(status, detail) from error
    except MALFORMED as error:
        LOG.exception("an answer of a VIM cannot be read")
        kind = type(error).__name__
        detail = f"an answer of the VIM is not what a VIM sends ({kind}): the log has more"
        raise ProblemError(502, detail) from error


def impatient(options: Options) -> Options:
    """Return the options for requests that somebody waits for: a short time limit, no retries."""
    return replace(options, request_timeout=_SECONDS, retry_seconds=0)


def statuses(service: ServiceContext, registered: Sequence[VimRow]) -> Mapping[str, str]:
    """Return ACTIVE for each VIM that answers with its credentials, else ERROR, by its id."""
    connections = {vim.id: vims.registered(service, vim) for vim in registered}
    options = impatient(service.options)
    with context_threads.pool(_AT_ONCE) as pool:
        found = pool.map(lambda connection: _status(connection, options), connections.values())
        return dict(zip(connections, found, strict=True))


def _status(connection: Json, options: Options) -> str:
    try:
        vims.require(vims.kind_of(connection))
        if vims.kind_of(connection) == vims.OPENSTACK:
            with heat(connection, options) as service:
                service.stacks()
        else:
            with closing(connect_to(connection, options)) as api_server:
                api_server.get(ObjectKey("", "Namespace", "", "default"))
    except ContainerUpdateError as error:
        if getattr(error, "status", None) != 403:  # it answers, and not every account may do this
            LOG.info("VIM %s: %s", connection["vimId"], error)
            return ERROR
    except MALFORMED:
        LOG.exception("VIM %s: its answer cannot be read", connection["vimId"])
        return ERROR
    return ACTIVE
