# SPDX-License-Identifier: Apache-2.0
"""Programs of Tacker's interpreter, forked from processes that have already imported Tacker."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from tests.forks import Forks
from tests.tacker.lab import Lab

INSIDE = Path(__file__).parent / "inside"


def run_client(lab: Lab, arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command of the ``openstack`` client to its end."""
    return _clients(lab).run("openstackclient.shell:main", arguments, cwd)


def environment(lab: Lab) -> dict[str, str]:
    """Return the variables that all of Tacker's processes have."""
    return {
        "PYTHONPATH": str(INSIDE),
        "PYTHONWARNINGS": "ignore",
        "ETSI_TYPE_FILES": str(lab.types),
    }


@functools.cache
def _clients(lab: Lab) -> Forks:
    return Forks(
        "openstackclient.shell",
        "tackerclient.osc.plugin",
        "tackerclient.v1_0.client",
        python=str(lab.python),
        environment={"PYTHONWARNINGS": "ignore"},
    )
