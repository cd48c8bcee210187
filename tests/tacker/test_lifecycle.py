# SPDX-License-Identifier: Apache-2.0
"""Beside the guides' procedures: failures, heal, changes of the package, a killed conductor.

All of it through a real server and conductor, whose database and processes go on from one operation
to the next. The guides themselves: ``test_user_guides.py``.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import bundle, write_metadata
from tests.tacker.conftest import (
    AnyCluster,
    Build,
    Kubectl,
    guide_request,
    instantiated,
    onboarded,
)
from tests.tacker.operator import HELD, Operator, until
from tests.tacker.services import Tacker

DEPLOYMENT = "Files/kubernetes/deployment.yaml"
SCRIPT = "Scripts/coordinate.py"
PASSWORD = "sesame-open"
OLD_TEXT = {"cmKey1.txt": "configmap data\nfoo\nbar"}
NEW_TEXT = {"cmKey1.txt": "configmap2 data2\nfoo2\nbar2"}
Edit = Callable[[Path], None]
Edited = Callable[[Mapping[str, tuple[str, Edit]]], Build]


@pytest.fixture(params=["v1", "v2"])
def operator(request: pytest.FixtureRequest, tacker: Tacker) -> Operator:
    return Operator(tacker, request.param)


@pytest.fixture
def edited(build: Build, tmp_path: Path) -> Edited:
    """Returns a function that builds the guide's packages, some of them edited.

    It takes, by a name of the package, the guide's package that it is made from, and the edit of
    its folder.
    """

    def with_edits(edits: Mapping[str, tuple[str, Edit]]) -> Build:
        def build_all(api: str, vnfd_ids: Mapping[str, str]) -> Mapping[str, Path]:
            return {name: one(api, name, vnfd_id) for name, vnfd_id in vnfd_ids.items()}

        def one(api: str, name: str, vnfd_id: str) -> Path:
            side, edit = edits.get(name, (name, None))
            package = build(api, {side: vnfd_id})[side]
            if edit is None:
                return package
            folder = tmp_path / name
            with zipfile.ZipFile(package) as archive:
                archive.extractall(folder)
            edit(folder)
            write_metadata(folder)
            return Path(shutil.make_archive(str(folder), "zip", folder))

        return build_all

    return with_edits


def replaced(file: str, old: str, new: str) -> Edit:
    """Return the edit that replaces the first text by another one in a file of a package."""

    def edit(folder: Path) -> None:
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new, 1))

    return edit


BROKEN = ("after", replaced(DEPLOYMENT, "image: cirros", "image: missing"))
ENV = "        env:\n"
COLOURED = ("after", replaced(DEPLOYMENT, ENV, f"{ENV}        - {{name: COLOUR, value: blue}}\n"))
"""What an update leaves out."""


def modification(api: str, vnfd_id: str, **metadata: Any) -> dict[str, Any]:
    request = {**guide_request(api, "sample_param_file.json"), "vnfdId": vnfd_id}
    return {**request, "metadata": metadata} if metadata else request


def assert_updated(operator: Operator, instance_id: str, vnfd_id: str, kubectl: Kubectl) -> None:
    """The new package runs, and the records say so."""
    instance = operator.show(instance_id)
    assert instance["vnfdId"] == vnfd_id
    assert recorded(instance) == sorted(kubectl.pods())
    assert first_deployment(kubectl)["image"] == "cirros"
    assert kubectl.data("ConfigMap", "cm-data") == NEW_TEXT
    if operator.api == "v2":
        assert_follows(instance)


def assert_follows(instance: dict[str, Any]) -> None:
    """The v2 records have every VDU's workload with its image, and the paths of what moved."""
    metadata = instance["instantiatedVnfInfo"]["metadata"]
    assert metadata["vdu_reses"].keys() == {f"VDU{number}" for number in range(1, 9)}
    first = metadata["vdu_reses"]["VDU1"]["spec"]["template"]["spec"]["containers"][0]
    assert first["image"] == "cirros"
    before = guide_request("v2", "instance_kubernetes.json")["additionalParams"]
    files = {path.replace("_1.", "_2.") for path in before["lcm-kubernetes-def-files"]}
    assert set(metadata["lcm-kubernetes-def-files"]) == files


