# SPDX-License-Identifier: Apache-2.0
"""``/docs``: the OpenAPI document in Swagger UI, and its examples on the demo; what the document
has is in test_document.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.internals.service import document
from tests.vnfm import site
from tests.vnfm.browser import WIDE, chromium, window
from tests.vnfm.consumer import Consumer
from tests.vnfm.site import Site
from tests.vnfm.waiting import until

INSTANCES = "/vnf_instances/{instance_id}"


@pytest.fixture(scope="module")
def vnfm() -> Iterator[Site]:
    with site.running() as running:
        yield running


# --- the examples -------------------------------------------------------------------------------


class Examples:
    """Sends the examples of the document to the demo."""

    def __init__(self, vnfm: Site) -> None:
        self.vnfm = vnfm
        self.sent: set[str] = set()

    def send(self, request: str, status: int, **ids: str) -> Any:
        """Send an example and return the response, which has to have a status."""
        self.sent.add(request)
        method, path = request.split(" ")
        url = self.vnfm.url + path.format(**ids)
        body = document.EXAMPLES[request]
        answer = self.vnfm.client.request(method, url, json=body, timeout=60)
        assert answer.status_code == status, f"{request}: {answer.text}"
        return answer

    def completed(self, request: str, **ids: str) -> str:
        """Send an example, wait until its operation is COMPLETED and return the operation's id."""
        ended = self.vnfm.settled(self.send(request, 202, **ids))
        assert ended["operationState"] == "COMPLETED", ended
        return str(ended["id"])


def test_the_examples_work_on_the_demo(vnfm: Site) -> None:
    examples = Examples(vnfm)
    packages_work(examples)
    vims_work(examples)
    for api, change in (("v1", "PATCH {}"), ("v2", "POST {}/change_vnfpkg")):
        lifecycle_works(examples, f"/vnflcm/{api}", change)
    subscriptions_work(examples)
    assert examples.sent == document.EXAMPLES.keys()


def packages_work(examples: Examples) -> None:
    packages = "/vnfpkgm/v1/vnf_packages"
    created = examples.send(f"POST {packages}", 201).json()["id"]
    path = f"{packages}/{{package_id}}"
    examples.send(f"POST {path}/package_content/upload_from_uri", 202, package_id=created)
    onboarded = examples.vnfm.call("GET", packages).json()[-2]
    assert onboarded["onboardingState"] == "ONBOARDED"
    examples.send(f"PATCH {path}", 200, package_id=onboarded["id"])
    back = {"operationalState": "ENABLED"}
    examples.vnfm.call("PATCH", f"{packages}/{onboarded['id']}", back)


def vims_work(examples: Examples) -> None:
    for path in ("/v1.0/vims", "/v1.0/vims.json"):
        registered = examples.send(f"POST {path}", 201).json()["vim"]["id"]
        examples.send("PUT /v1.0/vims/{vim_id}", 200, vim_id=registered)
        examples.vnfm.call("DELETE", f"/v1.0/vims/{registered}")


def lifecycle_works(examples: Examples, root: str, change: str) -> None:
    created = examples.send(f"POST {root}/vnf_instances", 201).json()["id"]
    path = f"{root}{INSTANCES}"
    examples.completed(f"POST {path}/instantiate", instance_id=created)
    plan = examples.send(f"POST {path}/plan", 200, instance_id=created).json()
    assert plan["steps"]
    examples.completed(change.format(path), instance_id=created)
    if change.startswith("POST"):
        examples.completed(f"PATCH {path}", instance_id=created)
    batches_work(examples, f"{root}/batches", created)
    healed = examples.completed(f"POST {path}/heal", instance_id=created)
    refused = examples.send(f"POST {path}/scale", 422, instance_id=created)
    assert "aspectId" in refused.json()["detail"], "no package of the demo has an aspect"
    ended = f"POST {root}/vnf_lcm_op_occs/{{operation_id}}/cancel"
    refused = examples.send(ended, 409, operation_id=healed)
    assert "COMPLETED" in refused.json()["detail"], "only what has not ended can be cancelled"
    examples.completed(f"POST {path}/terminate", instance_id=created)
    examples.vnfm.call("DELETE", path.format(instance_id=created))


def batches_work(examples: Examples, path: str, instance: str) -> None:
    """The demo has no instance of the id that the example names."""
    vnfm, request = examples.vnfm, f"POST {path}"
    assert "vnfInstanceIds" in examples.send(request, 422).json()["detail"]
    body = {**document.EXAMPLES[request], "vnfInstanceIds": [instance]}
    batch = vnfm.call("POST", path, body).headers["Location"]

    def completed() -> bool:
        return bool(vnfm.call("GET", batch).json()["state"] == "COMPLETED")

    until(completed, "the batch to complete", 60)


