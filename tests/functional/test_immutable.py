# SPDX-License-Identifier: Apache-2.0
"""An immutable object gets other content only where no pod that runs refers to it.

A kubelet would give the new pods what it has read before (kubernetes/kubernetes#119733).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from container_update import (
    CancelToken,
    PlanError,
    StepResult,
    UpdateFailedError,
    UpdateInterruptedError,
    change_package,
    update,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.upgrade_types import UPGRADE_TYPES
from tests.internals.core import Event

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


def test_one_that_becomes_immutable_is_so_when_all_is_done_and_an_undo_writes_it(cnf: Cnf) -> None:
    """Else new pods of the old template would get what the failed ones have read."""
    half = "strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 2}}"
    deployment = workload("Deployment", container=ENV, spec=half, replicas=4)
    cnf.instantiate(cm=config_map(setting="old"), w=deployment)
    before = cnf.get("ConfigMap", "cm")
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        cnf.update({"cm": config_map(immutable=True, another="key"), "w": deployment})
    restored = cnf.get("ConfigMap", "cm")
    assert (restored["data"], restored.get("immutable")) == ({"setting": "old"}, None)
    assert restored["metadata"]["uid"] == before["metadata"]["uid"]
    cnf.update({"cm": NEW, "w": deployment})
    done = cnf.get("ConfigMap", "cm")
    assert (done["data"], done["immutable"]) == ({"setting": "new"}, True)
    assert done["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("back", [False, True], ids=["resumed", "rolled back"])
def test_one_that_was_to_become_immutable_when_the_run_was_interrupted(
    cnf: Cnf, back: bool
) -> None:
    cnf.instantiate(cm=config_map(setting="old"), w=workload("Deployment", container=ENV))
    before, cancel = cnf.get("ConfigMap", "cm"), CancelToken()

    def stop(event: Event) -> None:
        if isinstance(event, StepResult) and event.step.key.kind == "ConfigMap":
            cancel.request("by the test", keep_journal=True)

    new = cnf.request({"cm": NEW, "w": workload("Deployment", container=ENV)})
    with pytest.raises(UpdateInterruptedError):
        update(new, cnf.cluster, cnf.options, cancel=cancel, progress=stop)
    assert (cnf.rollback() if back else cnf.resume()) is not None
    after = cnf.get("ConfigMap", "cm")
    assert after["data"] == {"setting": "old" if back else "new"}
    assert after.get("immutable", False) is not back
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


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
