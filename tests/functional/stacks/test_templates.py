# SPDX-License-Identifier: Apache-2.0
"""Rolling updates between templates of which not all can be taken over VNFC by VNFC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from container_update import ContainerUpdateError, PackageError
from tests.functional.stacks import templates
from tests.functional.stacks.change import Call
from tests.functional.stacks.site import Site
from tests.functional.stacks.vnf import Vnf
from tests.internals.core import Action, Reason, hot

TOP, NETWORK = "BaseHOT/simple/top.yaml", {"get_param": "network"}
Json = dict[str, Any]


def top(shape: str, edit: Callable[[Json, Json], object]) -> dict[str, str]:
    """Return a shape's top template after an edit of it, which gets the head too."""
    template = yaml.safe_load(templates.hot(shape)[TOP])
    head = next(each for each in template["resources"].values() if "Port" not in each["type"])
    edit(template, head["properties"].get("resource", head))
    return {TOP: yaml.safe_dump(template)}


def refused(vnf: Vnf, new: str, error: type[ContainerUpdateError], says: str) -> None:
    """See that a change is refused before anything is written."""
    before, body = vnf.servers(), vnf.body()
    with pytest.raises(error, match=says):
        vnf.change(new)
    assert (vnf.servers(), vnf.body(), vnf.stacks()) == (before, body, [vnf.stack])


IN_FILES = pytest.mark.parametrize("shape", ["nested", "group"])


@IN_FILES
def test_a_property_whose_function_gets_another_result_is_refused(vnf: Vnf, shape: str) -> None:
    def of_version(version: str) -> Callable[[Json, Json], None]:
        def edit(template: Json, head: Json) -> None:
            template["parameters"]["version"] = {"type": "string", "default": version}
            name = {
                "template": "NET",
                "params": {"NET": NETWORK, "VERSION": {"get_param": "version"}},
            }
            head["properties"]["network"] = {"str_replace": name}

        return edit

    vnf.instantiate(shape, top(shape, of_version("1")))
    new = vnf.package(shape, vnf.site.images[1], **top(shape, of_version("2")))
    refused(vnf, new, PackageError, "its property network comes from .*str_replace.*Blue-Green")
    new = vnf.package(shape, vnf.site.images[1], **top(shape, of_version("1")))
    vnf.change(new)
    assert set(vnf.servers().values()) == {vnf.site.images[1]}


@pytest.mark.parametrize("shape", ["server", "nested", "group", "group of servers"])
def test_a_server_that_is_another_resource_is_refused(vnf: Vnf, shape: str) -> None:
    def renamed(template: Json, head: Json) -> None:
        (name,) = [name for name in template["resources"] if name.startswith("VDU1")]
        template["resources"]["other"] = template["resources"].pop(name)
        if head["type"] == hot.SERVER:
            head["properties"]["name"] = "VDU1"

    vnf.instantiate(shape)
    new = vnf.package(shape, vnf.site.images[1], **top(shape, renamed))
    refused(vnf, new, PackageError, "expected the server of VDU1 as resource VDU1.*found other")


def test_a_server_that_went_into_a_file_is_refused(vnf: Vnf) -> None:
    vnf.instantiate("server")
    new = vnf.package("nested", vnf.site.images[1])
    refused(vnf, new, PackageError, "as resource VDU1, .* found VDU1.VDU1")


def with_user_data(shape: str, text: str) -> dict[str, str]:
    """Return a shape's templates whose servers take their user_data from a file."""
    files = templates.hot(shape)
    for path, content in files.items():
        template = yaml.safe_load(content)
        for resource in template["resources"].values():
            if resource["type"] == hot.SERVER:
                resource["properties"]["user_data"] = {"get_file": "init.sh"}
        files[path] = yaml.safe_dump(template)
    return {**files, "BaseHOT/simple/init.sh": text}


@pytest.mark.parametrize("shape", ["server", "two servers", "nested", "group"])
def test_a_file_with_other_content_replaces_each_server_before_its_script(
    vnf: Vnf, shape: str
) -> None:
    vnf.instantiate(shape, with_user_data(shape, "echo old"))
    before = vnf.servers()
    new = vnf.package(shape, vnf.site.images[0], **with_user_data(shape, "echo new"))
    seen: list[set[str]] = []

    def script(_: Call, /) -> None:
        seen.append(set(vnf.servers()))

    first, *_ = vnf.change(new, coordinate=script).outcome.plan.steps
    assert first.action is Action.RECREATE
    assert Reason("its property user_data changes") in first.reasons
    assert len(seen) == (2 if shape == "group" else 1)
    assert [len(servers - set(before)) for servers in seen] == [*range(1, len(seen) + 1)]
    assert set(vnf.servers()) == seen[-1]
    assert vnf.change(new).outcome.plan.is_empty


# --- conditions -----------------------------------------------------------------------------------


def with_condition(shape: str) -> dict[str, str]:
    """Return a top template that gives the server another network if its flavour is another one."""

    def edit(template: Json, head: Json) -> None:
        is_large = {"equals": [{"get_param": "flavor"}, "large"]}
        template["conditions"] = {"is-large": is_large}
        template["heat_template_version"] = "2016-10-14"  # the first one with conditions
        chosen = {"if": ["is-large", "net1", NETWORK]}
        if head["type"] == hot.SERVER:
            head["properties"]["metadata"] = {"network": chosen}
        else:
            head["properties"]["network"] = chosen

    return top(shape, edit)


SAYS = {
    "server": "conditions of .*package-1: expected those of the live stack.*VDU1, which use",
    "nested": "its property network comes from .*'if'",
    "group": "its property network comes from .*'if'",
    "group of servers": "its members come from other resources",
}


@pytest.mark.parametrize("shape", SAYS)
def test_a_condition_that_becomes_true_is_refused(vnf: Vnf, site: Site, shape: str) -> None:
    """The servers would change in the last step only, whatever the plan says."""
    vnf.instantiate(shape, with_condition(shape))
    new = vnf.package(shape, site.images[0], site.flavors[1], **with_condition(shape))
    refused(vnf, new, PackageError, SAYS[shape])
