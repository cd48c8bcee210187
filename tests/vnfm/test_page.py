"""The page in a real browser: what is seen of an update while it runs, and afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.faults import Fault, Faults
from tests.functional.gate import Gate
from tests.vnfm import site
from tests.vnfm.browser import PHONE, WIDE, chromium, window
from tests.vnfm.site import SCENES, Site

GUIDE = SCENES["guide-v2"]
HOSTILE = "<img src=x onerror=\"document.title='taken'\">"

CONTRAST = """
() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const back = (node) => {
    const colour = parts(getComputedStyle(node).backgroundColor);
    return colour.length === 3 || colour[3] === 1 ? colour : back(node.parentElement);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const low = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.offsetParent) continue;
    const [one, other] = [parts(getComputedStyle(node).color), back(node)].map(light);
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) low.push([walker.currentNode.textContent, ratio]);
  }
  return low;
}
"""
"""The texts that stand out from their background by less than WCAG's 4.5 to 1."""


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site.running() as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


class Visit:
    """A tab with the page, and what its console said."""

    def __init__(self, context: Any, here: Site) -> None:
        self.tab = context.new_page()
        self.told: list[str] = []
        self.tab.on("console", lambda message: self.told.append(message.text))
        self.tab.on("pageerror", lambda error: self.told.append(f"error: {error}"))
        self.tab.goto(here.url)

    def enter(self, token: str) -> None:
        self.tab.get_by_label("Token", exact=True).fill(token)
        self.tab.get_by_role("button", name="Show").click()

    def list(self, name: str) -> Any:
        """The list of a section."""
        return self.tab.get_by_role("region", name=name).get_by_role("list").first

    def card(self, name: str, text: str) -> Any:
        """The entry of a section that has a text."""
        return self.list(name).locator("> li").filter(has_text=text)

    def see(self, what: Any, text: str) -> None:
        """Wait until an element is visible and has a text."""
        what.get_by_text(text).first.wait_for(state="visible")


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def visit(request: pytest.FixtureRequest, here: Site, browser: Any) -> Iterator[Visit]:
    width, height = request.param
    size = {"width": width, "height": height}
    with window(browser, viewport=size, is_mobile=width < 600) as context:
        yield Visit(context, here)


def test_an_update_is_seen_from_its_beginning_to_its_end(
    visit: Visit, here: Site, tmp_path: Path
) -> None:
    name = f"web-{visit.tab.viewport_size['width']}"
    path = here.instantiated(GUIDE, name)
    visit.enter("not-the-token-of-anybody")
    visit.see(visit.tab.get_by_role("alert"), "expected a valid token")
    visit.enter(here.token)
    visit.see(visit.card("Instances", name), "INSTANTIATED")
    visit.see(visit.list("Running"), "Nothing runs.")

    gate = Gate()
    fault = Fault(gate, method="PUT", path=f"*/namespaces/{GUIDE.name}/deployments/*")
    here.stage.cluster.middlewares.append(Faults(fault))
    request = here.request(GUIDE, "update")
    begun = here.call("PATCH", path, {**request, "vnfInstanceName": f"{name}-after"})
    with gate.held():
        running = visit.card("Running", f"Modify {name}")
        visit.see(running, "PROCESSING")
        config = running.locator(".steps > li").filter(has_text="ConfigMap").first
        visit.see(config, "done in")
        deployment = running.locator(".steps > li").filter(has_text="Deployment").first
        visit.see(deployment, "running")
        visit.see(deployment, "which changed")
        bar = running.get_by_role("progressbar")
        assert 0 < bar.evaluate("bar => bar.value") < bar.evaluate("bar => bar.max")
        fits(visit)
        assert visit.tab.evaluate(CONTRAST) == []
        visit.tab.screenshot(path=tmp_path / "running.png")
    assert here.settled(begun)["operationState"] == "COMPLETED"
    here.stage.cluster.middlewares.clear()

    visit.see(visit.list("Running"), "Nothing runs.")
    news = visit.tab.locator("[aria-live=polite]")
    news.filter(has_text="COMPLETED").wait_for(state="attached")
    ended = visit.card("History", f"Modify {name}-after")
    visit.see(ended, "COMPLETED")
    ended.locator("summary").click()
    visit.see(ended.locator(".steps > li").filter(has_text="Deployment").first, "done in")
    assert ended.get_by_text("planned").count() == ended.get_by_text("running").count() == 0
    instance = visit.card("Instances", f"{name}-after")
    instance.locator("summary").click()
    visit.see(instance, request["vnfdId"])
    visit.see(instance, "vdu1-update-")
    fits(visit)
    assert visit.tab.evaluate(CONTRAST) == []
    assert [text for text in visit.told if "401" not in text] == []
    here.remove(path)


