# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: what it shows, and what each of its buttons does."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.faults import Fault, Faults
from tests.functional.gate import Gate
from tests.vnfm import scalable, site
from tests.vnfm.browser import PHONE, WIDE, chromium, window
from tests.vnfm.site import SCENES, Site
from tests.vnfm.visit import Visit, walk

GUIDE = SCENES["guide-v2"]
READER = secrets.token_urlsafe()
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

MISFITS = """
(width) => [...document.querySelectorAll("button, summary, input")]
  .filter((target) => target.checkVisibility())
  .map((target) => [target.outerHTML, target.getBoundingClientRect()])
  .filter(([, { height, left, right }]) => height < 24 || left < 0 || right > width)
"""
"""What is to be pressed and is too small, or partly outside."""


@pytest.fixture(scope="module")
def vnfm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(f"admin {secrets.token_urlsafe()}\nguest {READER} read\n")
    tokens.chmod(0o600)
    with site.running(token_file=str(tokens)) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def visit(request: pytest.FixtureRequest, vnfm: Site, browser: Any) -> Iterator[Visit]:
    width, height = request.param
    size = {"width": width, "height": height}
    with window(browser, viewport=size, is_mobile=width < 600) as context:
        yield Visit(context, vnfm)


def test_the_page_shows_an_update_from_start_to_end(visit: Visit, vnfm: Site) -> None:
    name = f"web-{visit.tab.viewport_size['width']}"
    path = vnfm.instantiated(GUIDE, name)
    visit.enter("not-the-token-of-anybody")
    visit.see(visit.tab.get_by_role("alert"), "This token is not known here")
    visit.enter(vnfm.token)
    visit.see(visit.row(name), "Instantiated")

    gate = Gate()
    fault = Fault(gate, method="PUT", path=f"*/namespaces/{GUIDE.name}/deployments/*")
    vnfm.stage.cluster.middlewares.append(Faults(fault))
    request = vnfm.request(GUIDE, "update")
    accepted = vnfm.call("PATCH", path, {**request, "vnfInstanceName": f"{name}-after"})
    with gate.held():
        row = visit.row(name)
        visit.see(row, "Update runs")
        visit.see(row, "steps done, now: ")
        fits(visit)
        page = visit.instance(name)
        running = visit.operation
        assert running.get_by_text("PROCESSING").count() == 0
        visit.see(running, "Sample VNF 1.0 \u2192 Sample VNF 2.0")
        visit.see(running, " UTC, ")
        visit.see(visit.object(page, "ConfigMap"), "done in")
        deployment = visit.object(page, "Deployment")
        visit.see(deployment, "roll: running")
        visit.see(deployment, "nginx \u2192 ")
        assert deployment.get_by_text("which changed").count() == 0
        visit.open(deployment)
        visit.see(deployment, "which changed")
        objects = page.locator(".objects .open").all_text_contents()
        assert len(objects) == len(set(objects)), "each object is in the table once"
        order = page.locator(".objects .badge").all_text_contents()
        at_work = [text.endswith(": running") for text in order if ": " in text]
        assert at_work == sorted(at_work, reverse=True), "what runs is above what is done"
        bar = running.get_by_role("progressbar")
        assert 0 < bar.evaluate("bar => bar.value") < bar.evaluate("bar => bar.max")
        assert page.get_by_role("button", name="Terminate").count() == 0
        fits(visit)
        assert visit.faults() == []
        assert visit.tab.evaluate(CONTRAST) == []
    assert vnfm.settled(accepted)["operationState"] == "COMPLETED"
    vnfm.stage.cluster.middlewares.clear()

    visit.badge("Instantiated")
    running.wait_for(state="hidden")
    news = visit.tab.locator("[aria-live=polite]")
    news.filter(has_text="Completed").wait_for(state="attached")
    page.get_by_role("tab", name="Details").click()
    visit.see(page.locator(".facts"), request["vnfdId"])
    visit.see(page.locator(".facts"), "vdu1-update-")
    fits(visit)
    past = visit.opened("History", f"Update {name}")
    visit.see(past, "Completed")
    visit.see(past, "admin")
    visit.see(past, " UTC, ")
    changed = visit.object(past, "Deployment")
    visit.see(changed, "done in")
    visit.open(changed)
    visit.see(changed.locator(".diff"), "image")
    assert past.get_by_text("planned").count() == past.get_by_text("running").count() == 0
    fits(visit)
    assert visit.faults() == []
    assert visit.tab.evaluate(CONTRAST) == []
    assert [text for text in visit.console_messages if "401" not in text] == []
    vnfm.remove(path)


