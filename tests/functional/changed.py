# SPDX-License-Identifier: Apache-2.0
"""What became of a change of the package, wherever the VNF runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from container_update import Options, Outcome
from tests.internals.core import PackageChange, Records, StackChange, run


@dataclass(frozen=True)
class Changed:
    """A change that did not fail."""

    outcome: Outcome
    change: PackageChange | StackChange

    @property
    def records(self) -> Records:
        """What a VNFM has to record."""
        return self.change.records(self.outcome)

    @property
    def scripts(self) -> Sequence[Any]:
        """Every run of a coordination script, in order."""
        return self.change.reports


def in_cluster(change: PackageChange, cluster: Any, options: Options, **how: Any) -> Changed:
    """Change the package of a VNF in a cluster."""
    return Changed(run(change, cluster, options, **how), change)


def in_stack(change: StackChange, **how: Any) -> Changed:
    """Change the package of a VNF in a stack."""
    given = {name: value for name, value in how.items() if value is not None}
    return Changed(change.run(**given), change)
