# SPDX-License-Identifier: Apache-2.0
"""The cluster and login of a kubeconfig's context as a VIM's configuration, as Tacker reads it.

Source: the client's ``vim register`` (python-tackerclient, ``nfvo/vim_utils.py``): a Kubernetes VIM
has a bearer token, or a user name and a password; it has no place for another login.
"""

from __future__ import annotations

import base64
from pathlib import Path

from container_update.cluster.credentials import checked_url, header_value, pem
from container_update.cluster.kubeconfig import Entry, Kubeconfig
from container_update.model.errors import ClusterError

_INSTEAD = (
    "expected a token, or a username and a password, for which alone a VIM has a place: create a "
    "service account with the rights that are needed, as samples/rbac has one, and name a context "
    "with its token"
)
_OTHERS = {
    "exec": "a command that fetches a login (exec)",
    "auth-provider": "an auth provider",
    "client-certificate": "a client certificate",
    "client-certificate-data": "a client certificate",
}


def vim_config(kubeconfig: Kubeconfig, name: str | None, project: str | None) -> dict[str, str]:
    """Return the configuration of the VIM; it holds a credential.

    :param name: of the context; None: the current one.
    :param project: the namespace, ``project_name``; None: that of the context.
    :raises ClusterError: there is no such context, or its login does not fit into a VIM.
    """
    context, (entry, cluster, user) = kubeconfig.context(name), kubeconfig.parts(name)
    if user is None:
        raise ClusterError(f"{entry.place}.user: found no such user: {_INSTEAD}")
    authority = _authority(cluster)
    return {
        "auth_url": checked_url(context.server, f"{cluster.place}.server"),
        **_login(user),
        **({"ssl_ca_cert": authority} if authority else {}),
        "project_name": project or context.namespace,
        "type": "kubernetes",
    }


def _login(user: Entry) -> dict[str, str]:
    token = _content(user, "tokenFile").strip() or user.text("token")
    if token:
        return {"bearer_token": header_value(token)}
    login = {name: user.text(name) for name in ("username", "password")}
    if all(login.values()):
        return login
    other = next((text for name, text in _OTHERS.items() if user.body.get(name)), "no login")
    raise ClusterError(f"{user.place}: found {other}: {_INSTEAD}")


def _authority(cluster: Entry) -> str:
    """Return the certificate in one line, as Tacker stores it; '' where there is none."""
    data = cluster.text("certificate-authority-data")
    try:
        text = base64.b64decode(data, validate=True).decode("ascii") if data else ""
    except ValueError:
        raise ClusterError(
            f"{cluster.place}.certificate-authority-data: expected a certificate (PEM) in base64"
        ) from None
    text = text or _content(cluster, "certificate-authority")
    return pem(text).replace("\n", " ").strip() if text else ""


def _content(entry: Entry, name: str) -> str:
    """Return the text of the file that a field names, relative to the kubeconfig."""
    path = entry.text(name)
    try:
        return Path(entry.file.parent, path).read_text(encoding="ascii") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(f"{entry.place}.{name}: {path} cannot be read: {error}") from None