def fits(visit: Visit) -> None:
    """Check that nothing is wider than the screen and buttons are big enough for a finger."""
    width = visit.tab.viewport_size["width"]
    assert visit.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.tab.evaluate(MISFITS, width) == []


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    with window(browser, color_scheme="dark") as opened:
        yield opened


def test_a_failed_update_shows_cause_and_next_step_in_dark_mode_too(
    context: Any, vnfm: Site
) -> None:
    path = vnfm.instantiated(GUIDE, "failing")
    bad = vnfm.stage.cluster.behaviour.bad_images
    bad.append("cirros*")
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    accepted = vnfm.call("PATCH", path, vnfm.request(GUIDE, "update"))
    assert vnfm.settled(accepted)["operationState"] == "FAILED_TEMP"
    visit.see(visit.row("failing"), "cirros")
    visit.instance("failing")
    visit.badge("Update failed")
    assert visit.tab.get_by_text("FAILED_TEMP").count() == 0
    visit.see(visit.operation.locator(".cause"), "cirros")
    visit.see(visit.operation.locator(".advice"), "The old version runs as before. Roll back ends")
    buttons = visit.operation.get_by_role("button")
    assert buttons.all_text_contents() == ["Roll back", "Retry", "Give up"]
    kinds = buttons.evaluate_all("buttons => buttons.map((each) => each.className)")
    assert kinds == ["main", "", "danger"]
    failed = visit.card("History", "Update failing")
    visit.see(failed, "Failed, needs a decision")
    visit.see(failed, "cirros")
    visit.open(failed)
    state = visit.tab.get_by_role("region", name="History").get_by_label("State")
    state.select_option("FAILED_TEMP")
    visit.see(visit.card("History", "Update failing"), "Failed, needs a decision")
    state.select_option("")
    failed.get_by_role("link", name="Decide about it").click()
    visit.badge("Update failed")
    assert visit.operation.get_by_text("POST /vnflcm").count() == 0
    assert visit.faults() == []
    assert visit.tab.evaluate(CONTRAST) == []
    back = visit.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in back[4:-1].split(",")) < 64
    bad.remove("cirros*")
    visit.press(visit.operation, "Retry")
    id_ = accepted.headers["Location"].rpartition("/")[2]
    assert visit.confirm("Retry") == (f"openstack vnflcm op retry {id_} --os-tacker-api-version 2")
    visit.see(visit.card("History", "Update failing"), "Completed")
    vnfm.remove(path)


def test_a_newcomer_gets_by_on_the_page_alone(vnfm: Site, browser: Any, tmp_path: Path) -> None:
    width, height = WIDE
    with window(browser, viewport={"width": width, "height": height}) as context:
        visit = Visit(context, vnfm)
        visit.enter(vnfm.token)
        faults: list[str] = []

        def photograph(name: str) -> None:
            visit.tab.screenshot(path=tmp_path / f"{name}.png", full_page=True)
            faults.extend(f"{name}: {fault}" for fault in visit.faults())
            fits(visit)

        commands = walk(visit, vnfm, photograph)
        assert faults == []
        visit.tab.emulate_media(media="print")
        names = ".open, .link"
        assert visit.tab.locator(f"button:not({names}):visible, input:visible").count() == 0
        assert [text for text in visit.console_messages if "401" not in text] == []
    assert len(commands) == 10
    assert [text for text in commands if not text.startswith(("openstack vnf", "echo"))] == []
    for instance in vnfm.call("GET", "/vnflcm/v2/vnf_instances").json():
        vnfm.remove(f"/vnflcm/v2/vnf_instances/{instance['id']}")


def test_an_instance_is_healed_scaled_terminated_and_deleted(
    context: Any, vnfm: Site, tmp_path: Path
) -> None:
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.go("Packages")
    visit.tab.get_by_label("Drop CSAR packages here").set_input_files(scalable.package(tmp_path))
    package = visit.card("Packages", scalable.VNFD_ID)
    visit.see(package, "Onboarded")
    visit.open(package)
    visit.press(package, "New instance")
    visit.confirm("Create", Name="scaled")
    page = visit.tab.locator("#instance")
    visit.press(page, "Instantiate")
    visit.confirm("Instantiate")
    visit.badge("Instantiated")
    visit.press(page, "Scale")
    assert "--type SCALE_OUT --aspect-id 'worker_instance' --number-of-steps 1" in (
        visit.confirm("Scale")
    )
    visit.see(page.locator(".objects"), "2 of 2")
    visit.badge("Instantiated")
    visit.press(page, "Heal")
    visit.confirm("Heal", Why="it's slow")
    page.get_by_role("tab", name="History").click()
    visit.see(page, "Heal scaled")
    visit.see(page.get_by_role("tabpanel", name="History"), "it's slow")
    visit.press(page, "Terminate")
    visit.confirm("Terminate")
    visit.badge("Not instantiated")
    visit.press(page, "Delete")
    visit.confirm("Delete")
    visit.row("scaled").wait_for(state="detached")
    visit.go("Packages")
    visit.press(package, "Disable")
    visit.confirm("Disable")
    visit.press(package, "Enable")
    visit.confirm("Enable")
    visit.see(package, "New instance")


