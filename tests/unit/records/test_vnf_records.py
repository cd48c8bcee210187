# SPDX-License-Identifier: Apache-2.0
"""Which attributes of an instance change with its package, and which stay."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from container_update.model.objects import Manifest, ObjectKey
from container_update.model.outcome import Vnfc
from container_update.records.vnf_records import Records, workloads_of


def vnfc(pod: str, vdu: str = "VDU1") -> Vnfc:
    """A live pod."""
    return Vnfc(vdu, pod, "default", "Deployment", "web", {"app": "web"})


def entry(number: int, pod: str, vdu: str = "VDU1") -> dict[str, Any]:
    """A vnfcResourceInfo."""
    return {
        "id": f"id-{number}",
        "vduId": vdu,
        "computeResource": {"resourceId": pod, "vimLevelResourceType": "Deployment"},
        "metadata": {"kept": "yes"},
    }


INSTANCE = {
    "id": "instance",
    "vnfdId": "old",
    "metadata": {"lcm-kubernetes-def-files": ["a.yaml"]},
    "instantiatedVnfInfo": {
        "vnfcResourceInfo": [entry(1, "old-1"), entry(2, "old-2"), entry(3, "stays", "VDU2")],
        "vnfVirtualLinkResourceInfo": [{"id": "vl", "networkResource": {"resourceId": "svc-a"}}],
        "virtualStorageResourceInfo": [{"id": "st", "storageResource": {"resourceId": "pvc-a"}}],
    },
}
LIVE = (vnfc("new-1"), vnfc("new-2"), vnfc("stays", "VDU2"))


def resources(instance: dict[str, Any]) -> list[dict[str, Any]]:
    """The vnfcResourceInfo of an instance."""
    found: list[dict[str, Any]] = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return found


def test_blue_green_keeps_ids_and_changes_resource_ids() -> None:
    after = Records("new", LIVE).apply_to(INSTANCE)
    assert after["vnfdId"] == "new"
    assert [(r["id"], r["computeResource"]["resourceId"]) for r in resources(after)] == [
        ("id-1", "new-1"),
        ("id-2", "new-2"),
        ("id-3", "stays"),
    ]
    assert all(r["metadata"] == {"kept": "yes"} for r in resources(after))


def test_a_rolling_update_gives_new_ids_and_metadata_to_what_was_replaced() -> None:
    after = resources(Records("new", LIVE, new_vnfc_ids=True).apply_to(INSTANCE))
    assert {r["id"] for r in after} & {"id-1", "id-2", "id-3"} == {"id-3"}
    assert len({r["id"] for r in after}) == 3
    assert after[0]["metadata"] == {
        "kept": "yes",
        "name": "new-1",
        "namespace": "default",
        "labels": {"app": "web"},
    }
    assert after[2] == entry(3, "stays", "VDU2")


def test_a_rolling_update_renews_a_vnfc_that_restarted_under_its_name() -> None:
    records = Records("new", LIVE, new_vnfc_ids=True, restarted=frozenset({"stays"}))
    stays = resources(records.apply_to(INSTANCE))[2]
    assert stays["id"] != "id-3"
    assert stays["metadata"]["name"] == stays["computeResource"]["resourceId"] == "stays"
    kept = resources(replace(records, new_vnfc_ids=False).apply_to(INSTANCE))[2]
    assert (kept["id"], kept["metadata"]) == ("id-3", {"kept": "yes"})


def test_there_are_as_many_records_as_live_instances() -> None:
    fewer = Records("new", (vnfc("new-1"),)).apply_to(INSTANCE)
    more = Records("new", (*LIVE, vnfc("new-3"))).apply_to(INSTANCE)
    assert [r["id"] for r in resources(fewer)] == ["id-1"]
    assert len(resources(more)) == 4
    assert resources(more)[3]["computeResource"] == {
        "resourceId": "new-3",
        "vimLevelResourceType": "Deployment",
    }


def test_links_storages_and_the_instance_s_own_resource_keep_their_entries_when_replaced() -> None:
    records = Records(
        "new",
        tuple(replace(pod, storages={"data": "pvc-b"}) for pod in LIVE[:2]),
        network_resources={"svc-a": "svc-b"},
        storage_resources={"pvc-a": "pvc-b", "other": "x"},
        links=(("web", "svc-b"), ("admin", "svc-c")),
        instance_ref="stack-2",
    )
    after = records.apply_to(INSTANCE)
    info = after["instantiatedVnfInfo"]
    web, admin = info["vnfVirtualLinkResourceInfo"]
    assert (web["id"], web["networkResource"]) == ("vl", {"resourceId": "svc-b"})
    assert admin["vnfVirtualLinkDescId"] == "admin"
    assert admin["networkResource"] == {"resourceId": "svc-c", "vimLevelResourceType": "Service"}
    (storage,) = info["virtualStorageResourceInfo"]
    assert (storage["id"], storage["storageResource"]) == ("st", {"resourceId": "pvc-b"})
    assert [entry["storageResourceIds"] for entry in resources(after)] == [["st"], ["st"]]
    assert info["instance_id"] == "stack-2"


def test_an_update_begins_no_list_that_the_vnfm_does_not_keep() -> None:
    before = copy.deepcopy(INSTANCE)
    for name in ("vnfVirtualLinkResourceInfo", "virtualStorageResourceInfo"):
        del before["instantiatedVnfInfo"][name]  # type: ignore[attr-defined]
    pods = tuple(replace(pod, storages={"data": "pvc-b"}) for pod in LIVE)
    after = Records(vnfcs=pods, named_by_pods=True).apply_to(before)
    assert after["instantiatedVnfInfo"].keys() == {"vnfcResourceInfo", "vnfcInfo"}
    assert all("storageResourceIds" not in entry for entry in resources(after))


def test_the_def_files_change_only_where_the_request_names_some() -> None:
    same, other = Records("new").apply_to(INSTANCE), Records("new", def_files=("b",))
    assert same["metadata"] == INSTANCE["metadata"]
    assert other.apply_to(INSTANCE)["metadata"] == {"lcm-kubernetes-def-files": ["b"]}
    in_info = {"instantiatedVnfInfo": {"metadata": {"lcm-kubernetes-def-files": ["a"], "x": "y"}}}
    assert other.apply_to(in_info)["instantiatedVnfInfo"]["metadata"] == {
        "lcm-kubernetes-def-files": ["b"],
        "x": "y",
    }


def test_the_instance_that_is_given_stays_as_it_is() -> None:
    before = repr(INSTANCE)
    Records("new", LIVE, new_vnfc_ids=True, def_files=("b",)).apply_to(INSTANCE)
    assert repr(INSTANCE) == before


def test_where_pods_name_vnfcs_another_pod_is_another_vnfc_and_one_that_stays_keeps_its_id() -> (
    None
):
    records = Records(vnfcs=LIVE, named_by_pods=True, restarted=frozenset({"stays"}))
    after = records.apply_to(INSTANCE)
    assert [r["id"] for r in resources(after)] == ["new-1", "new-2", "id-3"]
    assert [r["metadata"] for r in resources(after)] == [{}, {}, {"kept": "yes"}]
    assert after["vnfdId"] == "old"


def test_each_vnfc_has_a_vnfc_info_and_one_that_stays_keeps_what_else_was_said_of_it() -> None:
    before = copy.deepcopy(INSTANCE)
    before["instantiatedVnfInfo"]["vnfcInfo"] = [
        {"id": "VDU2-id-3", "vnfcResourceInfoId": "id-3", "vnfcConfigurableProperties": {"a": "b"}},
        {"id": "VDU1-gone", "vnfcResourceInfoId": "gone"},
    ]
    after = Records("new", LIVE).apply_to(before)["instantiatedVnfInfo"]["vnfcInfo"]
    assert [entry["id"] for entry in after] == ["VDU1-id-1", "VDU1-id-2", "VDU2-id-3"]
    assert [entry.get("vnfcConfigurableProperties") for entry in after] == [None, None, {"a": "b"}]
    assert {entry["vnfcState"] for entry in after} == {"STARTED"}


def test_recorded_workloads_are_those_of_the_new_package_where_any_were_recorded() -> None:
    records = Records("new", workloads={"VDU1": {"kind": "Deployment"}})
    before = {"instantiatedVnfInfo": {"metadata": {"vdu_reses": {"VDU9": {}}, "x": "y"}}}
    after = records.apply_to(before)["instantiatedVnfInfo"]["metadata"]
    assert after == {"vdu_reses": {"VDU1": {"kind": "Deployment"}}, "x": "y"}
    assert "metadata" not in records.apply_to(INSTANCE)["instantiatedVnfInfo"]


def test_a_recorded_workload_has_the_name_that_it_has_in_the_cluster() -> None:
    body = {"kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}}}
    manifest = Manifest(ObjectKey("apps", "Deployment", "default", "web-7f9c1"), body, "web.yaml")
    expected = {"kind": "Deployment", "metadata": {"name": "web-7f9c1", "labels": {"app": "web"}}}
    assert workloads_of({"VDU1": "web", "VDU2": "other"}, [manifest]) == {"VDU1": expected}
    assert body["metadata"] == {"name": "web", "labels": {"app": "web"}}
