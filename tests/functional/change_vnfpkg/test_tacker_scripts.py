# SPDX-License-Identifier: Apache-2.0
"""Coordination scripts that are written for Tacker run unchanged, with every strategy."""

from __future__ import annotations

import ipaddress
import json
import uuid
from dataclasses import replace
from typing import Any

from tests.functional.change_vnfpkg.site import INSTANCE, V1, V2, VDUS, Arguments, ContractSite

SCRIPT = """
import json, os, pickle, sys


def main():
    vnfc = pickle.load(sys.stdin.buffer)
    if vnfc["is_rollback"]:
        sys.exit("nothing is rolled back here")
    if os.environ.get("HOME") is None or not vnfc["password"]:
        sys.exit("no login")
    request = vnfc["LcmCoordRequest"]
    print(json.dumps({
        "cp_name": vnfc["cp_name"],
        "username": vnfc["username"],
        "ssh_ip": vnfc["ssh_ip"],
        "request": [request["vnfInstanceId"], request["lcmOperationType"]],
        "operation": request["vnfLcmOpOccId"],
        "action": request["coordinationActionName"],
        "inst": [vnfc["inst"]["id"], vnfc["inst"]["vnfdId"]],
        "vnfc_info_id": vnfc["vnfc_info_id"],
    }))


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
        os._exit(0)
    except Exception as error:
        sys.stderr.write(repr(error))
        sys.stderr.flush()
        os._exit(1)
"""
"""By Tacker's documentation: a pickled dict on standard input, the exit status as the answer."""

SCRIPTS = {
    "lcm-operation-coordinate-new-vnf": "./Scripts/new.py",
    "lcm-operation-coordinate-old-vnf": "./Scripts/old.py",
}


def login(number: int, which: str) -> dict[str, str]:
    return {"cp_name": f"CP{number}", "username": f"{which}-user", "password": "sesame-1"}


def instance(site: ContractSite) -> dict[str, Any]:
    """Return the record of the instance with vnfcInfo, as the host has it."""
    record = site.instance_record()
    info = record["instantiatedVnfInfo"]
    info["vnfcInfo"] = [
        {"id": f"{entry['vduId']}-{entry['id']}", "vnfcResourceInfoId": entry["id"]}
        for entry in info["vnfcResourceInfo"]
    ]
    return record


def test_a_script_for_tacker_finds_what_tacker_gives_it(site: ContractSite) -> None:
    site.instantiate(V1)
    vdus = [
        {"vdu_id": vdu, "old_vnfc_param": login(n, "old"), "new_vnfc_param": login(n, "new")}
        for n, vdu in enumerate(VDUS, 1)
    ]
    record = instance(site)
    recorded = {entry["id"] for entry in record["instantiatedVnfInfo"]["vnfcInfo"]}
    arguments = Arguments({**SCRIPTS, "vdu_params": vdus}, instance=record)
    release = replace(V2, scripts={"Scripts/new.py": SCRIPT, "Scripts/old.py": SCRIPT})
    reports = site.change(release, arguments).scripts
    runs = [(report.which, json.loads(report.output)) for report in reports]
    assert [which for which, _ in runs] == ["new", "new"] + ["old", "old"] * (not site.in_place)
    for report, (which, told) in zip(reports, runs, strict=True):
        number = VDUS.index(report.vdu_id) + 1
        assert (told["cp_name"], told["username"]) == (f"CP{number}", f"{which}-user")
        assert ipaddress.ip_address(told["ssh_ip"])
        assert told["request"] == [INSTANCE, "CHANGE_VNFPKG"]
        assert told["action"]
        assert told["inst"] == [INSTANCE, "vnfd-v1"]
        assert told["vnfc_info_id"].startswith(report.vdu_id)
        assert told["vnfc_info_id"] in recorded
    (operation,) = {told["operation"] for _, told in runs}
    assert uuid.UUID(operation)
    addresses = [told["ssh_ip"] for _, told in runs]
    assert len(set(addresses)) == len(addresses), "each VNFC has its own"


UNKNOWN = """
import pickle, sys
vnfc = pickle.load(sys.stdin.buffer)
print(sorted(set(vnfc) & {"cp_name", "username", "password", "vnfc_info_id"}), vnfc["inst"]["id"])
"""


def test_what_neither_request_nor_record_have_is_left_out(site: ContractSite) -> None:
    site.instantiate(V1)
    vdus = [{"vdu_id": vdu, "new_vnfc_param": {}} for vdu in VDUS]
    release = replace(V2, scripts={"Scripts/new.py": UNKNOWN, "Scripts/old.py": UNKNOWN})
    reports = site.change(release, Arguments({**SCRIPTS, "vdu_params": vdus})).scripts
    assert {report.output.strip() for report in reports} == {f"[] {INSTANCE}"}
