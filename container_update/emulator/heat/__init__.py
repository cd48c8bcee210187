# SPDX-License-Identifier: Apache-2.0
"""An embedded stand-in for an OpenStack cloud's Keystone v3 and Heat v1, over HTTP on loopback.

Stacks, nested stacks, scaling groups and their states over time behave as in Heat. Servers, ports
and volumes are only records: their ids appear, stay and change as Heat's resource types prescribe.
"""

from container_update.emulator.heat.cloud import EmbeddedOpenStack
from container_update.emulator.heat.faults import CloudFaults, ResourceFault

__all__ = ["CloudFaults", "EmbeddedOpenStack", "ResourceFault"]
