"""From what Tacker records about a VIM to a connected cluster. The same words serve v1 and v2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from container_update.model.errors import PackageError

if TYPE_CHECKING:
    from container_update.model.cluster import Cluster
    from container_update.model.objects import Json
    from container_update.model.options import Options

KUBERNETES_TYPES = frozenset({"kubernetes", "ETSINFV.KUBERNETES.V_1"})
"""The vimTypes of a Kubernetes cluster: Tacker's own word and the one registered for SOL003."""

LOGIN = ("bearer_token", "username", "password")
OIDC = ("client_id", "client_secret", "username", "password")


def connect(
    endpoint: str, access: Mapping[str, Any], ca_text: str | None, options: Options
) -> Cluster:
    """Return a cluster from a VIM's endpoint, its access information and its certificate authority.

    ClusterError where the access information is incomplete or refused.
    """
    from container_update.cluster.client import connect_vim  # noqa: PLC0415 (heavy)

    given = {key: value for key, value in access.items() if _is_set(value)}
    authority = ca_text if _is_set(ca_text) else None
    if "oidc_token_url" in given:
        oidc = {key: given[key] for key in OIDC if key in given}
        oidc["token_url"] = given["oidc_token_url"]
        return connect_vim(endpoint, oidc=oidc, ca_text=authority, options=options)
    login = {key: given[key] for key in LOGIN if key in given}
    return connect_vim(endpoint, ca_text=authority, options=options, **login)


def kubernetes_vim(connections: Mapping[str, Json]) -> Json:
    """Return the Kubernetes entry of an instance's vimConnectionInfo (v2: a map)."""
    for connection in connections.values():
        if connection.get("vimType") in KUBERNETES_TYPES:
            return connection
    found = sorted(str(connection.get("vimType")) for connection in connections.values())
    raise PackageError(
        f"vimConnectionInfo: expected an entry of vimType"
        f" {' or '.join(sorted(KUBERNETES_TYPES))}, found {', '.join(found) or 'none'}: name the"
        " Kubernetes VIM when instantiating"
    )


def _is_set(value: Any) -> bool:
    """Tacker's v1 database spells a value that is not there as the word None."""
    return value not in (None, "", "None")
