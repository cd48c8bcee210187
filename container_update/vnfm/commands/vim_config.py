# SPDX-License-Identifier: Apache-2.0
"""``container-update vnfm vim-config``: a cluster of the kubeconfig for ``vim register``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TextIO

from container_update.cli.terminal import output
from container_update.cli.terminal.output import DONE
from container_update.model.errors import ClusterError, PackageError


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

    from container_update.cluster import kubeconfig  # noqa: PLC0415
    from container_update.drivers.vim_config import vim_config  # noqa: PLC0415

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
