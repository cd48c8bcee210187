# SPDX-License-Identifier: Apache-2.0
"""Whatever an API server answers to whichever request of a verb: it ends, in time, with an error of
ours or without one, in little memory, and the VNF can be brought to one of its two states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from unittest import mock

import pytest

from container_update import UpdateInProgressError, connect, rollback
from tests.circles import Circle, in_circles
from tests.functional import verbs
from tests.functional.cnf import INSTANCE
from tests.functional.reference_update import Lab, until
from tests.functional.verbs import OPTIONS, VERBS, Site, Verb
from tests.hostile_server import HOSTILE, Attack, attacks
from tests.internals.core import ObjectKey, name_of

pytestmark = [
    pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning"),
]

HASTY = replace(
    OPTIONS, timeout=4, undo_timeout=4, request_timeout=1, retry_seconds=0.5, lease_seconds=3
)
REQUESTS, WATCHES = 45, 4
"""Of a verb, at most; the first watch is that of the journal."""
LEASE = ("coordination.k8s.io", "Lease")
POINTS = {
    Circle.DEFAULT: 1,
    Circle.THOROUGH: len(HOSTILE) // 4,
    Circle.COMPLETE: len(HOSTILE) * REQUESTS,
}
"""How many answers at how many requests are tried for each verb."""


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
@in_circles(*Circle)
def test_no_answer_makes_a_verb_hang_or_fail_with_what_is_not_ours(
    lab: Lab, verb: Verb, circle: Circle
) -> None:
    shift = VERBS.index(verb)
    points = list(attacks(POINTS[circle], shift, REQUESTS, WATCHES))
    assert [fault for attack in points for fault in tried(lab, verb, attack)] == []


def _rolled_back(site: Site) -> bool:
    """Bring the VNF to one of its states, unless the verb's lease is not free yet."""
    try:
        rollback(site.lab.cluster, OPTIONS, **site.where)
    except UpdateInProgressError:
        return False
    return True


def tried(lab: Lab, verb: Verb, attack: Attack) -> Iterator[str]:
    """Yield what goes wrong where requests of a verb have a hostile answer."""
    site = Site(lab)
    verb.arrange(site)
    assert site.checker, "what was there is remembered"

    def act(begin: Callable[[], None]) -> None:
        with (
            mock.patch.object(verbs, "OPTIONS", HASTY),
            connect(lab.kubeconfig, options=HASTY) as cluster,
        ):
            begin()
            verb.act(site, cluster)

    wrong, raised = attack.on(lab.server.middlewares, act)
    until(partial(_rolled_back, site), 60)
    # whose creation has no answer is by nobody; the next operation would take it
    lab.cluster.delete(ObjectKey(*LEASE, site.namespace, name_of(INSTANCE)))
    wrong += site.differences(verb.old, verb.new, *verb.resumed)
    yield from (f"{verb.name}: {attack}: {text} after {raised}" for text in wrong)
    lab.remove(site.namespace)
