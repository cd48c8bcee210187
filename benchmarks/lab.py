# SPDX-License-Identifier: Apache-2.0
"""Updates on a real API server: the command and the hand-made limit in turn, and how far each goes.

The server is a lab of ``lab.sh``, named by its folder or its kubeconfig, or any cluster with a
kubeconfig that has a token. The lab counts the requests in its audit log; elsewhere the programs
count their own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from rich.table import Table

from benchmarks.cnf import Images, deployments, guide
from benchmarks.figures import BY_HAND, OURS, Row, Run, spread
from benchmarks.updates import Case

GUIDE = "the user guide's sample"
SIZES = {"100/20": (100, 20), "500/50": (500, 50), "1000/100": (1000, 100)}
"""The names of the cases of Deployments with two pods each and a ConfigMap: all of them, and how
many change with their ConfigMaps."""
SMALL = {"8/2": (8, 2)}
DEFAULT = (GUIDE, "100/20", *SMALL)

_WRITTEN_SECONDS = 0.2
"""How soon a line of the audit log follows its answer."""


def cases(images: Images, chosen: Sequence[str], *, small: bool) -> list[Case]:
    """Return the cases whose names contain one of these texts; none: the default ones."""
    sizes = SMALL if small else SIZES
    every = [Case(GUIDE, 7, guide)]
    every += [
        Case(name, number, partial(deployments, images=images, number=number, changed=changed))
        for name, (number, changed) in sizes.items()
    ]
    return [each for each in every if any(text in each.name for text in chosen or DEFAULT)]


def kubeconfig_of(lab: Path) -> Path:
    """Return the kubeconfig of a lab's administrator, or the file that was named itself."""
    return lab / "conf" / "admin.kubeconfig" if lab.is_dir() else lab


@dataclass(frozen=True)
class AuditLog:
    """The log of an API server that has a line for each request, and two for a watch."""

    path: Path

    @classmethod
    def of(cls, kubeconfig: Path) -> AuditLog | None:
        """Return the log of the lab that a kubeconfig belongs to; None where there is none."""
        path = kubeconfig.resolve().parent.parent / "log" / "audit.log"
        return cls(path) if path.exists() else None

    @contextmanager
    def counted(self, counts: dict[str, int]) -> Iterator[None]:
        """Count the requests of the block; no other client is at work meanwhile."""
        end = self.path.stat().st_size
        began = datetime.now(timezone.utc).isoformat()
        yield
        time.sleep(_WRITTEN_SECONDS)
        with self.path.open() as log:
            log.seek(end)
            lines = [json.loads(line) for line in log if line.endswith("\n")]
        counts["requests"] = len(
            {each["auditID"] for each in lines if each["requestReceivedTimestamp"] >= began[:26]}
        )


def table(rows: Sequence[Row]) -> Table:
    """Return what each program cost: the minimum and the maximum; a ratio is to plain writes, that
    of the minima and those of each round."""
    shown = Table("case", "program")
    for name in ("runs", "seconds", "ratio", "CPU s", "ratio", "peak MiB", "requests"):
        shown.add_column(name, justify="right")
    by_hand = {row.case: row for row in rows if row.program == BY_HAND}
    for row in rows:
        plain = by_hand[row.case] if row.program == OURS else None
        shown.add_row(
            row.case,
            row.program,
            str(len(row.runs)),
            *_figures(row, plain, lambda run: run.seconds),
            *_figures(row, plain, lambda run: run.cpu_seconds),
            f"{row.peak_mib:.0f}",
            str(row.counts.get("requests", "")),
        )
    return shown


def _figures(row: Row, plain: Row | None, value: Callable[[Run], float]) -> tuple[str, str]:
    values = [value(run) for run in row.runs]
    if plain is None:
        return _range(values), ""
    limits = [value(run) for run in plain.runs]
    rounds = [ours / limit for ours, limit in zip(values, limits, strict=True)]
    return _range(values), f"{min(values) / min(limits):.2f} ({_range(rounds)})"


def _range(values: Sequence[float]) -> str:
    least, _, most = spread(values)
    return f"{least:.2f} - {most:.2f}"
