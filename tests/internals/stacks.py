# SPDX-License-Identifier: Apache-2.0
"""Of stacks in OpenStack: see the folder."""

# ruff: noqa: F401

from __future__ import annotations

from container_update.engine.run import operate
from container_update.openstack import live
from container_update.openstack.client import Heat, connect, reference
from container_update.openstack.instantiate import Terminate
from container_update.openstack.plan import BLUE_GREEN, ROLLING, StackPlan, StackScript
from container_update.openstack.planner import StackRequest, read_packages
from container_update.openstack.stack_instance import StackInstance
