# SPDX-License-Identifier: Apache-2.0
"""A request to change the VNF package: what is taken, and what is said of what is not."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from container_update.engine.goals.change_request import (
    ChangeRequest,
    ScriptName,
    VduParams,
    secrets_in,
)
from container_update.model.errors import PackageError

LOGIN = {"cp_name": "CP1", "username": "ubuntu", "password": "sesame"}


def body(params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A request."""
    return {
        "vnfdId": "new",
        "additionalParams": {"upgrade_type": "Blue-Green", **(params or {})},
        **more,
    }


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("Blue-Green", "Blue-Green"),
        ("blue-green", "Blue-Green"),
        ("BlueGreen", "Blue-Green"),
        ("RollingUpdate", "RollingUpdate"),
        ("Rolling update", "RollingUpdate"),
        ("rolling_update", "RollingUpdate"),
        ("rolling", "RollingUpdate"),
    ],
)
def test_an_upgrade_type_is_known_in_every_spelling(spelled: str, meant: str) -> None:
    assert ChangeRequest.of(body({"upgrade_type": spelled})).upgrade_type == meant


def test_every_attribute_is_taken() -> None:
    request = ChangeRequest.of(
        body(
            {
                "lcm-operation-coordinate-old-vnf": "./Scripts/old.py",
                "lcm-operation-coordinate-old-vnf-class": "Old",
                "lcm-operation-coordinate-new-vnf": "Scripts/new.py",
                "vdu_params": [{"vdu_id": "VDU1", "old_vnfc_param": LOGIN}],
                "lcm-kubernetes-def-files": ["./Files/a.yaml", "http://example.org/b.yaml"],
                "of-somebody-else": 1,
            },
            vimConnectionInfo={"vim1": {}},
            extensions={"a": 1},
            vnfConfigurableProperties={"b": 2},
        )
    )
    assert request.coordinate_old == ScriptName("Scripts/old.py", "Old")
    assert request.coordinate_new == ScriptName("Scripts/new.py")
    assert request.vdu_params == (VduParams("VDU1", old_vnfc=LOGIN),)
    assert request.def_files == ("Files/a.yaml", "http://example.org/b.yaml")
    assert request.vim_connection_info == {"vim1": {}}
    assert (request.extensions, request.vnf_configurable_properties) == ({"a": 1}, {"b": 2})


def test_one_vdu_need_not_be_a_list() -> None:
    """As in the specification's sample of a request."""
    assert ChangeRequest.of(body({"vdu_params": {"vdu_id": "VDU1"}})).vdu_params == (
        VduParams("VDU1"),
    )


