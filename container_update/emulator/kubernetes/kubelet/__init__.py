# SPDX-License-Identifier: Apache-2.0
"""The emulated nodes: they start, restart and stop the containers of the pods bound to them.

Nothing is executed. A container is a status that changes after the delays of :class:`Behaviour`;
the configuration that it would see is kept for tests.
"""

from container_update.emulator.kubernetes.kubelet.behaviour import Behaviour, ContainerStart, Exit
from container_update.emulator.kubernetes.kubelet.node import Kubelet

__all__ = ["Behaviour", "ContainerStart", "Exit", "Kubelet"]
