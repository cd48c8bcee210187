# SPDX-License-Identifier: Apache-2.0
"""A VDU that is a custom resource, in Tacker: the kind is the sample's plugin."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.rollouts.controller import DEFINITION, Rollouts
from tests.tacker.conftest import SAMPLES, Kubectl, instantiated, onboarded
from tests.tacker.operator import Operator
from tests.tacker.services import Tacker
from tests.tacker.test_lifecycle import (
    Edit,
    Edited,
    assert_removed,
    edited,
    modification,
    recorded,
)

__all__ = ["edited"]
SAMPLE = SAMPLES / "08-custom-resource"
MANIFEST = "Files/kubernetes/rollout.yaml"


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(controllers=[Rollouts]) as running:
        yield running


def with_rollout(side: str) -> tuple[str, Edit]:
    """One of the guide's packages with the sample's VDU, as the sample's README says."""
    shown = (SAMPLE / "README.rst").read_text()
    mapping, vdu = (
        textwrap.dedent(text) for text in re.findall(r"code-block:: yaml\n\n((?: {6}.*\n)+)", shown)
    )

    def edit(folder: Path) -> None:
        shutil.copy(SAMPLE / side / MANIFEST, folder / MANIFEST)
        file = folder / "Definitions/df_simple.yaml"
        text = file.read_text().replace(", VDU8]", ", VDU8, VDU9]")
        text = text.replace("        Vnflcm:\n", f"        Vnflcm:\n{indented(mapping, 10)}")
        file.write_text(text.replace("    VDU1:\n", f"{indented(vdu, 4)}\n    VDU1:\n", 1))

    return side, edit


def indented(text: str, spaces: int) -> str:
    return textwrap.indent(text, " " * spaces)


def front(kubectl: Kubectl) -> list[str]:
    return sorted(name for name in kubectl.pods() if name.startswith("front-"))


def test_a_custom_resource_is_instantiated_updated_healed_and_terminated(
    tacker: Tacker, cluster: EmbeddedCluster, kubectl: Kubectl, edited: Edited
) -> None:
    kubectl.define(DEFINITION)
    operator = Operator(tacker, "v2")
    build = edited({"old": with_rollout("before"), "new": with_rollout("after")})
    old, new = onboarded(operator, build, "old", "new")

    instance_id = instantiated(operator, cluster, old, MANIFEST)

    first = front(kubectl)
    assert len(first) == 2
    instance = operator.show(instance_id)
    assert recorded(instance) == sorted(kubectl.pods())
    assert instance["instantiatedVnfInfo"]["metadata"]["vdu_reses"]["VDU9"]["kind"] == "Rollout"

    listed = modification("v2", new, configmap_secret_paths=[MANIFEST])
    occurrence = operator.modify(instance_id, listed)

    assert occurrence["operationState"] == "COMPLETED", occurrence
    second = front(kubectl)
    assert len(second) == 2
    assert not set(first) & set(second)
    assert recorded(operator.show(instance_id)) == sorted(kubectl.pods())

    occurrence = operator.operate(instance_id, "heal", {"cause": "all of it"})

    assert occurrence["operationState"] == "COMPLETED", occurrence
    assert not set(front(kubectl)) & set(second)
    assert recorded(operator.show(instance_id)) == sorted(kubectl.pods())

    assert_removed(operator, instance_id, kubectl)
    assert kubectl.names("Rollout", "argoproj.io") == set()
