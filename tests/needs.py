# SPDX-License-Identifier: Apache-2.0
"""What a machine may lack: the tests that need it are skipped with what installs it."""

from __future__ import annotations

import shutil

import pytest

KUBECTL = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="no kubectl: apt-get install kubernetes-client"
)
JQ = pytest.mark.skipif(shutil.which("jq") is None, reason="no jq: apt-get install jq")
OPENSSL = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no openssl: apt-get install openssl"
)
REGISTRY = pytest.mark.skipif(
    shutil.which("docker-registry") is None,
    # not in bindep.txt: where systemd runs, the package starts a registry on all addresses
    reason="no docker-registry: apt-get install docker-registry, and stop the service that it has",
)
