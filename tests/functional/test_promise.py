# SPDX-License-Identifier: Apache-2.0
"""An update is never left half done: random packages, drift and faults against a model.

The model defines in a few lines the result of an update, without plans, steps or waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from container_update import (
    ContainerUpdateError,
    LeaseLostError,
    UndoIncompleteError,
    UpdateFailedError,
)
from container_update.emulator.faults import Fault
from tests.circles import Circle, in_circles
from tests.examples import examples
from tests.functional import matrix
from tests.functional.conftest import overwrite
from tests.functional.manifests import config_map, secret, workload
from tests.functional.promise import Checker, Expected, Running, settled
from tests.functional.real import REAL
from tests.functional.reference_update import Files, Lab
from tests.internals.core import Json, ObjectKey

KEYS = ("a", "b")
VALUES = ("1", "2", "3")
BAD = "bad:missing"


# --- the world ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """A ConfigMap or Secret through drift and update."""

    kind: str
    name: str
    retyped: bool
    """A Secret whose type changes with its content: it is deleted and created."""
    old: Mapping[str, str]
    drifted: Mapping[str, str]
    """What is live when the update begins."""
    new: Mapping[str, str]

    def manifest(self, data: Mapping[str, str]) -> str:
        if self.kind == "Secret":
            kind = f"example.org/{'-'.join(data.values())}" if self.retyped else "Opaque"
            return secret(self.name, kind, **data)
        return config_map(self.name, **data)

    def touches(self, key: str) -> bool:
        """Tell whether the update changes what a user of this key gets."""
        return self.drifted != self.new if self.retyped else self.drifted[key] != self.new[key]


@dataclass(frozen=True)
class Work:
    """A workload through drift and update."""

    kind: str
    name: str
    uses: tuple[tuple[Config, str], ...]
    """Objects and keys that are in its environment."""
    pods: int
    old: str
    drifted: str
    """The live image when the update begins."""
    new: str

    def manifest(self, image: str) -> str:
        lines = ["env:"]
        for config, key in self.uses:
            source = "configMapKeyRef" if config.kind == "ConfigMap" else "secretKeyRef"
            lines.append(f"- name: {_variable(config, key)}")
            lines.append(f"  valueFrom: {{{source}: {{name: {config.name}, key: {key}}}}}")
        container = "\n".join(lines) if self.uses else ""
        replicas = self.pods if self.kind not in ("Pod", "DaemonSet") else None
        # on one node, so that a DaemonSet has one pod
        pod = "nodeSelector: {kubernetes.io/hostname: node-1}" if self.kind == "DaemonSet" else ""
        parts = {"container": container, "pod": pod, "image": image, "replicas": replicas}
        return workload(self.kind, self.name, **parts)  # type: ignore[arg-type]

    def running_again(self) -> Running:
        """What runs after an undo: a replaced pod has the configuration that drift left."""
        env = {_variable(c, k): frozenset({c.old[k], c.drifted[k]}) for c, k in self.uses}
        return Running(self.drifted, env, self.pods)

    def env_before(self) -> dict[str, str]:
        """The environment before the update: a pod replaced by drift has drifted configuration."""
        replaced = self.old != self.drifted
        return {_variable(c, k): (c.drifted if replaced else c.old)[k] for c, k in self.uses}

    def running_before(self) -> Running:
        return Running(self.drifted, self.env_before(), self.pods)

    def running_after(self) -> Running:
        """What runs after the update: the rule of the whole project in two lines."""
        moved = self.old != self.new and self.drifted != self.new
        touched = any(config.touches(key) for config, key in self.uses)
        after = {_variable(config, key): config.new[key] for config, key in self.uses}
        image = self.new if self.old != self.new else self.drifted
        return Running(image, after if moved or touched else self.env_before(), self.pods)


def _variable(config: Config, key: str) -> str:
    return f"{config.kind}_{config.name}_{key}".upper().replace("-", "_")


@dataclass(frozen=True)
class World:
    """A CNF, an update of it, and what happens meanwhile."""

    configs: tuple[Config, ...]
    works: tuple[Work, ...]
    faults: tuple[tuple[str, int], ...]
    """What happens to which request."""

    def files(self, moment: str) -> Files:
        parts: tuple[Config | Work, ...] = (*self.configs, *self.works)
        return {part.name: part.manifest(getattr(part, moment)) for part in parts}

    @property
    def before(self) -> Expected:
        return Expected(
            {(c.kind, c.name): c.drifted for c in self.configs},
            {(w.kind, w.name): w.running_before() for w in self.works},
        )

    @property
    def put_back(self) -> Expected:
        return replace(
            self.before, workloads={(w.kind, w.name): w.running_again() for w in self.works}
        )

    @property
    def after(self) -> Expected:
        return Expected(
            {(c.kind, c.name): c.new for c in self.configs},
            {(w.kind, w.name): w.running_after() for w in self.works},
        )

    @property
    def is_good(self) -> bool:
        return not any(work.new == BAD for work in self.works)


# --- how it is drawn ----------------------------------------------------------------------------

DATA = st.fixed_dictionaries({key: st.sampled_from(VALUES) for key in KEYS})


@st.composite
def configs(draw: st.DrawFn, number: int) -> Config:
    kind = draw(st.sampled_from(["ConfigMap", "Secret"]))
    retyped = kind == "Secret" and draw(st.booleans())
    old = draw(DATA)
    drifted = old if retyped else draw(st.one_of(st.just(old), DATA))
    return Config(kind, f"c{number}", retyped, old, drifted, draw(st.one_of(st.just(old), DATA)))


@st.composite
def works(draw: st.DrawFn, number: int, known: tuple[Config, ...]) -> Work:
    kind = draw(st.sampled_from(["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Pod"]))
    pairs = st.tuples(st.sampled_from(known), st.sampled_from(KEYS))
    uses = draw(st.lists(pairs, max_size=3, unique_by=lambda pair: (pair[0].name, pair[1])))
    pods = 1 if kind in ("Pod", "DaemonSet") else draw(st.integers(1, 2))
    drifted = "app:drift" if kind == "Deployment" and draw(st.booleans()) else "app:1"
    new = draw(st.sampled_from(["app:1", "app:2", "app:2", BAD]))
    return Work(kind, f"w{number}", tuple(uses), pods, "app:1", drifted, new)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    some = tuple(draw(configs(number)) for number in range(draw(st.integers(1, 3))))
    more = tuple(draw(works(number, some)) for number in range(draw(st.integers(1, 4))))
    fault = st.tuples(st.sampled_from(sorted(matrix.TROUBLE)), st.integers(1, 40))
    return World(some, more, tuple(draw(st.lists(fault, max_size=2))))


# --- the property -------------------------------------------------------------------------------


def drift(lab: Lab, namespace: str, world: World) -> None:
    """Change objects by hand and let the pods follow."""

    def change(key: ObjectKey, edit: Callable[[Json], None]) -> None:
        live = lab.admin.get(key)
        assert live is not None
        edit(live)
        overwrite(lab.admin, live)

    for config in world.configs:
        if config.drifted != config.old:
            field = "stringData" if config.kind == "Secret" else "data"
            drifted = {field: dict(config.drifted)}
            key = ObjectKey("", config.kind, namespace, config.name)
            change(key, lambda body, drifted=drifted: body.update(drifted))  # type: ignore[misc]
    for work in world.works:
        if work.drifted != work.old:
            key = ObjectKey("apps", "Deployment", namespace, work.name)
            change(key, partial(set_image, work.drifted))


def set_image(image: str, body: Json) -> None:
    """Write another image into a workload's template."""
    body["spec"]["template"]["spec"]["containers"][0]["image"] = image


