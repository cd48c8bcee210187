# SPDX-License-Identifier: Apache-2.0
"""What programs read is what the published schema says: no field more, and none less."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from container_update import NextStep, connect, install
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from tests.internals.core import guide_request, main, samples

FILE = resources.files("container_update.reports").joinpath("schema.json")
SCHEMA = json.loads(FILE.read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
GUIDE = guide_request("v1")
BLUE_GREEN = samples.root() / "04-blue-green"
FAST = ("--grace-period", "0.5", "--drain-seconds", "0.1")


@dataclass
class Programs:
    """Runs commands as programs do, and keeps all documents that they wrote."""

    embedded: EmbeddedCluster
    kubeconfig: str
    documents: list[dict[str, Any]] = field(default_factory=list)

    def run(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        """Run a command that connects to the cluster."""
        return self.read(*arguments, "--kubeconfig", self.kubeconfig)

    def read(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        """Run a command; return its exit status and its documents, or the lines of its stream."""
        out = io.StringIO()
        status = main(arguments, out)
        is_stream = "--progress" in arguments
        texts = out.getvalue().splitlines() if is_stream else [out.getvalue()]
        documents = [json.loads(text) for text in texts]
        self.documents += documents
        return status, documents


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """The CNFs of two samples, each with all that an operator's scripts may ask for done to it."""
    with EmbeddedCluster(behaviour=Behaviour()) as embedded:
        folder = tmp_path_factory.mktemp("programs")
        kubeconfig = str(embedded.write_kubeconfig(folder / "kubeconfig"))
        with connect(kubeconfig) as cluster:
            install(GUIDE.old, cluster, def_files=GUIDE.def_files)
            metadata = {"name": "blue"}
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            old = str(BLUE_GREEN / "before")
            install(old, cluster, namespace="blue", instance_id="sample-04")
        programs = Programs(embedded, kubeconfig)
        update_the_guides_cnf(programs)
        change_the_sample(programs)
        check(programs, folder)
        yield programs


def update_the_guides_cnf(programs: Programs) -> None:
    packages = (GUIDE.old, GUIDE.new)
    assert programs.run("plan", *packages, "-o", "json")[0] == 3
    assert programs.run("plan", "no-package", GUIDE.new, "-o", "json")[0] == 4
    programs.embedded.behaviour.bad_images.append("cirros")
    assert programs.run("apply", *packages, *FAST, "-o", "json")[0] == 7
    status, events = programs.run("apply", *packages, *FAST, "--progress", "json")
    assert (status, events[-1]["kind"]) == (7, "Error")
    assert "cirros" in events[-1]["message"]
    assert {result["state"] for result in events[-1]["outcome"]["results"]} == {"undone"}
    programs.embedded.behaviour.bad_images.clear()
    assert programs.run("apply", *packages, "--progress", "json")[0] == 0
    assert programs.run("apply", *packages, "-o", "json")[0] == 2
    assert programs.run("history", "-o", "json")[0] == 0
    assert programs.run("history", "--last", "-o", "json")[0] == 0
    assert programs.run("undo", "--plan", "-o", "json")[0] == 3
    assert programs.run("list", "-A", "-o", "json")[0] == 0
    assert programs.run("history", "-A", "-o", "json")[0] == 0
    assert programs.run("status", "-o", "json")[0] == 2
    assert programs.run("resume", "-o", "json")[0] == 2
    assert programs.run("rollback", "--progress", "json")[0] == 2


def change_the_sample(programs: Programs) -> None:
    instance = ("--namespace", "blue", "--instance-id", "sample-04", *FAST)
    packages = (str(BLUE_GREEN / "before"), str(BLUE_GREEN / "after"))
    request = ("--request", str(BLUE_GREEN / "request.json"))
    change = ("change", *packages, *request, *instance)
    assert programs.run(*change, "--plan", "-o", "json")[0] == 3
    programs.embedded.behaviour.bad_images.append("nginx:1.28*")
    assert programs.run(*change, "--leave-failed", "-o", "json")[0] == 7
    assert programs.run("status", *instance, "-o", "json")[0] == 0
    programs.embedded.behaviour.bad_images.clear()
    assert programs.run("rollback", *instance, "--progress", "json")[0] == 0
    assert programs.run(*change, "--progress", "json")[0] == 0
    assert programs.run(*change, "-o", "json")[0] == 2


def check(programs: Programs, folder: Path) -> None:
    assert programs.run("doctor", GUIDE.old, "-o", "json")[0] == 0
    assert programs.read("doctor", "--kubeconfig", str(folder / "none"), "-o", "json")[0] == 6
    assert programs.read("csar", "check", GUIDE.old, "-o", "json")[0] == 0
    assert programs.run("version", "-o", "json")[0] == 0


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("step", NextStep, ids=lambda each: each.value)
def test_the_schema_has_every_next_step(step: NextStep) -> None:
    told = {"error": "PlanError", "message": "m", "nextStep": step.value, "advice": ""}
    VALIDATOR.validate({"apiVersion": "container-update/v1", "kind": "Error", **told})


def test_every_document_and_every_line_of_a_stream_is_as_the_schema_says(
    programs: Programs,
) -> None:
    faults = [
        f"{document.get('kind')} {fault.json_path}: {fault.message}"
        for document in programs.documents
        for fault in errors(document)
    ]
    assert faults == []


def errors(document: dict[str, Any]) -> Iterator[Any]:
    """Yield what is wrong with a document, by the part of the schema that its kind names."""
    name = {
        "plan": "PlanEvent",
        "step": "StepEvent",
        "result": "StepEvent",
        "waiting": "WaitEvent",
    }.get(document.get("event", ""), document.get("kind"))
    part = "TurnEvent" if name == "Event" else name
    if part in SCHEMA["$defs"]:  # "not one of these" would not say which field is wrong
        chosen = {**SCHEMA["$defs"][part], "$defs": SCHEMA["$defs"]}
        yield from VALIDATOR.evolve(schema=chosen).iter_errors(document)
    yield from VALIDATOR.iter_errors(document)


def test_each_field_of_the_schema_is_written_by_some_command(programs: Programs) -> None:
    seen: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            seen.update(value)
            for each in value.values():
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    look(programs.documents)
    named = {
        name
        for part in (SCHEMA["$defs"], SCHEMA["$defs"]["reason"]["oneOf"])
        for definition in (part.values() if isinstance(part, dict) else part)
        for name in definition.get("properties", ())
    }
    assert named - seen == {"cloud", "stack"}  # of Heat


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plan: plan.update(surprise=1),
        lambda plan: plan.pop("unchanged"),
        lambda plan: plan["steps"][0].update(surprise=1),
        lambda plan: plan["steps"][0].update(action="explode"),
        lambda plan: plan["steps"][-1]["reasons"][0].update(surprise=1),
        lambda plan: plan.update(apiVersion="container-update/v2"),
    ],
)
def test_a_document_with_another_field_is_refused(
    programs: Programs, spoil: Callable[[dict[str, Any]], object]
) -> None:
    plan = json.loads(json.dumps(programs.documents[0]))
    assert VALIDATOR.is_valid(plan)
    spoil(plan)
    assert not VALIDATOR.is_valid(plan)
