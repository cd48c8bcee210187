"""A Kubernetes cluster in one process, on loopback, for the demo and the tests.

Start here: :class:`EmbeddedCluster`. What is modelled, and what is not, is in this folder's README.
"""

from container_update.emulator.api_errors import ApiError
from container_update.emulator.cluster import EmbeddedCluster
from container_update.emulator.kubelet import Behaviour
from container_update.emulator.registry import Registry
from container_update.emulator.server import RequestRecord

__all__ = ["ApiError", "Behaviour", "EmbeddedCluster", "Registry", "RequestRecord"]
