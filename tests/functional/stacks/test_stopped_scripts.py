# SPDX-License-Identifier: Apache-2.0
"""A change that is stopped while a coordination script runs, or between two of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from container_update import (
    CancelToken,
    ScriptStep,
    StepResult,
    UpdateInterruptedError,
)
from tests.functional.stacks.vnf import Vnf, until
from tests.internals.core import StackChange
from tests.internals.stacks import BLUE_GREEN, ROLLING

SCRIPT = """
import pathlib, pickle, sys, time
step = pickle.load(sys.stdin.buffer)["coordination"]
folder = pathlib.Path({folder!r})
with open(folder / "log", "a") as log:
    log.write(step["vnf"] + (" back" if step["back"] else " begins") + chr(10))
while not (step["back"] or (folder / "may-end").exists()):
    time.sleep(0.01)
with open(folder / "log", "a") as log:
    log.write(step["vnf"] + " ends" + chr(10))
"""


class Scripts:
    """The scripts of a request, which write down what they do."""

    def __init__(self, vnf: Vnf, upgrade_type: str, shape: str = "server") -> None:
        self.folder = vnf.folder
        text = SCRIPT.format(folder=str(self.folder))
        new = vnf.package(shape, vnf.site.images[1], **{"Scripts/log.py": text})
        params = {
            "upgrade_type": upgrade_type,
            "vdu_params": [{"vdu_id": "VDU1"}],
            "external_lb_param": None,
            "lcm-operation-coordinate-new-vnf": "Scripts/log.py",
            "lcm-operation-coordinate-old-vnf": "Scripts/log.py",
        }
        self.vnf, self.request = vnf, vnf.change_request(new, params)

    @property
    def change(self) -> StackChange:
        return StackChange(self.request, self.vnf.heat, self.vnf.stack, self.vnf.options)

    def may_end(self) -> None:
        Path(self.folder, "may-end").touch()

    @property
    def log(self) -> list[str]:
        path = Path(self.folder, "log")
        return path.read_text().splitlines() if path.exists() else []

    def run(self, cancel: CancelToken, progress: Any = lambda _: None) -> Any:
        return self.change.run(cancel=cancel, progress=progress)


UNDONE = {
    BLUE_GREEN: ["new begins", "new ends", "old back", "old ends", "new back", "new ends"],
    ROLLING: ["new begins", "new ends", "old back", "old ends"],
}


@pytest.mark.parametrize("upgrade_type", UNDONE)
def test_the_undo_of_a_stopped_change_runs_its_scripts(vnf: Vnf, upgrade_type: str) -> None:
    """Or the traffic would stay with servers that are gone."""
    vnf.instantiate("server")
    scripts, cancel, before = Scripts(vnf, upgrade_type), CancelToken(), vnf.servers()
    scripts.may_end()

    def stop(event: Any) -> None:
        if isinstance(event, StepResult) and isinstance(event.step, ScriptStep):
            cancel.request("by the test")

    with pytest.raises(UpdateInterruptedError, match=r"Everything is as before$"):
        scripts.run(cancel, stop)
    assert scripts.log == UNDONE[upgrade_type]
    assert vnf.servers() == before


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])
def test_a_script_that_was_stopped_runs_again_in_the_resume(vnf: Vnf, upgrade_type: str) -> None:
    vnf.instantiate("server")
    scripts, cancel = Scripts(vnf, upgrade_type), CancelToken()

    def stop_it() -> None:
        until(lambda: scripts.log == ["new begins"])
        cancel.request("by the test", keep_journal=True)

    with ThreadPoolExecutor() as threads:
        stopping = threads.submit(stop_it)
        with pytest.raises(UpdateInterruptedError, match="it was stopped by the test"):
            scripts.run(cancel)
        stopping.result()
    scripts.may_end()
    scripts.run(CancelToken())
    assert scripts.log[:3] == ["new begins", "new begins", "new ends"]
    assert scripts.log[3:] == (["old begins", "old ends"] if upgrade_type == BLUE_GREEN else [])


def test_a_plan_of_a_rolling_update_shows_each_run_of_its_script(vnf: Vnf) -> None:
    """It runs once for each VNFC, not for each VDU."""
    vnf.instantiate("group")
    scripts = Scripts(vnf, ROLLING, "group")
    scripts.may_end()
    plan = scripts.change.preview()
    planned = [str(step.key) for step in plan.steps if isinstance(step, ScriptStep)]

    outcome = scripts.run(CancelToken())

    ran = [str(each.step.key) for each in outcome.results if isinstance(each.step, ScriptStep)]
    assert len(ran) == len(vnf.servers()) > 1
    assert planned == ran
    assert len(set(planned)) == len(planned)
