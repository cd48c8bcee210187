# SPDX-License-Identifier: Apache-2.0
"""Of the service: see the folder."""

# ruff: noqa: F401

from __future__ import annotations

from container_update.vnfm import instances, operations, packages, settings, vims, workers
from container_update.vnfm import packages as content
from container_update.vnfm.api import document, representations
from container_update.vnfm.api.parts import EXTENSION
from container_update.vnfm.api.queries import query_filters
from container_update.vnfm.api.queries.lists import TableQuery
from container_update.vnfm.api.queries.query_filters import Condition, Filter
from container_update.vnfm.commands import demo, serve
from container_update.vnfm.commands.demo import Scene, Stage
from container_update.vnfm.http import (
    authentication,
    connections,
    error_responses,
    health,
    keystone,
    logs,
)
from container_update.vnfm.http.authentication import (
    LINK_SECONDS,
    READING,
    OneTimeLink,
    User,
    authenticator,
    read_tokens,
)
from container_update.vnfm.http.connections import server_config
from container_update.vnfm.lcm import perform
from container_update.vnfm.lcm.live.resources import resources_of, vdus_of
from container_update.vnfm.lcm.mgmt_drivers import driver_answer, v1, v2
from container_update.vnfm.lcm.mgmt_drivers.driver_answer import ScriptError, plain_answer
from container_update.vnfm.lcm.operation_context import ServiceEndsError, Steps, VnfRecord
from container_update.vnfm.lcm.records import modifications, triggered_by_package
from container_update.vnfm.metrics import Gauges, Metrics
from container_update.vnfm.notify import delivery, outbox
from container_update.vnfm.notify.delivery import Notifier
from container_update.vnfm.problems import ProblemError, problem_of, requests_of
from container_update.vnfm.service import Service
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.settings import Settings
from container_update.vnfm.states import RUNNING, UNSETTLED, Request, State
from container_update.vnfm.store import database, liveness
from container_update.vnfm.store.database import Database, known_revisions, now
from container_update.vnfm.store.liveness import DatabaseLock, FileLock, ProcessLock
from container_update.vnfm.store.retention import forget_operations
from container_update.vnfm.store.rows import (
    Base,
    Batch,
    Instance,
    Notification,
    OperationRow,
    Package,
    StepRow,
    Subscription,
    VimRow,
)
from container_update.vnfm.store.vault import Vault
from container_update.vnfm.view.routes import events
from container_update.vnfm.workers import Workers