def test_an_operation_can_be_given_up(context: Any, vnfm: Site) -> None:
    path = vnfm.instantiated(GUIDE, "given-up")
    bad = vnfm.stage.cluster.behaviour.bad_images
    bad.append("cirros*")
    accepted = vnfm.call("PATCH", path, vnfm.request(GUIDE, "update"))
    assert vnfm.settled(accepted)["operationState"] == "FAILED_TEMP"
    bad.remove("cirros*")
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.instance("given-up")
    visit.press(visit.operation, "Give up")
    visit.confirm("Give up")
    visit.see(visit.card("History", "Update given-up"), "Given up")
    vnfm.remove(path)


@pytest.mark.parametrize("late", ["draft", "plan"])
def test_an_answer_about_another_package_comes_too_late(
    context: Any, vnfm: Site, late: str
) -> None:
    """What is shown, and done then, is about the package that was chosen last."""
    path = vnfm.instantiated(GUIDE, f"late-{late}")
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    page = visit.instance(f"late-{late}")
    drafts = "**/view/drafts/**"
    with visit.answered(drafts):
        visit.press(page, "Update")
    packages = page.get_by_label("New package")
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    asked = {"draft": drafts, "plan": "**/plan"}[late]
    visit.tab.route(asked, hold, times=1)
    with visit.tab.expect_request(drafts):
        visit.choose(packages, "Sample VNF 2.1")
    if late == "plan":
        with visit.tab.expect_request(asked):
            visit.press(page, "Show the plan")
    with visit.answered(drafts):
        visit.choose(packages, vnfm.request(GUIDE, "update")["vnfdId"])
    (route,) = held
    with visit.answered(asked):
        route.continue_()
    assert page.get_by_role("button", name="Update now").count() == 0
    visit.press(page, "Show the plan")
    visit.see(page, "to replace")
    visit.press(page, "Update now")
    visit.confirm("Update")
    past = visit.opened("History", f"Update late-{late}")
    visit.see(past, "Completed")
    visit.see(past, "Sample VNF 1.0 \u2192 Sample VNF 2.0")
    vnfm.remove(path)


def test_operations_can_be_cancelled_before_they_begin_and_at_work(context: Any) -> None:
    with site.running(workers=1) as vnfm:
        at_work, waiting = vnfm.instantiated(GUIDE, "at-work"), vnfm.create(GUIDE, "waiting")
        gate = Gate(seconds=90)
        held = Fault(gate, method="PUT", path="*/configmaps/cm-data")
        vnfm.stage.cluster.middlewares.append(Faults(held))
        visit = Visit(context, vnfm)
        visit.enter(vnfm.token)
        begun = vnfm.call("PATCH", at_work, vnfm.request(GUIDE, "update"))
        with gate.held():
            queued = vnfm.call("PATCH", waiting, {"vnfInstanceName": "renamed"})
            visit.instance("waiting")
            visit.badge("Update waits")
            visit.press(visit.operation, "Cancel operation")
            command = visit.confirm("Cancel operation")
            visit.see(visit.card("History", "Update waiting"), "Rolled back")
            visit.instance("at-work")
            visit.badge("Update runs")
            visit.press(visit.operation, "Cancel operation")
            visit.confirm("Cancel operation")
        visit.badge("Update failed")
        visit.see(visit.operation.locator(".cause"), "by a request to cancel")
        id_ = queued.headers["Location"].rpartition("/")[2]
        assert command.startswith(f"openstack vnflcm op cancel {id_} ")
        assert vnfm.settled(begun)["operationState"] == "FAILED_TEMP"
        assert vnfm.call("GET", waiting).json()["vnfInstanceName"] == "waiting"