@in_circles(*Circle)
def test_an_update_leaves_the_new_state_or_the_old_one(lab: Lab, circle: Circle) -> None:
    number = 10 if REAL else 30
    examples(number, circle)(given(world=worlds())(leaves_the_new_state_or_the_old_one))(lab)


def leaves_the_new_state_or_the_old_one(lab: Lab, world: World) -> None:
    namespace = lab.deploy(world.files("old"))
    try:
        drift(lab, namespace, world)
        unsettled = Checker(lab.server, namespace)
        wrong = settled(lambda: unsettled.differences(world.before, as_before=False))
        assert wrong == [], "the model of what was there is wrong"
        check(lab, namespace, world)
    finally:
        lab.remove(namespace)


def check(lab: Lab, namespace: str, world: World) -> None:
    checker = Checker(lab.server, namespace)
    request = lab.request(namespace, world.files("old"), world.files("new"))
    faults = [Fault(matrix.TROUBLE[name], nth=nth) for name, nth in world.faults]
    expected = put_back = world.put_back
    with lab.script(namespace, *faults):
        try:
            lab.update(request)
            expected = world.after
        except (UndoIncompleteError, LeaseLostError) as error:
            note(f"to be put right: {error}")
        except ContainerUpdateError as error:
            note(f"undone: {error}")
    lab.free_leases(namespace)
    if expected is put_back:
        lab.instance(namespace).recover(back=True)
    assert checker.differences(expected, as_before=expected is put_back) == []
    run_again(lab, checker, world)


def run_again(lab: Lab, checker: Checker, world: World) -> None:
    """Run the update again, without faults."""
    request = lab.request(checker.namespace, world.files("old"), world.files("new"))
    if world.is_good:
        lab.update(request)
        assert checker.differences(world.after, as_before=False) == []
    else:
        with pytest.raises(UpdateFailedError, match="Everything is as before"):
            lab.update(request)
        assert checker.differences(world.put_back, as_before=True) == []
    assert checker.left_over() == []
