# SPDX-License-Identifier: Apache-2.0
"""An immutable object gets other content only where no pod that runs refers to it.

A kubelet would give the new pods what it has read before (kubernetes/kubernetes#119733).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from container_update import PlanError, UpdateFailedError, change_package
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.upgrade_types import UPGRADE_TYPES

OLD, NEW = (config_map(immutable=True, setting=value) for value in ("old", "new"))
KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Pod")


def test_one_that_nobody_refers_to_is_created_again_and_restored(cnf: Cnf) -> None:
    cnf.instantiate(cm=OLD, w=workload("Deployment"))
    with pytest.raises(UpdateFailedError):
        cnf.update({"cm": NEW, "w": workload("Deployment", image=BAD_IMAGE)})
    restored = cnf.get("ConfigMap", "cm")
    assert (restored["data"], restored["immutable"]) == ({"setting": "old"}, True)
    cnf.update({"cm": NEW, "w": workload("Deployment")})
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "new"}


def test_one_whose_workload_has_no_pods_is_created_again(cnf: Cnf) -> None:
    stopped = workload("Deployment", container=ENV, replicas=0)
    cnf.instantiate(cm=OLD, w=stopped)
    cnf.update({"cm": NEW, "w": stopped})
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "new"}


def updated(cnf: Cnf, files: dict[str, str]) -> None:
    cnf.update(files)


def changed(upgrade_type: str) -> Callable[[Cnf, dict[str, str]], None]:
    def change(cnf: Cnf, files: dict[str, str]) -> None:
        new = cnf.package({f"{name}.yaml": text for name, text in files.items()})
        parameters = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": upgrade_type}}
        change_package(parameters, cnf.cluster, cnf.options, old=cnf.old, new=new, **cnf.where)

    return change


def healed(cnf: Cnf, files: dict[str, str]) -> None:
    package = cnf.package({f"{name}.yaml": text for name, text in files.items()})
    cnf.heal(package)


VERBS = {"update": updated, "heal": healed, **{name: changed(name) for name in UPGRADE_TYPES}}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_that_a_running_pod_refers_to_is_left_alone(
    cnf: Cnf, kind: str, verb: Callable[[Cnf, dict[str, str]], None]
) -> None:
    cnf.instantiate(cm=OLD, w=workload(kind, container=ENV))
    before = cnf.get("ConfigMap", "cm"), cnf.pods(kind, "w")
    with pytest.raises(PlanError, match=r"is immutable .* found Pod .*/w.* change of the package"):
        verb(cnf, {"cm": NEW, "w": workload(kind, container=ENV, image=IMAGES[1])})
    assert (cnf.get("ConfigMap", "cm"), cnf.pods(kind, "w")) == before
