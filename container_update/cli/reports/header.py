# SPDX-License-Identifier: Apache-2.0
"""The head of a report: which cluster or cloud, which namespace or stack, which packages. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from container_update.cli.reports import lines
from container_update.cli.reports.lines import Line
from container_update.model.cluster import ClusterContext
from container_update.model.plan import Plan
from container_update.model.requests import PackageIdentity
from container_update.planning.comparison.content_diff import printable


@dataclass(frozen=True)
class Header:
    """What an operation is about."""

    target: tuple[tuple[str, str], ...]
    """A word and its value: ('Namespace', 'core')."""

    @classmethod
    def of_cluster(cls, context: ClusterContext, namespace: str) -> Header:
        """Return the head for a namespace of a cluster."""
        known = {"cluster": context.cluster, "context": context.name, "user": context.user}
        words = ", ".join(f"{word} {name}" for word, name in known.items() if name)
        where = f"{context.server} ({words})" if words else context.server
        return cls((("Cluster", where), ("Namespace", namespace)))

    def lines(self, packages: Sequence[PackageIdentity]) -> Iterator[Line]:
        """Yield the head for people.

        :param packages: of the plan below it.
        """
        rows = list(self.target)
        if packages:
            rows.append(("Packages", " -> ".join(map(str, packages))))
        width = max((len(word) for word, _ in rows), default=0)
        for word, value in rows:
            yield Line.of((f"{word:<{width}}  ", lines.DIM), printable(value))

    def facts(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield words and values for a page about a plan, which is read without its command."""
        yield from self.target or (("Namespace", plan.namespace),)
        if plan.instance_id and "Instance" not in dict(self.target):
            yield "VNF instance", plan.instance_id
        yield from zip(("From", "To"), map(str, plan.packages), strict=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the head as JSON values."""
        return {"target": {word.lower(): value for word, value in self.target}}


NONE = Header(())
"""Of an operation whose target is said elsewhere."""