def assert_removed(operator: Operator, instance_id: str, kubectl: Kubectl) -> None:
    """A termination completes and leaves nothing, whatever was done before."""
    occurrence = operator.terminate(instance_id)
    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert kubectl.pods() == {}
    for kind, group in (("Deployment", "apps"), ("ReplicaSet", "apps"), ("Secret", "")):
        assert kubectl.names(kind, group) == set()
    assert all(name.endswith("-ca.crt") for name in kubectl.names("ConfigMap"))


def recorded(instance: dict[str, Any]) -> list[str]:
    entries = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return sorted(entry["computeResource"]["resourceId"] for entry in entries)


def first_deployment(kubectl: Kubectl) -> dict[str, Any]:
    """Return the container of the only pod of the guide's first Deployment."""
    ((_, pod),) = pods_of_first(kubectl).items()
    return dict(pod["spec"]["containers"][0])


def pods_of_first(kubectl: Kubectl) -> dict[str, Any]:
    names = ("deployment1-", "vdu1-update-")
    return {name: pod for name, pod in kubectl.pods().items() if name.startswith(names)}


def colour(kubectl: Kubectl) -> str | None:
    values = [env["value"] for env in first_deployment(kubectl)["env"] if env["name"] == "COLOUR"]
    return values[0] if values else None


# --- failures -----------------------------------------------------------------------------------


def test_after_a_failed_update_the_next_one_completes_and_a_termination_too(
    operator: Operator, cluster: EmbeddedCluster, kubectl: Kubectl, edited: Edited
) -> None:
    """In v1 Tacker leaves a transaction open after a failure, in which it has written the VNF's
    row; in a process of their own the operations after it would not wait for that."""
    build = edited({"broken": BROKEN})
    old, broken, new = onboarded(operator, build, "before", "broken", "after")
    instance_id = instantiated(operator, cluster, old)

    failed = operator.modify(instance_id, modification(operator.api, broken))

    assert failed["operationState"] == "FAILED_TEMP"
    assert "ImagePullBackOff" in json.dumps(failed["error"])
    assert first_deployment(kubectl)["image"] == "nginx"
    assert kubectl.data("ConfigMap", "cm-data") == OLD_TEXT
    if operator.api == "v2":
        assert operator.rollback(failed)["operationState"] == "ROLLED_BACK"

    occurrence = operator.modify(instance_id, modification(operator.api, new))

    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert_updated(operator, instance_id, new, kubectl)
    assert_removed(operator, instance_id, kubectl)


ENDS = {"retry": "FAILED_TEMP", "rollback": "ROLLED_BACK", "fail": "FAILED"}
"""What SOL003 calls the state after each request that goes on from FAILED_TEMP; the cause of the
failure is still there."""


@pytest.mark.parametrize("way", ["rollback", "fail"])
def test_a_failed_modification_that_is_retried_and_given_up_leaves_what_ran_before(
    way: str, tacker: Tacker, cluster: AnyCluster, kubectl: Kubectl, edited: Edited
) -> None:
    operator = Operator(tacker, "v2")
    build = edited({"broken": BROKEN})
    old, broken, new = onboarded(operator, build, "before", "broken", "after")
    instance_id = instantiated(operator, cluster, old)
    failed = operator.modify(instance_id, modification("v2", broken))
    assert_reason(failed)

    for request in ("retry", way):
        ended = operator.go_on(failed, request)

        assert ended["operationState"] == ENDS[request]
        assert_reason(ended)
        instance = operator.show(instance_id)
        assert instance["vnfdId"] == old
        assert first_deployment(kubectl)["image"] == "nginx"
        assert kubectl.data("ConfigMap", "cm-data") == OLD_TEXT
    if way == "rollback":
        assert_pods_are_recorded(operator, instance_id, kubectl)
    occurrence = operator.modify(instance_id, modification("v2", new))
    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert_updated(operator, instance_id, new, kubectl)
    assert_removed(operator, instance_id, kubectl)


