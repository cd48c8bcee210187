# SPDX-License-Identifier: Apache-2.0
"""The benchmark at a small size: what it counts, never what it times."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from benchmarks.clusters import real
from benchmarks.lab import AuditLog, kubeconfig_of
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.vnfm import postgres

ROOT = Path(__file__).resolve().parents[2]

CASES = ("large packages", "the user guide's sample", "workloads, some change", "pods of others",
         "service: lists", "service: filtered lists", "service: updates at once, v1")  # fmt: skip
DATABASES = ("SQLite", *(["PostgreSQL"] if postgres.find() else []))
BESIDE = 11
"""Requests for the journal (5), the rights (1), the lease (3) and the history (2); see
architecture.rst."""


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int, str], Any]:
    """The figures by case, size and program."""
    file = tmp_path_factory.mktemp("benchmarks") / "figures.json"
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "--small",
        "--runs",
        "1",
        "--slow",
        "0",
        "--latency",
        "0",
    ]
    command += ["--tacker-lab", str(file.parent), "--json", str(file)]
    for case in CASES:
        command += ["--case", case]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600)
    rows = json.loads(file.read_text())["figures"]
    return {(row["case"], row["size"], row["program"]): row for row in rows}


def requests(figures: dict[tuple[str, int, str], Any], *place: Any) -> int:
    """Return the requests of a program in a case."""
    return int(figures[place]["counts"]["requests"])


@pytest.mark.parametrize(("size", "changed"), [(4, 1), (8, 2)])
def test_requests_are_those_of_the_kinds_and_of_what_changes(
    figures: dict[tuple[str, int, str], Any], size: int, changed: int
) -> None:
    lists, watches = 4, 3
    found = requests(figures, "workloads, some change", size, "container-update")
    assert found == lists + watches + 2 * changed + BESIDE


def test_the_hand_made_limit_makes_the_same_changes(
    figures: dict[tuple[str, int, str], Any],
) -> None:
    # a patch of each changed object, and the deletion of the ReplicaSet's pod
    assert figures["the user guide's sample", 7, "by hand"]["counts"]["objects"] == 7 + 1


@pytest.mark.parametrize("of", ["", ", Blue-Green", ", RollingUpdate"])
def test_pods_of_others_cost_no_request(figures: dict[tuple[str, int, str], Any], of: str) -> None:
    few, many = (requests(figures, f"pods of others{of}", n, "container-update") for n in (0, 40))
    assert few == many


def test_large_packages_are_planned_and_checked(
    figures: dict[tuple[str, int, str], Any],
) -> None:
    steps = figures["plan, manifests", 200, "container-update"]["counts"]["items"]
    assert steps == 2 * figures["plan, manifests", 100, "container-update"]["counts"]["items"] > 0


@pytest.mark.parametrize("database", DATABASES)
def test_each_list_of_the_service_is_read(
    figures: dict[tuple[str, int, str], Any], database: str
) -> None:
    lists = counts(figures, f"service: lists and filters, {database}", 200)
    assert lists["lists"] > 60
    assert lists["entries"] == counts(figures, "service: lists and filters, SQLite", 200)["entries"]
    at_once = counts(figures, f"service: filtered lists at once, {database}", 8)
    assert at_once["entries"] == 0, "each filter judges all rows and finds none"


@pytest.mark.parametrize("database", DATABASES)
def test_readers_are_answered_while_the_service_updates(
    figures: dict[tuple[str, int, str], Any], database: str
) -> None:
    found = counts(figures, f"service: updates at once, v1, {database}", 2)
    assert found["reads"] >= 20
    assert found["refused reads"] == 0
    assert found["bytes a second for a viewer"] > 0


def counts(figures: dict[tuple[str, int, str], Any], case: str, size: int) -> dict[str, int]:
    """Return what a case of the service counted."""
    return dict(figures[case, size, "container-update"]["counts"])


def test_a_vnfm_reaches_the_cluster_of_a_kubeconfig(tmp_path: Path) -> None:
    with EmbeddedCluster() as cluster:
        kubeconfig = str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))
        with real(kubeconfig, None) as target:
            access = target.access
    authority = cluster.ca_text.replace("\n", " ").strip()
    assert (access.url, access.ca_text, access.token) == (cluster.url, authority, cluster.token)


def test_on_a_lab_updates_alternate_with_plain_writes(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    with EmbeddedCluster() as cluster:
        kubeconfig = str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))
        command = [sys.executable, "-m", "benchmarks", "--lab", kubeconfig, "--small"]
        command += ["--runs", "2", "--json", str(file)]
        run = subprocess.run(
            command, cwd=ROOT, check=True, timeout=600, stdout=subprocess.PIPE, text=True
        )
    found = {(r["case"], r["program"]): r for r in json.loads(file.read_text())["figures"]}
    cases, programs = ("the user guide's sample", "8/2"), ("container-update", "by hand")
    assert found.keys() == {(case, program) for case in cases for program in programs}
    lists, watches, changed = 4, 3, 2
    ours, plain = (found["8/2", program]["counts"]["requests"] for program in programs)
    assert ours == lists + watches + 2 * changed + BESIDE
    assert plain > 2 * changed, "it lists the pods besides"
    assert {row["runs"] for row in found.values()} == {2}
    assert re.search(r"8/2 +│ container-update +│ +2 │ +[0-9.]+ - [0-9.]+ │", run.stdout)


def test_the_audit_log_counts_a_watch_once(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "log").mkdir()
    file = tmp_path / "log" / "audit.log"

    def write(*ids: str) -> None:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        lines = [json.dumps({"auditID": each, "requestReceivedTimestamp": now}) for each in ids]
        with file.open("a") as log:
            log.write("".join(f"{line}\n" for line in lines))

    write("before")
    log = AuditLog.of(kubeconfig_of(tmp_path))
    assert log is not None
    counts: dict[str, int] = {}
    with log.counted(counts):
        write("a watch", "a list", "a write", "a watch")
    assert counts == {"requests": 3}
