# SPDX-License-Identifier: Apache-2.0
"""Lists: selected, in pages, in the requested representation."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from container_update.emulator.json_type import Json, compact
from container_update.emulator.kubernetes import selectors, tables
from container_update.emulator.kubernetes.api.encoding import Encoder
from container_update.emulator.kubernetes.api.negotiation import Representation
from container_update.emulator.kubernetes.api.paths import RequestTarget
from container_update.emulator.kubernetes.api_errors import bad_request, forbidden_field, invalid
from container_update.emulator.kubernetes.registry import Registry


@dataclass(frozen=True)
class Page:
    """A part of a list."""

    items: list[Json]
    metadata: Json
    """The list's metadata: its version, and the token for the next page."""


def selector(target: RequestTarget, query: Mapping[str, str]) -> Callable[[Json], bool] | None:
    """Return the predicate of the selectors and of a name in the path, or None."""
    tests: list[Callable[[Json], bool]] = []
    if query.get("labelSelector"):
        by_labels = selectors.parse(query["labelSelector"])
        tests.append(lambda item: by_labels(item["metadata"].get("labels", {})))
    if query.get("fieldSelector"):
        tests.append(selectors.parse_fields(target.resource.key, query["fieldSelector"]))
    if target.name:
        tests.append(lambda item: item["metadata"]["name"] == target.name)
    if not tests:
        return None
    return lambda item: all(test(item) for test in tests)


def check_options(query: Mapping[str, str]) -> None:
    """Raise 422 for options of a list or watch that do not go together."""
    match, initial = query.get("resourceVersionMatch"), query.get("sendInitialEvents")
    why = ""
    if initial and match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif match and not initial and not query.get("resourceVersion"):
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    if why:
        error = forbidden_field("resourceVersionMatch", why)
        raise invalid("meta.k8s.io", "ListOptions", "", [error])


def list_page(
    registry: Registry, target: RequestTarget, query: Mapping[str, str]
) -> tuple[Page, int | None]:
    """Return the requested page of a list.

    :returns: the page, and the version in its continue token (None for a first page): the caller
        has to check that it is not too old.
    """
    selected = selector(target, query)
    items = registry.list(target.resource.key, target.namespace, selected)
    version, start = registry.resource_version, ""
    continued = None
    if query.get("continue"):
        version, start = _read_token(query["continue"])
        continued = int(version)
        items = [item for item in items if _sort_key(item) >= start]
    metadata: Json = {"resourceVersion": version}
    if target.resource.custom:
        metadata["continue"] = ""  # it is always there
    if not (query.get("resourceVersion") or "0").isdigit():
        raise bad_request(f"invalid resource version: {query['resourceVersion']}")
    limit = int(query.get("limit") or 0)
    if query.get("resourceVersion") == "0":
        limit = 0  # answered from the watch cache, as a whole
    if limit > 0 and len(items) > limit:
        metadata["continue"] = _token(version, _sort_key(items[limit - 1]) + "\0")
        if selected is None:
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return Page(items, metadata), continued


def text(
    target: RequestTarget,
    page: Page,
    representation: Representation,
    include: str,
    encoder: Encoder,
) -> str:
    """Return a page as JSON in the requested representation."""
    if representation is Representation.TABLE:
        table = tables.table(target.resource.key, page.items, page.metadata, include=include)
        return compact(table)
    head: Json = {"kind": target.resource.list_kind, "apiVersion": target.api_version}
    if representation in (Representation.PARTIAL, Representation.PARTIAL_LIST):
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        items = ",".join(compact({"metadata": item["metadata"]}) for item in page.items)
    elif target.resource.custom:
        items = ",".join(encoder.single(item, target.api_version) for item in page.items)
    else:
        items = ",".join(map(encoder.item, page.items))
    return f'{compact(head | {"metadata": page.metadata})[:-1]},"items":[{items}]}}'


def _sort_key(item: Json) -> str:
    metadata = item["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _token(version: str, start: str) -> str:
    content = {"v": "meta.k8s.io/v1", "rv": int(version), "start": start}
    return base64.urlsafe_b64encode(compact(content).encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[str, str]:
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return str(content["rv"]), str(content["start"])
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise bad_request("continue key is not valid: it is not one of this server's") from error
