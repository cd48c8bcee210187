"""Every right of samples/rbac/role.yaml is needed: without it an update says so, and harms nothing.

Most are missed before anything is written. A right that only an undo uses is missed in its middle:
then the journal stays, and a rollback with the right ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from container_update.errors import (
    ClusterError,
    ContainerUpdateError,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInProgressError,
)
from container_update.journal import name_of
from container_update.model import Json
from container_update.recovery import Instance
from tests.functional import role
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.manifests import ENV, ENV_FROM, config_map, secret, workload


@dataclass(frozen=True)
class Right:
    """A resource and a verb."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    def rule(self) -> Json:
        """A rule that grants this right alone."""
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]}


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
    """The workload gets an image that does not exist, so that it is written, looked at, undone."""
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
    """Give the account these rights and no others."""
    bound = cnf.admin.get(role.key(cnf.namespace))
    assert bound is not None
    cnf.admin.replace({**bound, "rules": [right.rule() for right in rights]})


def prepare(cnf: Cnf, right: Right, old: Files) -> None:
    """What has to be there so that the update uses the right."""
    if right.resource == "namespaces":  # asked about where nothing is found
        cnf.old = cnf.package({f"{name}.yaml": text for name, text in old.items()})
        return
    cnf.instantiate(**old)
    if str(right) in ("get leases", "update leases"):  # of a lock that nobody keeps any more
        metadata = {"name": name_of(INSTANCE), "namespace": cnf.namespace}
        spec = {"holderIdentity": "gone/1", "renewTime": "2020-01-01T00:00:00.000000Z"}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        cnf.admin.create({**body, "spec": spec})


def found_out(right: Right) -> type[ContainerUpdateError]:
    """When the lack of a right is noticed, as the error's class tells."""
    before = right.verb == "list" or right.resource in ("leases", "namespaces")
    if before or str(right) in ("get secrets", "create secrets"):
        return ClusterError  # nothing was written
    if right.verb == "update" or str(right) in UNDONE:
        return UpdateFailedError
    return UndoIncompleteError


UNDONE = ("create configmaps", "create pods/eviction", "delete pods")


@pytest.mark.parametrize("right", [r for r in RIGHTS if str(r) != "delete leases"], ids=str)
def test_without_the_right_an_update_says_so_and_harms_nothing(cnf: Cnf, right: Right) -> None:
    old, new = UPDATES[right.resource]
    prepare(cnf, right, old)
    grant(cnf, [other for other in RIGHTS if other != right])
    options = replace(cnf.options, grace_period=0.1, retry_seconds=0.0)
    with pytest.raises(ContainerUpdateError, match="403") as raised:
        cnf.update(new, options)
    assert type(raised.value) is found_out(right)
    grant(cnf, RIGHTS)
    if type(raised.value) is UndoIncompleteError:
        undone = Instance(cnf.cluster, cnf.namespace, INSTANCE, cnf.options).recover(back=True)
        assert undone is not None
    assert cnf.plan(old).is_empty


def test_without_the_right_to_remove_it_the_lock_stays_until_it_expires(
    cnf: Cnf, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = UPDATES["leases"]
    cnf.instantiate(**old)
    grant(cnf, [right for right in RIGHTS if str(right) != "delete leases"])
    cnf.update(new)
    assert "stays until it expires" in caplog.text
    assert "403" in caplog.text
    with pytest.raises(UpdateInProgressError, match="another update of this VNF instance runs"):
        cnf.update(old)
