# SPDX-License-Identifier: Apache-2.0
"""The page with two hundred instances in the database, as a tired operator uses it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.vnfm import many, site
from tests.vnfm.browser import PHONE, WIDE, chromium, window
from tests.vnfm.site import SCENES, Site
from tests.vnfm.test_page import CONTRAST, fits
from tests.vnfm.visit import Visit

GUIDE = SCENES["guide-v2"]
PAGE = 50


@pytest.fixture
def vnfm() -> Iterator[Site]:
    with site.running() as running:
        many.store(running.service)
        running.instantiated(GUIDE, "web")
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


def shows(visit: Visit, count: int, first: str) -> None:
    """Wait until the table has so many rows, and this one first."""
    rows = visit.tab.locator("#instances tbody")
    rows.nth(count - 1).wait_for()
    rows.nth(count).wait_for(state="detached")
    visit.see(rows.first, first)


def test_an_operator_gets_by_among_two_hundred_instances(visit: Visit) -> None:
    tab = visit.tab
    shows(visit, PAGE, "upf-7")
    rows = tab.locator("#instances tbody")
    visit.see(rows.nth(0), many.CAUSE)
    visit.see(rows.nth(1), "upf-120")
    visit.see(rows.nth(2), "upf-0")
    visit.see(tab, f"1\u201350 of {many.INSTANCES + 1}")
    looks_good(visit)

    visit.press(tab, "Next")
    shows(visit, PAGE, "upf-49")
    visit.press(tab, f"Needs a decision {len(many.FAILED)}")
    shows(visit, 2, "upf-7")
    visit.see(tab, "1\u20132 of 2")
    tab.get_by_role("button", name="Next").wait_for(state="hidden")
    tab.reload()
    shows(visit, 2, "upf-7")
    rows.first.get_by_role("link").click()
    visit.badge("Update failed")
    visit.see(visit.operation, many.CAUSE)
    for name in ("Retry", "Roll back", "Give up"):
        visit.operation.get_by_role("button", name=name).wait_for()
    looks_good(visit)
    visit.press(visit.operation, "Give up")
    visit.confirm("Give up")
    visit.badge("Instantiated")
    tab.get_by_role("button", name="Update").wait_for()
    tab.go_back()
    shows(visit, 1, "upf-120")
    visit.press(tab, "Needs a decision 1")
    looks_good(visit)
    visit.press(tab, f"All {many.INSTANCES + 1}")

    tab.get_by_label("Name, namespace or package").fill("SITE-39 upf")
    shows(visit, many.INSTANCES // 40, "upf-39")
    tab.get_by_label("Name, namespace or package").fill("web")
    shows(visit, 1, "web")
    tab.get_by_label("Package", exact=True).select_option(index=1)
    looks_good(visit)
    tab.get_by_role("link", name="web", exact=True).click()
    workload = visit.object(tab, "Deployment")
    assert tab.locator("[data-pod]").count() == 0, "pods without trouble are folded"
    visit.open(workload)
    tab.locator("[data-pod]").first.click()
    dialog = tab.get_by_role("dialog")
    visit.see(dialog, "Started: ")
    visit.see(dialog, "nginx is starting")
    looks_good(visit)
    visit.press(dialog, "Close")
    address = tab.url
    tab.goto("about:blank")
    tab.goto(address)
    visit.badge("Instantiated")
    tab.get_by_role("link", name="All instances").click()
    shows(visit, PAGE, "upf-")