def subscriptions_work(examples: Examples) -> None:
    """The demo has no client to notify: the examples name one that is nowhere."""
    with Consumer() as consumer:
        for root in ("vnflcm/v1", "vnflcm/v2", "vnfpkgm/v1"):
            request = f"POST /{root}/subscriptions"
            refused = examples.send(request, 422)
            assert "callbackUri" in refused.json()["detail"]
            body = {**document.EXAMPLES[request], "callbackUri": consumer.url}
            path = request.removeprefix("POST ")
            subscribed = examples.vnfm.call("POST", path, body).json()
            examples.vnfm.call("DELETE", f"{path}/{subscribed['id']}")


# --- Swagger UI ---------------------------------------------------------------------------------


class Docs:
    """A tab with the page, and its console messages."""

    def __init__(self, context: Any, vnfm: Site) -> None:
        self.tab = context.new_page()
        self.console_messages: list[str] = []
        self.urls: list[str] = []
        self.tab.on("console", lambda message: self.console_messages.append(message.text))
        self.tab.on("pageerror", lambda error: self.console_messages.append(f"error: {error}"))
        self.tab.on("request", lambda request: self.urls.append(request.url))
        self.tab.goto(f"{vnfm.url}/docs")

    def authorize(self, token: str) -> None:
        self.tab.get_by_role("button", name="Authorize").first.click()
        login = self.tab.locator(".auth-container").filter(has_text="X-Auth-Token")
        login.locator("input").fill(token)
        login.get_by_role("button", name="Authorize").click()
        self.tab.get_by_role("button", name="Close").first.click()

    def open(self, tag: str, method: str, path: str) -> Any:
        """Open an operation for a request and return it."""
        self.tab.locator(".opblock-tag").filter(has_text=tag).click()
        place = self.tab.locator(f".opblock-{method}").filter(
            has=self.tab.locator(f"[data-path='{path}']")
        )
        place.locator(".opblock-summary").click()
        place.get_by_role("button", name="Try it out").click()
        return place

    def execute(self, place: Any) -> str:
        """Send the request and return the status of the answer."""
        with self.tab.expect_response(lambda answer: "/vnf" in answer.url) as sent:
            place.get_by_role("button", name="Execute").click()
        status = str(sent.value.status)
        shown = place.locator(".live-responses-table tbody .response-col_status").first
        shown.get_by_text(status).wait_for()
        return status


@pytest.fixture
def docs(vnfm: Site) -> Iterator[Docs]:
    width, height = WIDE
    with (
        chromium() as browser,
        window(browser, viewport={"width": width, "height": height}) as context,
    ):
        yield Docs(context, vnfm)


def test_a_request_can_be_authorized_and_tried_out_under_the_content_security_policy(
    docs: Docs, vnfm: Site
) -> None:
    packages = docs.open("VNF packages", "get", "/vnfpkgm/v1/vnf_packages")
    assert docs.execute(packages) == "401"
    docs.authorize(vnfm.token)
    assert docs.execute(packages) == "200"
    first = vnfm.call("GET", "/vnfpkgm/v1/vnf_packages").json()[0]["id"]
    packages.locator(".live-responses-table").get_by_text(first).first.wait_for()
    assert vnfm.token not in docs.tab.inner_text("body"), "not in the command for curl either"
    packages.locator(".curl").get_by_text("TOKEN").wait_for()

    create = docs.open("VNF instances (v2)", "post", "/vnflcm/v2/vnf_instances")
    assert create.get_by_placeholder("Version").input_value() == "2.0.0"
    example = document.EXAMPLES["POST /vnflcm/v2/vnf_instances"]
    assert json.loads(create.locator("textarea").input_value()) == example
    assert docs.execute(create) == "201"
    created = vnfm.call("GET", "/vnflcm/v2/vnf_instances").json()[-1]
    vnfm.call("DELETE", f"/vnflcm/v2/vnf_instances/{created['id']}")

    assert [text for text in docs.console_messages if "401" not in text] == []
    assert [url for url in docs.urls if not url.startswith((f"{vnfm.url}/", "data:"))] == []


def test_a_tab_with_a_token_is_authorized_already(docs: Docs, vnfm: Site) -> None:
    docs.tab.goto(vnfm.service.link.issue(vnfm.url, vnfm.token))
    docs.tab.get_by_text("Live", exact=True).wait_for()
    docs.tab.goto(f"{vnfm.url}/docs")
    packages = docs.open("VNF packages", "get", "/vnfpkgm/v1/vnf_packages")
    assert docs.execute(packages) == "200"


def test_only_the_two_files_of_swagger_ui_that_the_page_needs_are_served(vnfm: Site) -> None:
    policy = vnfm.call("GET", "/").headers["Content-Security-Policy"]
    for path in ("", "/swagger-ui.css", "/swagger-ui-bundle.js"):
        answer = vnfm.call("GET", f"/docs{path}")
        assert answer.headers["Content-Security-Policy"] == policy
        assert answer.text
    assert "text/css" in vnfm.call("GET", "/docs/swagger-ui.css").headers["Content-Type"]
    for path in ("oauth2-redirect.html", "index.html", "../swagger_ui_bundle/__init__.py"):
        assert vnfm.client.get(f"{vnfm.url}/docs/{path}").status_code == 404