WRONG: list[tuple[Any, str]] = [
    ([], "the document: expected a JSON object"),
    ({"additionalParams": {"upgrade_type": "Blue-Green"}}, "vnfdId: .* found nothing"),
    (body(vnfdId=7), "vnfdId: .* found a number"),
    (body(extVirtualLinks="net"), "extVirtualLinks: expected a list"),
    (body(extManagedVirtualLinks=["net"]), r"extManagedVirtualLinks\[0\]: expected a JSON"),
    (
        body(flavour="x"),
        r"flavour: expected a field of a .*Request \(vnfdId, .*\), found another name",
    ),
    (body(vnfdId="x" * 256), "vnfdId: .* found more than 255 characters"),
    (body({"upgrade_type": "Blue-Green\n"}), "upgrade_type: .* found invalid text"),
    (
        body(vimConnectionInfo={"v": {"password": "sesame"}}),
        "vimConnectionInfo.v.password: expected a field of a VimConnectionInfo",
    ),
    (body(vimConnectionInfo={"v": 1}), "vimConnectionInfo.v: expected a JSON object"),
    ({"vnfdId": "x"}, "additionalParams: .* with upgrade_type, found nothing"),
    ({"vnfdId": "x", "additionalParams": "text"}, "additionalParams: expected a JSON object"),
    (body({"upgrade_type": "Big-Bang"}), 'upgrade_type: expected .* found "Big-Bang"'),
    (body(extensions=[]), "extensions: expected a JSON object"),
    (body({"vdu_params": "VDU1"}), "vdu_params: expected a list of VDUs"),
    (body({"vdu_params": ["VDU1"]}), r"vdu_params\[0\]: expected a JSON object"),
    (body({"vdu_params": [{}]}), r"vdu_params\[0\].vdu_id: .* found nothing"),
    (body({"vdu_params": [{"vdu_id": "a"}, {"vdu_id": "a"}]}), r"\[1\].vdu_id: a is there twice"),
    (
        body({"vdu_params": [{"vdu_id": "a", "new_vnfc_param": "sesame"}]}),
        r"vdu_params\[0\].new_vnfc_param: expected a JSON object .*, found text$",
    ),
    (body({"lcm-kubernetes-def-files": []}), "def-files: expected a list of paths"),
    (body({"lcm-kubernetes-def-files": [1]}), r"def-files\[0\]: expected a path"),
    (body({"lcm-kubernetes-def-files": ["../a"]}), r"def-files\[0\]: .* is not a path in"),
    (body({"lcm-operation-coordinate-new-vnf": "/etc/x"}), "coordinate-new-vnf: .* not a path in"),
    (body({"lcm-operation-coordinate-new-vnf": 1}), "coordinate-new-vnf: expected text"),
    (
        body({"lcm-operation-coordinate-new-vnf-class": "New"}),
        "coordinate-new-vnf-class: names a class, but .* no script",
    ),
    (
        body(
            {
                "lcm-operation-coordinate-new-vnf": "a.py",
                "lcm-operation-coordinate-new-vnf-class": "os.system",
            }
        ),
        'new-vnf-class: expected the name of a class, found "os.system"',
    ),
]


LB = {"ip_address": "10.10.0.50", "username": "ubuntu", "password": "sesame"}


def without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


WRONG += [
    (body({given: "x"}), f"additionalParams.{given}: .*did you mean {meant}\\?")
    for given, meant in (
        ("lcm-operation-cordinate-new-vnf", "lcm-operation-coordinate-new-vnf"),
        ("lcm_operation_coordinate_old_vnf", "lcm-operation-coordinate-old-vnf"),
        ("LCM-operation-coordinate-new-vnf-class", "lcm-operation-coordinate-new-vnf-class"),
        ("lcm-kubernetes-def-file", "lcm-kubernetes-def-files"),
        ("upgradeType", "upgrade_type"),
        ("vdu-params", "vdu_params"),
        ("external-lb-param", "external_lb_param"),
    )
]
WRONG += [
    (body({"vdu_params": [{"vdu_id": "a", "vduid": "b"}]}), r"\[0\].vduid: .* mean vdu_id\?"),
    (
        body({"vdu_params": [{"vdu_id": "a", "new-vnfc-param": LOGIN}]}),
        r"\[0\].new-vnfc-param: .* mean new_vnfc_param\?",
    ),
    (
        body({"vdu_params": {"vdu_id": "a", "old_vnfc_param": {**LOGIN, "user-name": "sesame"}}}),
        r"vdu_params.old_vnfc_param.user-name: .* mean username\?",
    ),
    (
        body({"vdu_params": {"vdu_id": "a", "old_vnfc_param": {**LOGIN, "cp-name": "CP2"}}}),
        "old_vnfc_param.cp-name: .* mean cp_name",
    ),
    (body({"external_lb_param": {**LB, "address": "x"}}), "lb_param.address: .* mean ip_address"),
]
WRONG += [
    (
        body({"vdu_params": [{"vdu_id": "a", param: without(LOGIN, name)}]}),
        rf"vdu_params\[0\].{param}.{name}: expected text: .*, found nothing",
    )
    for param in ("old_vnfc_param", "new_vnfc_param")
    for name in LOGIN
]
WRONG += [
    (
        body({"external_lb_param": without(LB, name)}),
        f"additionalParams.external_lb_param.{name}: expected text: .*, found nothing",
    )
    for name in LB
]


