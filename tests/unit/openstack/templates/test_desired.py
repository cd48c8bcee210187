# SPDX-License-Identifier: Apache-2.0
"""What a stack should be: parameters, software, sizes, parts, as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from container_update.emulator.heat import resource_types
from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.openstack.templates.desired import (
    Replacement,
    VnfdSoftware,
    desired_stack,
    nested_body,
    overlay,
    server_changes,
)
from container_update.package import hot, hot_files
from container_update.package.findings import Reading
from container_update.package.hot import Place, StackBody
from tests.functional.stacks import templates

PLACES = {
    "server": Place("VDU1", server="VDU1"),
    "nested": Place("VDU1", file="nested_server.yaml", server="VDU1"),
    "group": Place("VDU1_group", True, "nested_server.yaml", "VDU1"),
    "group of servers": Place("VDU1", True),
}
SHAPES = [*PLACES, *(f"{shape} with volume" for shape in ("server", "nested", "group"))]


class Files:
    """A package that is a dict."""

    source = "package"
    options = Options()

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        self.reading = Reading()

    def names(self) -> list[str]:
        return list(self.files)

    def read(self, path: str) -> bytes:
        return self.files[path].encode()


def body(shape: str) -> StackBody:
    return hot_files.base_hot(Files(templates.hot(shape)), "simple")


LIVE = {"image": "old", "flavor": "small", "network": "net0"}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_server_is_found_where_it_stands(shape: str) -> None:
    place = hot.place_of(body(shape), "VDU1", "VDU1", "package")
    assert place == PLACES[shape.removesuffix(" with volume")]


@pytest.mark.parametrize("shape", SHAPES)
def test_image_and_flavour_go_to_the_parameters_that_the_server_or_its_volume_uses(
    shape: str,
) -> None:
    package, live = body(shape), replace(body(shape), parameters=LIVE)
    places = {"VDU1": hot.place_of(package, "VDU1", "VDU1", "package")}
    software = VnfdSoftware({"VDU1": "new", "Disk1": "new"}, {"VDU1": "large"})
    made = desired_stack(package, live, places, software, {})
    assert made.parameters == {"image": "new", "flavor": "large", "network": "net0"}


def test_a_path_within_a_json_parameter_is_followed_and_the_rest_of_it_kept() -> None:
    server = {
        "type": hot.SERVER,
        "properties": {"image": {"get_param": ["nfv", "VDU", "VDU1", "vcImageId"]}},
    }
    template = {
        "heat_template_version": "2015-04-30",
        "parameters": {"nfv": {"type": "json"}},
        "resources": {"VDU1": server},
    }
    given = {"nfv": '{"VDU": {"VDU1": {"vcImageId": "old"}, "VDU2": {"vcImageId": "old"}}}'}
    live = StackBody(template, given)
    made = desired_stack(
        StackBody(template), live, {"VDU1": PLACES["server"]}, VnfdSoftware({"VDU1": "new"}), {}
    )
    assert made.parameters == {
        "nfv": {"VDU": {"VDU1": {"vcImageId": "new"}, "VDU2": {"vcImageId": "old"}}}
    }


SIZES = [({"get_param": "size"}, {"size": 3}, {"get_param": "size"}), (2, {}, 3)]


@pytest.mark.parametrize(("said", "parameters", "becomes"), SIZES)
def test_a_group_keeps_the_size_that_it_was_scaled_to(
    said: Any, parameters: dict[str, int], becomes: Any
) -> None:
    package = body("group")
    package.template["resources"]["VDU1_group"]["properties"]["desired_capacity"] = said
    live = replace(package, parameters=LIVE)
    made = desired_stack(package, live, {}, VnfdSoftware(), {"VDU1_group": 3})
    assert made.parameters == {**LIVE, **parameters}
    group = made.template["resources"]["VDU1_group"]
    assert group["properties"]["desired_capacity"] == becomes


def test_parameters_that_the_new_template_does_not_have_are_left_out() -> None:
    live = replace(body("server"), parameters={**LIVE, "gone": "x"})
    assert desired_stack(body("server"), live, {}, VnfdSoftware(), {}).parameters == LIVE


# --- parts ----------------------------------------------------------------------------------------


def two_servers(image: str) -> StackBody:
    resources = {
        name: {"type": hot.SERVER, "properties": {"image": {"get_param": "image"}}}
        for name in ("VDU1", "VDU2")
    }
    template = {
        "heat_template_version": "2015-04-30",
        "parameters": {"image": {"type": "string"}},
        "resources": resources,
    }
    return StackBody(template, {"image": image})


def test_a_shared_parameter_changes_for_the_taken_resource_alone() -> None:
    made = overlay(two_servers("old"), two_servers("new"), {"VDU1"}, "package")
    assert made.parameters == {"image": "old"}
    images = {
        name: definition["properties"]["image"]
        for name, definition in made.template["resources"].items()
    }
    assert images == {"VDU1": "new", "VDU2": {"get_param": "image"}}


def test_a_default_of_the_environment_goes_before_that_of_the_template() -> None:
    package = two_servers("")
    package.template["parameters"]["image"]["default"] = "of the template"
    environment = {"parameter_defaults": {"image": "of the environment", "other": "x"}}
    old = StackBody(two_servers("").template, environment=environment)
    new = desired_stack(replace(package, parameters={}), old, {}, VnfdSoftware(), {})
    assert new.parameters == {}
    assert desired_stack(replace(old, environment={}), old, {}, VnfdSoftware(), {}) == old
    made = overlay(old, new, {"VDU1"}, "package")
    assert made.template["resources"]["VDU1"]["properties"] == {"image": "of the environment"}


def test_what_a_taken_resource_needs_comes_with_it() -> None:
    old = replace(body("server"), parameters=LIVE)
    new = replace(body("server with volume"), parameters={**LIVE, "image": "new"})
    made = overlay(old, new, {"VDU1"}, "package")
    assert made.template["resources"]["Disk1"]["properties"]["image"] == "new"


def test_a_nested_file_that_others_use_too_is_not_changed_under_their_feet() -> None:
    def shared(size: int) -> StackBody:
        definition = {"type": "n.yaml", "properties": {}}
        resources = {"VDU1": definition, "VDU2": definition}
        inner = templates.template({"x": {"type": hot.SERVER, "properties": {"size": size}}})
        top = {"heat_template_version": "2015-04-30", "resources": resources}
        return StackBody(top, files={"n.yaml": yaml.safe_dump(inner)})

    with pytest.raises(PackageError, match=r"n.yaml of package .* \(VDU2\)"):
        overlay(shared(1), shared(2), {"VDU1"}, "package")


def with_property(value: Any) -> StackBody:
    made = replace(body("nested"), parameters={**LIVE, "image": "new"})
    made.template["resources"]["VDU1"]["properties"]["network"] = value
    return made


ATTRIBUTE = {"get_attr": ["net", "name"]}
ABOVE = [
    pytest.param({"get_param": "network"}, None, "net0", id="a parameter"),
    pytest.param("fixed", None, "fixed", id="a text"),
    pytest.param({"get_resource": "net"}, None, "id-of-net", id="a resource"),
    pytest.param(ATTRIBUTE, ATTRIBUTE, "as it is", id="an attribute that was so before"),
]


@pytest.mark.parametrize(("said", "said_before", "value"), ABOVE)
def test_a_nested_stacks_parameters_are_told_before_the_whole_stack_is_updated(
    said: Any, said_before: Any, value: str
) -> None:
    live = StackBody({}, {"network": "as it is"})
    old = with_property(said_before or "other")
    made = nested_body(PLACES["nested"], with_property(said), old, live, {"net": "id-of-net"})
    assert made.parameters == {"image": "new", "flavor": "small", "network": value}


def test_an_attribute_that_is_new_cannot_be_told() -> None:
    with pytest.raises(PackageError, match="its property network comes from"):
        nested_body(
            PLACES["nested"], with_property(ATTRIBUTE), with_property("x"), StackBody({}), {}
        )


CHANGES: list[tuple[dict[str, Any], dict[str, Any], Replacement]] = [
    ({"image": "a"}, {"image": "b"}, Replacement.REBUILT),
    ({"flavor": "a"}, {"flavor": "b"}, Replacement.RESIZED),
    ({"image": "a", "flavor": "a"}, {"image": "b", "flavor": "b"}, Replacement.BOTH),
    ({"image": "a"}, {"image": "b", "image_update_policy": "REPLACE"}, Replacement.REPLACED),
    ({"flavor": "a"}, {"flavor": "b", "flavor_update_policy": "REPLACE"}, Replacement.REPLACED),
    ({"metadata": {}}, {"metadata": {"a": "b"}}, Replacement.UPDATED),
    ({"user_data": "a"}, {"user_data": "b"}, Replacement.REPLACED),
    (
        {"user_data": "a"},
        {"user_data": "b", "user_data_update_policy": "IGNORE"},
        Replacement.UPDATED,
    ),
    ({}, {"key_name": "mine"}, Replacement.REPLACED),
    (
        {"scheduler_hints": {"group": "a"}},
        {"scheduler_hints": {"group": "b"}},
        Replacement.REPLACED,
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_heats_resource_type_reference_says_what_becomes_of_a_server(
    old: dict[str, Any], new: dict[str, Any], expected: Replacement
) -> None:
    def having(properties: dict[str, Any]) -> StackBody:
        resources = {"VDU1": {"type": hot.SERVER, "properties": properties}}
        return StackBody({"heat_template_version": "2015-04-30", "resources": resources})

    assert server_changes(having(old), having(new), "VDU1")[1] is expected
    by_type = resource_types.is_replaced(resource_types.SERVER, old, new)
    is_replaced = by_type or resource_types.policy_replaces(old, new)
    assert is_replaced is (expected is Replacement.REPLACED)


# --- packages -------------------------------------------------------------------------------------


TOP = templates.hot("server")["BaseHOT/simple/top.yaml"]
NESTED = templates.hot("nested")
WRONG = [
    ({}, "expected a folder BaseHOT/simple/"),
    ({"BaseHOT/other/top.yaml": TOP}, "expected a folder BaseHOT/simple/"),
    (
        {"BaseHOT/simple/a.yaml": TOP, "BaseHOT/simple/b.yaml": TOP},
        "expected one top template in BaseHOT/simple/, found BaseHOT/simple/a.yaml, ",
    ),
    ({"BaseHOT/simple/a.yaml": "[]"}, "a.yaml: expected one YAML document with a HEAT template"),
]


@pytest.mark.parametrize(("files", "words"), WRONG)
def test_a_package_without_one_top_template_is_refused(files: dict[str, str], words: str) -> None:
    with pytest.raises(PackageError, match=words):
        hot_files.base_hot(Files(files), "simple")


@pytest.mark.parametrize("inner", ["", "nested/"])
def test_templates_are_found_beside_the_top_one_or_below_it(inner: str) -> None:
    folder = "BaseHOT/simple/"
    files = {
        f"{folder}top.yaml": NESTED["BaseHOT/simple/top.yaml"],
        f"{folder}{inner}nested_server.yaml": NESTED["BaseHOT/simple/nested/nested_server.yaml"],
        "UserData/BaseHOT/simple/top.yaml": "another one's",
    }
    made = hot_files.base_hot(Files(files), "simple")
    assert set(made.files) == {"nested_server.yaml"}
    assert set(made.template["resources"]) == {"VDU1"}
