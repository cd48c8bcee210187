# SPDX-License-Identifier: Apache-2.0
"""What a person sees of the user guide's update, at two widths.

``RECORD=1`` writes the recordings anew: read the difference before you commit it.
"""

from __future__ import annotations

import getpass
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from container_update import (
    CancelToken,
    StepResult,
    UpdateInterruptedError,
    connect,
    freeze,
    install,
)
from container_update import update as update_cnf
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from tests.functional.cnf import BAD_IMAGE
from tests.internals.core import Event, FrozenError, guide_request, only_instance
from tests.terminal.recorder import Recording, record

RECORDINGS = Path(__file__).with_name("recordings")
REQUEST = guide_request("v1")
WIDTHS = (80, pytest.param(200, marks=pytest.mark.thorough))
ASKED = "[y/N] "


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    """A cluster with the guide's CNF."""
    with EmbeddedCluster(behaviour=Behaviour()) as embedded:
        path = str(embedded.write_kubeconfig(tmp_path / "kubeconfig"))
        with connect(path) as cluster:
            install(REQUEST.old, cluster, def_files=REQUEST.def_files)
        yield path


@pytest.fixture
def bad(tmp_path: Path) -> str:
    """The guide's new package with an image that nobody can pull."""
    package = Path(shutil.copytree(REQUEST.new, tmp_path / "bad"))
    for file in package.rglob("*.yaml"):
        file.write_text(file.read_text().replace("image: cirros", f"image: {BAD_IMAGE}"))
    shutil.rmtree(package / "TOSCA-Metadata")
    return str(package)


def update(
    kubeconfig: str, *more: str, columns: int = 80, new: str = REQUEST.new, answer: str = "y\n"
) -> Recording:
    command = ["apply", REQUEST.old, new, "--workers", "1", *more]
    return record(command, columns, {ASKED: answer}, {"KUBECONFIG": kubeconfig})


def compare(recording: Recording, name: str) -> None:
    file = RECORDINGS / f"{name}-{recording.columns}.txt"
    if os.environ.get("RECORD"):
        file.write_text(recording.text)
    # the time that a step took may move the end of a line
    assert recording.text.split() == file.read_text().split()
    longest = max(map(len, recording.text.splitlines()))
    assert longest <= recording.columns


@pytest.mark.parametrize("columns", WIDTHS)
def test_an_update(kubeconfig: str, columns: int) -> None:
    recording = update(kubeconfig, columns=columns)
    assert recording.status == 0
    compare(recording, "update")
    again = update(kubeconfig, columns=columns)
    assert again.status == 2
    compare(again, "nothing")


@pytest.mark.parametrize("columns", WIDTHS)
def test_an_update_that_fails(kubeconfig: str, bad: str, columns: int) -> None:
    recording = update(kubeconfig, "--grace-period", "0.5", columns=columns, new=bad)
    assert recording.status == 7
    compare(recording, "failure")


def test_the_log_is_shown_whole_above_what_is_under_way(kubeconfig: str) -> None:
    recording = update(kubeconfig, "--verbose")
    assert "Deployment default/deployment1: roll: " in recording.words
    assert recording.words.count("INFO container_update.") == recording.raw.count("INFO ")
    assert "under way" in recording.raw
    assert "\x1b[36m" in recording.raw
    assert "under way" not in recording.text


@pytest.mark.parametrize("columns", [40, pytest.param(80, marks=pytest.mark.thorough)])
def test_what_ctrl_c_does_is_shown_whole_above_what_is_under_way(
    kubeconfig: str, bad: str, columns: int
) -> None:
    command = ["apply", REQUEST.old, bad, "--yes"]
    recording = record(command, columns, {"  new 0/": "\x03"}, {"KUBECONFIG": kubeconfig})
    assert recording.status == 10
    assert (
        "container-update: SIGINT: undoing the operation; a second signal exits immediately"
        in recording.words
    )
    assert "under way" not in recording.text
    assert "  new 0/1  " not in recording.text


@pytest.mark.parametrize("answer", ["\n", "\x03"], ids=["no answer", "an interrupt"])
def test_an_update_that_is_not_approved_writes_nothing(kubeconfig: str, answer: str) -> None:
    recording = update(kubeconfig, answer=answer)
    assert recording.status == 13
    assert (
        "Not approved: nothing of it was written. Run the same command again and answer y"
        in recording.words
    )
    assert "Updated in" in update(kubeconfig, "--yes").text


def test_where_the_instance_is_frozen_no_plan_is_asked_about(kubeconfig: str) -> None:
    with connect(kubeconfig) as cluster:
        freeze(cluster, instance_id=only_instance(cluster, "default"))
    recording = update(kubeconfig)
    assert recording.status == FrozenError.exit_status
    assert "is frozen by" in recording.words
    assert ASKED not in recording.raw


def test_before_an_operation_of_somebody_else_is_ended_it_is_shown_and_asked_about(
    kubeconfig: str,
) -> None:
    def rollback(login: str, answer: str) -> Recording:
        environment = {"KUBECONFIG": kubeconfig, "LOGNAME": login}
        return record(["rollback"], 80, {ASKED: answer}, environment)

    interrupt(kubeconfig)
    refused = rollback("ann", "\n")
    assert refused.status == 13
    assert f"{getpass.getuser()}@" in refused.words
    assert rollback("ann", "y\n").status == 0
    interrupt(kubeconfig)
    own = rollback(getpass.getuser(), "\n")
    assert own.status == 0
    assert ASKED not in own.raw


def test_the_question_stays_on_the_screen_after_an_interrupted_operation_was_undone(
    kubeconfig: str, bad: str
) -> None:
    interrupt(kubeconfig)
    refused = update(kubeconfig, new=bad, answer="\n")
    assert refused.status == 13
    before_it, asked, _ = refused.raw.partition(ASKED)
    plan = before_it[before_it.index("Plan: ") :]
    assert asked
    assert "elapsed" not in plan
    assert "Undoing 7 steps" in refused.words
    assert "Not approved: nothing of it was written" in refused.words


def interrupt(kubeconfig: str) -> None:
    """Begin the update and leave it when its first step is done."""
    cancel = CancelToken()
    with connect(kubeconfig) as cluster:
        request = replace(REQUEST, instance_id=only_instance(cluster, "default"))
        with pytest.raises(UpdateInterruptedError):
            update_cnf(request, cluster, cancel=cancel, progress=partial(_leave, cancel))


def _leave(cancel: CancelToken, event: Event) -> None:
    if isinstance(event, StepResult):
        cancel.request("by the test", keep_journal=True)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["csar", "check"], "no label app.kubernetes.io/name: CNF certification recommends it"),
        (["doctor"], "kubeconfig: context embedded, cluster embedded, https://127.0.0.1:"),
    ],
    ids=["csar check", "doctor"],
)
def test_what_was_checked_is_wrapped_between_words(
    kubeconfig: str, command: list[str], words: str
) -> None:
    checked = record([*command, REQUEST.old], 50, environment={"KUBECONFIG": kubeconfig})
    assert words in checked.words
