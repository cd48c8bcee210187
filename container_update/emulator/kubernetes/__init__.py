# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes cluster in one process, on loopback, for the demo and the tests.

Start with :class:`EmbeddedCluster`. README.rst in this folder lists what is emulated and what not.
"""

from container_update.emulator.http_server import RequestRecord
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.cluster import EmbeddedCluster
from container_update.emulator.kubernetes.kubelet import Behaviour
from container_update.emulator.kubernetes.registry import Registry

__all__ = ["ApiError", "Behaviour", "EmbeddedCluster", "Registry", "RequestRecord"]
