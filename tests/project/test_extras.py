# SPDX-License-Identifier: Apache-2.0
"""What works without the extra ``openstack``: everything that is not about a stack."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """\
import importlib, sys
for name in ("openstack", "keystoneauth1", "heatclient"):
    sys.modules[name] = None
importlib.import_module(sys.argv[1])
"""
MODULES = [
    "container_update.cli.commands.csar",
    "container_update.emulator.demo.scenarios",
    "container_update.emulator.demo.views",
    "container_update.cli.main",
    "container_update.drivers.tacker_v2",
    "container_update.engine.goals.change",
    "container_update.openstack.vnfm_records",
    "container_update.engine.goals.update",
    "container_update.openstack.vnfcs",
]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_imported_without_the_openstack_libraries(module: str) -> None:
    words = [sys.executable, "-c", WITHOUT, module]
    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
