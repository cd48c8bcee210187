# SPDX-License-Identifier: Apache-2.0
"""What an update costs, as counts: requests, those that wait for one another, function calls."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import embedded
from container_update import connect, install, update
from tests.functional.conftest import OPTIONS, REAL
from tests.internals.core import guide_request

ROOT = Path(__file__).resolve().parents[2]
LATENCY = 0.5
"""Of each request, in seconds: requests that do not wait for one another begin within it."""
CALLS = 480_000
"""Of Python and C functions, with all that is imported: processor time, as a count that is the same
on every machine."""
HEAVY = frozenset(
    {
        "fastapi", "jsonpatch", "keystoneauth1", "kubernetes", "openstack", "oslo_log",
        "prometheus_client", "pydantic", "requests", "rich", "sqlalchemy", "tacker", "toscaparser",
    }
)  # fmt: skip
"""Libraries that the process of an update does not need."""
OF_OTHER_COMMANDS = frozenset(
    {
        "cli.commands.change", "cli.commands.csar", "cli.commands.doctor", "cli.commands.history",
        "cli.commands.listing", "cli.commands.recover", "drivers", "engine.verbs",
        "emulator", "engine.goals.change", "engine.goals.change_request", "engine.goals.go_back",
        "engine.goals.install", "engine.goals.uninstall", "engine.recover",
        "engine.scripts.coordination", "openstack", "package.tools", "planning.strategy",
        "planning.going_back", "records", "vnfm",
    }
)  # fmt: skip
"""Modules that only other commands use."""
MARGIN = 2
"""Round trips more than there have to be: where a machine is so busy that some begin later."""


@pytest.mark.skipif(bool(REAL), reason="a real server has no latency that stays the same")
def test_an_update_of_the_guides_sample_waits_for_few_answers_one_after_another(
    tmp_path: Path,
) -> None:
    """Before the first write: the journal is read; the objects are, and the rights; the lease is
    taken; the journal is written; it comes into force. After the last pod: the history is written
    and the lease is confirmed; the journal is deleted; then the lease, and others may begin."""
    request = replace(guide_request("v1"), namespace="default")
    kubeconfig = str(tmp_path / "kubeconfig")
    with (
        embedded.process(kubeconfig, 0.0, LATENCY) as process,
        connect(kubeconfig, options=OPTIONS) as cluster,
    ):
        where = {"namespace": "default", "instance_id": request.instance_id}
        install(request.old, cluster, options=OPTIONS, def_files=request.def_files, **where)
        with process.observed() as requests:
            update(request, cluster, OPTIONS)
    found = requests.counts
    assert found["requests"] <= 30
    assert found["before the first write"] <= 5 + MARGIN
    assert found["after the last pod"] <= 3 + MARGIN


@pytest.mark.skipif(bool(REAL), reason="a real server does not send the same events each time")
def test_an_update_of_the_guides_sample_loads_and_calls_no_more_than_it_needs(
    tmp_path: Path,
) -> None:
    request = replace(guide_request("v1"), namespace="default", instance_id="guide")
    kubeconfig, count = str(tmp_path / "kubeconfig"), tmp_path / "count"
    with (
        embedded.process(kubeconfig, 0.0, 0.0),
        connect(kubeconfig, options=OPTIONS) as cluster,
    ):
        where = {"namespace": "default", "instance_id": request.instance_id}
        install(request.old, cluster, options=OPTIONS, def_files=request.def_files, **where)
        command = [sys.executable, "-m", "benchmarks.calls", str(count), "apply", request.old]
        command += [request.new, "-n", "default", "--instance-id", "guide", "--yes"]
        command += [word for path in request.def_files for word in ("--def-file", path)]
        command += [word for path in request.config_paths for word in ("--config-path", path)]
        command += ["--kubeconfig", kubeconfig]
        subprocess.run(command, check=True, cwd=ROOT, timeout=120, capture_output=True)
    found = json.loads(count.read_text())
    assert found["calls"] <= 1.2 * CALLS
    loaded = set(found["modules"])
    ours = {each.removeprefix("container_update.") for each in loaded}
    assert "engine.goals.update" in ours, "the update has run in that process"
    assert {each.partition(".")[0] for each in loaded}.isdisjoint(HEAVY)
    assert ours.isdisjoint(OF_OTHER_COMMANDS)
