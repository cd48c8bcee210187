# SPDX-License-Identifier: Apache-2.0
"""``container-update version``: the version of this program, and that of the API server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TextIO

from container_update.cli import connection
from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE
from container_update.planning.plan_json import document


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; see :mod:`container_update.cli.commands.update`."""
    command = add("version", _version, "show the version of this program and of the API server")
    used = ("request_timeout", "insecure_skip_tls_verify")
    connection.add_cluster_arguments(command, output.DOCUMENTS, used=used)


def _version(parsed: argparse.Namespace, out: TextIO) -> int:
    """Show both versions; return the exit status."""
    from container_update import __version__  # noqa: PLC0415, reads the installed metadata
    from container_update.cluster import kubeconfig  # noqa: PLC0415, slow to load

    server = None
    named = parsed.kubeconfig or parsed.context or kubeconfig.files(None)
    if named or "KUBERNETES_SERVICE_HOST" in os.environ:
        with connection.connected_cluster(parsed) as cluster:
            server = cluster.version()
    if output.is_document(parsed):
        body = document("Version", {"client": __version__, "server": server})
        output.write_document(body, parsed, out)
    else:
        out.write(f"Client: {__version__}\nServer: {server or 'none is configured'}\n")
    return DONE