def assert_reason(occurrence: dict[str, Any]) -> None:
    """Tacker's message is ours: the object, its pod and the reason, without escapes."""
    detail = occurrence["error"]["detail"]
    assert re.search(
        r"Deployment default/vdu1-update .* pod vdu1-update-\S+.*ImagePullBackOff", detail
    )
    assert "\\" not in detail


def assert_pods_are_recorded(operator: Operator, instance_id: str, kubectl: Kubectl) -> None:
    """Tacker stores no instance after a failure or a rollback of a modification, but at its next
    synchronisation, which leaves out an instance whose last operation is FAILED_TEMP or FAILED."""
    until(
        lambda: (recorded(operator.show(instance_id)), sorted(kubectl.pods())),
        lambda both: both[0] == both[1],
        "the records are those of the pods",
    )


@pytest.mark.parametrize("way", ["rollback", "fail"])
def test_tackers_own_change_that_failed_and_was_given_up_can_be_put_right(
    way: str, tacker: Tacker, cluster: AnyCluster, kubectl: Kubectl, edited: Edited
) -> None:
    """Tacker waits for the pods itself, until its own time limit."""
    operator = Operator(tacker, "v2")
    build = edited({"broken": BROKEN})
    old, broken, new = onboarded(operator, build, "before", "broken", "after")
    instance_id = instantiated(operator, cluster, old)
    failed = operator.operate(instance_id, "change_vnfpkg", rolling(broken))
    assert "did not complete within the timeout period" in failed["error"]["detail"]

    for request in ("retry", way):
        ended = operator.go_on(failed, request)

        assert ended["operationState"] == ENDS[request]
        instance = operator.show(instance_id)
        assert instance["vnfdId"] == old
    if way == "rollback":
        assert first_deployment(kubectl)["image"] == "nginx"
        assert_pods_are_recorded(operator, instance_id, kubectl)
    occurrence = operator.modify(instance_id, modification("v2", new))
    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert_updated(operator, instance_id, new, kubectl)
    assert_removed(operator, instance_id, kubectl)


def test_what_a_killed_conductor_left_is_put_right_by_the_next_requests(
    operator: Operator, cluster: EmbeddedCluster, kubectl: Kubectl, edited: Edited
) -> None:
    build = edited({"broken": BROKEN})
    old, broken, new = onboarded(operator, build, "before", "broken", "after")
    instance_id = instantiated(operator, cluster, old)
    earlier = operator.begin_modify(instance_id, modification(operator.api, broken))
    until(lambda: pods_of_first(kubectl), lambda pods: len(pods) > 1, "a pod with the new image")

    operator.tacker.restart_conductor()

    if operator.api == "v2":
        failed = operator.settled(instance_id, "MODIFY_INFO", besides=earlier)
        assert operator.rollback(failed)["operationState"] == "ROLLED_BACK"
        assert kubectl.data("ConfigMap", "cm-data") == OLD_TEXT

    occurrence = until(
        lambda: operator.modify(instance_id, modification(operator.api, new)),
        lambda ended: HELD not in json.dumps(ended.get("error")),
        "the lease of the killed one has expired",
    )

    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert_updated(operator, instance_id, new, kubectl)
    assert_removed(operator, instance_id, kubectl)


# --- heal ---------------------------------------------------------------------------------------


