# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: several instances are selected and updated in a batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from container_update import connect
from container_update.emulator.faults import Fault, Faults, answer
from tests.vnfm import site
from tests.vnfm.browser import PHONE, WIDE, chromium, window
from tests.vnfm.site import SCENES, Site
from tests.vnfm.test_page import CONTRAST, fits
from tests.vnfm.visit import Visit

GUIDE = SCENES["guide-v2"]
NAMES = ("east", "west")


@pytest.fixture
def vnfm(tmp_path: Path) -> Iterator[Site]:
    """A service with two instances, each in a namespace of its own."""
    with site.running() as running:
        kubeconfig = str(running.stage.cluster.write_kubeconfig(tmp_path / "kubeconfig"))
        request = running.request(GUIDE, "instantiate")
        with connect(kubeconfig) as kubernetes:
            for name in NAMES:
                kubernetes.create(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                )
                params = {**request["additionalParams"], "namespace": name}
                path = running.create(GUIDE, name)
                accepted = running.call(
                    "POST", f"{path}/instantiate", {**request, "additionalParams": params}
                )
                assert running.settled(accepted)["operationState"] == "COMPLETED"
        yield running


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def visit(request: pytest.FixtureRequest, vnfm: Site) -> Iterator[Visit]:
    width, height = request.param
    size = {"width": width, "height": height}
    with (
        chromium() as browser,
        window(browser, viewport=size, is_mobile=width < 600) as context,
    ):
        visit = Visit(context, vnfm)
        visit.enter(vnfm.token)
        yield visit


def looks_good(visit: Visit) -> None:
    fits(visit)
    assert visit.faults() == []
    assert visit.tab.evaluate(CONTRAST) == []
    assert [text for text in visit.console_messages if "401" not in text] == []


def test_two_instances_are_updated_in_waves_and_the_batch_is_resumed(
    visit: Visit, vnfm: Site
) -> None:
    tab = visit.tab
    tab.get_by_label("Select east").check()
    visit.press(tab, "Select all shown")
    looks_good(visit)
    visit.press(tab, "Update 2 selected")
    page: Any = tab.locator("#batch")
    visit.see(page, "Update 2 instances")
    page.get_by_label("New package").select_option(vnfm.request(GUIDE, "update")["vnfdId"])
    visit.press(page, "Show the plans")
    visit.see(page, "2 plans")
    visit.see(page.locator("tbody").filter(has_text="west"), "to replace")
    looks_good(visit)

    refusal = Fault(answer(422), method="PUT", path="*/namespaces/east/deployments/*")
    vnfm.stage.cluster.middlewares.append(Faults(refusal))
    visit.press(page, "Update now")
    command = visit.confirm("Update", **{"Instances in a wave": "1"})
    assert '"waveSize":1,"maxFailures":0' in command
    batch = visit.opened("History", "Batch of 2 instances to Sample VNF 2.0")
    visit.see(batch, "0 done, 1 failed")
    visit.see(batch, "Waiting")
    looks_good(visit)
    vnfm.stage.cluster.middlewares.clear()
    visit.press(batch, "Resume")
    visit.confirm("Resume")
    visit.see(batch, "2 done, 0 failed")
    visit.see(batch.locator(".badge").first, "Completed")
    assert batch.get_by_role("button", name="Resume").count() == 0
    looks_good(visit)