@pytest.mark.parametrize(("wrong", "says"), WRONG)
def test_a_mistake_is_named_by_the_path_of_its_attribute(wrong: Any, says: str) -> None:
    with pytest.raises(PackageError, match=says) as raised:
        ChangeRequest.of(wrong)
    assert "sesame" not in str(raised.value)


def test_passwords_are_found_wherever_they_are_and_shown_nowhere() -> None:
    request = ChangeRequest.of(
        body(
            {"vdu_params": [{"vdu_id": "VDU1", "new_vnfc_param": LOGIN}]},
            vimConnectionInfo={"v": {"accessInfo": {"bearer_token": "t0ken"}}},
        )
    )
    assert set(secrets_in(request.body)) == {"sesame", "t0ken"}
    assert "sesame" not in repr(request)
    assert "t0ken" not in repr(request)


@pytest.mark.parametrize("external_lb", [None, {}, LB])
def test_a_request_that_is_made_of_its_fields_has_the_json_of_them(external_lb: Any) -> None:
    request = ChangeRequest(
        vnfd_id="new",
        upgrade_type="RollingUpdate",
        coordinate_new=ScriptName("Scripts/new.py", "New"),
        coordinate_old=ScriptName("Scripts/old.py"),
        vdu_params=(VduParams("VDU1", old_vnfc=LOGIN), VduParams("VDU2", new_vnfc=LOGIN)),
        def_files=("Files/a.yaml",),
        external_lb=external_lb,
        vim_connection_info={"vim1": {"accessInfo": {"bearer_token": "opener"}}},
        extensions={"a": "b"},
        vnf_configurable_properties={"c": "d"},
    )
    assert ChangeRequest.of(request.body) == request
    assert set(secrets_in(request.body)) == {"sesame", "opener"}


# --- spelling -----------------------------------------------------------------------------------


def test_a_name_that_resembles_none_is_kept_for_the_scripts() -> None:
    """Tacker's own parameters among them."""
    own = {
        "lcm-operation-user-data": "./UserData/userdata.py",
        "lcm-operation-user-data-class": "UserData",
        "lcmcoord-url": "https://manager.example/",
        "of-somebody-else": 1,
        "x" * 10_000: 2,
    }
    vdu = {"vdu_id": "VDU1", "new_vnfc_param": {**LOGIN, "port": 22, "private_key": "key"}, "a": 1}
    sent = body({**own, "vdu_params": [vdu], "external_lb_param": {**LB, "port": 8022}})
    request = ChangeRequest.of(sent)
    assert request.body == sent
    assert request.vdu_params[0].new_vnfc["port"] == 22


@pytest.mark.parametrize("one", [True, False], ids=["one VDU", "a list of VDUs"])
def test_the_connection_point_has_the_name_of_the_table_or_that_of_the_sample(one: bool) -> None:
    vdu = {
        "vdu_id": "VDU1",
        "old_vnfc_param": {"cp-name": "CP1", "username": "ubuntu", "password": "sesame"},
        "new_vnfc_param": LOGIN,
    }
    sent = body({"vdu_params": vdu if one else [vdu]})
    request = ChangeRequest.of(sent)
    assert request.vdu_params == (VduParams("VDU1", LOGIN, LOGIN),)
    assert request.body == sent, "scripts get the request as it was received"


@pytest.mark.parametrize("nothing", [None, {}])
def test_a_login_that_is_empty_counts_as_left_out(nothing: Any) -> None:
    vdu = {"vdu_id": "VDU1", "old_vnfc_param": nothing}
    request = ChangeRequest.of(body({"vdu_params": [vdu], "external_lb_param": nothing}))
    assert request.vdu_params == (VduParams("VDU1"),)
    assert request.external_lb == {}


# --- OpenStack ----------------------------------------------------------------------------------

