# SPDX-License-Identifier: Apache-2.0
"""Which rights a plan takes, and which rules give them."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.cluster.rights import allows
from container_update.model.cluster import Right
from container_update.model.objects import ObjectKey
from container_update.model.plan import Action, Plan, Step
from container_update.planning.permissions import needed_rights
from container_update.planning.steps import ConfigStep, ManifestStep, RestartStep

DEPLOYMENT = ObjectKey("apps", "Deployment", "ns", "d")
STATEFUL = ObjectKey("apps", "StatefulSet", "ns", "d")
SET = ObjectKey("apps", "ReplicaSet", "ns", "d")
POD = ObjectKey("", "Pod", "ns", "p")
CONFIG = ObjectKey("", "ConfigMap", "ns", "cm")
CRON = ObjectKey("batch", "CronJob", "ns", "cron")
SERVICE = ObjectKey("", "Service", "ns", "svc")

SEES = ("Pod: watch", "ReplicaSet: watch")
"""What of a Deployment is watched besides itself."""

CASES: list[tuple[Step, set[str]]] = [
    (ConfigStep(CONFIG, Action.CREATE, None, {}), {"get cm", "create", "delete cm"}),
    (ConfigStep(CONFIG, Action.REPLACE, {}, {}), {"get cm", "update cm"}),
    (ConfigStep(CONFIG, Action.RECREATE, {}, {}), {"get cm", "create", "delete cm", "update cm"}),
    (ManifestStep(SERVICE, Action.HOLD, {}), {"get svc", "update svc"}),
    (ManifestStep(SERVICE, Action.SWITCH, {}), {"get svc", "update svc"}),
    (
        RestartStep(DEPLOYMENT, Action.ROLL, {}),
        {"get d", "update d", "watch", *SEES},
    ),
    (
        RestartStep(DEPLOYMENT, Action.ROLL, {}, digest="x"),
        {"get d", "update d", "watch", *SEES, "Pod: create /eviction"},
    ),
    (
        RestartStep(SET, Action.EVICT, {}),
        {"get d", "update d", "watch", "Pod: watch", "Pod: create /eviction"},
    ),
    (
        RestartStep(STATEFUL, Action.ROLL, {}),
        {"get d", "update d", "watch", "Pod: watch", "Pod: delete"},
    ),
    (RestartStep(POD, Action.RECREATE_POD, {}), {"get p", "create", "delete p", "watch"}),
    (
        RestartStep(POD, Action.RESTART_CONTAINERS, {}),
        {"get p", "create", "delete p", "update p", "watch"},
    ),
    (RestartStep(CRON, Action.TEMPLATE, {}), {"get cron", "update cron"}),
    (
        ManifestStep(DEPLOYMENT, Action.DELETE, {}),
        {"get d", "create", "delete d", "watch", *SEES},
    ),
    (
        ManifestStep(DEPLOYMENT, Action.CREATE, None),
        {"get d", "create", "delete d", "watch", *SEES},
    ),
]


def words(right: Right, kind: str) -> str:
    """A right as the cases spell it."""
    below = f"/{right.subresource}" if right.subresource else ""
    of = "" if right.kind == kind else f"{right.kind}: "
    return f"{of}{right.verb} {right.name}{below}".strip()


BOOKS = set(needed_rights(Plan("ns", None, ())))


@pytest.mark.parametrize(
    ("step", "told"),
    CASES,
    ids=[f"{s.key.kind} {s.action.name} {getattr(s, 'digest', None) or ''}" for s, _ in CASES],
)
def test_a_step_takes_the_rights_to_do_it_to_see_it_and_to_undo_it(
    step: Step, told: set[str]
) -> None:
    rights = [right for right in needed_rights(Plan("ns", None, (step,))) if right not in BOOKS]
    assert {words(right, step.key.kind) for right in rights} == told
    assert {right.namespace for right in rights} == {"ns"}


def test_every_plan_takes_the_rights_to_its_journal_and_its_lock() -> None:
    assert {(right.kind, right.verb) for right in BOOKS} == {
        ("Secret", "get"), ("Secret", "create"), ("Secret", "update"), ("Secret", "delete"),
        ("Lease", "get"), ("Lease", "create"), ("Lease", "update"),
    }  # fmt: skip


UPDATE = Right("ns", "apps", "Deployment", "update", "d")
CREATE = Right("ns", "apps", "Deployment", "create")
EVICT = Right("ns", "", "Pod", "create", subresource="eviction")
ANY_SECRET = Right("ns", "", "Secret", "get")


def rule(group: str, resource: str, verb: str, *names: str) -> dict[str, Any]:
    more = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": [resource], "verbs": [verb], **more}


@pytest.mark.parametrize(
    ("given", "right", "plural", "is_allowed"),
    [
        ([], UPDATE, "deployments", False),
        ([rule("apps", "deployments", "update")], UPDATE, "deployments", True),
        ([rule("*", "*", "*")], UPDATE, "deployments", True),
        ([rule("", "deployments", "update")], UPDATE, "deployments", False),
        ([rule("apps", "daemonsets", "update")], UPDATE, "deployments", False),
        ([rule("apps", "deployments", "get")], UPDATE, "deployments", False),
        ([rule("apps", "deployments", "update", "d", "e")], UPDATE, "deployments", True),
        ([rule("apps", "deployments", "update", "e")], UPDATE, "deployments", False),
        ([rule("apps", "deployments", "create", "d")], CREATE, "deployments", False),
        ([rule("", "pods", "create")], EVICT, "pods", False),
        ([rule("", "pods/eviction", "create")], EVICT, "pods", True),
        ([rule("", "*/eviction", "create")], EVICT, "pods", True),
        ([rule("", "pods/eviction", "create", "one")], EVICT, "pods", True),
        ([rule("", "secrets", "get", "journal")], ANY_SECRET, "secrets", True),
        ([rule("apps", "x", "get"), rule("apps", "deployments", "*")], UPDATE, "deployments", True),
    ],
)
def test_a_rule_allows_what_its_words_say(
    given: list[dict[str, Any]], right: Right, plural: str, is_allowed: bool
) -> None:
    assert allows(given, right, plural) is is_allowed


@pytest.mark.parametrize(
    ("right", "text"),
    [
        (UPDATE, "update Deployment d in namespace ns"),
        (CREATE, "create Deployment in namespace ns"),
        (EVICT, "create Pod/eviction in namespace ns"),
        (Right("", "", "Node", "get", "n"), "get Node n"),
    ],
)
def test_a_right_is_told_in_words(right: Right, text: str) -> None:
    assert str(right) == text
