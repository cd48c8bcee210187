# SPDX-License-Identifier: Apache-2.0
"""How often a step enters a module on its way from the plan to the cluster."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import container_update
from tests.functional.cnf import Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import ConfigStep, Goal, RestartStep

ROOT = str(Path(container_update.__file__).parent)
Ways = dict[type, list[str]]


@contextmanager
def traced() -> Iterator[Ways]:
    """Record the modules whose functions get a step, by the step's class, in order."""
    ways: Ways = defaultdict(list)

    def record(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            arguments = (frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount])
            steps = [type(value) for value in arguments if type(value) in (ConfigStep, RestartStep)]
            if steps:
                ways[steps[0]].append(code.co_filename.removeprefix(ROOT))

    threading.settrace(record)
    sys.settrace(record)
    try:
        yield ways
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]


def entries(modules: list[str]) -> Counter[str]:
    """Count how often each module is entered from another one."""
    return Counter(module for module, _ in itertools.groupby(modules))


def test_no_module_is_entered_more_than_three_times(cnf: Cnf) -> None:
    cnf.instantiate(cm=config_map(setting="old"), w=workload("Deployment", container=ENV))
    with traced() as ways:
        cnf.update({"cm": config_map(setting="new"), "w": workload("Deployment", container=ENV)})
    for step in (ConfigStep, RestartStep):
        counts = entries(ways[step])
        assert counts["/engine/executors/table.py"] == 1
        values = ("/model/", "/planning/steps/")  # which only say what they are
        ways_in = {m: n for m, n in counts.items() if not m.startswith(values)}
        assert {module: count for module, count in ways_in.items() if count > 3} == {}


def test_a_goal_says_six_things() -> None:
    members = {name for name in (*vars(Goal), *Goal.__annotations__) if name[0] != "_"}
    assert members == {"intent", "digest", "read_manifests", "scope", "plan", "carry_out"}
