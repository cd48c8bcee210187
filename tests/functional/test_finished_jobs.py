# SPDX-License-Identifier: Apache-2.0
"""A Job that has run and that its ``ttlSecondsAfterFinished`` removed is not run again."""

from __future__ import annotations

from typing import Any

import pytest

from container_update import HealRequest, Outcome, change_package, install
from tests.functional.cnf import Cnf
from tests.functional.conftest import until
from tests.functional.manifests import config_map
from tests.internals.core import Heal, run

STRATEGIES = ("RollingUpdate", "Blue-Green", "Canary")


def job(command: str = "migrate", *, ttl: int | None = 1, labels: str = "") -> str:
    """Return a Job without work: it is complete as soon as its controller has seen it."""
    lives = "" if ttl is None else f"  ttlSecondsAfterFinished: {ttl}\n"
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: migrate, labels: {{{labels}}}}}
spec:
  completions: 0
{lives}  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: "nginx:1.27-alpine", command: [{command}]}}]
"""


def package(cnf: Cnf, setting: str = "a", **changed: Any) -> str:
    return cnf.package({"cm.yaml": config_map(setting=setting), "job.yaml": job(**changed)})


def installed(cnf: Cnf, source: str) -> Outcome:
    return install(source, cnf.admin, options=cnf.options, **cnf.where)


def changed(cnf: Cnf, old: str, new: str, strategy: str = "RollingUpdate") -> Outcome:
    params = {"upgrade_type": strategy}
    request = {"vnfdId": "any", "additionalParams": params}
    return change_package(request, cnf.admin, cnf.options, old=old, new=new, **cnf.where)


def healed(cnf: Cnf, source: str) -> Outcome:
    goal = Heal(HealRequest(source, **cnf.where), cnf.options)
    return run(goal, cnf.admin, cnf.options)


def until_gone(cnf: Cnf) -> None:
    until(lambda: cnf.admin.get(cnf.key("Job", "migrate")) is None)


def written(outcome: Outcome) -> list[str]:
    return [result.step.key.kind for result in outcome.results]


@pytest.fixture
def ran(cnf: Cnf) -> str:
    """The package of a CNF whose Job has run and is gone."""
    source = package(cnf)
    assert "Job" in written(installed(cnf, source))
    until_gone(cnf)
    return source


def notes(outcome: Outcome) -> list[str]:
    return [note.text for note in outcome.plan.notes if note.key and note.key.kind == "Job"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_change_of_something_else_does_not_run_it_again(
    cnf: Cnf, ran: str, strategy: str
) -> None:
    for old in (ran, ""):
        new = package(cnf, "b" if old else "c", labels="release: another")
        outcome = changed(cnf, old, new, strategy)
        assert written(outcome) == ["ConfigMap"]
        assert ["ttlSecondsAfterFinished" in text for text in notes(outcome)] == [True]


def test_a_second_installation_does_not_run_it_again(cnf: Cnf, ran: str) -> None:
    cnf.admin.delete(cnf.key("ConfigMap", "cm"))
    outcome = installed(cnf, ran)
    assert written(outcome) == ["ConfigMap"]
    assert ["ttlSecondsAfterFinished" in text for text in notes(outcome)] == [True]
    assert written(installed(cnf, ran)) == []


def test_a_heal_does_not_run_it_again(cnf: Cnf, ran: str) -> None:
    cnf.admin.delete(cnf.key("ConfigMap", "cm"))
    assert written(healed(cnf, ran)) == ["ConfigMap"]


def test_a_changed_one_runs_once_and_not_again(cnf: Cnf, ran: str) -> None:
    new = package(cnf, command="migrate-again")
    assert written(changed(cnf, ran, new)) == ["Job"]
    until_gone(cnf)
    for again in (lambda: changed(cnf, "", new), lambda: installed(cnf, new)):
        assert written(again()) == []
    newest = package(cnf, command="once-more")
    assert written(installed(cnf, newest)) == ["Job"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_undo_does_not_run_the_one_of_before(cnf: Cnf, ran: str, strategy: str) -> None:
    new = package(cnf, "b", command="migrate-again")
    assert "Job" in written(changed(cnf, ran, new, strategy))
    until_gone(cnf)
    outcome = cnf.undo()
    assert outcome is not None
    assert written(outcome) == ["ConfigMap"]
    assert ["ttlSecondsAfterFinished" in text for text in notes(outcome)] == [True]


def test_nor_one_that_the_new_package_did_not_have(cnf: Cnf, ran: str) -> None:
    new = cnf.package({"cm.yaml": config_map(setting="b")})
    changed(cnf, ran, new)
    outcome = cnf.undo()
    assert outcome is not None
    assert written(outcome) == ["ConfigMap"]


def test_a_heal_runs_what_the_instance_never_ran(cnf: Cnf, ran: str) -> None:
    assert ran
    assert written(healed(cnf, package(cnf, command="migrate-again"))) == ["Job"]


def test_one_without_a_time_to_live_that_was_deleted_is_created_again(cnf: Cnf) -> None:
    source = package(cnf, ttl=None)
    installed(cnf, source)
    for again in (lambda: installed(cnf, source), lambda: healed(cnf, source)):
        cnf.admin.delete(cnf.key("Job", "migrate"))
        until_gone(cnf)
        assert written(again()) == ["Job"]


def test_an_installation_after_the_instance_is_gone_runs_it(cnf: Cnf, ran: str) -> None:
    other = {**cnf.where, "instance_id": "other"}
    cnf.admin.delete(cnf.key("ConfigMap", "cm"))
    outcome = install(ran, cnf.admin, options=cnf.options, **other)
    assert written(outcome) == ["ConfigMap", "Job"]
