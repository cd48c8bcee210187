# SPDX-License-Identifier: Apache-2.0
"""Every right of samples/rbac/role.yaml is needed: without it an update says so and writes nothing.

Four are optional: without them less is known, more is listed, or a lease stays for a while.

A right that is taken away while the update runs may be missed by its undo: then the journal stays,
and a rollback with the right ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from container_update import (
    ClusterError,
    Plan,
    StepResult,
    UndoIncompleteError,
    UpdateInProgressError,
    update,
)
from tests.functional import role
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.conftest import until
from tests.functional.manifests import ENV, ENV_FROM, config_map, secret, workload
from tests.internals.core import Collection, Json, NotInstalledError, cluster, name_of


@dataclass(frozen=True)
class Right:
    """A resource and a verb."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    def rule(self) -> Json:
        """Return a rule that grants only this right."""
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]}

    def within(self, namespace: str) -> cluster.Right:
        """The same right as the engine represents it."""
        resource, _, subresource = self.resource.partition("/")
        return cluster.Right(
            namespace, self.group, KINDS[resource], self.verb, subresource=subresource
        )


KINDS = {
    "configmaps": "ConfigMap", "secrets": "Secret", "pods": "Pod", "namespaces": "Namespace",
    "daemonsets": "DaemonSet", "deployments": "Deployment", "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet", "cronjobs": "CronJob", "jobs": "Job", "leases": "Lease",
    "events": "Event", "poddisruptionbudgets": "PodDisruptionBudget",
    "resourcequotas": "ResourceQuota",
}  # fmt: skip

RIGHTS = [
    Right(group, resource, verb)
    for body in role.objects("any")
    for rule in body.get("rules", ())
    for group in rule["apiGroups"]
    for resource in rule["resources"]
    for verb in rule["verbs"]
]

Files = Mapping[str, str]
OLD, NEW = config_map(setting="old"), config_map(setting="new")
BAD = {"bad": workload("Deployment", "bad", image=BAD_IMAGE)}
BAD_BEFORE = {"bad": workload("Deployment", "bad")}


def failing(kind: str) -> tuple[Files, Files]:
    """Return old and new files; the new image is missing, so the change is written and undone."""
    return {"w": workload(kind)}, {"w": workload(kind, image=BAD_IMAGE)}


UPDATES: Mapping[str, tuple[Files, Files]] = {
    "configmaps": (
        {"cm": OLD, **BAD_BEFORE},
        {"cm": f"{NEW}---\n{config_map('another', a='b')}", **BAD},
    ),
    "secrets": (
        {"sec": secret(a="old"), **BAD_BEFORE},
        {"sec": f"{secret(a='new')}---\n{secret('another', a='b')}", **BAD},
    ),
    "pods": (
        {"cm": OLD, "p": workload("Pod", "p", container=ENV_FROM), "q": workload("Pod", "q")},
        {
            "cm": NEW,
            "p": workload("Pod", "p", container=ENV_FROM),
            "q": workload("Pod", "q", image=BAD_IMAGE),
        },
    ),
    "pods/eviction": failing("ReplicaSet"),
    "daemonsets": failing("DaemonSet"),
    "deployments": failing("Deployment"),
    "replicasets": failing("ReplicaSet"),
    "statefulsets": failing("StatefulSet"),
    "cronjobs": (
        {"cron": workload("CronJob", "cron"), **BAD_BEFORE},
        {"cron": workload("CronJob", "cron", image=IMAGES[1]), **BAD},
    ),
    "jobs": ({"j": workload("Job", "j")}, {"j": workload("Job", "j", image=IMAGES[1])}),
    "leases": (
        {"cm": OLD, "w": workload("Deployment", container=ENV)},
        {"cm": NEW, "w": workload("Deployment", container=ENV)},
    ),
    "namespaces": ({"w": workload("Deployment")}, {"w": workload("Deployment", image=IMAGES[1])}),
}
"""For each resource an update that uses every right to it, from the old files to the new ones."""


def grant(cnf: Cnf, rights: list[Right]) -> None:
    """Give the account these rights and no others, and wait until it has them."""
    bound = cnf.admin.get(role.key(cnf.namespace))
    assert bound is not None
    cnf.admin.replace({**bound, "rules": [right.rule() for right in rights]})
    every = {right: right.within(cnf.namespace) for right in RIGHTS}
    refused = {every[right] for right in RIGHTS if right not in rights}
    until(lambda: set(cnf.cluster.missing_rights(list(every.values()))) == refused)


