# SPDX-License-Identifier: Apache-2.0
"""From a request's parameters to what a plan waits for: holds and gates. Pure.

``hold`` is true (until somebody promotes) or a number of seconds; ``gate`` has a Prometheus query
with bounds, or a script. Their form was checked with the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from container_update.model.pauses import GateStep, HoldStep
from container_update.model.plan import Step
from container_update.model.scripts import NEW, ScriptStep, VduChange

HOLD, GATE = "hold", "gate"
"""Their names among the parameters."""


def pauses(
    params: Mapping[str, Any], what: str, vdus: Iterable[VduChange]
) -> Iterator[Iterable[Step]]:
    """Yield the phases that wait: for the gate first, whose values a person may want to see.

    :param params: of the change, or of one of its steps.
    :param what: is there by then, in words.
    :param vdus: those that change; a script is run for each.
    """
    if gate := params.get(GATE):
        path = gate.get("script")
        scripts: list[ScriptStep | None] = [None]
        if path:
            scripts = [replace(ScriptStep.of(NEW, path, vdu), path=path) for vdu in vdus]
        yield [GateStep.of(what, **{**gate, "script": each}) for each in scripts]
    hold = params.get(HOLD)
    if hold:
        yield [HoldStep.of(what, None if hold is True else float(hold))]
