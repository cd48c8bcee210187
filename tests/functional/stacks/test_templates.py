# SPDX-License-Identifier: Apache-2.0
"""Rolling updates between templates of which not all can be taken over VNFC by VNFC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from container_update import ContainerUpdateError, PackageError
from tests.functional.stacks import templates
from tests.functional.stacks.vnf import Vnf

TOP = "BaseHOT/simple/top.yaml"
Json = dict[str, Any]


def top(shape: str, edit: Callable[[Json, Json], object]) -> dict[str, str]:
    """Return a shape's top template after an edit of it, which gets its one head too."""
    template = yaml.safe_load(templates.hot(shape)[TOP])
    (head,) = template["resources"].values()
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
            name = {"template": "net-N", "params": {"N": {"get_param": "version"}}}
            head["properties"]["network"] = {"str_replace": name}

        return edit

    vnf.instantiate(shape, top(shape, of_version("1")))
    new = vnf.package(shape, vnf.site.images[1], **top(shape, of_version("2")))
    refused(vnf, new, PackageError, "its property network comes from .*str_replace.*Blue-Green")
    new = vnf.package(shape, vnf.site.images[1], **top(shape, of_version("1")))
    vnf.change(new)
    assert set(vnf.servers().values()) == {vnf.site.images[1]}
