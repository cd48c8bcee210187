# SPDX-License-Identifier: Apache-2.0
"""The v2 script around operations that Tacker does with its own code, in the embedded cluster."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import CancelToken
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional import tacker_host
from tests.functional.conftest import until
from tests.functional.tacker_host import FRONT, Json, Tacker, manifests, unpacked
from tests.internals.core import (
    Collection,
    LeaseLock,
    ObjectKey,
    RetryingCluster,
    instance_of,
    live_objects,
    new_object,
    tacker_v2,
    v2_process,
    with_recorded_digest,
)
from tests.vnfm import vnfs

HIDDEN = "sesame-open"


DEADLY = "Scripts/deadly.py"
KILLS_THE_DRIVER = """\
import os
from pathlib import Path

supervisor = os.getppid()
driver = Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1]
os.kill(int(driver), 9)
"""
"""A coordination script that kills the driver, as if the conductor's host had ended."""


@pytest.fixture
def embedded() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


@pytest.fixture
def tacker(
    embedded: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tacker]:
    monkeypatch.setattr(v2_process, "_start_log", lambda: None)
    options = tmp_path / "options.conf"
    options.write_text("[container_update]\nlease_seconds = 3\ngrace_period = 1\n")
    monkeypatch.setenv("CONTAINER_UPDATE_CONFIG", str(options))
    with tacker_host.running(embedded, tmp_path, {DEADLY: KILLS_THE_DRIVER}) as tacker:
        yield tacker


def make_anew(tacker: Tacker) -> None:
    """Make the records as Tacker does at its RollingUpdate: of the request's files alone."""
    made_anew = {
        "flavourId": "simple",
        "metadata": {
            "namespace": "default",
            "lcm-kubernetes-def-files": ["Files/kubernetes/front.yaml"],
            "vdu_reses": {},
        },
        "vnfcResourceInfo": [],
    }
    tacker.instance = {**tacker.instance, "instantiatedVnfInfo": made_anew}


def test_what_tacker_leaves_out_of_the_records_comes_back(tacker: Tacker) -> None:
    assert tacker.start() == ""
    make_anew(tacker)

    assert tacker.run("change_current_package_end", tacker.rolling(), "2.0") == ""

    info = tacker.instance["instantiatedVnfInfo"]
    assert tacker.recorded() == tacker.pods()
    assert info["extCpInfo"] == [{"id": "cp"}]
    assert info["metadata"]["vdu_reses"].keys() == {"VDU1"}
    files = info["metadata"]["lcm-kubernetes-def-files"]
    assert files == vnfs.DEF_FILES, "Tacker terminates by the new package, which has no other"


OTHERS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: others, namespace: default}\n"


def test_an_object_whose_file_moved_is_not_lost_for_tackers_termination(
    tacker: Tacker, tmp_path: Path
) -> None:
    """Tacker terminates by the new package: what another file there describes must be in the list,
    and what is not this VNF's must not."""
    moved, front = "Files/kubernetes/other/settings_2.yaml", "Files/kubernetes/front.yaml"
    files = {
        **manifests("2.0"),
        "Files/kubernetes/other/others.yaml": OTHERS,
        "Files/kubernetes/other/unknown.yaml": OTHERS.replace("v1", "unknown.example/v1"),
    }
    files[moved] = files.pop(vnfs.DEF_FILES[0])
    tacker.packages["2.0"], tacker.vnfd_ids["2.0"] = unpacked(tmp_path / "moved", "2.0", files)
    tacker.cluster.create(yaml.safe_load(OTHERS))
    assert tacker.start() == ""
    make_anew(tacker)
    assert tacker.run("change_current_package_end", tacker.rolling(), "2.0") == ""
    listed = tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"]
    assert listed == [front, moved]


WITH_FOLDER = "- workingDir: /srv\n        name: web"


@pytest.mark.parametrize("events", [("heal_end",), ("heal_start",), ("heal_start", "heal_end")])
def test_a_heal_of_the_whole_vnf_brings_all_of_its_package_into_effect(
    events: tuple[str, ...], tacker: Tacker, tmp_path: Path
) -> None:
    files = {
        path: text.replace("- name: web", WITH_FOLDER) for path, text in manifests("1.0").items()
    }
    tacker.packages["1.0"], _ = unpacked(tmp_path / "left-out", "1.0", files)
    tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"].pop()
    before, request = tacker.pods(), {"cause": "note 4"}
    seen = [before]
    for event in events:
        assert tacker.run(event, request, "1.0", grant_request={"vnfLcmOpOccId": "one"}) == ""
        seen.append(tacker.pods())
    assert not set(before) & set(seen[1])
    assert seen[-1] == seen[1] == tacker.recorded(), "no pod is replaced a second time"
    tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"].pop()
    live = tacker.cluster.get(FRONT)
    assert live is not None
    assert live["spec"]["template"]["spec"]["containers"][0]["workingDir"] == "/srv"
    workload = tacker.instance["instantiatedVnfInfo"]["metadata"]["vdu_reses"]["VDU1"]
    assert workload["metadata"]["namespace"] == "default", "Tacker finds the pods there"
    assert workload["metadata"]["labels"]["tacker_vnf_instance_id"] == tacker.instance["id"]


