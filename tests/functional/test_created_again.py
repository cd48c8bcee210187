# SPDX-License-Identifier: Apache-2.0
"""An object that is deleted and created again is not deleted where it could not be created.

The server has no request that replaces a Pod, or an immutable object. Between the two requests
there is neither the old one nor the new one; an undo needs what was just refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from container_update import (
    ClusterError,
    HealRequest,
    UndoIncompleteError,
    UpdateFailedError,
    change_package,
    connect,
)
from tests.functional import role
from tests.functional.admission import refusing
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.conftest import OPTIONS, until
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.reference_update import Lab
from tests.functional.server import Server
from tests.functional.test_quotas import set_quota
from tests.internals.core import Heal, KubernetesCluster, run
from tests.internals.core import cluster as internals

POD = workload("Pod", "w", container=ENV)
OLD = {"cm": config_map(setting="old"), "w": POD}
NEW = {**OLD, "cm": config_map(setting="new")}
FIXED = {"cm": config_map(immutable=True, setting="old")}
OTHER = {"cm": config_map(immutable=True, setting="new")}


def healed(cnf: Cnf) -> None:
    cnf.heal(cnf.old)


def updated(cnf: Cnf) -> None:
    cnf.update(NEW)


def updated_without_pods(cnf: Cnf) -> None:
    cnf.update(OTHER)


def changed(cnf: Cnf) -> None:
    """Change an environment variable of the Pod, which no server does in place."""
    other = POD.replace("name: SETTING", "name: ANOTHER")
    files = {"cm.yaml": OLD["cm"], "w.yaml": other}
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    packages = {"old": cnf.old, "new": cnf.package(files)}
    change_package(body, cnf.admin, cnf.options, **packages, **cnf.where)


REFUSED: dict[str, tuple[str, str, dict[str, str], Callable[[Cnf], None]]] = {
    "a Pod that is healed": ("Pod", "w", OLD, healed),
    "a Pod with another setting": ("Pod", "w", OLD, updated),
    "a Pod with another variable": ("Pod", "w", OLD, changed),
    "an immutable ConfigMap": ("ConfigMap", "cm", FIXED, updated_without_pods),
}


@pytest.fixture(scope="module")
def server(lab: Lab) -> Server:
    return lab.server


@pytest.fixture(scope="module")
def admin_kubeconfig(lab: Lab) -> str:
    return lab.kubeconfig


@pytest.fixture(scope="module")
def admin(admin_kubeconfig: str) -> Iterator[KubernetesCluster]:
    with connect(admin_kubeconfig, options=OPTIONS) as connected:
        yield connected


@pytest.mark.parametrize(("kind", "name", "files", "act"), REFUSED.values(), ids=REFUSED)
def test_what_admission_does_not_let_be_created_again_is_not_deleted(
    cnf: Cnf,
    server: Server,
    kind: str,
    name: str,
    files: dict[str, str],
    act: Callable[[Cnf], None],
) -> None:
    cnf.instantiate(**files)
    before = cnf.get(kind, name)["metadata"]["uid"]
    with (
        refusing(server, cnf.namespace, kind, "not today"),
        pytest.raises((ClusterError, UpdateFailedError), match="not today") as raised,
    ):
        act(cnf)
    assert not isinstance(raised.value, UndoIncompleteError)
    assert "dry_run_denials" in str(raised.value)
    assert cnf.get(kind, name)["metadata"]["uid"] == before
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "old"}
    act(cnf)  # the next one finds nothing in its way
    assert cnf.get(kind, name)["metadata"]["uid"] != before


RECREATE, ON_DELETE = "strategy: {type: Recreate}", "updateStrategy: {type: OnDelete}"
DELETING = {
    "Deployment": RECREATE,
    "Deployment that surges": "strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}",
    "ReplicaSet": "",
    "StatefulSet": "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: "
    "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]",
    "DaemonSet": "",
    "StatefulSet on delete": ON_DELETE,
}
"""Kinds whose old pods go before the new ones come."""
ONE_OF_MANY = {"ReplicaSet", "DaemonSet"}
"""Of these an update risks one pod, and tries none."""


def healed_in_part(cnf: Cnf) -> None:
    (kind,) = {name.split()[0] for name in DELETING if cnf.admin.get(cnf.key(name.split()[0], "w"))}
    goal = Heal(HealRequest(cnf.old, (("VDU1", min(cnf.pods(kind, "w"))),), **cnf.where))
    goal.packages = replace(goal.packages, new_vdus={"VDU1": "w"})
    run(goal, cnf.cluster, cnf.options)


def updated_with_its_workload(cnf: Cnf) -> None:
    cnf.update({"cm": NEW["cm"], "w": (Path(cnf.old) / "Files" / "w.yaml").read_text()})


@pytest.mark.parametrize(
    ("name", "act"),
    [
        *((name, act) for name in DELETING for act in (healed, healed_in_part)),
        *((name, updated_with_its_workload) for name in DELETING if name not in ONE_OF_MANY),
    ],
)
def test_pods_that_admission_would_not_let_come_again_do_not_go(
    cnf: Cnf, server: Server, name: str, act: Callable[[Cnf], None]
) -> None:
    kind, *_ = name.split()
    mounts = "volumeMounts: [{name: data, mountPath: /data}]" if "Claim" in DELETING[name] else ""
    w = workload(kind, container=f"{ENV}\n{mounts}", spec=DELETING[name], replicas=2)
    cnf.instantiate(cm=OLD["cm"], w=w)
    before = cnf.pods(kind, "w")
    with (
        refusing(server, cnf.namespace, "Pod", "not today"),
        pytest.raises(UpdateFailedError, match=r"not today.*Everything is as before"),
    ):
        act(cnf)
    assert cnf.pods(kind, "w") == before
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "old"}


def test_pods_are_replaced_by_an_account_that_may_not_create_any(cnf: Cnf) -> None:
    """Their controller may."""
    cnf.instantiate(cm=OLD["cm"], w=workload("StatefulSet", container=ENV))
    live = cnf.admin.get(role.key(cnf.namespace))
    assert live is not None
    rules = live["rules"]
    for rule in rules:
        if "pods" in rule["resources"]:
            rule["verbs"] = [verb for verb in rule["verbs"] if verb != "create"]
    cnf.admin.replace({**live, "rules": rules})
    create = internals.Right(cnf.namespace, "", "Pod", "create")
    until(lambda: bool(cnf.cluster.missing_rights([create])))
    before = cnf.pods("StatefulSet", "w")
    cnf.update({"cm": NEW["cm"], "w": workload("StatefulSet", container=ENV)})
    assert cnf.pods("StatefulSet", "w") != before


@pytest.mark.parametrize("act", [healed, updated, changed])
def test_a_pod_in_a_full_namespace_is_created_again(cnf: Cnf, act: Callable[[Cnf], None]) -> None:
    """A quota has counted the old one, and notices a moment later that it is gone."""
    cnf.instantiate(**OLD)
    before = cnf.get("Pod", "w")["metadata"]["uid"]
    set_quota(cnf, pods=1)
    act(cnf)
    after = cnf.get("Pod", "w")
    assert after["metadata"]["uid"] != before
    assert after["spec"]["containers"][0]["image"] == IMAGES[0]
