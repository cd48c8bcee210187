# SPDX-License-Identifier: Apache-2.0
"""The v2 script's way back from a modification, whatever Tacker knows of how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from container_update import freeze
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional import tacker_host
from tests.functional.tacker_host import FRONT, Json, Tacker
from tests.internals.core import SECRET_TYPE, Collection, JournalledRun, ObjectKey, v2_process
from tests.vnfm import vnfs

START, END = "modify_information_rollback_start", "modify_information_rollback_end"
SETTINGS = ObjectKey("", "ConfigMap", "default", "settings")
ADDED = ObjectKey("", "ConfigMap", "default", "added")
BY_HAND = {"level": "1.0", "colour": "chosen by hand"}
NEW_FILE = "Files/kubernetes/added.yaml"
NEW_OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: added}\ndata: {a: b}\n"


@pytest.fixture
def tacker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tacker]:
    monkeypatch.setattr(v2_process, "_start_log", lambda: None)
    configured(tmp_path, monkeypatch)
    with EmbeddedCluster() as embedded, tacker_host.running(embedded, tmp_path) as tacker:
        tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"].pop()
        files = {**tacker_host.manifests("2.0"), NEW_FILE: NEW_OBJECT}
        tacker.packages["2.0"], tacker.vnfd_ids["2.0"] = tacker_host.unpacked(
            tmp_path / "with-new", "2.0", files
        )
        live = tacker.cluster.get(SETTINGS)
        assert live is not None
        tacker.cluster.replace({**live, "data": BY_HAND})
        yield tacker


def configured(folder: Path, monkeypatch: pytest.MonkeyPatch, *settings: str) -> None:
    """Set options as an operator does."""
    options = folder / "options.conf"
    lines = ("[container_update]", "lease_seconds = 3", "grace_period = 1", *settings)
    options.write_text("\n".join(lines))
    monkeypatch.setenv("CONTAINER_UPDATE_CONFIG", str(options))


def request_of(tacker: Tacker, **metadata: Any) -> Json:
    listed = {"configmap_secret_paths": [vnfs.DEF_FILES[0], NEW_FILE]}
    return {"vnfdId": tacker.vnfd_ids["2.0"], "metadata": metadata or listed}


def modify(tacker: Tacker, request: Json) -> str:
    new = str(tacker.packages["2.0"])
    return tacker.run("modify_information_end", request, "1.0", new_csar_dir=new)


def image(tacker: Tacker) -> str:
    live = tacker.cluster.get(FRONT)
    assert live is not None
    return str(live["spec"]["template"]["spec"]["containers"][0]["image"])


def state_of(tacker: Tacker) -> tuple[str, Any, bool]:
    """Return the image, the configuration, and whether there is what only the new package has."""
    settings = tacker.cluster.get(SETTINGS)
    assert settings is not None
    return image(tacker), settings["data"], tacker.cluster.get(ADDED) is not None


OLD = (vnfs.IMAGES[0], BY_HAND, False)
NEW = (vnfs.IMAGES[1], {**BY_HAND, "level": "2.0"}, True)


def unrecorded(tacker: Tacker, request: Json) -> None:
    """Modify the instance; Tacker fails to record it."""
    before = tacker.instance
    assert modify(tacker, request) == ""
    tacker.instance = before


@pytest.mark.parametrize("is_known", [True, False], ids=["remembered", "the answer was lost"])
def test_a_modification_that_was_not_recorded_is_undone_wholly(
    is_known: bool, tacker: Tacker
) -> None:
    request = request_of(tacker)
    unrecorded(tacker, request)
    assert state_of(tacker) == NEW
    if not is_known:
        tacker.kept.clear()

    for event in (START, END):
        assert tacker.run(event, request, "1.0") == ""

    assert state_of(tacker) == OLD
    assert tacker.recorded() == tacker.pods()
    workload = tacker.instance["instantiatedVnfInfo"]["metadata"]["vdu_reses"]["VDU1"]
    assert workload["spec"]["template"]["spec"]["containers"][0]["image"] == vnfs.IMAGES[0]


def test_a_way_back_that_fails_can_be_tried_again(tacker: Tacker) -> None:
    request = request_of(tacker)
    unrecorded(tacker, request)
    live = tacker.cluster.get(FRONT)
    assert live is not None
    tacker.cluster.replace({**live, "spec": {**live["spec"], "paused": True}})
    assert "is paused" in tacker.run(START, request, "1.0")
    live = tacker.cluster.get(FRONT)
    assert live is not None
    tacker.cluster.replace({**live, "spec": {**live["spec"], "paused": False}})

    assert tacker.run(START, request, "1.0") == ""

    assert state_of(tacker) == OLD


def test_a_rollback_leaves_alone_what_an_earlier_modification_did(tacker: Tacker) -> None:
    request = request_of(tacker)
    assert modify(tacker, request) == ""
    tacker.kept.clear()
    again = {**request, "metadata": {"configmap_secret_paths": ["Files/none.yaml"]}}
    new = str(tacker.packages["2.0"])
    assert "Files/none.yaml" in tacker.run("modify_information_end", again, "2.0", new_csar_dir=new)

    assert tacker.run(START, again, "2.0") == ""

    assert state_of(tacker) == NEW


REFUSED = {
    "a change": ({"upgrade_type": "RollingUpdate"}, (), "this program did not install it"),
    "no history": ({}, ("history = 0",), "the option history is 0"),
    "deleted": ({}, (), "no revision of it is there"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("is_known", [True, False], ids=["remembered", "the answer was lost"])
def test_what_cannot_be_undone_is_named_and_can_be_finished(
    case: str, is_known: bool, tacker: Tacker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata, settings, why = REFUSED[case]
    configured(tmp_path, monkeypatch, *settings)
    request = request_of(tacker, **metadata)
    unrecorded(tacker, request)
    if case == "deleted":
        for body in revisions(tacker):
            tacker.cluster.delete(ObjectKey.of(body))
    if not is_known:
        tacker.kept.clear()
    before = image(tacker)

    reason = tacker.run(START, request, "1.0")

    if case == "deleted" and not is_known:
        assert reason == "", "nothing says that anything was done"
        return
    assert why in reason
    assert "It can only be finished: openstack vnflcm op retry" in reason
    assert image(tacker) == before
    assert modify(tacker, request) == ""
    assert tacker.recorded() == tacker.pods()


def revisions(tacker: Tacker) -> list[Json]:
    collection = Collection("", "Secret", "default", fields=f"type={SECRET_TYPE}")
    return list(tacker.cluster.list(collection).items)


def test_only_what_a_rollback_of_the_last_operation_needs_is_kept_and_ends_with_the_vnf(
    tacker: Tacker,
) -> None:
    there, back = ({"vnfdId": tacker.vnfd_ids[version]} for version in ("2.0", "1.0"))
    assert modify(tacker, there) == ""
    old = str(tacker.packages["1.0"])
    assert tacker.run("modify_information_end", back, "2.0", new_csar_dir=old) == ""
    assert modify(tacker, there) == ""
    numbers = [body["metadata"]["name"].rpartition(".")[2] for body in revisions(tacker)]
    assert numbers == ["v2", "v3"], "after the first one"

    assert tacker.run("terminate_start", {"terminationType": "FORCEFUL"}, "2.0") == ""

    assert revisions(tacker) == []


def test_a_history_that_was_written_by_a_run_that_was_then_killed_is_no_second_way_back(
    tacker: Tacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal is there too, by which it is undone."""

    def killed(self: JournalledRun, *_: object, **__: object) -> None:
        raise KeyError("killed")

    request = request_of(tacker)
    with monkeypatch.context() as patch:
        patch.setattr("container_update.cluster.journal.Journal.remove", killed)
        assert "KeyError" in modify(tacker, request)
    tacker.kept.clear()

    assert tacker.run(START, request, "1.0") == ""

    assert state_of(tacker) == OLD
    assert tacker.recorded() == tacker.pods()


def test_a_frozen_instance_is_neither_modified_nor_changed_by_the_script(tacker: Tacker) -> None:
    where = {"namespace": "default", "instance_id": tacker.instance["id"]}
    frozen = freeze(tacker.cluster, **where, why="the night of the final")
    before, pods = state_of(tacker), tacker.pods()
    for refusal in (modify(tacker, request_of(tacker)), tacker.start()):
        for part in (
            frozen.who,
            f"{frozen.since[:10]} {frozen.since[11:19]} UTC",
            frozen.why,
            "unfreeze",
        ):
            assert part in refusal
    assert (state_of(tacker), tacker.pods()) == (before, pods)
