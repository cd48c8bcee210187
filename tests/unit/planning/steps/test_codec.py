# SPDX-License-Identifier: Apache-2.0
"""A step of configuration in the journal."""

from __future__ import annotations

import json

from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.steps import ConfigStep
from container_update.planning.steps.codec import step_from_dict, step_to_dict
from tests.unit.build import config_map, live

STEP = ConfigStep(
    ObjectKey("", "ConfigMap", "ns", "cm"),
    Action.REPLACE,
    live(config_map(data={"a": "1", "old": "1", "theirs": "1"})),
    config_map(data={"a": "2"}),
    removed=("old",),
    dropped=(("labels", "old"),),
)


def journalled(step: ConfigStep) -> Json:
    values: Json = json.loads(json.dumps(step_to_dict(step)))
    return values


def test_a_step_of_configuration_comes_back_with_the_keys_that_it_removes() -> None:
    assert step_from_dict(journalled(STEP)) == STEP
