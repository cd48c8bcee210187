# SPDX-License-Identifier: Apache-2.0
"""A change of the package that also changes how a workload's pods are replaced."""

from __future__ import annotations

from typing import Any

import pytest

from container_update import UpdateFailedError, change_package
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.manifests import workload
from tests.functional.upgrade_types import ROLLING

ROLLS, ON_DELETE = ("updateStrategy: {type: RollingUpdate}", "updateStrategy: {type: OnDelete}")
STRATEGIES = pytest.mark.parametrize(
    ("now", "then"), [(ROLLS, ON_DELETE), (ON_DELETE, ROLLS)], ids=["to OnDelete", "from OnDelete"]
)
KINDS = pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])


def change(cnf: Cnf, manifest: str) -> Any:
    """Change the package of a CNF whose workload is w to one with this manifest."""
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": ROLLING}}
    packages = {"old": cnf.old, "new": cnf.package({"w.yaml": manifest})}
    return change_package(body, cnf.admin, cnf.options, **packages, **cnf.where)


def images(cnf: Cnf, kind: str) -> set[str]:
    return {pod.image for pod in cnf.pods(kind, "w").values()}


@KINDS
@STRATEGIES
def test_the_pods_are_replaced_as_the_new_strategy_says(
    cnf: Cnf, kind: str, now: str, then: str
) -> None:
    cnf.instantiate(w=workload(kind, spec=now, replicas=2))
    change(cnf, workload(kind, spec=then, replicas=2, image=IMAGES[1]))
    assert images(cnf, kind) == {IMAGES[1]}


@KINDS
@STRATEGIES
def test_an_undo_replaces_them_as_the_old_strategy_says(
    cnf: Cnf, kind: str, now: str, then: str
) -> None:
    cnf.instantiate(w=workload(kind, spec=now, replicas=2))
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        change(cnf, workload(kind, spec=then, replicas=2, image=BAD_IMAGE))
    assert images(cnf, kind) == {IMAGES[0]}