SPECIFICATION = """
{ "vnfdId": "093c38b5-a731-4593-a578-d12e42596b3e", "additionalParams": { "upgrade_type":
"Blue-Green", "lcm-operation-coordinate-old-vnf": "./coordinate_old_vnf.py",
"lcm-operation-coordinate-old-vnf-class": "CoordinateOldVnf", "lcm-operation-coordinate-new-vnf":
"./coordinate_new_vnf.py", "lcm-operation-coordinate-new-vnf-class": "CoordinateNewVnf",
"vdu_params": { "vdu_id": "VDU1", "old_vnfc_param": { "cp_name": "CP1", "username": "ubuntu",
"password": "ubuntu" }, "new_vnfc_param": { "cp_name": "CP1", "username": "ubuntu", "password":
"ubuntu" } }, "external_lb_param": { "ip_address": "10.10.0.50", "username": "ubuntu", "password":
"ubuntu" }, "lcm-kubernetes-def-files": [ "Files/kubernetes/deployment.yaml" ] } }
"""
"""The specification's sample of a request body."""
SCRIPT = {"lcm-operation-coordinate-new-vnf": "Scripts/new.py"}
VDU1 = {"vdu_params": [{"vdu_id": "VDU1"}]}
OPENSTACK: list[tuple[str, dict[str, Any], str | None]] = [
    ("Blue-Green", VDU1, None),
    ("Blue-Green", {}, "vdu_params: expected the VDUs to change"),
    ("RollingUpdate", {"vdu_params": None}, "vdu_params: expected the VDUs to change"),
    ("RollingUpdate", {**VDU1, **SCRIPT}, None),
    ("Blue-Green", {**VDU1, **SCRIPT}, "external_lb_param: expected ip_address, username"),
    ("Blue-Green", {**VDU1, **SCRIPT, "external_lb_param": LB}, None),
    ("Blue-Green", {**VDU1, **SCRIPT, "external_lb_param": None}, None),
]


@pytest.mark.parametrize(("upgrade_type", "params", "says"), OPENSTACK)
def test_openstack_needs_vdus_and_blue_green_with_scripts_the_load_balancer(
    upgrade_type: str, params: dict[str, Any], says: str | None
) -> None:
    sent = body({"upgrade_type": upgrade_type, **params})
    assert ChangeRequest.of(sent, "kubernetes").body == sent
    with pytest.raises(PackageError, match=says) if says else nullcontext():
        ChangeRequest.of(sent, "ETSINFV.OPENSTACK_KEYSTONE.V_3")


@pytest.mark.parametrize("vim_type", ["kubernetes", "openstack"])
def test_the_specifications_sample_is_accepted_as_it_is(vim_type: str) -> None:
    request = ChangeRequest.of(json.loads(SPECIFICATION), vim_type)
    login = {"cp_name": "CP1", "username": "ubuntu", "password": "ubuntu"}
    assert request.vdu_params == (VduParams("VDU1", login, login),)
    assert request.external_lb == {
        "ip_address": "10.10.0.50", "username": "ubuntu", "password": "ubuntu"
    }  # fmt: skip
    assert request.coordinate_new == ScriptName("coordinate_new_vnf.py", "CoordinateNewVnf")


@pytest.mark.parametrize(
    ("vim_type", "upgrade_type", "chosen", "says"),
    [
        ("openstack", "Blue-Green", ("VDU1", "VDU2"), None),
        ("openstack", "Blue-Green", ("VDU1",), "expected every VDU .* without VDU2: .* name them"),
        ("openstack", "RollingUpdate", ("VDU1",), None),
        ("openstack", "RollingUpdate", ("VDU1", "VDU9"), r"\[1\].vdu_id: .*VDU1, VDU2.* VDU9"),
        ("kubernetes", "Blue-Green", ("VDU1",), None),
        ("kubernetes", "Blue-Green", ("VDU9",), r"\[0\].vdu_id: expected a VDU of the new package"),
    ],
)
def test_the_vdus_are_those_of_the_new_package(
    vim_type: str, upgrade_type: str, chosen: tuple[str, ...], says: str | None
) -> None:
    request = ChangeRequest("new", upgrade_type, vdu_params=tuple(map(VduParams, chosen)))
    with pytest.raises(PackageError, match=says) if says else nullcontext():
        request.check_vdus(("VDU1", "VDU2"), vim_type)
