# SPDX-License-Identifier: Apache-2.0
"""Whatever an API server answers to whichever request of a verb: it ends, in time, with an error of
ours or without one, in little memory, and the VNF can be brought to one of its two states."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from unittest import mock

import pytest

from container_update.cluster.client import connect
from container_update.emulator.faults import Fault, Faults
from container_update.engine.recover import rollback
from container_update.model.errors import ContainerUpdateError, UpdateInProgressError
from container_update.model.objects import ObjectKey
from container_update.model.operation import name_of
from tests.circles import Circle, in_circles
from tests.functional import verbs
from tests.functional.cnf import INSTANCE
from tests.functional.conftest import REAL
from tests.functional.reference_update import Lab, until
from tests.functional.verbs import OPTIONS, VERBS, Site, Verb
from tests.hostile_server import HOSTILE, MEMORY, growth

pytestmark = pytest.mark.skipif(bool(REAL), reason="answers in place of the embedded cluster")

HASTY = replace(
    OPTIONS, timeout=4, undo_timeout=4, request_timeout=1, retry_seconds=0.5, lease_seconds=3
)
DEADLINE = 120
"""Seconds after which a verb counts as one that never ends: it takes ten of its own at most."""
REQUESTS = 45
"""Of a verb, at most."""
LEASE = ("coordination.k8s.io", "Lease")
POINTS = {
    Circle.DEFAULT: 1,
    Circle.THOROUGH: len(HOSTILE) // 2,
    Circle.COMPLETE: len(HOSTILE) * REQUESTS,
}
"""How many answers at how many requests are tried for each verb."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab.running(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
# where the watches of a verb that failed go on, its endless server was seen not to end
@in_circles(Circle.COMPLETE)
def test_no_answer_makes_a_verb_hang_or_fail_with_what_is_not_ours(
    lab: Lab, verb: Verb, circle: Circle
) -> None:
    names = list(HOSTILE)
    shift = VERBS.index(verb)
    wrong = [
        fault
        for number in range(POINTS[circle])
        for fault in tried(
            lab,
            verb,
            names[(shift + number * 5) % len(names)],
            nth=1 + (shift * 7 + number * 11) % REQUESTS,
            times=1 + (number % 3 == 2) * 10**6,
        )
    ]
    assert wrong == []


def _rolled_back(site: Site) -> bool:
    """Bring the VNF to one of its states, unless the verb's lease is not free yet."""
    try:
        rollback(site.lab.cluster, OPTIONS, **site.where)
    except UpdateInProgressError:
        return False
    return True


def tried(lab: Lab, verb: Verb, answer: str, nth: int, times: int) -> Iterator[str]:
    """Yield what goes wrong where requests from the nth on have a hostile answer."""
    site = Site(lab)
    verb.arrange(site)
    assert site.checker, "what was there is remembered"
    raised: list[BaseException] = []
    what = f"{verb.name}: answer {nth} {answer}, {times} times"

    def act() -> None:
        try:
            with (
                mock.patch.object(verbs, "OPTIONS", HASTY),
                connect(lab.kubeconfig, options=HASTY) as cluster,
            ):
                lab.embedded.middlewares.append(faults)
                verb.act(site, cluster)
        except Exception as error:  # noqa: BLE001, what is not ours is what is looked for
            raised.append(error)

    faults = Faults(Fault(HOSTILE[answer], nth=nth, times=times))
    thread = threading.Thread(target=act, daemon=True)
    with growth() as grown:
        thread.start()
        thread.join(DEADLINE)
    lab.embedded.middlewares.remove(faults)
    if thread.is_alive():
        yield f"{what}: goes on after {DEADLINE} seconds"
        return
    yield from (
        f"{what}: {type(error).__name__}: {error}"
        for error in raised
        if not isinstance(error, ContainerUpdateError)
    )
    if grown.bytes > MEMORY:
        yield f"{what}: {grown.bytes} bytes of memory"
    until(partial(_rolled_back, site), 60)
    # whose creation has no answer is by nobody; the next operation would take it
    lab.cluster.delete(ObjectKey(*LEASE, site.namespace, name_of(INSTANCE)))
    differences = site.differences(verb.old, verb.new, *verb.resumed)
    if differences:
        yield f"{what}: {differences} after {raised}"
    lab.remove(site.namespace)
