# SPDX-License-Identifier: Apache-2.0
"""Of the service: see the folder."""

# ruff: noqa: F401

from __future__ import annotations

from container_update.vnfm import operations, settings, vims
from container_update.vnfm import packages as content
from container_update.vnfm.api.queries.lists import TableQuery
from container_update.vnfm.http import connections, error_responses
from container_update.vnfm.http.authentication import read_tokens
from container_update.vnfm.lcm import perform
from container_update.vnfm.lcm.mgmt_drivers import v2
from container_update.vnfm.lcm.mgmt_drivers.answers import ScriptError
from container_update.vnfm.lcm.operation_context import Steps
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service import Service
from container_update.vnfm.settings import Settings
from container_update.vnfm.states import State
from container_update.vnfm.store import liveness
from container_update.vnfm.store.database import Database, known_revisions, now
from container_update.vnfm.store.rows import (
    Base,
    Instance,
    OperationRow,
    Package,
    Subscription,
    VimRow,
)
from container_update.vnfm.store.vault import Vault
