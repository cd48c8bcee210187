# SPDX-License-Identifier: Apache-2.0
"""A tab with the service's page, used as a person uses it, and the walk through all of it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_playwright_python

from container_update.emulator.faults import Fault, Faults
from tests.functional.gate import Gate
from tests.vnfm.site import Site

_AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
_DROPPED = """
([name, content]) => {
  const data = new DataTransfer();
  const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
  data.items.add(new File([bytes], name, { type: "application/zip" }));
  return data;
}
"""
"""Makes what a browser hands over with a file that is dropped."""


class Visit:
    """A tab with the page, and its console messages."""

    def __init__(self, context: Any, vnfm: Site, link: str = "") -> None:
        self.tab = context.new_page()
        self.console_messages: list[str] = []
        self.tab.on("console", lambda message: self.console_messages.append(message.text))
        self.tab.on("pageerror", lambda error: self.console_messages.append(f"error: {error}"))
        self.tab.goto(link or vnfm.url)

    def enter(self, token: str) -> None:
        """Give a token."""
        self.tab.get_by_label("Token", exact=True).fill(token)
        self.tab.get_by_role("button", name="Sign in").click()

    def go(self, view: str) -> None:
        """Go to a view: Instances, Packages or History."""
        self.tab.get_by_role("link", name=view, exact=True).click()

    def list(self, view: str) -> Any:
        """Go to a view, and return its table: Packages or History."""
        self.go(view)
        return self.tab.get_by_role("region", name=view).locator(".table").first

    def card(self, view: str, text: str) -> Any:
        """Go to a view, and return the first entry of its table that contains a text."""
        return self.list(view).locator("> tbody").filter(has_text=text).first

    def opened(self, view: str, text: str) -> Any:
        """Go to a view, open an entry of its table, and return it."""
        card = self.card(view, text)
        self.open(card)
        return card

    def open(self, row: Any) -> None:
        """Open a row of a table, unless it is open."""
        opener = row.locator(".open").first
        opener.wait_for()
        if opener.get_attribute("aria-expanded") != "true":
            opener.click()

    def object(self, scope: Any, text: str) -> Any:
        """Return the row of an object that changes or runs, by a text in it."""
        return scope.locator(".objects > tbody").filter(has_text=text).first

    def row(self, name: str) -> Any:
        """Go to the table, and return the row of an instance."""
        self.go("Instances")
        link = self.tab.get_by_role("link", name=name, exact=True)
        return self.tab.locator("#instances tbody").filter(has=link)

    def instance(self, name: str) -> Any:
        """Go to the page of an instance, and return it."""
        self.row(name).get_by_role("link").click()
        return self.tab.locator("#instance")

    @property
    def operation(self) -> Any:
        """The operation on the page of an instance."""
        return self.tab.get_by_role("region", name="Operation")

    def badge(self, text: str) -> None:
        """Wait until an instance is in a state, by the badge of its page."""
        badge = self.tab.locator("#instance > .head .badge")
        badge.get_by_text(text, exact=True).wait_for(state="visible")

    def see(self, locator: Any, text: str | re.Pattern[str]) -> None:
        """Wait until an element is visible and has a text."""
        locator.get_by_text(text).first.wait_for(state="visible")

    def press(self, scope: Any, name: str) -> None:
        """Press a button of a part of the page."""
        scope.get_by_role("button", name=name, exact=True).click()

    def choose(self, field: Any, text: str) -> None:
        """Choose the option of a select that contains a text."""
        field.select_option(field.locator("option", has_text=text).get_attribute("value"))

    def confirm(self, name: str, **fields: str) -> str:
        """Fill the dialog, return its command, press its button, and wait until it is gone."""
        dialog = self.tab.get_by_role("dialog")
        for label, value in fields.items():
            field = dialog.get_by_label(label)
            (field.select_option if _is_select(field) else field.fill)(value)
        typed = dialog.locator("#field-typed")
        if typed.count():
            assert dialog.get_by_role("button", name=name, exact=True).is_disabled()
            label = dialog.locator("label[for=field-typed]").text_content()
            typed.fill(label.removeprefix("Type ").removesuffix(" to confirm"))
        assert self.faults() == []
        command = dialog.locator("#dialog-command").text_content()
        dialog.get_by_role("button", name=name, exact=True).click()
        dialog.wait_for(state="hidden")
        return str(command)

    @contextmanager
    def answered(self, url: str) -> Iterator[None]:
        """Wait until a request that the block makes is answered, and the page has seen it."""
        with self.tab.expect_response(url) as answer:
            yield
        answer.value.finished()
        self.tab.evaluate("new Promise(requestAnimationFrame)")

    def drop(self, file: Path) -> None:
        """Drop a file on the page."""
        dropped = self.tab.evaluate_handle(
            _DROPPED, [file.name, b64encode(file.read_bytes()).decode()]
        )
        self.tab.dispatch_event("h1", "drop", {"dataTransfer": dropped})

    def faults(self) -> list[str]:
        """Return what axe-core finds wrong: the rule, and the elements."""
        self.tab.evaluate(f"() => {{ {_AXE} }}")
        found = self.tab.evaluate("axe.run()")["violations"]
        return [f"{each['id']}: {[node['html'] for node in each['nodes']]}" for each in found]


def _is_select(field: Any) -> bool:
    return bool(field.evaluate("node => node.tagName === 'SELECT'"))


def walk(visit: Visit, vnfm: Site, photograph: Callable[[str], object]) -> list[str]:
    """Go through what a newcomer does on the page alone; return the commands that it showed.

    :param photograph: called with a name wherever there is something to look at.
    """
    commands: list[str] = []
    _onboard(visit, vnfm, commands)
    _instantiate(visit, "Sample VNF 1.0", "web", commands)
    photograph("resources")
    _fail_and_roll_back(visit, vnfm, photograph, commands)
    _change_package(visit, photograph, commands)
    history = visit.opened("History", "Update web")
    visit.see(history, "done")
    photograph("history")
    return commands


def _onboard(visit: Visit, vnfm: Site, commands: list[str]) -> None:
    """Delete a package and onboard it again; a second one of it is an error that is explained."""
    package = vnfm.stage.folder / "packages" / "rolling" / "after.zip"
    card = visit.opened("Packages", "Rolling update sample 2.0")
    visit.press(card, "Disable")
    commands.append(visit.confirm("Disable"))
    visit.press(card, "Delete")
    commands.append(visit.confirm("Delete"))
    card.wait_for(state="detached")
    visit.drop(package)
    visit.see(visit.card("Packages", "Rolling update sample 2.0"), "Onboarded")
    visit.tab.get_by_label("Drop CSAR packages here").set_input_files(package)
    bad = visit.card("Packages", "Error")
    visit.see(bad, package.name)
    visit.see(bad, "VNFD")
    visit.open(bad)
    visit.press(bad, "Delete")
    commands.append(visit.confirm("Delete"))


def _instantiate(visit: Visit, package: str, name: str, commands: list[str]) -> None:
    """Create an instance, whose page is shown then, and instantiate it."""
    visit.press(visit.opened("Packages", package), "New instance")
    commands.append(visit.confirm("Create", Name=name))
    visit.badge("Not instantiated")
    visit.press(visit.tab, "Instantiate")
    commands.append(visit.confirm("Instantiate"))
    visit.badge("Instantiated")
    visit.tab.locator(".objects .badge.good").first.wait_for()


def _fail_and_roll_back(
    visit: Visit, vnfm: Site, photograph: Callable[[str], object], commands: list[str]
) -> None:
    """Look at the plan of an update whose image cannot be pulled, do it, and go back."""
    page = visit.tab.locator("#instance")
    visit.press(page, "Update")
    packages = page.get_by_label("New package")
    visit.choose(packages, "Sample VNF 2.1")
    visit.press(page, "Show the plan")
    visit.see(page, "to replace")
    assert page.locator(".diff").count() == 0, "what a step is for is closed"
    visit.open(visit.object(page, "ConfigMap"))
    visit.see(page.locator(".diff"), "+")
    photograph("plan")
    gate = Gate()
    undo = Fault(gate, method="PUT", path="*/configmaps/cm-data", nth=2)
    vnfm.stage.cluster.middlewares.append(Faults(undo))
    visit.press(page, "Update now")
    commands.append(visit.confirm("Update"))
    visit.badge("Update runs")
    broken = page.locator(".objects .pod .badge.bad").first
    visit.see(broken, "ImagePullBackOff")
    photograph("failing")
    with gate.held():  # the undo: the pods are seen however slow this machine is
        visit.see(broken, "ImagePullBackOff")
        visit.see(visit.operation, re.compile(r"^Undoing: \d of 7 steps undone$"))
    visit.badge("Update failed")
    vnfm.stage.cluster.middlewares.clear()
    photograph("failed")
    visit.press(visit.operation, "Roll back")
    commands.append(visit.confirm("Roll back"))
    visit.badge("Instantiated")
    visit.see(visit.card("History", "Update web"), "Rolled back")


def _change_package(visit: Visit, photograph: Callable[[str], object], commands: list[str]) -> None:
    """Change a package Blue-Green."""
    _instantiate(visit, "Blue-Green sample 1.0", "shop", commands)
    page = visit.tab.locator("#instance")
    visit.press(page, "Change package")
    page.get_by_label("Kind of change").select_option("Blue-Green")
    visit.press(page, "Show the plan")
    visit.see(page, "create")
    photograph("change-plan")
    visit.press(page, "Change package now")
    commands.append(visit.confirm("Change package"))
    visit.see(visit.card("History", "Change the package of shop"), "Completed")
