# SPDX-License-Identifier: Apache-2.0
"""Measure what an update costs, beside the hand-made limit, Tacker 16's own driver, and Helm and
kubectl where they are on the PATH; what large packages cost; and what the service carries.

    python -m benchmarks                        all cases on the embedded cluster
    python -m benchmarks --small --runs 1       the same cases at a small size, in a minute
    python -m benchmarks --case workloads --case 'pods of others'
    python -m benchmarks --case service         lists and updates on SQLite and PostgreSQL
    python -m benchmarks --lab DIR              on a lab with a real API server, five runs each
    python -m benchmarks --lab DIR --case 500/50 --case 1000/100
    python -m benchmarks --lab DIR --latency 0.1
    python -m benchmarks --kubeconfig ~/.kube/config --images nginx:1.27-alpine nginx:1.28-alpine
    python -m benchmarks --json out.json --svg out.svg

Every program runs as a process of its own; seconds are those from its start to its end.
"""

from __future__ import annotations

import argparse
import compileall
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from benchmarks import cnf, lab, packages, report, service, updates
from benchmarks.clusters import embedded_target, real
from benchmarks.figures import Row
from benchmarks.slow_link import slow_link

PACKAGES = "large packages"
"""The name of the cases without a cluster."""


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--runs", type=int, metavar="N",
        help="runs of each program (default: 3; on a lab: 5)")  # fmt: skip
    add("--small", action="store_true", help="small sizes, to see that all cases work")
    add("--case", action="append", default=[], metavar="TEXT",
        help="only cases whose name contains this (repeatable)")  # fmt: skip
    add("--list", action="store_true", help="list the cases and exit")
    add("--slow", type=float, default=1.0, metavar="SECONDS",
        help="how long a container of the embedded cluster takes until it is ready "
        "(default: %(default)s)")  # fmt: skip
    add("--latency", type=float, metavar="SECONDS",
        help="how long a request of an update is on its way (default: 0.1; on a lab: 0)"
    )  # fmt: skip
    add("--kubeconfig", metavar="FILE", help="a real cluster, instead of the embedded one")
    add("--context", metavar="NAME", help="of the kubeconfig")
    add("--images", nargs=2, metavar=("OLD", "NEW"), default=("app:1", "app:2"),
        help="two images that the cluster has (default: those of the embedded one)")  # fmt: skip
    add("--lab", type=Path, metavar="DIR",
        help="a lab of lab.sh, or its kubeconfig: only updates, beside plain writes")  # fmt: skip
    add("--tacker-lab", type=Path,
        default=os.environ.get("CONTAINER_UPDATE_TACKER_LAB", ".tacker-lab"),
        metavar="FOLDER", help="the Tacker lab; without one its driver is left out")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="write all figures")
    add("--svg", type=Path, metavar="FILE", help="draw a chart (extra: benchmark)")
    return parser


def main() -> None:
    """Run the cases and show their figures."""
    given = arguments().parse_args()
    images = cnf.Images(*given.images)
    compile_modules()
    if given.lab:
        show(measure_lab(given, images), lab.table, given)
        return
    runs = given.runs or 3

    def is_chosen(name: str) -> bool:
        return not given.case or any(text in name for text in given.case)

    chosen = [
        case for case in updates.cases(images, cnf.guide, small=given.small) if is_chosen(case.name)
    ]
    others = [name for name in (PACKAGES, *service.CASES) if is_chosen(name)]
    if given.list:
        print("\n".join(dict.fromkeys([*others, *(case.name for case in chosen)])))
        return
    tacker = given.tacker_lab.resolve() if (given.tacker_lab / "complete").exists() else None
    rows: list[Row] = []
    if PACKAGES in others:
        print(f"{PACKAGES} ...", flush=True)
        rows += packages.rows(runs, small=given.small)
    with ExitStack() as stack:
        target = None
        if given.kubeconfig:
            target = stack.enter_context(real(given.kubeconfig, given.context))
        rows += service.rows(runs, images, target, small=given.small, cases=others)
        if chosen and target is None:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            latency = 0.1 if given.latency is None else given.latency
            target = stack.enter_context(embedded_target(folder, given.slow, latency))
        for case in chosen:
            assert target is not None
            print(f"{case.name}: {case.size:,} ...", flush=True)
            rows += updates.compare(case, target, runs, tacker)
    show(rows, report.table, given)


def compile_modules() -> None:
    """Have no run compile what it imports."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for folder in ("container_update", "benchmarks"):
        compileall.compile_dir(updates.CHECKOUT / folder, quiet=1)


def measure_lab(given: argparse.Namespace, images: cnf.Images) -> list[Row]:
    """Return the figures of updates on a lab."""
    kubeconfig = lab.kubeconfig_of(given.lab)
    chosen = lab.cases(images, given.case, small=given.small)
    if given.list:
        print("\n".join(case.name for case in chosen))
        return []
    rows: list[Row] = []
    with (
        TemporaryDirectory() as folder,
        real(str(kubeconfig), given.context, lab.AuditLog.of(kubeconfig)) as near,
        slow_link(kubeconfig, given.latency or 0.0, Path(folder)) as link,
    ):
        target = replace(near, kubeconfig=str(link)) if given.latency else near
        for case in chosen:
            print(f"{case.name} ...", flush=True)
            rows += updates.compare(case, target, given.runs or 5, None)
    return rows


def show(rows: list[Row], table: Callable[[list[Row]], Table], given: argparse.Namespace) -> None:
    """Print the figures, and write them where that was asked for."""
    report.console().print(table(rows))
    found = report.document(rows)
    if given.json:
        report.write(found, given.json)
    if given.svg:
        report.chart(found, given.svg)


if __name__ == "__main__":
    main()
