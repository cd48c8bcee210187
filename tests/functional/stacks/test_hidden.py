# SPDX-License-Identifier: Apache-2.0
"""Hidden parameters of a stack: Heat masks them, so that they can only be left as they are."""

from __future__ import annotations

import io
import logging
from typing import Any

import pytest

from container_update import PlanError, UpdateFailedError
from tests.functional.stacks import templates
from tests.functional.stacks.change import Call, plan_change
from tests.functional.stacks.limits import Limits
from tests.functional.stacks.vnf import Vnf
from tests.internals.core import hot, operate
from tests.internals.stacks import (
    BLUE_GREEN,
    Instantiate,
    described_by,
    live,
    reference,
)

PASSWORD = "open-sesame-11"
SHAPES = pytest.mark.parametrize("shape", ["server", "nested", "group"])


def server_secrets(vnf: Vnf) -> set[str]:
    """Return the secrets that the servers were really created with, as Nova shows them."""
    secrets = set()
    for entry in vnf.heat.resources(reference(vnf.live_stack()), live.DEPTH):
        if entry["resource_type"] == hot.SERVER:
            stack = entry["links"][1]["href"].partition("/stacks/")[2]
            server = vnf.heat.resource(stack, entry["resource_name"]) or {}
            secrets.add(str(server["attributes"]["metadata"]["secret"]))
    return secrets


@SHAPES
def test_a_rolling_update_leaves_a_hidden_parameter_as_it_is(vnf: Vnf, shape: str) -> None:
    vnf.instantiate(f"{shape} with secret", password=PASSWORD)
    before = vnf.servers()
    vnf.change(vnf.package(f"{shape} with secret", vnf.site.images[1]))
    assert vnf.servers() == dict.fromkeys(before, vnf.site.images[1])
    assert server_secrets(vnf) == {PASSWORD}


@SHAPES
def test_an_undone_change_leaves_a_hidden_parameter_as_it_is(
    limits: Limits, vnf: Vnf, shape: str
) -> None:
    vnf.instantiate(f"{shape} with secret", password=PASSWORD)
    before = vnf.servers()
    limits.room_for(resizes=len(before) - 1)
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        vnf.change(vnf.package(f"{shape} with secret", vnf.site.images[1], limits.cores))
    assert vnf.servers() == before
    assert server_secrets(vnf) == {PASSWORD}


@pytest.mark.parametrize("becomes", ["shown", "left out"])
@SHAPES
def test_a_rolling_update_that_would_lose_the_value_is_refused(
    vnf: Vnf, shape: str, becomes: str
) -> None:
    vnf.instantiate(f"{shape} with secret", password=PASSWORD)
    before = vnf.servers()
    secret = templates.hot(f"{shape} with secret")
    files = {path: text.replace("hidden: true", "hidden: false") for path, text in secret.items()}
    new = vnf.package(shape, vnf.site.images[1], **(files if becomes == "shown" else {}))
    with pytest.raises(PlanError, match=r"hidden parameters \(password\).*would be lost"):
        vnf.change(new)
    assert (vnf.servers(), vnf.stacks()) == (before, [vnf.stack])
    assert server_secrets(vnf) == {PASSWORD}


def test_blue_green_is_refused_because_the_value_is_unknown(vnf: Vnf) -> None:
    vnf.instantiate("group with secret", password=PASSWORD)
    with pytest.raises(PlanError, match=r"hidden parameters \(password\).*use RollingUpdate"):
        vnf.change(vnf.package("group with secret", vnf.site.images[1]), BLUE_GREEN)
    assert vnf.stacks() == [vnf.stack]


def test_a_hidden_value_is_in_no_plan_journal_or_log(
    vnf: Vnf, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    vnf.instantiate("group with secret", password=PASSWORD)
    new = vnf.package("group with secret", vnf.site.images[1])
    output = io.StringIO()
    output.write(repr(plan_change(vnf.request(new), vnf.heat)))

    def script(step: Call, /) -> None:
        status = vnf.instance().status()
        assert status.record is not None
        output.write(f"{status}{status!r}{status.as_dict()}{step!r}")

    outcome: Any = vnf.change(new, coordinate=script)
    output.write(f"{outcome}{outcome!r}")
    assert vnf.site.images[1] in output.getvalue()
    assert PASSWORD not in output.getvalue()
    ours = [record for record in caplog.records if record.name.startswith("container_update")]
    assert not [record for record in ours if PASSWORD in record.getMessage()]


def test_a_tag_of_a_new_stack_does_not_depend_on_a_hidden_value(vnf: Vnf) -> None:
    """Whoever sees it could try values until one gives the same digest."""
    package = vnf.package("server with secret", vnf.site.images[0])
    digests = set()
    for password in (PASSWORD, "another-11"):
        given = {"network": vnf.site.network, "password": password}
        body = described_by(package, "simple", given, vnf.options)
        operate(Instantiate(vnf.stack, body, vnf.options, password), vnf.instance())
        assert server_secrets(vnf) == {password}
        digests |= {tag.rpartition("-")[2] for tag in vnf.live_stack()["tags"]}
    assert len(digests) == 1
