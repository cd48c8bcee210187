# SPDX-License-Identifier: Apache-2.0
"""Of the engine, the command and the packages: see the folder."""

# ruff: noqa: F401

from __future__ import annotations

from container_update.cli.main import main
from container_update.cli.reports.lines import text_of
from container_update.cluster import informer, keeping
from container_update.cluster.client import KubernetesCluster
from container_update.cluster.history.store import History
from container_update.cluster.lease import LeaseLock, utc_now
from container_update.cluster.retry import RetryingCluster
from container_update.drivers import v2_process
from container_update.emulator.demo.scenarios import guide_request
from container_update.engine import cluster_instance
from container_update.engine.goals import change_package
from container_update.engine.goals.change import KubernetesTarget
from container_update.engine.goals.change_package import Changed, preview_change, run_change
from container_update.engine.goals.job import ChangeJob
from container_update.engine.instances import NotInstalledError
from container_update.engine.scripts import coordination
from container_update.engine.watch import attach
from container_update.model import options
from container_update.model.errors import NoWayBackError
from container_update.model.objects import INSTANCE_LABEL, Collection, Json, ObjectKey
from container_update.model.operation import name_of
from container_update.model.outcome import Event, StepState
from container_update.model.plan import Action
from container_update.model.process_identity import ProcessIdentity
from container_update.openstack.change import OpenStackTarget
from container_update.package import archive, csar, hot
from container_update.package.tools import build, samples
from container_update.package.tools.build import driver_file
from container_update.package.tosca import process
from container_update.planning.comparison.package_pair import Placing
from container_update.planning.lifecycle import Included
from container_update.planning.steps import RestartStep
from container_update.records.vnf_records import Records
from container_update.workloads.pod_status import is_deleting, is_finished, is_ready
from container_update.workloads.pod_template import containers, pod_spec
