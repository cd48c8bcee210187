# SPDX-License-Identifier: Apache-2.0
"""Of the engine, the command and the packages: see the folder."""

# ruff: noqa: F401

from __future__ import annotations

from container_update.cli import man
from container_update.cli.arguments import parser
from container_update.cli.main import main, root_parser
from container_update.cli.operate import with_images_checked
from container_update.cli.terminal import approval, output
from container_update.cli.terminal.output import FORMATS, MARKDOWN
from container_update.cluster import informer, keeping, operation_secrets, prometheus
from container_update.cluster.beginning import new_identity
from container_update.cluster.client import KubernetesCluster, connect_vim
from container_update.cluster.history import History, HistoryWriter
from container_update.cluster.informer import Informer
from container_update.cluster.journal import Journal
from container_update.cluster.lease import Holder, LeaseLock, utc_now
from container_update.cluster.login.client_configuration import Login
from container_update.cluster.operation import Result
from container_update.cluster.retry import RetryingCluster
from container_update.cluster.uninstalled import SECRET_TYPE
from container_update.drivers import (
    tacker_v2,
    v1_host,
    v1_records,
    v2_memory,
    v2_process,
    v2_records,
)
from container_update.drivers.v2_records import read_options
from container_update.drivers.way_back import go_back
from container_update.emulator.demo.scenarios import guide_request
from container_update.engine import cluster_instance, execute, watch
from container_update.engine.checks import image_check
from container_update.engine.checks.image_check import LABEL, UnpulledImagesError
from container_update.engine.cluster_instance import ClusterInstance
from container_update.engine.goal import Goal
from container_update.engine.goals import update, upgrade_types
from container_update.engine.goals.change import PackageChange
from container_update.engine.goals.change_request import FromVnfm, ScriptName
from container_update.engine.goals.request_schema import CHANGE_REQUEST
from container_update.engine.goals.upkeep import Heal, Scale
from container_update.engine.instances import only_instance, record_of
from container_update.engine.journalled_run import JournalledRun
from container_update.engine.progress import step_events
from container_update.engine.run import operate, preview, run
from container_update.engine.scripts import coordination
from container_update.engine.scripts.coordination import CoordinationError
from container_update.engine.watch import Watch, attach
from container_update.model import cluster, context_threads, errors, options, packing
from container_update.model.cluster import Keep, Listing, Right, WatchEvent
from container_update.model.errors import FrozenError, NotInstalledError, NoWayBackError
from container_update.model.objects import INSTANCE_LABEL, Collection, Json, ObjectKey, instance_of
from container_update.model.operation import Phase, name_of
from container_update.model.options import DEFAULTS
from container_update.model.outcome import Event, Progress, StepState
from container_update.model.packing import pack, unpack
from container_update.model.plan import CHANGED_KEYS, CHANGED_OBJECTS, Action, Reason
from container_update.model.process_identity import ProcessIdentity
from container_update.model.scripts import VduChange
from container_update.openstack.change import StackChange
from container_update.package import archive, csar, hot, manifests, rendering, vnfd, yaml11
from container_update.package.findings import Reading
from container_update.package.hot import StackBody
from container_update.package.tools import build, samples
from container_update.package.tools.build import DRIVERS, bundle, driver_file, write_metadata
from container_update.package.tools.samples import TYPE_FILES
from container_update.package.tosca import process
from container_update.planning import plan_json
from container_update.planning.comparison import live_objects
from container_update.planning.comparison.diff import content
from container_update.planning.comparison.live_objects import manifest_name
from container_update.planning.configuration import OPT_OUT_ANNOTATION
from container_update.planning.staying import Included
from container_update.planning.steps import ConfigStep, RestartStep, object_steps
from container_update.planning.steps.manifest import with_recorded_digest
from container_update.planning.steps.new_objects import new_object
from container_update.records.vnf_records import Records
from container_update.reports import json_report, markdown_report, outcome_report, plan_report
from container_update.reports.history_report import NOTHING_KEPT, diff_of_revision
from container_update.reports.lines import text_of
from container_update.workloads import ownership, registry
from container_update.workloads.kinds.deployment import Deployment
from container_update.workloads.ownership import owned_pods
from container_update.workloads.pod_status import is_deleting, is_finished, is_ready, problem
from container_update.workloads.pod_template import containers, images, pod_spec, with_images
from container_update.workloads.readiness import Baseline, RolloutState