def test_a_heal_of_the_entire_vnf_applies_what_an_update_left_out(
    operator: Operator, cluster: EmbeddedCluster, kubectl: Kubectl, edited: Edited
) -> None:
    """Note 4 of both guides."""
    old, new = onboarded(operator, edited({"coloured": COLOURED}), "before", "coloured")
    instance_id = instantiated(operator, cluster, old)
    occurrence = operator.modify(instance_id, modification(operator.api, new))
    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert (first_deployment(kubectl)["image"], colour(kubectl)) == ("cirros", None)
    before = kubectl.pods()

    occurrence = operator.operate(instance_id, "heal", {"cause": "note 4"})

    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert (first_deployment(kubectl)["image"], colour(kubectl)) == ("cirros", "blue")
    assert not set(map(uid, before.values())) & set(map(uid, kubectl.pods().values()))
    assert recorded(operator.show(instance_id)) == sorted(kubectl.pods())

    occurrence = operator.modify(instance_id, modification(operator.api, old, back="again"))

    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert (first_deployment(kubectl)["image"], colour(kubectl)) == ("nginx", "blue")
    assert_removed(operator, instance_id, kubectl)


def test_a_heal_of_one_vnfc_gives_it_a_new_pod_and_leaves_the_others(
    operator: Operator, cluster: EmbeddedCluster, kubectl: Kubectl, edited: Edited
) -> None:
    old, new = onboarded(operator, edited({"coloured": COLOURED}), "before", "coloured")
    instance_id = instantiated(operator, cluster, old)
    occurrence = operator.modify(instance_id, modification(operator.api, new))
    assert occurrence["operationState"] == "COMPLETED", occurrence
    before = kubectl.pods()
    (name,) = pods_of_first(kubectl)

    heal_one(operator, instance_id, name)

    after = kubectl.pods()
    assert before.keys() - after.keys() == {name}
    others = before.keys() & after.keys()
    assert {name: uid(before[name]) for name in others} == {
        name: uid(after[name]) for name in others
    }
    assert colour(kubectl) is None
    assert recorded(operator.show(instance_id)) == sorted(after)


def heal_one(operator: Operator, instance_id: str, pod: str) -> None:
    """Heal the VNFC of a pod."""
    entries = operator.show(instance_id)["instantiatedVnfInfo"]
    ids = {e["computeResource"]["resourceId"]: e["id"] for e in entries["vnfcResourceInfo"]}
    vnfc_ids = {e["vnfcResourceInfoId"]: e["id"] for e in entries.get("vnfcInfo") or ()}
    asked = vnfc_ids.get(ids[pod], ids[pod]) if operator.api == "v2" else ids[pod]
    occurrence = operator.operate(instance_id, "heal", {"vnfcInstanceId": [asked]})
    assert occurrence["operationState"] == "COMPLETED", occurrence


