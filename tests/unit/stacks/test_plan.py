"""The steps of a change of stacks, as they are printed."""

from __future__ import annotations

from container_update.model.plan import Action
from container_update.package.hot import Body
from container_update.stacks.plan import StackStep


def test_a_step_shows_no_parameter_of_its_stack() -> None:
    secret = Body({}, {"password": "pl4nted-v4lue"})
    step = StackStep.of(Action.UPDATE, "vnf/1", secret, secret)
    assert "vnf" in repr(step)
    assert "pl4nted-v4lue" not in f"{step!r} {step}"
