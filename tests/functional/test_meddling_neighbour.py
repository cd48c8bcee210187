# SPDX-License-Identifier: Apache-2.0
"""Somebody who may write Secrets, ConfigMaps and Leases in the VNF's namespace does so between any
two requests of a verb: it ends with an error of ours or without one, and writes nothing of others.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import pytest

from container_update import ClusterError, connect
from tests.circles import Circle, in_circles
from tests.functional import verbs
from tests.functional.promise import JOURNAL
from tests.functional.reference_update import Lab
from tests.functional.test_hostile_neighbour import FORGED, MUTATIONS, forge, step, written
from tests.functional.test_hostile_server import HASTY
from tests.functional.verbs import VERBS, Site, Verb
from tests.hostile_server import judged
from tests.internals.core import INSTANCE_LABEL, Collection, Json, ObjectKey

UNSIGNED = replace(HASTY, no_journal_key=True)
"""With a key nothing that the neighbour writes is believed."""

REQUESTS = 24
"""The verbs send between 19 and 42."""
SENT = ("get", "list", "create", "replace", "delete", "watch", "dry_run", "refused")


@dataclass(frozen=True)
class Neighbour:
    """Who writes, and where."""

    admin: Any
    namespace: str
    where: Json

    def each(self, group: str, kind: str, edit: Callable[[Json], object]) -> None:
        """Edit all objects of a kind, if they are still there."""
        for body in self.admin.list(Collection(group, kind, self.namespace)).items:
            with suppress(ClusterError):
                edit(body)
                self.admin.replace(body)

    def forge_journal(self, edit: Callable[[Json], object]) -> None:
        """Edit what a journal holds, if there is one."""
        secrets = self.admin.list(Collection("", "Secret", self.namespace)).items
        if any(body.get("type") == JOURNAL for body in secrets):
            with suppress(ClusterError, KeyError):  # it has gone, or is not complete yet
                forge(self, edit)  # type: ignore[arg-type]

    def forge_step(self, action: str, place: str) -> None:
        """Add a step about what is none of the VNF's business."""
        forged = step(self, action, place)  # type: ignore[arg-type]
        self.forge_journal(lambda record: record["steps"].append(forged))


def _other_values(body: Json) -> None:
    body["data"] = dict.fromkeys(body.get("data") or {}, "e30=")


def _no_labels(body: Json) -> None:
    body["metadata"].pop("labels", None)


def _of_another(body: Json) -> None:
    body["metadata"].setdefault("labels", {})[INSTANCE_LABEL] = "another"


def _owned(body: Json) -> None:
    owner = {"apiVersion": "v1", "kind": "Secret", "name": "theirs", "uid": "no-such-uid"}
    body["metadata"]["ownerReferences"] = [owner]


def _held(body: Json) -> None:
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 10**9}
    body["spec"] = {**body["spec"], **spec}


def _gone(body: Json) -> None:
    body["spec"] = {"renewTime": "0001-01-01T00:00:00.000000Z"}


WRITES: dict[str, Callable[[Neighbour], None]] = {
    **{
        f"a journal: {name}": lambda by, edit=edit: by.forge_journal(edit)  # type: ignore[misc]
        for name, edit in MUTATIONS.items()
    },
    **{
        f"a forged step: {name}": lambda by, at=at: by.forge_step(*at)  # type: ignore[misc]
        for name, at in FORGED.items()
    },
    "other values in Secrets": lambda by: by.each("", "Secret", _other_values),
    "Secrets without labels": lambda by: by.each("", "Secret", _no_labels),
    "ConfigMaps without labels": lambda by: by.each("", "ConfigMap", _no_labels),
    "ConfigMaps of another instance": lambda by: by.each("", "ConfigMap", _of_another),
    "Secrets that somebody owns": lambda by: by.each("", "Secret", _owned),
    "a lease for years": lambda by: by.each("coordination.k8s.io", "Lease", _held),
    "a lease of nobody": lambda by: by.each("coordination.k8s.io", "Lease", _gone),
}
POINTS = {Circle.DEFAULT: 1, Circle.THOROUGH: 8, Circle.COMPLETE: len(WRITES) * REQUESTS}


class _Meddled:
    """A client before one of whose requests somebody writes."""

    def __init__(self, cluster: Any, number: int, write: Callable[[], object]) -> None:
        self._cluster, self._number, self._write = cluster, number, write
        self._sent = itertools.count(1)

    def __getattr__(self, name: str) -> Any:
        if name in SENT and next(self._sent) == self._number:
            self._write()
        return getattr(self._cluster, name)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
@in_circles(*Circle)
def test_what_somebody_writes_between_two_requests_reaches_nothing_of_others(
    lab: Lab, verb: Verb, circle: Circle
) -> None:
    points = list(itertools.product(WRITES, range(1, REQUESTS + 1)))
    random.Random(verb.name).shuffle(points)
    wrong = [
        f"{verb.name}: {what} before request {number}: {text}"
        for what, number in points[: POINTS[circle]]
        for text in tried(lab, verb, WRITES[what], number)
    ]
    assert wrong == []


def tried(lab: Lab, verb: Verb, write: Callable[[Neighbour], None], number: int) -> Iterator[str]:
    """Yield what goes wrong where somebody writes before a request of a verb."""
    site = Site(lab)
    verb.arrange(site)
    by = Neighbour(lab.cluster, site.namespace, site.where)
    beside = f"{site.namespace}-beside"
    lab.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": beside}})
    for namespace, name, labels in (
        (beside, "theirs", {}),
        (site.namespace, "neighbour", {INSTANCE_LABEL: "another"}),
    ):
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        lab.cluster.create({**body, "data": {"x": "as it was"}})

    def act() -> None:
        with (
            mock.patch.object(verbs, "OPTIONS", replace(HASTY, request_timeout=10)),
            connect(lab.kubeconfig, options=UNSIGNED) as cluster,
        ):
            verb.act(site, _Meddled(cluster, number, lambda: write(by)))

    wrong, _ = judged(act)
    yield from wrong
    yield from (f"{each} was written" for each in written(by))  # type: ignore[arg-type]
    lab.cluster.delete(ObjectKey("", "Namespace", "", beside))
    lab.remove(site.namespace)
