"""The size of a scaling group, wherever the template has it."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.model.errors import PlanError
from container_update.package.hot import GROUP, SERVER, Body, Place
from container_update.stacks.templates.groups import resized

PLACES = {"VDU1": Place("group", grouped=True), "VDU2": Place("server", server="server")}


def body(capacity: Any, **parameters: Any) -> Body:
    properties = {"resource": {"type": SERVER}}
    properties |= {} if capacity is None else {"desired_capacity": capacity}
    resources = {
        "group": {"type": GROUP, "properties": properties},
        "server": {"type": SERVER},
    }
    return Body({"resources": resources}, parameters)


TACKERS = {"get_param": ["nfv", "VDU", "VDU1", "desired_capacity"]}
"""As Tacker's sample packages write it."""


@pytest.mark.parametrize(
    ("size", "parameters", "after"),
    [
        ({"get_param": "size"}, {"size": 2, "image": "i"}, {"size": 5, "image": "i"}),
        ({"get_param": "size"}, {}, {"size": 5}),
        (
            TACKERS,
            {"nfv": {"VDU": {"VDU1": {"desired_capacity": 1, "image": "i"}}, "CP": {}}},
            {"nfv": {"VDU": {"VDU1": {"desired_capacity": 5, "image": "i"}}, "CP": {}}},
        ),
    ],
)
def test_a_parameter_gets_the_size(
    size: Any, parameters: dict[str, Any], after: dict[str, Any]
) -> None:
    before = body(size, **parameters)
    changed = resized(before, PLACES, {"VDU1": 5})
    assert changed.parameters == after
    assert changed.template == before.template


@pytest.mark.parametrize("size", [2, None])
def test_the_template_gets_the_size_where_no_parameter_has_it(size: int | None) -> None:
    changed = resized(body(size), PLACES, {"VDU1": 5})
    assert changed.template["resources"]["group"]["properties"]["desired_capacity"] == 5
    assert changed.parameters == {}


@pytest.mark.parametrize("vdu", ["VDU2", "VDU3"])
def test_a_vdu_without_a_group_is_refused(vdu: str) -> None:
    with pytest.raises(PlanError, match=f"{vdu}: expected its server in a resource of type"):
        resized(body(1), PLACES, {vdu: 2})
