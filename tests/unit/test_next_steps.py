# SPDX-License-Identifier: Apache-2.0
"""Every error through every front end: each says what to do next, in its own words only."""

from __future__ import annotations

import ast
import importlib
import io
import json
import pickle
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from sqlalchemy.orm import Session

import container_update
from container_update.cli import main as command_line
from container_update.cli.commands import recover
from container_update.drivers import v1_records, v2_process
from container_update.engine.checks.image_check import UnpulledImagesError
from container_update.engine.checks.server_check import RefusedWritesError
from container_update.engine.saved_plan import StalePlanError
from container_update.model.errors import (
    ClusterError,
    ContainerUpdateError,
    NextStep,
    UpdateFailedError,
    with_advice,
)
from container_update.model.outcome import Outcome
from container_update.model.plan import Plan
from container_update.openstack import commands as heat_commands
from container_update.vnfm.lcm.operation_context import NotYetError
from container_update.vnfm.problems import problem_of, requests_of

NOT_IMPORTED = re.compile(r"\.(__main__|tacker_v1|env)$")
"""What runs when it is imported, or needs Tacker; none of it has an error class."""

MESSAGE = "Deployment ns/web: expected 1, found 2"


def every_class() -> list[type[ContainerUpdateError]]:
    """The error classes of the whole package."""
    for module in pkgutil.walk_packages(container_update.__path__, "container_update."):
        if not NOT_IMPORTED.search(module.name):
            importlib.import_module(module.name)
    own = [each for each in family(ContainerUpdateError) if "container_update" in each.__module__]
    return [each for each in own if each is not NotYetError]  # which no front end ever meets


