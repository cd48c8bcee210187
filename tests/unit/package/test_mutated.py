# SPDX-License-Identifier: Apache-2.0
"""A package with something wrong in its manifests is planned, or refused with an error of ours."""

from __future__ import annotations

import contextlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from container_update import plan_update
from container_update.model.errors import ContainerUpdateError
from container_update.model.requests import UpdateRequest
from tests import mutations
from tests.circles import Circle, in_circles
from tests.examples import examples
from tests.hostile import CNF, cnf, text_of
from tests.packages import write_folder
from tests.unit.fakes import FakeCluster

OBJECTS: list[Any] = [
    *cnf(),
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "service", "namespace": "ns"},
        "spec": {"selector": {"app": "w"}, "ports": [{"port": 80}], "type": "ClusterIP"},
    },
]


class Packages:
    """The package that runs, and those with something wrong in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers = itertools.count()
        self.old = self.write(OBJECTS)

    def write(self, objects: Any) -> str:
        return write_folder(self.folder / str(next(self.numbers)), {CNF: text_of(objects)})

    def plan(self, new: str) -> None:
        live = (body for body in OBJECTS if body["kind"] != "Thing")
        plan_update(UpdateRequest(self.old, new, namespace="ns"), FakeCluster(*live))


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(tmp_path_factory.mktemp("mutated"))


def test_the_package_that_the_others_are_made_of_is_planned(packages: Packages) -> None:
    packages.plan(packages.old)


@in_circles(*Circle)
def test_a_package_with_something_wrong_in_it_is_no_defect_of_ours(
    packages: Packages, circle: Circle
) -> None:
    @examples(150, circle)
    @given(changes=mutations.mutations(OBJECTS))
    def is_no_defect(changes: list[mutations.Mutation]) -> None:
        mutated = mutations.mutated(OBJECTS, *changes)
        with contextlib.suppress(ContainerUpdateError):
            packages.plan(packages.write(mutated))

    is_no_defect()


@pytest.mark.parametrize("changes", mutations.stored("packages.jsonl"), ids=json.dumps)
def test_a_package_that_once_went_wrong_is_refused(changes: Any, packages: Packages) -> None:
    mutated = mutations.mutated(OBJECTS, *changes)
    with pytest.raises(ContainerUpdateError, match="expected"):
        packages.plan(packages.write(mutated))
