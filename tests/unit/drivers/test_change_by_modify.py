# SPDX-License-Identifier: Apache-2.0
"""A modify request that stands for a change of the package."""

from __future__ import annotations

import json
from typing import Any

import pytest

from container_update.drivers.change_by_modify import requested_change, without_parameters
from container_update.engine.goals.change_request import ChangeRequest
from container_update.model.errors import PackageError

PASSWORD = "sesame-open"
LOGIN = {"username": "u", "password": PASSWORD}
VDU = {"vdu_id": "VDU1", "new_vnfc_param": {"cp_name": "CP1", **LOGIN}}
FILES = ["Files/a.yaml", "Files/b.yaml"]
NATIVE: dict[str, Any] = {
    "upgrade_type": "Blue-Green",
    "lcm-operation-coordinate-new-vnf": "Scripts/new.py",
    "lcm-operation-coordinate-new-vnf-class": "New",
    "vdu_params": [VDU],
    "external_lb_param": {"ip_address": "192.0.2.1", **LOGIN},
    "lcm-kubernetes-def-files": FILES,
}
TEXTS = {
    **NATIVE,
    "vdu_params": json.dumps(NATIVE["vdu_params"]),
    "external_lb_param": json.dumps(NATIVE["external_lb_param"]),
    "lcm-kubernetes-def-files": ' ["Files/a.yaml", "Files/b.yaml"]',
}


@pytest.mark.parametrize("metadata", [NATIVE, TEXTS], ids=["v2: values", "v1: texts"])
def test_an_upgrade_type_makes_it_a_change_with_the_known_parameters(
    metadata: dict[str, Any],
) -> None:
    body = requested_change("vnfd-2", {"namespace": "cnf", "colour": "blue", **metadata})
    assert body == {"vnfdId": "vnfd-2", "additionalParams": NATIVE}
    request = ChangeRequest.of(body)
    assert (request.upgrade_type, request.def_files) == ("Blue-Green", tuple(FILES))


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"namespace": "cnf", "configmap_secret_paths": ["Files/cm.yaml"]},
        {"upgrade_type": None},
        {"lcm-kubernetes-def-files": FILES},
        {"release": "of the operator's own"},
    ],
)
def test_without_one_it_is_a_plain_modify_request(metadata: dict[str, Any] | None) -> None:
    assert requested_change("vnfd-2", metadata) is None


REFUSED: dict[str, tuple[str | None, dict[str, Any], str]] = {
    "no VNFD": (None, {"upgrade_type": "Blue-Green"}, r"^vnfdId: expected the VNFD to change to"),
    "the type is missing": (
        "vnfd-2", {"vdu_params": [VDU]},
        r"^metadata.upgrade_type: expected .* because vdu_params belongs to it, found nothing$",
    ),
    "the type is misspelt": (
        "vnfd-2", {"upgrade-typ": "Blue-Green"},
        r"^metadata.upgrade-typ: .*did you mean upgrade_type\?",
    ),
    "a script is misspelt": (
        "vnfd-2", {"upgrade_type": "Blue-Green", "lcm-operation-cordinate-new-vnf": "a.py"},
        r"did you mean lcm-operation-coordinate-new-vnf\?",
    ),
    "no JSON": (
        "vnfd-2", {"upgrade_type": "Blue-Green", "vdu_params": "[{'password': 'sesame-open'"},
        r"^metadata.vdu_params: expected a list or an object as JSON, found a text that is none$",
    ),
    "an update's parameter": (
        "vnfd-2", {"upgrade_type": "Blue-Green", "configmap_secret_paths": ["cm.yaml"]},
        r"^metadata.configmap_secret_paths: leave it out where metadata.upgrade_type is there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_would_be_ignored_is_refused_by_its_name(
    case: tuple[str | None, dict[str, Any], str],
) -> None:
    vnfd_id, metadata, message = case
    with pytest.raises(PackageError, match=message) as refused:
        requested_change(vnfd_id, metadata)
    assert PASSWORD not in str(refused.value)


def test_no_parameter_stays_in_the_metadata() -> None:
    assert without_parameters({**NATIVE, "colour": "blue"}) == {"colour": "blue"}
    assert without_parameters(None) == {}