def test_a_refused_request_says_why_in_its_dialog(context: Any, vnfm: Site) -> None:
    path = vnfm.create(GUIDE, "refused")
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.press(visit.instance("refused"), "Instantiate")
    dialog = visit.tab.get_by_role("dialog")
    assert dialog.get_by_label("Namespace").input_value() == "default"
    dialog.get_by_text("The request as JSON").click()
    dialog.get_by_label("Request").fill("{")
    visit.see(dialog.get_by_role("alert"), "The request is not JSON")
    dialog.get_by_label("Request").fill('{"flavourId": "none"}')
    visit.press(dialog, "Instantiate")
    visit.see(dialog.get_by_role("alert"), "expected a deployment flavour of the VNFD")
    assert visit.faults() == []
    visit.press(dialog, "Cancel")
    dialog.wait_for(state="hidden")
    vnfm.call("DELETE", path)


def test_a_second_instance_gets_a_namespace_of_its_own(context: Any, vnfm: Site) -> None:
    first, second = vnfm.create(GUIDE, "first"), vnfm.create(GUIDE, "Second one")
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.press(visit.instance("first"), "Instantiate")
    visit.confirm("Instantiate")
    visit.badge("Instantiated")
    visit.press(visit.instance("Second one"), "Instantiate")
    dialog = visit.tab.get_by_role("dialog")
    assert dialog.get_by_label("Namespace").input_value() == "second-one"
    visit.see(dialog, "Another instance of this product runs in the namespace default")
    dialog.get_by_label("Namespace").fill("default")
    visit.press(dialog, "Instantiate")
    visit.badge("Instantiation failed")
    id_ = first.rpartition("/")[2]
    visit.see(visit.operation.locator(".cause"), "first")
    assert visit.tab.get_by_text(id_).count() == 0, "it is called by its name"
    visit.see(visit.row("Second one"), "default")
    visit.instance("Second one")
    visit.press(visit.operation, "Roll back")
    visit.confirm("Roll back")
    visit.badge("Not instantiated")
    vnfm.call("DELETE", second)
    vnfm.remove(first)


def test_what_cannot_be_undone_is_confirmed_by_the_name_of_the_instance(
    context: Any, vnfm: Site
) -> None:
    path = vnfm.instantiated(GUIDE, "precious")
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.press(visit.instance("precious"), "Terminate")
    dialog = visit.tab.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Terminate")
    for typed in ("", "prec", "Precious"):
        dialog.get_by_label("Type precious to confirm").fill(typed)
        assert confirm.is_disabled()
    typed = dialog.get_by_label("Type precious to confirm")
    typed.press("Enter")
    assert dialog.is_visible(), "the name is another one"
    typed.fill("precious")
    assert confirm.is_enabled()
    assert visit.tab.title() == "precious · container-update"
    typed.press("Enter")
    dialog.wait_for(state="hidden")
    visit.see(visit.tab.locator("#instance"), "Not instantiated")
    vnfm.call("DELETE", path)


def test_update_now_stays_in_sight_beside_a_long_plan(vnfm: Site, browser: Any) -> None:
    path = vnfm.instantiated(GUIDE, "in-sight")
    with window(browser, viewport={"width": 390, "height": 400}) as context:
        visit = Visit(context, vnfm)
        visit.enter(vnfm.token)
        page = visit.instance("in-sight")
        visit.press(page, "Update")
        visit.choose(page.get_by_label("New package"), "Sample VNF 2.1")
        visit.press(page, "Show the plan")
        visit.see(page, "to replace")
        button = page.get_by_role("button", name="Update now")
        for text in ("ConfigMap", "Deployment"):
            visit.object(page.locator("#instance-panel-plan"), text).scroll_into_view_if_needed()
            box = button.bounding_box()
            assert 0 <= box["y"] <= 400 - box["height"]
        mains = page.locator("button.main:visible").evaluate_all(
            "all => all.filter((each) => getComputedStyle(each).backgroundColor !== "
            "'rgba(0, 0, 0, 0)').map((each) => each.textContent)"
        )
        assert mains == ["Update now"], "one primary action"
    vnfm.remove(path)


def test_the_copied_command_does_the_same(context: Any, vnfm: Site) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    path = vnfm.create(GUIDE, "by-command")
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.press(visit.instance("by-command"), "Delete")
    visit.press(visit.tab.get_by_role("dialog"), "Copy")
    visit.see(visit.tab.get_by_role("dialog"), "Copied")
    command = visit.tab.evaluate("navigator.clipboard.readText()")
    id_ = path.rpartition("/")[2]
    assert command == f"openstack vnflcm delete {id_} --os-tacker-api-version 2"
    vnfm.call("DELETE", path)


