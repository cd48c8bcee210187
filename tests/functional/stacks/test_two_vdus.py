# SPDX-License-Identifier: Apache-2.0
"""A VNF of two VDUs whose servers are in one template; VDU1 waits for VDU2."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.functional.stacks.change import change
from tests.functional.stacks.vnf import Vnf
from tests.internals.core import Reason, hot
from tests.internals.stacks import Replacement, StackScript, live, reference

SHAPE = "two servers"


def resources(vnf: Vnf) -> dict[str, tuple[str, str]]:
    """Return the id of each resource, and the image of each server."""
    top, found = reference(vnf.live_stack()), {}
    for entry in vnf.heat.resources(top, live.DEPTH):
        name, image = str(entry["resource_name"]), ""
        if entry["resource_type"] == hot.SERVER:
            server = vnf.heat.resource(top, name) or {}
            image = server["attributes"]["image"] and server["attributes"]["image"]["id"]
        found[name] = (str(entry["physical_resource_id"]), image)
    return found


@pytest.mark.parametrize("vdus", [("VDU1",), ("VDU1", "VDU2")])
def test_each_server_changes_in_a_step_of_its_own_whatever_waits_for_it(
    vnf: Vnf, vdus: tuple[str, ...]
) -> None:
    vnf.instantiate(SHAPE)
    before, seen = resources(vnf), []

    def script(step: StackScript, /) -> None:
        changed = [name for name, now in resources(vnf).items() if now != before[name]]
        seen.append((step.member and step.member.vdu_id, changed))

    request = replace(vnf.request(vnf.package(SHAPE, vnf.site.images[1])), vdu_ids=vdus)
    plan = change(request, vnf.heat, vnf.options, coordinate=script).outcome.plan
    assert seen == [(vdu, list(vdus[: number + 1])) for number, vdu in enumerate(vdus)]
    assert Reason(Replacement.REBUILT.value) in plan.steps[0].reasons
    changed = {name: (before[name][0], vnf.site.images[1]) for name in vdus}
    assert resources(vnf) == before | changed
