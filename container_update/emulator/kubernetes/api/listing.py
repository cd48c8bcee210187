"""Lists: selected, in pages, in the form that was asked for."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from container_update.emulator.json_type import Json, compact
from container_update.emulator.kubernetes import selectors, tables
from container_update.emulator.kubernetes.api.encoding import Encoder
from container_update.emulator.kubernetes.api.negotiation import Form
from container_update.emulator.kubernetes.api.paths import Target
from container_update.emulator.kubernetes.api_errors import bad_request
from container_update.emulator.kubernetes.registry import Registry


@dataclass(frozen=True)
class Page:
    """A part of a list."""

    items: list[Json]
    metadata: Json
    """The list's metadata: version, and where the next page begins."""


def selector(target: Target, query: Mapping[str, str]) -> Callable[[Json], bool] | None:
    """The predicate of ``labelSelector``, ``fieldSelector`` and a name in the path, or None."""
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


def page(registry: Registry, target: Target, query: Mapping[str, str]) -> tuple[Page, int | None]:
    """The asked-for part of a list.

    :returns: the page, and the version that its continue token came with (None for a first page):
        whoever answers has to check that it is not too old.
    """
    selected = selector(target, query)
    items = registry.list(target.resource.key, target.namespace, selected)
    version, start = registry.resource_version, ""
    continued = None
    if query.get("continue"):
        version, start = _read_token(query["continue"])
        continued = int(version)
        items = [item for item in items if _place(item) >= start]
    metadata: Json = {"resourceVersion": version}
    limit = int(query.get("limit") or 0)
    if limit and len(items) > limit:
        metadata["continue"] = _token(version, _place(items[limit - 1]) + "\0")
        if selected is None:
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return Page(items, metadata), continued


def text(target: Target, found: Page, form: Form, include: str, encoder: Encoder) -> str:
    """A page as JSON in the asked-for form."""
    if form is Form.TABLE:
        table = tables.table(target.resource.key, found.items, found.metadata, include=include)
        return compact(table)
    head: Json = {"kind": target.resource.list_kind, "apiVersion": target.api_version}
    if form in (Form.PARTIAL, Form.PARTIAL_LIST):
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        items = ",".join(compact({"metadata": item["metadata"]}) for item in found.items)
    elif target.resource.custom:
        items = ",".join(encoder.whole(item, target.api_version) for item in found.items)
    else:
        items = ",".join(map(encoder.item, found.items))
    return f'{compact(head | {"metadata": found.metadata})[:-1]},"items":[{items}]}}'


def _place(item: Json) -> str:
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