def test_a_token_that_only_reads_gets_no_buttons(context: Any, vnfm: Site) -> None:
    path = vnfm.create(GUIDE, "looked-at")
    visit = Visit(context, vnfm)
    visit.enter(READER)
    visit.see(visit.tab, "guest, may only read")
    page = visit.instance("looked-at")
    visit.see(page, "Resources")
    assert page.get_by_role("button", name="Instantiate").count() == 0
    visit.go("Packages")
    assert visit.tab.get_by_label("Drop CSAR packages here").is_hidden()
    vnfm.call("DELETE", path)


def test_the_page_can_be_used_by_keyboard(context: Any, vnfm: Site) -> None:
    visit = Visit(context, vnfm)
    visit.see(visit.tab, "A token is needed")
    focused = "document.activeElement"
    assert visit.tab.evaluate(f"{focused}.id") == "token"
    visit.tab.keyboard.type(vnfm.token)
    visit.tab.keyboard.press("Enter")
    link = visit.tab.get_by_role("link", name="Packages")
    link.focus()
    visit.tab.keyboard.press("Enter")
    first = visit.tab.locator("#packages tbody").first
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
    visit.see(visit.list("Packages"), "Onboarded")
    assert visit.tab.evaluate("localStorage.length") == 0
    assert visit.tab.evaluate("document.cookie") == ""
    visit.tab.reload()
    visit.see(visit.list("Packages"), "Onboarded")
    other = Visit(context, vnfm)
    visit.see(other.tab, "A token is needed")
    visit.tab.get_by_role("button", name="Sign out").click()
    visit.see(visit.tab, "Signed out")
    assert visit.tab.evaluate("sessionStorage.length") == 0
    assert visit.tab.get_by_text("Onboarded").count() == 0


def test_a_link_signs_in_once_and_is_not_kept_in_the_address(context: Any, vnfm: Site) -> None:
    link = vnfm.service.link.issue(vnfm.url, vnfm.token)
    requested: list[str] = []
    context.on("request", lambda request: requested.append(request.url))
    visit = Visit(context, vnfm, link)
    visit.see(visit.list("Packages"), "Onboarded")
    assert visit.tab.url == f"{vnfm.url}/#/packages"
    assert "401" not in "".join(visit.console_messages), "it is exchanged before the first request"
    once = link.partition("=")[2]
    assert not [url for url in requested if once in url and url != link]
    visit.tab.reload()
    visit.see(visit.list("Packages"), "Onboarded")
    visit.tab.evaluate("address => { location.href = address; location.reload(); }", link)
    visit.see(visit.list("Packages"), "Onboarded")
    other = Visit(context, vnfm, link)
    visit.see(other.tab.get_by_role("alert"), "this link was used already or has expired")
    assert other.tab.url == f"{vnfm.url}/"


def test_data_are_never_rendered_as_markup(context: Any, vnfm: Site) -> None:
    path = vnfm.create(GUIDE, HOSTILE, HOSTILE)
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.see(visit.row(HOSTILE), HOSTILE)
    page = visit.instance(HOSTILE)
    visit.see(page.locator("h2"), HOSTILE)
    page.get_by_role("tab", name="Details").click()
    visit.see(page.locator("dd"), HOSTILE)
    assert visit.tab.title() == f"{HOSTILE} \u00b7 container-update", "it is a text"
    assert visit.tab.locator("main img").count() == 0
    vnfm.call("DELETE", path)


def test_the_page_shows_an_outage_and_reconnects(context: Any, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"admin {secrets.token_urlsafe()}\n")
    tokens.chmod(0o600)
    with site.running(token_file=str(tokens)) as first:
        visit = Visit(context, first)
        visit.enter(first.token)
        visit.see(visit.list("Packages"), "Onboarded")
        port = int(first.url.rpartition(":")[2])
    visit.see(visit.tab.locator("#state"), "trying again")
    with site.running(token_file=str(tokens), port=port):
        visit.see(visit.tab.locator("#state"), "Live")


def test_the_page_loads_nothing_from_other_hosts(context: Any, vnfm: Site) -> None:
    urls: list[str] = []
    context.on("request", lambda request: urls.append(request.url))
    visit = Visit(context, vnfm)
    visit.enter(vnfm.token)
    visit.see(visit.list("Packages"), "Onboarded")
    assert len(urls) > 5
    assert [url for url in urls if not url.startswith((f"{vnfm.url}/", "data:"))] == []
