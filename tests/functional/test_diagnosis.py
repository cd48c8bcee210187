# SPDX-License-Identifier: Apache-2.0
"""A workload that fails: first the cause with Events and the end of a log, then the undo."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_update import StepResult, UpdateFailedError, connect
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from container_update.emulator.kubernetes.kubelet import Exit
from tests.functional.cnf import BAD_IMAGE, Cnf
from tests.functional.conftest import OPTIONS
from tests.functional.manifests import secret, workload
from tests.functional.test_least_rights import RIGHTS, grant
from tests.internals.core import StepState, main, step_events

LATE = "late:2"
"""Crashes when it has been ready."""
NEW, LOG = "crash:2", ["reading /etc/web", "fatal: no licence", "token: planted-Zq7xW"]


@pytest.fixture
def embedded() -> Iterator[EmbeddedCluster]:
    """A cluster in which the new image crashes."""
    behaviour = Behaviour(
        exits=[Exit(image=NEW, code=3), Exit(image=LATE, after_seconds=1.0)],
        logs={NEW: "".join(f"{line}\n" for line in ["first", "second", "third", *LOG])},
        backoff_seconds=0.1,
    )
    with EmbeddedCluster(behaviour=behaviour) as embedded:
        yield embedded


@pytest.fixture
def crashing(embedded: EmbeddedCluster, tmp_path: Path) -> Iterator[tuple[Cnf, str]]:
    """A CNF in it, and the cluster's kubeconfig."""
    path = str(embedded.write_kubeconfig(tmp_path / "kubeconfig"))
    with connect(path, options=OPTIONS) as cluster:
        cnf = Cnf(cluster, cluster, "default", tmp_path, OPTIONS)
        cnf.instantiate(**files())
        yield cnf, path


def files(image: str = "app:1") -> dict[str, str]:
    return {"w": workload("Deployment", image=image), "sec": secret(token="planted-Zq7xW")}


def apply(cnf: Cnf, kubeconfig: str, *more: str) -> str:
    new = cnf.package({f"{name}.yaml": text for name, text in files(NEW).items()})
    out = io.StringIO()
    command = ["apply", cnf.old, new, "--kubeconfig", kubeconfig, "-n", cnf.namespace]
    command += ["--instance-id", "5d1b2a6c-0f0e-4c59-9f0f-6f2f6f1f0001"]
    assert main([*command, "--grace-period", "0.5", *more], out) == 7
    return out.getvalue()


SHOWN = ["| third", "| reading /etc/web", "| fatal: no licence", "| token: ***"]


def test_the_cause_comes_first_with_the_end_of_the_log_and_is_told_once(
    crashing: tuple[Cnf, str],
) -> None:
    lines = apply(*crashing).splitlines()
    (failed,) = [n for n, line in enumerate(lines) if line.startswith("  failed: Deployment")]
    (undoing,) = [n for n, line in enumerate(lines) if line.startswith("Undoing")]
    assert "CrashLoopBackOff" in lines[failed]
    diagnosis = [line.strip() for line in lines[failed + 1 : undoing]]
    assert diagnosis[0].startswith("Event: BackOff: Back-off restarting failed container")
    assert diagnosis[1:] == ["the last lines of its log:", "| second", *SHOWN]
    assert "Event" not in "".join(lines[undoing:])


def test_a_report_has_it_though_everything_was_undone(crashing: tuple[Cnf, str]) -> None:
    report = apply(*crashing, "-o", "markdown")
    assert all(line in report for line in SHOWN)
    assert "Event: BackOff" in report


def test_programs_get_it_as_data(crashing: tuple[Cnf, str]) -> None:
    document = json.loads(apply(*crashing, "-o", "json"))
    results = {result["object"]["name"]: result for result in document["outcome"]["results"]}
    result = results["w"]
    assert result["state"] == "undone"
    check(result["diagnosis"])


def test_a_stream_of_events_has_it_too(crashing: tuple[Cnf, str]) -> None:
    events = map(json.loads, apply(*crashing, "--progress", "json").splitlines())
    (failed,) = [event for event in events if event.get("state") == "failed"]
    check(failed["diagnosis"])


def check(diagnosis: dict[str, Any]) -> None:
    assert diagnosis["pod"].startswith("w-")
    assert (diagnosis["container"], diagnosis["reason"]) == ("main", "CrashLoopBackOff")
    assert diagnosis["log"] == ["second", *(line.removeprefix("| ") for line in SHOWN)]
    assert diagnosis["events"][0].startswith("BackOff: Back-off restarting")


def test_it_is_read_before_the_undo_deletes_the_pod(
    crashing: tuple[Cnf, str], embedded: EmbeddedCluster
) -> None:
    embedded.clear_requests()
    with pytest.raises(UpdateFailedError):
        crashing[0].update(files(NEW))
    sent = [f"{record.method} {record.path}" for record in embedded.requests]
    writes = [n for n, text in enumerate(sent) if text.startswith("PUT") and "deployments" in text]
    (log,) = [n for n, text in enumerate(sent) if text.endswith("/log")]
    assert writes[0] < log < writes[1]


def test_an_application_s_log_is_in_no_log_and_no_record(
    crashing: tuple[Cnf, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged, logger = io.StringIO(), logging.getLogger("container_update")
    monkeypatch.setattr(logger, "handlers", [logging.StreamHandler(logged)])
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    with pytest.raises(UpdateFailedError) as raised:
        crashing[0].update(files(NEW))
    (failed,) = [r for r in raised.value.outcome.results if r.diagnosis]
    events = step_events(StepResult(failed.step, StepState.FAILED, "", 0.0, failed.diagnosis))
    told = f"{logged.getvalue()} {events} {raised.value}"
    assert "Back-off restarting failed container" in logged.getvalue()
    assert [line for line in LOG if line in told] == []


def test_without_the_rights_the_update_is_undone_as_ever(cnf: Cnf) -> None:
    old = {"w": workload("Deployment")}
    cnf.instantiate(**old)
    grant(cnf, [right for right in RIGHTS if str(right) not in ("list events", "get pods/log")])
    with pytest.raises(UpdateFailedError) as raised:
        cnf.update({"w": workload("Deployment", image=BAD_IMAGE)}, replace(OPTIONS))
    assert "Everything is as before" in str(raised.value)
    (result,) = raised.value.outcome.results
    assert result.diagnosis is not None
    assert "ImagePull" in result.diagnosis.reason
    assert (result.diagnosis.events, result.diagnosis.log) == ((), ())
    assert cnf.plan(old).is_empty


def test_a_pod_that_crashes_once_it_was_ready_fails_an_update_that_still_looks(
    crashing: tuple[Cnf, str],
) -> None:
    cnf, _ = crashing
    options = replace(cnf.options, grace_period=0.5, settle_seconds=600.0)
    with pytest.raises(UpdateFailedError, match="Deployment default/w failed"):
        cnf.update(files(LATE), options)
