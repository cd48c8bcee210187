# SPDX-License-Identifier: Apache-2.0
"""From a request's parameters to what a plan waits for: holds and gates. Pure.

``hold`` is true (until somebody promotes) or a number of seconds; ``gate`` has a Prometheus query
with bounds. Their form was checked with the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from container_update.model.pauses import GateStep, HoldStep
from container_update.model.plan import Step

HOLD, GATE = "hold", "gate"
"""Their names among the parameters."""


def pauses(params: Mapping[str, Any], what: str) -> Iterator[Iterable[Step]]:
    """Yield the phases that wait: for the gate first, whose values a person may want to see.

    :param params: of the change, or of one of its steps.
    :param what: is there by then, in words.
    """
    if gate := params.get(GATE):
        yield [GateStep.of(what, **gate)]
    hold = params.get(HOLD)
    if hold:
        yield [HoldStep.of(what, None if hold is True else float(hold))]