def fits(visit: Visit) -> None:
    """Nothing is wider than the screen, and what can be clicked is big enough for a finger."""
    width = visit.tab.viewport_size["width"]
    assert visit.tab.evaluate("document.documentElement.scrollWidth") <= width
    for target in visit.tab.locator("button:visible, summary:visible, input:visible").all():
        box = target.bounding_box()
        assert box["height"] >= 24
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    with window(browser, color_scheme="dark") as opened:
        yield opened


def test_a_failed_update_says_why_and_what_to_do_in_the_dark_too(
    context: Any, here: Site, tmp_path: Path
) -> None:
    path = here.instantiated(GUIDE, "failing")
    bad = here.stage.cluster.behaviour.bad_images
    bad.append("cirros*")
    visit = Visit(context, here)
    visit.enter(here.token)
    begun = here.call("PATCH", path, here.request(GUIDE, "update"))
    assert here.settled(begun)["operationState"] == "FAILED_TEMP"
    running = visit.card("Running", "Modify failing")
    visit.see(running, "FAILED_TEMP")
    visit.see(running.locator(".problem"), "cirros")
    visit.see(running, "openstack vnflcm op retry | rollback | fail")
    visit.tab.screenshot(path=tmp_path / "failed.png")
    assert visit.tab.evaluate(CONTRAST) == []
    back = visit.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in back[4:-1].split(",")) < 64
    bad.remove("cirros*")
    retried = here.call("POST", begun.headers["Location"] + "/retry")
    assert here.settled(retried)["operationState"] == "COMPLETED"
    visit.see(visit.card("History", "Modify"), "COMPLETED")
    here.remove(path)


def test_the_keyboard_is_enough(context: Any, here: Site) -> None:
    visit = Visit(context, here)
    visit.see(visit.tab, "A token is needed")
    focused = "document.activeElement"
    assert visit.tab.evaluate(f"{focused}.id") == "token"
    visit.tab.keyboard.type(here.token)
    visit.tab.keyboard.press("Enter")
    first = visit.list("Packages").locator("> li").first
    first.wait_for(state="visible")
    for _ in range(50):
        visit.tab.keyboard.press("Tab")
        if first.evaluate(f"card => card.contains({focused})"):
            break
    assert visit.tab.evaluate(f"getComputedStyle({focused}).outlineStyle") == "solid"
    visit.tab.keyboard.press("Enter")
    visit.see(first, "Operational state")


def test_the_token_goes_with_the_tab_and_when_it_is_told(context: Any, here: Site) -> None:
    visit = Visit(context, here)
    visit.enter(here.token)
    visit.see(visit.list("Packages"), "ONBOARDED")
    assert visit.tab.evaluate("localStorage.length") == 0
    assert visit.tab.evaluate("document.cookie") == ""
    visit.tab.reload()
    visit.see(visit.list("Packages"), "ONBOARDED")
    other = Visit(context, here)
    visit.see(other.tab, "A token is needed")
    visit.tab.get_by_role("button", name="Forget the token").click()
    visit.see(visit.tab, "The token is forgotten")
    assert visit.tab.evaluate("sessionStorage.length") == 0
    assert visit.tab.get_by_text("ONBOARDED").count() == 0


def test_what_is_data_is_never_markup(context: Any, here: Site) -> None:
    path = here.create(GUIDE, HOSTILE, HOSTILE)
    visit = Visit(context, here)
    visit.enter(here.token)
    card = visit.card("Instances", "NOT_INSTANTIATED")
    visit.see(card.locator(".name"), HOSTILE)
    card.locator("summary").click()
    visit.see(card.locator("dd"), HOSTILE)
    assert visit.tab.title() == "container-update"
    assert visit.tab.locator("main img").count() == 0
    here.call("DELETE", path)


def test_a_service_that_is_away_is_said_and_looked_for(context: Any, here: Site) -> None:
    visit = Visit(context, here)
    visit.enter(here.token)
    visit.see(visit.list("Packages"), "ONBOARDED")
    context.set_offline(True)
    visit.see(visit.tab.get_by_role("status"), "does not answer; trying again")
    context.set_offline(False)
    visit.see(visit.tab.get_by_role("status"), "As of")


def test_the_page_needs_nothing_from_elsewhere(context: Any, here: Site) -> None:
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    visit = Visit(context, here)
    visit.enter(here.token)
    visit.see(visit.list("Packages"), "ONBOARDED")
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith((f"{here.url}/", "data:"))] == []
