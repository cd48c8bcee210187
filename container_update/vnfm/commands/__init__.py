# SPDX-License-Identifier: Apache-2.0
"""``container-update vnfm``: the commands about a VNFM."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from container_update.vnfm.commands import db, serve, vim_config

HELP = "a VNFM: serve, db, vim-config"


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands by a function that takes name, function and help."""
    text = "run a small VNFM with the REST API of SOL003, for use without Tacker"
    serve.add_arguments(add("serve", serve.run, text, configured=False))
    text = "the service's database: upgrade its tables"
    db.add_arguments(add("db", db.run, text, configured=False))
    text = "write a cluster of the kubeconfig as a VIM, for 'openstack vim register'"
    vim_config.add_arguments(add("vim-config", vim_config.run, text))
