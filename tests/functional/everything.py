# SPDX-License-Identifier: Apache-2.0
"""What all objects of a namespace say, of every kind that the server can list.

Left out is what controllers and kubelets write by themselves: each status, Events, EndpointSlices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from http.client import HTTPSConnection
from typing import Any

from yarl import URL

from tests.functional.proxy import Upstream
from tests.internals.core import Json

MOVING = ("events", "endpoints", "endpointslices")
"""The resources that change although no client does anything."""

Contents = Mapping[str, Json]
"""Resource and name to an object."""


def contents(kubeconfig: str, namespace: str) -> Contents:
    """Return what the objects of a namespace say; an object that is being deleted says so."""
    found: dict[str, Json] = {}
    server = Upstream.of(kubeconfig)
    url = URL(server.url)
    connection = HTTPSConnection(str(url.host), url.port, context=server.context)

    def get(path: str) -> Any:
        connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
        answer = connection.getresponse()
        body = answer.read()
        # of a definition that another test has just deleted, or whose objects nothing converts
        if answer.status == 404 or b"storage is (re)initializing" in body:
            return {"resources": [], "items": []}
        assert answer.status == 200, f"{path}: {answer.status} {body!r}"
        return json.loads(body)

    with closing(connection):
        for path, resource in _resources(get):
            for body in get(f"{path}/namespaces/{namespace}/{resource}")["items"]:
                name = f"{path}/{resource} {body['metadata']['name']}"
                found[name] = _said(body)
    return found


def _said(body: Json) -> Json:
    fields = {key: value for key, value in body["metadata"].items() if key not in _WRITTEN_ALONG}
    return {**{key: body[key] for key in body.keys() - {"status"}}, "metadata": fields}


_WRITTEN_ALONG = ("managedFields", "resourceVersion")
"""The metadata that also change where only a status does."""


def _resources(get: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
    """Yield the path of each group and version, and the name of a resource that is listed there."""
    groups = get("/apis")["groups"]
    paths = [f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups]
    for path in ("/api/v1", *paths):
        for resource in get(path)["resources"]:
            name = resource["name"]
            is_listed = resource["namespaced"] and "list" in resource["verbs"]
            if is_listed and name not in MOVING:
                yield path, name
