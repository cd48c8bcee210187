# SPDX-License-Identifier: Apache-2.0
"""Each body in the OpenAPI document has an example, each operation a tag and a summary."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from tests.internals.service import document

ONLY_BINARY = {"PUT /vnfpkgm/v1/vnf_packages/{package_id}/package_content"}
"""Requests whose body is a zip."""


def operations(refusing: TestClient) -> dict[str, Any]:
    """The operations of the document, by method and path."""
    paths = refusing.get("/openapi.json").json()["paths"]
    return {
        f"{method.upper()} {path}": operation
        for path, methods in paths.items()
        for method, operation in methods.items()
    }


def test_every_body_has_an_example_and_every_example_a_body(refusing: TestClient) -> None:
    bodies = {
        request: operation["requestBody"]["content"]
        for request, operation in operations(refusing).items()
        if "requestBody" in operation
    }
    shown = {
        request: content["application/json"]["example"]
        for request, content in bodies.items()
        if request not in ONLY_BINARY
    }
    assert shown == document.EXAMPLES
    assert all("application/json" not in bodies[request] for request in ONLY_BINARY)


def test_every_operation_has_a_tag_a_summary_and_a_description(refusing: TestClient) -> None:
    answer = refusing.get("/openapi.json").json()
    described = {tag["name"] for tag in answer["tags"] if tag["description"]}
    used = {tag for operation in operations(refusing).values() for tag in operation["tags"]}
    assert used == described
    for request, operation in operations(refusing).items():
        assert operation["summary"] not in ("", operation["operationId"]), request
        text = operation["description"].replace("``", "")
        assert text.startswith(operation["summary"] + "."), request


def test_the_version_that_v2_needs_is_filled_in(refusing: TestClient) -> None:
    versions = {
        request: parameter["example"]
        for request, operation in operations(refusing).items()
        for parameter in operation.get("parameters", ())
        if parameter["name"] == "Version" and "/v2/" in request
    }
    assert len(versions) > 15
    assert set(versions.values()) == {"2.0.0"}
