# SPDX-License-Identifier: Apache-2.0
"""A journal, a revision or an instance's record with something wrong in it is an error that names
its Secret, or one that an undo can work with: nothing between."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from container_update.cluster import operation_codec as codec
from container_update.cluster import operation_schema as schemas
from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.operation import Operation, Origin, Result, Revision
from container_update.model.errors import ContainerUpdateError, UpdateInProgressError
from container_update.model.objects import Json, ObjectKey
from container_update.model.packing import unpack
from container_update.model.pauses import GateStep, HoldStep
from container_update.model.plan import Action, Step
from container_update.model.scripts import ScriptStep, VduChange
from container_update.planning.steps import (
    ConfigStep,
    ManifestStep,
    ObjectStep,
    PodsStep,
    RestartStep,
    ScaleStep,
)
from container_update.planning.steps.codec import step_to_dict
from tests import mutations
from tests.circles import Circle, in_circles
from tests.unit.cluster.test_foreign_journal import (
    CONTENT,
    END,
    HEAD,
    KEY,
    as_json,
    journal_of,
    secret,
)

KINDS = (
    *("dropped", "null", "infinity", "true", "a text"),
    *("a list of a number", "a mapping", "depth"),
)
BOTH = in_circles(Circle.DEFAULT, Circle.THOROUGH)
PACKAGE = {"source": "a.zip", "product": "upf", "version": "1", "sha256": "0"}
ORIGIN = {
    "kind": "update", "user": "u", "host": "h", "packages": [PACKAGE], "undoes": None,
    "scripts": {"new": "a.py"}, "why": "w",
}  # fmt: skip
SERVICE = ObjectKey("", "Service", "ns", "x")
CM = {"group": "", "kind": "ConfigMap", "namespace": "ns", "name": "cm"}


def body(kind: str, **more: Any) -> Json:
    version = "v1" if kind in ("ConfigMap", "Secret", "Service") else "apps/v1"
    metadata = {"name": "x", "namespace": "ns", "uid": "u", "labels": {"a": "b"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def workload() -> Json:
    template = {
        "metadata": {
            "labels": {"app": "w"},
            "annotations": {"container-update/config-digest": "d"},
        },
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }
    selector = {"matchLabels": {"app": "w"}}
    return body("Deployment", spec={"replicas": 2, "selector": selector, "template": template})


def steps() -> list[ObjectStep]:
    config, deployment = (
        ObjectKey("", "ConfigMap", "ns", "x"),
        ObjectKey("apps", "Deployment", "ns", "x"),
    )
    service = body("Service", spec={"selector": {"app": "w"}, "ports": [{"port": 80}]})
    before = body("ConfigMap", data={"k": "old", "gone": "x"})
    return [
        ConfigStep(
            config,
            Action.REPLACE,
            before,
            body("ConfigMap", data={"k": "new"}),
            removed=("gone",),
            dropped=(("labels", "a"),),
        ),
        RestartStep(deployment, Action.ROLL, workload(), images={"main": "app:2"}, digest="e"),
        ManifestStep(
            ObjectKey("", "Service", "ns", "x"),
            Action.REPLACE,
            service,
            content=service,
            mends=True,
        ),
        ManifestStep(deployment, Action.REPLACE, workload(), content=workload(), digest="e"),
        ScaleStep(deployment, Action.SCALE, workload(), replicas=3),
        PodsStep(deployment, Action.REPLACE_PODS, workload(), pods=(("pod", "uid"),)),
    ]


def pauses() -> list[Step]:
    vdu = VduChange(
        "VDU1",
        "web",
        "web-2",
        {"group": "apps", "kind": "Deployment", "namespace": "ns", "services": []},
    )
    script = ScriptStep.of("new", "Scripts/a.py", vdu)
    gate = GateStep.of("canary", "up", at_least=1.0)
    return [script, HoldStep.of("canary", 1.0), replace(gate, script=script)]


STEPS = [json.loads(json.dumps(step_to_dict(step))) for step in (*steps(), *pauses())]
CONTEXT: Json = {
    "request": {"vnfdId": "v"},
    **{"old": "", "new": "", "defFiles": ["a.yaml"], "oneNamespace": False, "instance": {}},
    "facts": {name: {"a": "b"} for name in ("names", "network", "storage")},
}
RIGHT: Json = {
    "head": {**HEAD, "origin": ORIGIN},
    "content": {
        **CONTENT,
        "steps": STEPS,
        "podsBefore": [[CM, ["uid"]]],
        "objects": [CM],
        "context": CONTEXT,
        "defFiles": ["a.yaml"],
    },
}
INSTANCE: Json = {
    "package": PACKAGE,
    "manifests": [[CM, "a.yaml", 1, body("ConfigMap", data={"k": "v"})]],
    "defFiles": ["a.yaml"],
    "vdus": {"VDU1": "x"},
}


def every(value: Any, circle: Circle) -> Iterator[Any]:
    """Yield the value with each of its places mutated in each way, or in one way each."""
    ways = itertools.product(mutations.places(value), KINDS)
    for mutation in itertools.islice(ways, None, None, 7 if circle is Circle.DEFAULT else 1):
        yield mutations.mutated(value, mutation)


def packed(value: Any) -> bytes:
    return gzip.compress(json.dumps(value).encode(), compresslevel=1)


def use(found: tuple[ObjectStep, ...]) -> None:
    """Ask the steps what an undo asks."""
    lives = [step.before for step in steps()]
    for step, live in zip(found, lives, strict=False):
        if step.before is None or live is None or step.action is Action.DELETE:
            continue
        if isinstance(step, ManifestStep) and step.content is None:
            continue
        step.with_change(live)
        step.without_change(live)
        for ask in (step.is_applied, step.is_restored, step.is_own, step.has_traces):
            ask(live)
        with contextlib.suppress(KeyError):  # without a uid it is another object
            step.is_untouched(live)


def test_each_type_of_step_is_mutated_and_has_a_schema_of_all_its_fields() -> None:
    """What a step has besides would be read from the cluster as another client wrote it."""
    names = {each["type"]: each.keys() - {"type"} for each in STEPS}
    without = {name: fields - schemas._STEPS[name].fields.keys() for name, fields in names.items()}
    assert names.keys() == schemas._STEPS.keys()
    assert not any(without.values()), without


def test_each_part_of_a_record_is_mutated_and_has_a_schema_of_all_its_fields() -> None:
    common = {"format", "operation", "host", "started", "goal", "instance_id"}
    origin = {"kind": "update", "user": "u", "host": "h"}
    running = Operation(**dict.fromkeys(common - {"format"}, "x"), origin=Origin(**origin))
    ended = {"ended": "", "seconds": 1.0, "result": Result.DONE, "changes": 1, "journal": "u"}
    data = codec.encode(Revision(**vars(running), number=1, **ended), "ns").head
    head, content = json.loads(data["operation"]), unpack(data["content"])
    record = unpack(InstanceRecord(None, ()).encode("ns"))
    for written, schema, right in (
        ({name: head[name] for name in head.keys() - common}, schemas.HEAD, RIGHT["head"]),
        (head["origin"], schemas.ORIGIN, RIGHT["head"]["origin"]),
        (head["end"], schemas._END, {**END, "journal": "u"}),
        (content, schemas.CONTENT, RIGHT["content"]),
        (CONTEXT, schemas.CONTEXT, RIGHT["content"]["context"]),
        (record, schemas.INSTANCE, INSTANCE),
    ):
        assert written.keys() == schema.fields.keys()
        assert written.keys() <= right.keys()


PARTS = pytest.mark.parametrize("part", RIGHT)


@PARTS
@BOTH
def test_a_journal_with_something_wrong_in_it_is_an_error_or_of_use(
    part: str, circle: Circle
) -> None:
    assert not isinstance(read(RIGHT), str)
    for mutated in every(RIGHT[part], circle):
        found = read({**RIGHT, part: mutated})
        if isinstance(found, str):
            assert found.startswith((f"{KEY}: the journal is damaged", "the journal has format"))
        else:
            use(found)


def read(values: Json) -> tuple[ObjectStep, ...] | str:
    """Return the steps of a journal, or the error that it is."""
    try:
        record = journal_of(packed(values["content"]), as_json(values["head"])).read()
    except ContainerUpdateError as error:
        return str(error)
    return record.object_steps if record else "no journal"


@PARTS
@BOTH
def test_a_revision_with_something_wrong_in_it_is_an_error_or_of_use(
    part: str, circle: Circle
) -> None:
    right = {**RIGHT, "head": {**RIGHT["head"], "end": END}}
    for mutated in (right[part], *every(right[part], circle)):
        values = {**right, part: mutated}
        content = packed(values["content"])
        with contextlib.suppress(ValueError, UpdateInProgressError):  # of another format
            body = secret(KEY.name, "revision", as_json(values["head"]), content)
            use(codec.decode(body, {}).object_steps)


@BOTH
def test_a_record_of_an_instance_with_something_wrong_in_it_is_an_error_or_of_use(
    circle: Circle,
) -> None:
    for mutated in (INSTANCE, *every(INSTANCE, circle)):
        with contextlib.suppress(ValueError):
            record = InstanceRecord.decode(packed(mutated))
            assert sum(map(len, record.by_path.values())) == len(record.manifests)
            assert all(str(manifest.body) for manifest in record.manifests)
