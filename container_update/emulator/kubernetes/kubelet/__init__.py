"""The emulated nodes: they start, restart and stop the containers of pods that are bound to them.

Nothing is executed. A container is a few lines of status that change after the delays of
:class:`Behaviour`; what it would have seen of its configuration is kept for tests to look at.
"""

from container_update.emulator.kubernetes.kubelet.behaviour import Behaviour, ContainerStart, Exit
from container_update.emulator.kubernetes.kubelet.node import Kubelet

__all__ = ["Behaviour", "ContainerStart", "Exit", "Kubelet"]
