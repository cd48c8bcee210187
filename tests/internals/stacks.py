# SPDX-License-Identifier: Apache-2.0
"""Of stacks in OpenStack: see the folder."""

# ruff: noqa: F401

from __future__ import annotations

from container_update.engine.run import operate
from container_update.openstack import live
from container_update.openstack.answers import MOST_BYTES
from container_update.openstack.client import Heat, connect, reference
from container_update.openstack.execution import writer
from container_update.openstack.hold import Clock, StackHolder, is_free, tags_of
from container_update.openstack.instantiate import Instantiate, Terminate, described_by
from container_update.openstack.journal import StackJournal, UnsignedError, _StoredJournal
from container_update.openstack.plan import BLUE_GREEN, ROLLING, StackPlan
from container_update.openstack.planner import StackPackages, StackRequest, read_packages
from container_update.openstack.record import StackRecord
from container_update.openstack.stack_instance import StackGoal, StackInstance, instance_id_of
from container_update.openstack.templates.desired import Replacement
from container_update.openstack.upkeep import StackHeal, StackScale
from container_update.openstack.vnfcs import VnfcServer
from container_update.openstack.vnfm_records import instantiated_info
