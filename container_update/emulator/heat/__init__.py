"""An embedded stand-in for an OpenStack cloud's Keystone v3 and Heat v1, over HTTP on loopback.

Heat's stacks, nested stacks, scaling groups and states over time are real here; servers, ports and
volumes are records with ids that come, stay and change as Heat's resource types decide.
"""

from container_update.emulator.heat.cloud import EmbeddedOpenStack
from container_update.emulator.heat.faults import Trouble, Troubles

__all__ = ["EmbeddedOpenStack", "Trouble", "Troubles"]
