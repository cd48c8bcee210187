# SPDX-License-Identifier: Apache-2.0
"""Updates of running CNFs: the command, the hand-made limit and what others use, in turn."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import tools
from benchmarks.clusters import COMMAND, Install, Target
from benchmarks.cnf import Images, deployments
from benchmarks.figures import BY_HAND, OURS, TACKER, Row, Run, measured
from container_update.cluster.credentials import pem
from container_update.model.requests import UpdateRequest

CHECKOUT = Path(__file__).resolve().parents[1]

Write = Callable[[Path], UpdateRequest]
"""Writes the packages of a case into a folder."""


@dataclass(frozen=True)
class Case:
    """One update."""

    name: str
    """What is varied."""
    size: int
    write: Write
    foreign_pods: int = 0
    command: str = "apply"
    arguments: Sequence[str] = ()
    """Further ones of the command."""
    expected: int = 0
    """The exit status of the command."""
    by_hand: bool = True
    """The hand-made limit does it too."""
    tools: bool = False
    """So do Helm and kubectl, where they are on the PATH."""


def compare(case: Case, target: Target, runs: int, lab: Path | None) -> list[Row]:
    """Run the programs of a case in turn, so that a drift of the machine meets all of them.

    :param lab: the folder of the Tacker lab; None: Tacker's own driver is left out.
    """
    programs: dict[str, Callable[[UpdateRequest, Target, Path], Run]] = {
        OURS: lambda request, target, _: ours(case, request, target)
    }
    if case.by_hand:
        programs[BY_HAND] = by_hand
        if lab is not None:
            programs[TACKER] = lambda request, target, folder: tacker(request, target, folder, lab)
    installs: dict[str, Install] = {}
    if case.tools:
        installs = {name: tool.install for name, tool in tools.found().items()}
        programs |= {name: tool.update for name, tool in tools.found().items()}
    found: dict[str, list[Run]] = {program: [] for program in programs}
    for number in range(runs):
        for program, run in programs.items():
            with TemporaryDirectory() as name:
                folder = Path(name)
                written = case.write(folder)
                with target.instantiated(written, installs.get(program)) as request:
                    target.crowd(request.namespace, case.foreign_pods)
                    with target.observed() as counts:
                        measured = run(request, target, folder)
                    found[program].append(replace(measured, counts=measured.counts | counts))
                    took = f"{measured.seconds:.1f} s, {measured.cpu_seconds:.2f} CPU s"
                    print(f"  run {number + 1} of {runs}, {program}: {took}", flush=True)
    return [Row(case.name, case.size, program, runs) for program, runs in found.items()]


# --- the programs -------------------------------------------------------------------------------


def ours(case: Case, request: UpdateRequest, target: Target) -> Run:
    """Run the command."""
    command = [*COMMAND, case.command, request.old, request.new]
    command += ["-n", request.namespace, "--instance-id", str(request.instance_id), "-o", "json"]
    command += [*target.arguments, *case.arguments]
    command += [word for path in request.def_files for word in ("--def-file", path)]
    command += [word for path in request.config_paths for word in ("--config-path", path)]
    run = measured(command, expected=(case.expected,))
    report = json.loads(run.output)
    return replace(run, counts={"requests": report["requests"]} if "requests" in report else {})


def by_hand(request: UpdateRequest, target: Target, folder: Path) -> Run:
    """Run the hand-made limit."""
    description = folder / "by-hand.json"
    packages = {"old": os.path.abspath(request.old), "new": os.path.abspath(request.new)}
    place = {**asdict(target.access), "namespace": request.namespace}
    place["ca_text"] = pem(place["ca_text"])
    description.write_text(json.dumps({**packages, **place}))
    run = measured([sys.executable, "-m", "benchmarks.by_hand", str(description)])
    return replace(run, counts=json.loads(run.output))


def tacker(request: UpdateRequest, target: Target, folder: Path, lab: Path) -> Run:
    """Run Tacker's own driver as the conductor calls it, in the lab's Python."""
    description = {
        "old": os.path.abspath(request.old),
        "new": os.path.abspath(request.new),
        "namespace": request.namespace,
        "def_files": list(request.def_files) or _files(request.old),
        "config_paths": list(request.config_paths),
        "kubeconfig": target.kubeconfig,
        "driver": str(lab / "samples/mgmt_driver/kubernetes/container_update"),
    }
    file = folder / "tacker.json"
    file.write_text(json.dumps(description))
    script = CHECKOUT / "benchmarks" / "tacker_driver.py"
    run = measured([str(lab / "venv" / "bin" / "python"), str(script), str(file)])
    return replace(run, output="")


def _files(package: str) -> list[str]:
    return [str(path.relative_to(package)) for path in sorted(Path(package).rglob("Files/*.yaml"))]


# --- the cases ----------------------------------------------------------------------------------


def cases(images: Images, guide: Write, *, small: bool) -> list[Case]:
    """Return all cases; *small*: as a test runs them."""

    def cnf(number: int, **more: Any) -> Write:
        return lambda folder: deployments(folder, images, number, **more)

    numbers, pods, changes = {100: 20, 500: 50, 1000: 100}, [1, 5, 20], [1, 10, 50, 100]
    crowds, own, bad = [0, 5_000, 20_000], 200, 100
    if small:
        numbers, pods, changes, crowds, own, bad = {4: 1, 8: 2}, [2], [2], [0, 40], 4, 4
    few, base = (1, 4) if small else (5, 100)
    return [
        Case("the user guide's sample", 7, guide),
        *(
            Case("workloads, some change", n, cnf(n, changed=numbers[n]), tools=n == min(numbers))
            for n in numbers
        ),
        *(
            Case("pods of each of the workloads", n, cnf(4 * few, pods=n, changed=few))
            for n in pods
        ),
        *(Case("changed workloads", n, cnf(base, changed=n)) for n in changes),
        *(
            Case("pods of others", n, cnf(few, changed=few), foreign_pods=n, by_hand=n == 0)
            for n in crowds
        ),
        *(
            Case("pods of others, sample with bare pods", n, guide, foreign_pods=n, by_hand=n == 0)
            for n in crowds[-1:]
        ),
        *(
            Case(
                f"pods of others, {upgrade_type}",
                n,
                cnf(few, changed=few),
                foreign_pods=n,
                command="change",
                arguments=("--upgrade-type", upgrade_type, "--drain-seconds", "0s"),
                by_hand=False,
            )
            for upgrade_type in ("Blue-Green", "RollingUpdate")
            for n in (crowds[0], crowds[-1])
        ),
        Case(
            "own pods, 25 of each workload", 25 * own, cnf(own, pods=25, changed=1), by_hand=False
        ),
        Case("all change", bad, cnf(bad, changed=bad)),
        Case(
            "all change, the last image cannot be pulled, grace period 3 s",
            bad,
            cnf(bad, changed=bad, bad=1),
            arguments=("--grace-period", "3s"),
            expected=7,
            by_hand=False,
        ),
    ]