def uid(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


# --- changes of the package ---------------------------------------------------------------------


def with_script(log: Path) -> tuple[str, Edit]:
    """A package with a coordination script, which notes the names of what it is given."""
    code = f"""
import pickle, sys

given = pickle.load(sys.stdin.buffer)
with open({str(log)!r}, "a") as file:
    file.write(" ".join(sorted(map(str, given))) + "\\n")
"""

    def edit(folder: Path) -> None:
        (folder / SCRIPT).parent.mkdir(exist_ok=True)
        (folder / SCRIPT).write_text(code)

    return "after", edit


def blue_green(api: str, vnfd_id: str) -> dict[str, Any]:
    """Return the request; Tacker's v1 API stores texts only."""
    new = {"cp_name": "CP1", "username": "admin", "password": PASSWORD}
    vdus = [{"vdu_id": f"VDU{number}", "new_vnfc_param": new} for number in range(1, 9)]
    return modification(
        api,
        vnfd_id,
        upgrade_type="Blue-Green",
        colour="of the operator's own",
        vdu_params=json.dumps(vdus) if api == "v1" else vdus,
        **{"lcm-operation-coordinate-new-vnf": SCRIPT},
    )


PLACE = {"namespace": "default", "tenant": "default"}
"""What Tacker's v1 API itself keeps in the metadata."""


def test_blue_green_by_a_modify_request_changes_the_whole_package_and_keeps_no_parameter(
    operator: Operator, cluster: EmbeddedCluster, kubectl: Kubectl, edited: Edited, tmp_path: Path
) -> None:
    build = edited({"changed": with_script(tmp_path / "log")})
    old, new = onboarded(operator, build, "before", "changed")
    instance_id = instantiated(operator, cluster, old)
    before = set(kubectl.pods())

    wrong = {**blue_green(operator.api, new)}
    wrong["metadata"] = {**wrong["metadata"], "vdu_params": '[{"vdu_id": "VDU99"}]'}
    failed = operator.modify(instance_id, wrong)
    assert "VDU99" in json.dumps(failed["error"])
    if operator.api == "v2":
        assert operator.rollback(failed)["operationState"] == "ROLLED_BACK"
    occurrence = operator.modify(instance_id, blue_green(operator.api, new))

    assert occurrence["operationState"] == "COMPLETED", occurrence
    instance = operator.show(instance_id)
    assert PASSWORD not in json.dumps(instance)
    kept = {} if operator.api == "v2" else PLACE
    assert instance["metadata"] == {**kept, "colour": "of the operator's own"}
    assert recorded(instance) == sorted(kubectl.pods())
    assert kubectl.data("ConfigMap", "cm-data") == NEW_TEXT
    assert (tmp_path / "log").read_text().strip(), "the coordination script ran"
    pod = next(name for name in kubectl.pods() if name not in before)
    heal_one(operator, instance_id, pod)
    assert recorded(operator.show(instance_id)) == sorted(kubectl.pods())
    assert pod not in kubectl.pods(), "Tacker finds the Deployment of the pod"
    assert_removed(operator, instance_id, kubectl)


def rolling(vnfd_id: str) -> dict[str, Any]:
    params = {
        "upgrade_type": "RollingUpdate",
        "lcm-kubernetes-def-files": [DEPLOYMENT],
        "vdu_params": [{"vdu_id": "VDU1"}],
    }
    return {"vnfdId": vnfd_id, "additionalParams": params}


def test_after_tackers_own_rolling_update_nothing_is_forgotten_and_nothing_is_left(
    tacker: Tacker, cluster: EmbeddedCluster, kubectl: Kubectl, build: Build
) -> None:
    """Tacker 16 makes the records anew of the request's files; our script completes them."""
    operator = Operator(tacker, "v2")
    old, new = onboarded(operator, build)
    instance_id = instantiated(operator, cluster, old)
    request = rolling(new)
    request["additionalParams"]["vdu_param"] = []
    wrong = operator.operate(instance_id, "change_vnfpkg", request)
    assert "did you mean vdu_params?" in json.dumps(wrong["error"])
    assert operator.rollback(wrong)["operationState"] == "ROLLED_BACK"

    occurrence = operator.operate(instance_id, "change_vnfpkg", rolling(new))

    assert occurrence["operationState"] == "COMPLETED", occurrence
    instance = operator.show(instance_id)
    assert recorded(instance) == sorted(kubectl.pods())
    assert first_deployment(kubectl)["image"] == "cirros"
    assert_follows(instance)
    assert_removed(operator, instance_id, kubectl)
    assert_removed(operator, instantiated(operator, cluster, old), kubectl)


def bundled(folder: Path) -> None:
    bundle(folder / "Scripts" / "container_update_mgmt_v2.py")


def test_a_bundle_has_the_upgrade_types(
    tacker: Tacker, cluster: EmbeddedCluster, kubectl: Kubectl, edited: Edited, tmp_path: Path
) -> None:
    operator, script = Operator(tacker, "v2"), with_script(tmp_path / "log")[1]

    def bundled_with_script(folder: Path) -> None:
        bundled(folder)
        script(folder)

    build = edited({"old": ("before", bundled), "new": ("after", bundled_with_script)})
    old, new = onboarded(operator, build, "old", "new")
    instance_id = instantiated(operator, cluster, old)
    occurrence = operator.operate(instance_id, "change_vnfpkg", rolling(new))
    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert_removed(operator, instance_id, kubectl)

    instance_id = instantiated(operator, cluster, old)
    occurrence = operator.modify(instance_id, blue_green("v2", new))

    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert (tmp_path / "log").read_text().strip(), "the coordination script ran"
    assert recorded(operator.show(instance_id)) == sorted(kubectl.pods())
    assert_removed(operator, instance_id, kubectl)
