"""The page in a real browser: what it shows of an update while it runs and afterwards."""

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
def vnfm() -> Iterator[Site]:
    with site.running() as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


class Visit:
    """A tab with the page, and its console messages."""

    def __init__(self, context: Any, vnfm: Site) -> None:
        self.tab = context.new_page()
        self.console_messages: list[str] = []
        self.tab.on("console", lambda message: self.console_messages.append(message.text))
        self.tab.on("pageerror", lambda error: self.console_messages.append(f"error: {error}"))
        self.tab.goto(vnfm.url)

    def enter(self, token: str) -> None:
        self.tab.get_by_label("Token", exact=True).fill(token)
        self.tab.get_by_role("button", name="Show").click()

    def list(self, name: str) -> Any:
        """Return the list of a section."""
        return self.tab.get_by_role("region", name=name).get_by_role("list").first

    def card(self, name: str, text: str) -> Any:
        """Return the entry of a section that contains a text."""
        return self.list(name).locator("> li").filter(has_text=text)

    def see(self, locator: Any, text: str) -> None:
        """Wait until an element is visible and has a text."""
        locator.get_by_text(text).first.wait_for(state="visible")


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def visit(request: pytest.FixtureRequest, vnfm: Site, browser: Any) -> Iterator[Visit]:
    width, height = request.param
    size = {"width": width, "height": height}
    with window(browser, viewport=size, is_mobile=width < 600) as context:
        yield Visit(context, vnfm)


def test_the_page_shows_an_update_from_start_to_end(
    visit: Visit, vnfm: Site, tmp_path: Path
) -> None:
    name = f"web-{visit.tab.viewport_size['width']}"
    path = vnfm.instantiated(GUIDE, name)
    visit.enter("not-the-token-of-anybody")
    visit.see(visit.tab.get_by_role("alert"), "expected a valid token")
    visit.enter(vnfm.token)
    visit.see(visit.card("Instances", name), "INSTANTIATED")
    visit.see(visit.list("Running"), "Nothing runs.")

    gate = Gate()
    fault = Fault(gate, method="PUT", path=f"*/namespaces/{GUIDE.name}/deployments/*")
    vnfm.stage.cluster.middlewares.append(Faults(fault))
    request = vnfm.request(GUIDE, "update")
    accepted = vnfm.call("PATCH", path, {**request, "vnfInstanceName": f"{name}-after"})
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
    assert vnfm.settled(accepted)["operationState"] == "COMPLETED"
    vnfm.stage.cluster.middlewares.clear()

    visit.see(visit.list("Running"), "Nothing runs.")
    news = visit.tab.locator("[aria-live=polite]")
    news.filter(has_text="COMPLETED").wait_for(state="attached")
    history_card = visit.card("History", f"Modify {name}-after")
    visit.see(history_card, "COMPLETED")
    history_card.locator("summary").click()
    visit.see(history_card.locator(".steps > li").filter(has_text="Deployment").first, "done in")
    assert (
        history_card.get_by_text("planned").count()
        == history_card.get_by_text("running").count()
        == 0
    )
    instance = visit.card("Instances", f"{name}-after")
    instance.locator("summary").click()
    visit.see(instance, request["vnfdId"])
    visit.see(instance, "vdu1-update-")
    fits(visit)
    assert visit.tab.evaluate(CONTRAST) == []
    assert [text for text in visit.console_messages if "401" not in text] == []
    vnfm.remove(path)


def fits(visit: Visit) -> None:
    """Check that nothing is wider than the screen and buttons are big enough for a finger."""
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


def test_a_failed_update_shows_cause_and_next_step_in_dark_mode_too(
    context: Any, vnfm: Site, tmp_path: Path
) -> None:
    path = vnfm.instantiated(GUIDE, "failing")
    bad = vnfm.stage.cluster.behaviour.bad_images
    bad.append("cirros*")
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    accepted = vnfm.call("PATCH", path, vnfm.request(GUIDE, "update"))
    assert vnfm.settled(accepted)["operationState"] == "FAILED_TEMP"
    running = visit.card("Running", "Modify failing")
    visit.see(running, "FAILED_TEMP")
    visit.see(running.locator(".problem"), "cirros")
    visit.see(running, "openstack vnflcm op retry | rollback | fail")
    visit.tab.screenshot(path=tmp_path / "failed.png")
    assert visit.tab.evaluate(CONTRAST) == []
    back = visit.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in back[4:-1].split(",")) < 64
    bad.remove("cirros*")
    retried = vnfm.call("POST", accepted.headers["Location"] + "/retry")
    assert vnfm.settled(retried)["operationState"] == "COMPLETED"
    visit.see(visit.card("History", "Modify"), "COMPLETED")
    vnfm.remove(path)


def test_the_page_can_be_used_by_keyboard(context: Any, vnfm: Site) -> None:
    visit = Visit(context, vnfm)
    visit.see(visit.tab, "A token is needed")
    focused = "document.activeElement"
    assert visit.tab.evaluate(f"{focused}.id") == "token"
    visit.tab.keyboard.type(vnfm.token)
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


def test_the_token_is_kept_per_tab_and_deleted_on_request(context: Any, vnfm: Site) -> None:
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.see(visit.list("Packages"), "ONBOARDED")
    assert visit.tab.evaluate("localStorage.length") == 0
    assert visit.tab.evaluate("document.cookie") == ""
    visit.tab.reload()
    visit.see(visit.list("Packages"), "ONBOARDED")
    other = Visit(context, vnfm)
    visit.see(other.tab, "A token is needed")
    visit.tab.get_by_role("button", name="Forget the token").click()
    visit.see(visit.tab, "The token is forgotten")
    assert visit.tab.evaluate("sessionStorage.length") == 0
    assert visit.tab.get_by_text("ONBOARDED").count() == 0


def test_data_are_never_rendered_as_markup(context: Any, vnfm: Site) -> None:
    path = vnfm.create(GUIDE, HOSTILE, HOSTILE)
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    card = visit.card("Instances", "NOT_INSTANTIATED")
    visit.see(card.locator(".name"), HOSTILE)
    card.locator("summary").click()
    visit.see(card.locator("dd"), HOSTILE)
    assert visit.tab.title() == "container-update"
    assert visit.tab.locator("main img").count() == 0
    vnfm.call("DELETE", path)


def test_the_page_shows_an_outage_and_reconnects(context: Any, vnfm: Site) -> None:
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.see(visit.list("Packages"), "ONBOARDED")
    context.set_offline(True)
    visit.see(visit.tab.get_by_role("status"), "does not answer; trying again")
    context.set_offline(False)
    visit.see(visit.tab.get_by_role("status"), "As of")


def test_the_page_loads_nothing_from_other_hosts(context: Any, vnfm: Site) -> None:
    urls: list[str] = []
    context.on("request", lambda request: urls.append(request.url))
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.see(visit.list("Packages"), "ONBOARDED")
    assert len(urls) > 5
    assert [url for url in urls if not url.startswith((f"{vnfm.url}/", "data:"))] == []