def family(kind: type[ContainerUpdateError]) -> Iterator[type[ContainerUpdateError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from family(each)


def made(kind: type[ContainerUpdateError]) -> ContainerUpdateError:
    if issubclass(kind, UpdateFailedError):
        return kind(Outcome(Plan("ns", None, ())), MESSAGE)
    if issubclass(kind, RefusedWritesError):
        return kind(Plan("ns", None, ()), MESSAGE, ClusterError(MESSAGE))
    if issubclass(kind, UnpulledImagesError):
        return kind(Plan("ns", None, ()), MESSAGE)
    return kind(MESSAGE)


ERRORS = {kind.__name__: lambda kind=kind: made(kind) for kind in every_class()} | {
    step.value: lambda step=step: ContainerUpdateError(MESSAGE, next_step=step) for step in NextStep
}

COMMAND = (
    r"container-update (heat )?(resume|rollback|promote|status|unfreeze) --"
    r"|container-update try samples rbac"
    r"|[Rr]un the (same )?command again"
)
API = r"POST /vnflcm/v2/vnf_lcm_op_occs/7/(retry|rollback|fail)\b"
TACKER_V1 = r"openstack vnflcm modify\b"
TACKER_V2 = r"openstack vnflcm op (retry|rollback|fail) "
FOREIGN = {
    COMMAND: r"openstack|POST /",
    API: r"openstack|container-update |--[a-z]",
    TACKER_V1: r"POST /|container-update |vnflcm op (retry|rollback|fail)",
    TACKER_V2: r"POST /|container-update |vnflcm modify",
}

Said = Callable[[ContainerUpdateError, pytest.MonkeyPatch, pytest.CaptureFixture[str]], str]


def raising(error: ContainerUpdateError) -> Callable[..., NoReturn]:
    def run(*_: object, **__: object) -> NoReturn:
        raise error

    return run


def command(*arguments: str) -> Said:
    def said(
        error: ContainerUpdateError,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> str:
        if "heat" in arguments:
            monkeypatch.setattr(heat_commands, "_recover", raising(error))
        else:
            run = "status" if arguments[0] == "status" else "run"
            monkeypatch.setattr(recover, run, raising(error))
        out = io.StringIO()
        assert command_line.main(arguments, out) == error.exit_status
        return out.getvalue() if "json" in arguments else capsys.readouterr().err

    return said


def as_text(told: str) -> str:
    """The JSON document of an error as the text that a person is shown."""
    body = json.loads(told)
    assert NextStep(body["nextStep"])
    return with_advice(body["message"], body["advice"])


def command_as_json(
    error: ContainerUpdateError,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    return as_text(command("resume", "-n", "cnf", "-o", "json")(error, monkeypatch, capsys))


def problem(**how: bool) -> Said:
    def said(error: ContainerUpdateError, *_: object) -> str:
        return str(problem_of(error, requests_of("v2", "7"), **how)["detail"])

    return said


def v1_driver(error: ContainerUpdateError, monkeypatch: pytest.MonkeyPatch, _: object) -> str:
    monkeypatch.setattr(v1_records, "modify_information_end", raising(error))
    context = SimpleNamespace(session=Session())
    with pytest.raises(type(error)) as caught:
        v1_records.run("modify_information_end", context, "instance")
    return str(caught.value)


def v2_script(operation: str) -> Said:
    def said(error: ContainerUpdateError, monkeypatch: pytest.MonkeyPatch, _: object) -> str:
        return v2_answer(error, monkeypatch, {"operation": operation})[1]

    return said


def v2_answer(
    error: ContainerUpdateError, monkeypatch: pytest.MonkeyPatch, script: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    monkeypatch.setattr(v2_process, "handle", raising(error))
    return v2_process.answer(io.BytesIO(pickle.dumps(script)))


FRONT_ENDS: dict[str, tuple[Said, str]] = {
    "command line, text": (command("resume", "--instance-id", "i"), COMMAND),
    "command line, JSON": (command_as_json, COMMAND),
    "command line, a stack": (command("heat", "rollback", "--stack", "vnf"), COMMAND),
    "service": (problem(), API),
    "service, no rollback": (problem(undoable=False), API),
    "service, rolling back": (problem(undoing=True), API),
    "v1 driver": (v1_driver, TACKER_V1),
    "v2 script": (v2_script("modify_information_end"), TACKER_V2),
    "v2 script, rolling back": (v2_script("modify_information_rollback_start"), TACKER_V2),
}


def says_all(error: ContainerUpdateError) -> bool:
    """The messages about a request, and about what the cluster holds, say what to do."""
    says = error.next_step in (NextStep.FIX_REQUEST, NextStep.FIX_TARGET)
    return says and not isinstance(error, StalePlanError)


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("error", ERRORS)
def test_a_front_end_says_what_to_do_next_in_its_own_words(
    error: str,
    front_end: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said, own_words = FRONT_ENDS[front_end]
    found = ERRORS[error]()
    message = str(found)  # a front end may add to it
    text = said(found, monkeypatch, capsys)
    head, _, advice = text.partition(f"{message}.")
    assert head in ("", "container-update: ")
    advice = advice.strip()
    if own_words is COMMAND and says_all(found):
        assert not advice or "container-update " in advice, "it is the command that the text means"
        return
    assert re.fullmatch(r"[A-Z].*[^.{}]\.\n?", advice)
    assert re.search(own_words, advice)
    assert not re.search(FOREIGN[own_words], advice)


def test_every_error_class_is_looked_at() -> None:
    assert {"NoWayBackError", "ScriptError", "StepError", "VaultError"} < set(ERRORS)


@pytest.mark.parametrize("error", ERRORS)
def test_a_service_that_asks_a_v2_script_for_the_next_step_gets_it_as_a_value(
    error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ERRORS[error]()
    message = str(found)
    answer = v2_answer(found, monkeypatch, {v2_process.NEXT_STEP: None})
    assert answer == ({v2_process.NEXT_STEP: found.next_step.value}, message)


@pytest.mark.parametrize("folder", ["cluster", "engine", "openstack", "package", "planning"])
def test_no_message_below_the_front_ends_names_a_command_of_theirs(folder: str) -> None:
    found = [
        f"{path.name}:{node.lineno}: {text}"
        for path in Path(container_update.__path__[0], folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise)
        for text in [ast.unparse(node)]
        if re.search(r"container-update [a-z]|try samples|openstack |POST|'--|[ (]--[a-z]", text)
    ]
    assert found == []