def prepare(cnf: Cnf, right: Right, old: Files) -> None:
    """Create what the update needs in order to use the right."""
    if right.resource == "namespaces":  # read only if nothing is found
        cnf.old = cnf.package({f"{name}.yaml": text for name, text in old.items()})
        return
    cnf.instantiate(**old)
    if str(right) in ("get leases", "update leases"):  # of a lease that nobody renews any more
        metadata = {"name": name_of(INSTANCE), "namespace": cnf.namespace}
        spec = {"holderIdentity": "gone/1", "renewTime": "2020-01-01T00:00:00.000000Z"}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        cnf.admin.create({**body, "spec": spec})


OPTIONAL = (
    "create events",
    "delete leases",
    "get pods/log",
    "list events",
    "list poddisruptionbudgets",
    "list resourcequotas",
    "watch secrets",
)


@pytest.mark.parametrize("right", [r for r in RIGHTS if str(r) not in OPTIONAL], ids=str)
def test_without_the_right_nothing_is_written_and_the_error_says_what_is_missing(
    cnf: Cnf, right: Right
) -> None:
    old, new = UPDATES[right.resource]
    prepare(cnf, right, old)
    grant(cnf, [other for other in RIGHTS if other != right])
    before = contents(cnf)
    with pytest.raises(ClusterError, match="403") as raised:
        cnf.update(new, replace(cnf.options, retry_seconds=0.0))
    assert raised.value.status == 403
    assert contents(cnf) == before
    grant(cnf, RIGHTS)
    if right.resource == "namespaces":  # there is nothing in it
        with pytest.raises(NotInstalledError):
            cnf.plan(old)
    else:
        assert cnf.plan(old).is_empty


def contents(cnf: Cnf) -> dict[str, Any]:
    """Return data and spec of all objects in the namespace that an update could write."""
    kinds = {(right.group, KINDS[right.resource.partition("/")[0]]) for right in RIGHTS}
    kinds -= {("", "Namespace"), ("", "Event")}
    lists = [Collection(*kind, cnf.namespace) for kind in kinds]
    bodies = [body for collection in lists for body in cnf.admin.list(collection).items]
    return {f"{b['kind']} {b['metadata']['name']}": (b.get("data"), b.get("spec")) for b in bodies}


def test_a_right_lost_meanwhile_is_reported_and_a_later_rollback_works(cnf: Cnf) -> None:
    old, new = UPDATES["configmaps"]
    cnf.instantiate(**old)

    def lose(event: Plan | StepResult) -> None:
        if isinstance(event, StepResult) and event.step.key.name == "another":
            grant(cnf, [right for right in RIGHTS if str(right) != "delete configmaps"])

    options = replace(cnf.options, grace_period=0.1)
    with pytest.raises(UndoIncompleteError, match="403"):
        update(cnf.request(new), cnf.cluster, options, progress=lose)
    grant(cnf, RIGHTS)
    undone = cnf.rollback()
    assert undone is not None
    assert cnf.plan(old).is_empty


def test_without_the_right_to_delete_it_the_lease_stays_until_it_expires(
    cnf: Cnf, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = UPDATES["leases"]
    cnf.instantiate(**old)
    grant(cnf, [right for right in RIGHTS if str(right) != "delete leases"])
    cnf.update(new)
    assert "stays until it expires" in caplog.text
    assert "403" in caplog.text
    with pytest.raises(UpdateInProgressError, match="holds this VNF instance"):
        cnf.update(old)


def test_without_the_right_to_watch_the_journal_the_plan_is_compared_again(
    cnf: Cnf, kubeconfig: str
) -> None:
    old, new = UPDATES["leases"]
    cnf.instantiate(**old)
    watched = cnf.update(new)
    grant(cnf, [right for right in RIGHTS if str(right) != "watch secrets"])
    compared = cnf.update(old)
    kinds = {Collection.of(manifest.key) for manifest in compared.plan.manifests}
    assert compared.requests - watched.requests == len(kinds)
    assert cnf.plan(old).is_empty
