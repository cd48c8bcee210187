# SPDX-License-Identifier: Apache-2.0
"""A file whose last line has no line end: objects that kubectl made of it, and that Tacker made.

The ConfigMap and the Secret end as those of Tacker's package test_cnf_container_update_before do.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.model.options import DEFAULTS, Options
from container_update.model.plan import Plan
from container_update.package.manifests import parse
from container_update.planning.comparison.diff import content
from container_update.planning.comparison.match import match
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.rolling import RollingPlanner
from container_update.planning.update import make_plan
from tests.unit.build import by_identity, live

OLD = {
    "configmap": """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: cm-data
data:
  other: text
  cmKey1.txt: |
    configmap data
    foo
    bar""",
    "secret": """\
apiVersion: v1
kind: Secret
metadata:
  name: sec-one
stringData:
  password: 1mbb1G968fb1CUg
  cmKey1.txt: |
    secret data
    baz""",
}


def by_kubectl(text: str) -> Json:
    return dict(yaml.safe_load(text + "\n"))


def by_tacker(text: str) -> Json:
    return dict(yaml.safe_load(text))


def update(old: tuple[Manifest, ...], new: tuple[Manifest, ...], there: Json) -> Plan:
    pairs = match({"f.yaml": old}, {}, {"f.yaml": new}, {})
    return make_plan(pairs, by_identity(there), namespace="ns")


def change(old: tuple[Manifest, ...], new: tuple[Manifest, ...], there: Json) -> Plan:
    packages = Packages(by_key(old), by_key(new), {}, {}, "new", ("f.yaml",))
    return RollingPlanner(packages, by_identity(there), "ns", None).plan()


def by_key(manifests: tuple[Manifest, ...]) -> dict[ObjectKey, Manifest]:
    return {manifest.key: manifest for manifest in manifests}


def planned(plan: Any, old: str, new: str, there: Json, options: Options = DEFAULTS) -> Plan:
    before, after = (parse(text.encode(), "f.yaml", "ns", options=options) for text in (old, new))
    plan_ = plan(before, after, there)
    assert isinstance(plan_, Plan)
    return plan_


@pytest.mark.parametrize("options", [DEFAULTS, DEFAULTS.for_vnfm()])
@pytest.mark.parametrize("plan", [update, change])
@pytest.mark.parametrize("creator", [by_kubectl, by_tacker])
@pytest.mark.parametrize("kind", OLD)
def test_a_file_that_stays_is_no_change_whoever_made_the_object(
    plan: Any, creator: Any, kind: str, options: Options
) -> None:
    assert planned(plan, OLD[kind], OLD[kind], live(creator(OLD[kind])), options).steps == ()


@pytest.mark.parametrize("plan", [update, change])
@pytest.mark.parametrize("creator", [by_kubectl, by_tacker])
@pytest.mark.parametrize("changed", ["text", "CUg", "ba", "foo"])
@pytest.mark.parametrize("kind", OLD)
def test_a_file_that_changes_is_read_as_by_whoever_made_the_object(
    plan: Any, creator: Any, changed: str, kind: str
) -> None:
    new = OLD[kind].replace(changed, f"new {changed}")
    there = live(creator(OLD[kind]))
    for step in planned(plan, OLD[kind], new, there).steps:
        assert content(step.with_change(there)) == content(creator(new))
    assert bool(planned(plan, OLD[kind], new, there).steps) == (new != OLD[kind])


@pytest.mark.parametrize(
    ("options", "reader"), [(DEFAULTS, by_kubectl), (DEFAULTS.for_vnfm(), by_tacker)]
)
def test_an_object_that_somebody_else_changed_is_read_as_the_host_does(
    options: Options, reader: Any
) -> None:
    there = live(by_tacker(OLD["configmap"].replace("foo", "edited")))
    (step,) = planned(update, OLD["configmap"], OLD["configmap"], there, options).steps
    assert content(step.with_change(there)) == content(reader(OLD["configmap"]))
