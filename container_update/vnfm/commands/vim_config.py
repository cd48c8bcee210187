# SPDX-License-Identifier: Apache-2.0
"""``container-update vnfm vim-config``: a cluster of the kubeconfig for ``vim register``.

Source: the client's ``vim register`` (python-tackerclient, ``nfvo/vim_utils.py``): a Kubernetes VIM
has a bearer token, or a user name and a password; it has no place for another login.
"""

from __future__ import annotations

import argparse
import base64
import os
from pathlib import Path
from typing import TextIO

from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE
from container_update.cluster import kubeconfig
from container_update.cluster.credentials import checked_url, header_value, pem
from container_update.cluster.kubeconfig import Entry, Kubeconfig
from container_update.model.errors import ClusterError, PackageError

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


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add = command.add_argument
    add("--kubeconfig", metavar="FILE",
        help="the kubeconfig file (default: $KUBECONFIG or ~/.kube/config)")  # fmt: skip
    add("--context", metavar="NAME",
        help="the context in the kubeconfig file (default: its current context)")  # fmt: skip
    add("-n", "--namespace", metavar="NAME",
        help="the project_name of the VIM (default: the namespace of the context)")  # fmt: skip
    add("--to", metavar="FILE", type=Path,
        help="the file to write, which only you can read; it must not exist (default: standard "
        "output)")  # fmt: skip


def run(parsed: argparse.Namespace, out: TextIO) -> int:
    """Write the configuration of the VIM; return the exit status."""
    import yaml  # noqa: PLC0415

    files = kubeconfig.files(parsed.kubeconfig)
    if not files:
        raise ClusterError("found no kubeconfig in $KUBECONFIG or ~/.kube/config: name one")
    body = vim_config(kubeconfig.read(files), parsed.context, parsed.namespace)
    text = yaml.safe_dump(body, sort_keys=False, width=float("inf"))
    if parsed.to is None:
        out.write(text)
    else:
        _write_new(parsed.to, text)
        out.write(f"openstack vim register --config-file {parsed.to} NAME\n")
    output.complain("this holds a credential of the cluster: keep it unreadable for others")
    if "ssl_ca_cert" not in body:
        output.complain(
            "the kubeconfig names no certificate authority: whether the server's certificate is "
            "verified is up to the VNFM"
        )
    return DONE


def _write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet, for its owner only."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise PackageError(f"{path} exists and is not overwritten: name another file") from None
    except OSError as error:
        raise PackageError(f"{path} cannot be written: {error.strerror}: name another") from error


# --- the configuration --------------------------------------------------------------------------


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
