# SPDX-License-Identifier: Apache-2.0
"""What the figures are shown as: a table, a JSON document, a chart."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import BY_HAND, OURS, TACKER, Row

_PANELS = (
    ("workloads, some change", "Deployments of two pods: 20, 50, 100 change", "seconds"),
    ("pods of each of the workloads", "pods of each Deployment", "seconds"),
    ("changed workloads", "changed Deployments", "seconds"),
    ("pods of others", "pods of others in the namespace", "MiB"),
)
"""The case, the label of the size, and what is shown of it."""


def table(rows: Sequence[Row]) -> Table:
    """Return the figures of updates; a ratio is that of the medians to the hand-made limit."""
    shown = Table("case", "size", "program")
    for name in ("min s", "median s", "max s", "ratio", "CPU s", "MiB", "requests"):
        shown.add_column(name, justify="right")
    shown.add_column("other counts")
    for row in rows:
        least, median, most = row.seconds
        shown.add_row(
            row.case,
            f"{row.size:,}",
            row.program,
            *map(_seconds, (least, median, most)),
            ratio(row, rows),
            _seconds(row.cpu_seconds),
            f"{row.peak_mib:.0f}",
            str(row.counts.get("requests", "")),
            ", ".join(
                f"{value:,} {name}" for name, value in row.counts.items() if name != "requests"
            ),
        )
    return shown


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def ratio(row: Row, rows: Iterable[Row]) -> str:
    """Return how many times the hand-made limit it took; '' where that was not measured."""
    for limit in rows:
        if (limit.case, limit.size, limit.program) == (row.case, row.size, BY_HAND):
            return f"{row.seconds[1] / limit.seconds[1]:.2f}"
    return ""


def document(rows: Sequence[Row]) -> dict[str, Any]:
    """Return all figures as plain values, with what they were measured on."""
    return {
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": {
            "processors": os.cpu_count(),
            "python": platform.python_version(),
            "load": [round(value, 2) for value in os.getloadavg()],
        },
        "figures": [
            {
                "case": row.case,
                "size": row.size,
                "program": row.program,
                "seconds": [round(value, 3) for value in row.seconds],
                "cpu_seconds": round(row.cpu_seconds, 3),
                "peak_mib": round(row.peak_mib, 1),
                "counts": row.counts,
                "runs": len(row.runs),
            }
            for row in rows
        ],
    }


def chart(found: dict[str, Any], file: Path) -> None:
    """Draw the costs against the sizes, as SVG.

    :param found: a document as above.
    """
    import matplotlib  # noqa: PLC0415, of the extra 'benchmark'

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "benchmarks", "svg.fonttype": "none"}
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(2, 2, figsize=(9, 6.5))
    for axis, (case, label, unit) in zip(axes.flat, _PANELS, strict=True):
        for program, mark in ((OURS, "o-"), (BY_HAND, "s--"), (TACKER, "^:")):
            rows = [r for r in found["figures"] if (r["case"], r["program"]) == (case, program)]
            rows.sort(key=lambda row: row["size"])
            values = [row["seconds"][1] if unit == "seconds" else row["peak_mib"] for row in rows]
            if rows and (unit == "seconds" or program == OURS):
                axis.plot([row["size"] for row in rows], values, mark, label=program)
        axis.set(xlabel=label, ylabel=unit)
        axis.set_ylim(0, 1.1 * axis.get_ylim()[1])
        axis.locator_params(axis="x", nbins=5)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def write(found: dict[str, Any], file: Path) -> None:
    """Write the document."""
    file.write_text(json.dumps(found, indent=1) + "\n")


def console() -> Console:
    """Return where the tables are printed: as wide as they are."""
    return Console(width=200, highlight=False)
