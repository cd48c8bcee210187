# SPDX-License-Identifier: Apache-2.0
"""Connects to the cluster that Tacker's record of a VIM describes, for v1 and v2 alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from container_update.engine.goals.upgrade_types import VIMS
from container_update.model.errors import PackageError
from container_update.model.schema import LINE, TEXT, Fields

if TYPE_CHECKING:
    from container_update.model.cluster import Cluster
    from container_update.model.objects import Json
    from container_update.model.options import Options

KUBERNETES_TYPES = frozenset(name for name, kind in VIMS.items() if kind == "kubernetes")
"""The vimTypes of a Kubernetes cluster."""

LOGIN = ("bearer_token", "username", "password")
OIDC = ("client_id", "client_secret", "username", "password")

ACCESS = Fields(dict.fromkeys((*LOGIN, *OIDC, "oidc_token_url"), TEXT))
_INTERFACE = Fields({"endpoint": TEXT, "ssl_ca_cert": TEXT})
_CONNECTION = Fields({"vimType": LINE, "interfaceInfo": _INTERFACE, "accessInfo": ACCESS})
"""A VimConnectionInfo, as far as it is read."""


def connect_to(connection: Json, options: Options) -> Cluster:
    """Connect to the cluster of a VimConnectionInfo.

    :raises PackageError: a field of it has another type.
    :raises ClusterError: the access information is incomplete or refused.
    """
    from container_update.cluster.client import connect_vim  # noqa: PLC0415 (heavy)

    _CONNECTION.check(connection, "vimConnectionInfo")
    interface, access = (
        {key: value for key, value in (connection.get(name) or {}).items() if _is_set(value)}
        for name in ("interfaceInfo", "accessInfo")
    )
    endpoint, authority = interface.get("endpoint", ""), interface.get("ssl_ca_cert")
    if "oidc_token_url" in access:
        oidc = {key: access[key] for key in OIDC if key in access}
        oidc["token_url"] = access["oidc_token_url"]
        return connect_vim(endpoint, oidc=oidc, ca_text=authority, options=options)
    login: dict[str, Any] = {key: access[key] for key in LOGIN if key in access}
    return connect_vim(endpoint, ca_text=authority, options=options, **login)


def is_of_servers(connections: Mapping[str, Json]) -> bool:
    """Return whether all VIMs of an instance are OpenStacks."""
    return {VIMS.get(each.get("vimType") or "") for each in connections.values()} == {"openstack"}


def kubernetes_vim(connections: Mapping[str, Json]) -> Json:
    """Return the Kubernetes entry of an instance's vimConnectionInfo (v2); PackageError: none."""
    for connection in connections.values():
        if connection.get("vimType") in KUBERNETES_TYPES:
            return connection
    types = {str(connection.get("vimType")) for connection in connections.values()}
    raise PackageError(
        f"vimConnectionInfo: expected an entry of vimType"
        f" {' or '.join(sorted(KUBERNETES_TYPES))}, found {', '.join(sorted(types)) or 'none'}:"
        " name the Kubernetes VIM when instantiating"
    )


def script_access(connection: Json) -> Json:
    """Return how a coordination script reaches the cluster of a VimConnectionInfo."""
    from container_update.cluster.credentials import pem  # noqa: PLC0415

    interface = dict(connection.get("interfaceInfo") or {})
    if _is_set(interface.get("ssl_ca_cert")):  # SOL003 has it in one line, programs need PEM
        interface["ssl_ca_cert"] = pem(interface["ssl_ca_cert"])
    return {"vim_connection_info": {"vim": {**connection, "interfaceInfo": interface}}}


def _is_set(value: Any) -> bool:
    """Return whether there is a value: Tacker's v1 database has the word None for a missing one."""
    return value not in (None, "", "None")
