# SPDX-License-Identifier: Apache-2.0
"""The steps of a change of stacks: which are planned, and how they are printed."""

from __future__ import annotations

import pytest
import yaml

from container_update.model.errors import PackageError
from container_update.model.plan import Action
from container_update.openstack.plan import Live, StackStep, rolling
from container_update.openstack.vnfcs import VnfcServer
from container_update.package import hot
from container_update.package.hot import Place, StackBody


def test_a_step_shows_no_parameter_of_its_stack() -> None:
    secret = StackBody({}, {"password": "pl4nted-v4lue"})
    step = StackStep.of(Action.UPDATE, "vnf/1", secret, secret)
    assert "vnf" in repr(step)
    assert "pl4nted-v4lue" not in f"{step!r} {step}"


# --- a nested template with the servers of two VDUs -----------------------------------------------

PLACES = {name: Place("both", file="both.yaml", server=name) for name in ("VDU1", "VDU2")}


def template(resources: object, **parameters: object) -> dict[str, object]:
    return {"heat_template_version": "2015-04-30", "parameters": parameters, "resources": resources}


def whole(images: tuple[str, str]) -> StackBody:
    """Return a stack that passes two images on to the file of both servers."""
    names = ("image1", "image2")
    servers = {
        vdu_id: {"type": hot.SERVER, "properties": {"image": {"get_param": name}}}
        for vdu_id, name in zip(PLACES, names, strict=True)
    }
    file = template(servers, **{name: {"type": "string"} for name in names})
    outer = {"type": "both.yaml", "properties": dict(zip(names, images, strict=True))}
    return StackBody(template({"both": outer}), files={"both.yaml": yaml.safe_dump(file)})


def planned(targets: list[str], new_images: tuple[str, str]) -> list[str]:
    old, new = whole(("old", "old")), whole(new_images)
    inner = StackBody(old.file("both.yaml"), {"image1": "old", "image2": "old"}, old.files)
    members = tuple(VnfcServer(vdu_id, "both/2", vdu_id, "id", vdu_id) for vdu_id in targets)
    live = Live("vnf/1", old, members, {"both": "2"}, {"both/2": inner}, {})
    plan = rolling(live, new, {vdu_id: PLACES[vdu_id] for vdu_id in targets}, "package", {})
    return [step.key.name for step in plan.steps if isinstance(step, StackStep)]


@pytest.mark.parametrize(
    ("targets", "images", "steps"),
    [
        (["VDU1"], ("new", "old"), ["VDU1 VDU1 (server id)", "vnf"]),
        (
            ["VDU1", "VDU2"],
            ("new", "new"),
            ["VDU1 VDU1 (server id)", "VDU2 VDU2 (server id)", "vnf"],
        ),
    ],
)
def test_each_server_of_a_shared_template_has_a_step(
    targets: list[str], images: tuple[str, str], steps: list[str]
) -> None:
    assert planned(targets, images) == steps


def test_a_template_that_changes_the_server_of_a_vdu_that_is_not_asked_for_is_refused() -> None:
    """The whole stack's last step would change it, without its script and without a word."""
    with pytest.raises(PackageError, match=r"both.yaml of package also changes VDU2, .*vdu_params"):
        planned(["VDU1"], ("new", "new"))