def test_a_heal_of_single_vnfcs_is_left_to_tacker(tacker: Tacker) -> None:
    before = tacker.pods()
    request = {"vnfcInstanceId": [f"VDU1-{before[0]}"]}
    assert tacker.run("heal_start", request, "1.0") == ""
    assert tacker.run("heal_end", request, "1.0") == ""
    assert tacker.pods() == before


REFUSED: dict[str, tuple[Json, str]] = {
    "a misspelt parameter": ({"vdu_param": []}, "did you mean vdu_params?"),
    "an unknown VDU": ({"vdu_params": [{"vdu_id": "VDU9"}]}, "expected a VDU of the new package"),
    "no such file": ({"lcm-kubernetes-def-files": ["Files/none.yaml"]}, "Files/none.yaml"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_request_is_refused_at_the_start(case: tuple[Json, str], tacker: Tacker) -> None:
    params, message = case
    reason = tacker.start(**params)
    assert message in reason
    assert "end this operation" in reason


def test_a_paused_deployment_is_refused_at_the_start(tacker: Tacker) -> None:
    tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"].pop()
    live = tacker.cluster.get(FRONT)
    assert live is not None
    live["spec"]["paused"] = True
    tacker.cluster.replace(live)
    assert "Deployment default/front: is paused" in tacker.start()


def test_a_vim_that_does_not_answer_is_refused_at_the_start(tacker: Tacker) -> None:
    (vim,) = tacker.instance["vimConnectionInfo"].values()
    vim["interfaceInfo"]["endpoint"] = "https://127.0.0.1:1"
    vim["accessInfo"] = {"bearer_token": HIDDEN}
    reason = tacker.start()
    assert "127.0.0.1:1" in reason
    assert HIDDEN not in reason


def test_an_operation_of_ours_that_runs_is_waited_for(tacker: Tacker) -> None:
    cluster = RetryingCluster(tacker.cluster, 0.0)
    instance_id = tacker.instance["id"]
    lock = LeaseLock(cluster, "default", instance_id, "run", "host", 30, CancelToken())
    with lock:
        assert "Wait until that has ended" in tacker.start()
    assert tacker.start() == ""


def test_after_blue_green_all_of_tackers_operations_find_a_deployment(tacker: Tacker) -> None:
    request = {"vnfdId": tacker.vnfd_ids["2.0"], "metadata": {"upgrade_type": "Blue-Green"}}
    tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"].pop()
    new = str(tacker.packages["2.0"])
    assert tacker.run("modify_information_end", request, "1.0", new_csar_dir=new) == ""
    assert tacker.recorded() == tacker.pods()
    assert tacker.cluster.get(FRONT) is not None
    workload = tacker.instance["instantiatedVnfInfo"]["metadata"]["vdu_reses"]["VDU1"]
    assert workload["metadata"]["name"] == "front", "Tacker finds the pods by it"


def test_a_deployment_under_a_passing_name_is_deleted_at_a_termination(tacker: Tacker) -> None:
    tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"].pop()
    live = tacker.cluster.get(FRONT)
    assert live is not None
    body = with_recorded_digest(new_object(live, "default", {}), "of a change")
    live_objects.rename(body, "front-1a2b3")
    tacker.cluster.delete(FRONT)
    tacker.cluster.create(body)
    until(lambda: len(tacker.pods()) == 2)

    assert tacker.run("terminate_start", {"terminationType": "FORCEFUL"}, "1.0") == ""
    assert tacker.pods() == []
    assert tacker.cluster.list(Collection("apps", "Deployment", "default")).items == ()


def test_a_termination_of_what_has_its_own_names_is_left_to_tacker(tacker: Tacker) -> None:
    """The package that lacks a def-file, and so cannot be read, is no reason not to terminate."""
    before = tacker.pods()
    assert tacker.run("terminate_start", {"terminationType": "FORCEFUL"}, "1.0") == ""
    tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"].pop()
    assert tacker.run("terminate_start", {"terminationType": "FORCEFUL"}, "1.0") == ""
    assert tacker.pods() == before


BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: front}
spec: {minAvailable: 1, selector: {matchLabels: {app: front}}}
"""


def test_what_tacker_leaves_out_is_created_after_and_deleted_before_it(
    tacker: Tacker, tmp_path: Path
) -> None:
    budget = "Files/kubernetes/budget.yaml"
    files = {**manifests("1.0"), budget: BUDGET}
    tacker.packages["1.0"], _ = unpacked(tmp_path / "budget", "1.0", files)
    metadata = tacker.instance["instantiatedVnfInfo"]["metadata"]
    metadata["lcm-kubernetes-def-files"][-1] = budget
    before, key = tacker.pods(), ObjectKey("policy", "PodDisruptionBudget", "default", "front")

    assert tacker.run("instantiate_end", {"flavourId": "simple"}, "1.0") == ""

    live = tacker.cluster.get(key)
    assert live is not None
    assert instance_of(live) == tacker.instance["id"]
    assert tacker.recorded() == tacker.pods() == before

    assert tacker.run("terminate_start", {"terminationType": "FORCEFUL"}, "1.0") == ""

    assert tacker.cluster.get(key) is None
    assert tacker.pods() == []


STORE = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec: {containers: [{name: store, image: "store:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
"""


def test_a_termination_before_tacker_deletes_the_claims_that_tacker_deletes_with_their_set(
    tacker: Tacker, tmp_path: Path
) -> None:
    """Tacker looks for them only while the StatefulSet is there, and waits for their volumes."""
    path = "Files/kubernetes/store.yaml"
    files = {**manifests("1.0"), path: STORE + BUDGET}
    tacker.packages["1.0"], _ = unpacked(tmp_path / "store", "1.0", files)
    metadata = tacker.instance["instantiatedVnfInfo"]["metadata"]
    metadata["lcm-kubernetes-def-files"][-1] = path
    assert tacker.run("instantiate_end", {"flavourId": "simple"}, "1.0") == ""
    claims = Collection("", "PersistentVolumeClaim", "default")
    until(lambda: len(tacker.cluster.list(claims).items) == 1)

    assert tacker.run("terminate_start", {"terminationType": "FORCEFUL"}, "1.0") == ""

    assert tacker.pods() == []
    assert tacker.cluster.list(claims).items == ()


# --- a change by a modify request that was killed -----------------------------------------------


@pytest.fixture
def killed(tacker: Tacker) -> tuple[Tacker, Json]:
    """A change whose process ended between its phases, and its request without what killed it."""
    tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"].pop()
    change = {"upgrade_type": "Blue-Green", "lcm-operation-coordinate-new-vnf": DEADLY}
    script = {
        "operation": "modify_information_end",
        "request": {"vnfdId": tacker.vnfd_ids["2.0"], "metadata": change},
        "vnf_instance": tacker.instance,
        "tmp_csar_dir": str(tacker.packages["1.0"]),
        "new_csar_dir": str(tacker.packages["2.0"]),
    }
    done = subprocess.run(
        [sys.executable, str(tacker_v2.__file__)],
        input=pickle.dumps(script),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-9, b""), done.stderr.decode()
    assert len(tacker.pods()) == 4, "the new pods run beside the old ones"
    return tacker, {"vnfdId": tacker.vnfd_ids["2.0"], "metadata": {"upgrade_type": "Blue-Green"}}


def when_the_lease_has_expired(tacker: Tacker, operation: str, request: Json, **more: Any) -> str:
    """Run the script again until the lease of the killed one does not keep it out any more."""
    reasons: list[str] = []

    def is_let_in() -> bool:
        reasons.append(tacker.run(operation, request, "1.0", **more))
        return "holds this VNF instance" not in reasons[-1]

    until(is_let_in)
    return reasons[-1]


def test_a_rollback_undoes_a_change_that_was_killed_by_its_journal(
    killed: tuple[Tacker, Json],
) -> None:
    tacker, request = killed
    old_pods = [pod for pod in tacker.pods() if re.fullmatch(r"front-[^-]+-[^-]+", pod)]
    assert when_the_lease_has_expired(tacker, "modify_information_rollback_start", request) == ""
    assert tacker.pods() == old_pods == tacker.recorded()
    assert tacker.kept == {"container_update": {"state": "rolled back"}}
    assert tacker.run("modify_information_rollback_end", request, "1.0") == ""


def test_a_retry_finishes_a_change_that_was_killed(killed: tuple[Tacker, Json]) -> None:
    tacker, request = killed
    new = str(tacker.packages["2.0"])
    end = "modify_information_end"
    assert when_the_lease_has_expired(tacker, end, request, new_csar_dir=new) == ""
    assert tacker.cluster.get(FRONT) is not None
    assert len(tacker.pods()) == 2
    assert tacker.recorded() == tacker.pods()
