"""A request to change the VNF package: what is taken, and what is said of what is not."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.model.errors import PackageError
from container_update.operations.change_request import (
    ChangeRequest,
    ScriptName,
    VduParams,
    secrets_in,
)

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
    ([], "the request: expected a JSON object"),
    ({"additionalParams": {"upgrade_type": "Blue-Green"}}, "vnfdId: .* found nothing"),
    (body(vnfdId=7), "vnfdId: .* found a value of type int"),
    (body(extVirtualLinks=[]), "extVirtualLinks: is not supported"),
    (body(flavour="x"), "flavour: is no attribute"),
    (body(vnfdId="x" * 256), "vnfdId: .* found one of another form"),
    (body({"upgrade_type": "Blue-Green\n"}), "upgrade_type: .* found one of another form"),
    (
        body(vimConnectionInfo={"v": {"password": "sesame"}}),
        "vimConnectionInfo.v.password: is no attribute of a VimConnectionInfo",
    ),
    (body(vimConnectionInfo={"v": 1}), "vimConnectionInfo.v: expected a JSON object"),
    ({"vnfdId": "x"}, "additionalParams.upgrade_type: .* found nothing"),
    ({"vnfdId": "x", "additionalParams": "text"}, "additionalParams: expected a JSON object"),
    (body({"upgrade_type": "Canary"}), 'upgrade_type: expected .* found "Canary"'),
    (body(extensions=[]), "extensions: expected a JSON object"),
    (body({"vdu_params": "VDU1"}), "vdu_params: expected a list of VDUs"),
    (body({"vdu_params": ["VDU1"]}), r"vdu_params\[0\]: expected a JSON object"),
    (body({"vdu_params": [{}]}), r"vdu_params\[0\].vdu_id: .* found nothing"),
    (body({"vdu_params": [{"vdu_id": "a"}, {"vdu_id": "a"}]}), r"\[1\].vdu_id: a is there twice"),
    (
        body({"vdu_params": [{"vdu_id": "a", "new_vnfc_param": "sesame"}]}),
        r"vdu_params\[0\].new_vnfc_param: expected a JSON object, found a value of type str$",
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


def test_a_request_that_is_made_of_its_fields_has_the_json_of_them():
    request = ChangeRequest(
        vnfd_id="new",
        upgrade_type="RollingUpdate",
        coordinate_new=ScriptName("Scripts/new.py", "New"),
        coordinate_old=ScriptName("Scripts/old.py"),
        vdu_params=(VduParams("VDU1", old_vnfc=LOGIN), VduParams("VDU2", new_vnfc=LOGIN)),
        def_files=("Files/a.yaml",),
        vim_connection_info={"vim1": {"accessInfo": {"bearer_token": "opener"}}},
        extensions={"a": "b"},
        vnf_configurable_properties={"c": "d"},
    )
    assert ChangeRequest.of(request.body) == request
    assert set(secrets_in(request.body)) == {"sesame", "opener"}
