# SPDX-License-Identifier: Apache-2.0
"""How a flavour is scaled, read from policies as SOL001 and Tacker's samples write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tackerclient
import yaml

from container_update.model.errors import PackageError
from container_update.model.scaling import Level, Scaling
from container_update.package import csar
from tests.vnfm import scalable

(SAMPLE,) = Path(tackerclient.__file__).parent.glob(
    "tests/**/sample_vnf_package/Definitions/helloworld3_df_simple.yaml"
)
"""The VNFD of the client's tests."""
PROFILES = {"VDU2": {"min_number_of_instances": 1, "max_number_of_instances": 3}}


def policy(kind: str, *targets: str, **properties: Any) -> dict[str, Any]:
    """Return an entry of a topology's policies."""
    body = {"type": f"tosca.policies.nfv.{kind}", "properties": properties}
    return {kind.lower(): {**body, "targets": list(targets)} if targets else body}


def numbered(**numbers: int) -> dict[str, Any]:
    """Return deltas or levels with their numbers of instances."""
    return {name: {"number_of_instances": number} for name, number in numbers.items()}


GROWING = [
    policy("ScalingAspects", aspects={"a": {"max_scale_level": 3, "step_deltas": ["s", "s", "l"]}}),
    policy("VduScalingAspectDeltas", "V", "W", aspect="a", deltas=numbered(s=1, l=4)),
    policy("VduInitialDelta", "V", initial_delta={"number_of_instances": 2}),
    policy("InstantiationLevels", levels={"big": {"scale_info": {"a": {"scale_level": 3}}}}),
]
"""Steps that differ; W has no initial delta."""


@pytest.fixture
def tackers() -> Scaling:
    policies = yaml.safe_load(SAMPLE.read_text())["topology_template"]["policies"]
    return Scaling.of(policies, PROFILES)


def test_the_sample_of_tackers_client_is_read(tackers: Scaling) -> None:
    assert tackers.default_level == "instantiation_level_1"
    assert tackers.level(None) == Level({"worker_instance": 0}, {"VDU1": 1, "VDU2": 1})
    largest = Level({"worker_instance": 2}, {"VDU1": 3, "VDU2": 1})
    assert tackers.level("instantiation_level_2") == largest
    aspect = tackers.aspects["worker_instance"]
    assert (aspect.max_level, aspect.deltas) == (2, {"VDU2": (1, 1)})
    assert tackers.limits == {"VDU2": (1, 3)}


def test_the_limits_are_those_of_the_vdu_profiles_in_the_vnfd(tmp_path: Path) -> None:
    with csar.open_package(str(scalable.package(tmp_path))) as opened:
        (flavour,) = opened.flavours
    assert flavour.scaling.limits == {"VDU1": (1, 1), "VDU2": (1, 3)}


def test_the_only_level_is_the_default_one_and_its_numbers_follow_from_the_aspects() -> None:
    scaling = Scaling.of(GROWING, {})
    assert scaling.level(None) == Level({"a": 3}, {"V": 2 + 1 + 1 + 4})


def test_a_vnfd_without_policies_says_nothing() -> None:
    for policies in (None, [], {}, [{"x": None}], "text"):
        assert Scaling.of(policies, {}) == Scaling()
    assert Scaling().level(None) == Level({}, {})


@pytest.mark.parametrize(
    ("level", "steps", "now", "numbers"),
    [
        (0, 1, {"V": 2, "W": 1}, {"V": 3, "W": 2}),
        (0, 3, {"V": 2, "W": 1}, {"V": 8, "W": 7}),
        (3, -1, {"V": 8, "W": 7}, {"V": 4, "W": 3}),
        (3, -3, {"V": 8, "W": 7}, {"V": 2, "W": 1}),
        (1, 1, {}, {"V": 1, "W": 1}),
    ],
)
def test_each_step_has_its_own_delta(
    level: int, steps: int, now: dict[str, int], numbers: dict[str, int]
) -> None:
    assert Scaling.of(GROWING, {}).scaled_instances("a", level, steps, now) == numbers


@pytest.mark.parametrize(
    ("aspect", "level", "steps", "now", "message"),
    [
        ("b", 0, 1, 1, r"aspectId: .*\(the VNFD has worker_instance\), found b"),
        ("worker_instance", 2, 1, 3, "at scale level 2, .* from 0 to 2 .*, found 3"),
        ("worker_instance", 0, -1, 1, "at scale level 0, .* found -1"),
        ("worker_instance", 1, 1, 3, "VDU2 would have 4 instances, expected 1 to 3"),
        ("worker_instance", 1, -1, 1, "VDU2 would have 0 instances, expected 1 to 3"),
    ],
)
def test_what_the_vnfd_does_not_allow_is_refused_with_what_it_does(
    tackers: Scaling, aspect: str, level: int, steps: int, now: int, message: str
) -> None:
    with pytest.raises(PackageError, match=message):
        tackers.scaled_instances(aspect, level, steps, {"VDU2": now})
