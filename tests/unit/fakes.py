# SPDX-License-Identifier: Apache-2.0
"""A cluster in memory: objects, resourceVersions and watches, without controllers or a network."""

from __future__ import annotations

import copy
import queue
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from container_update.cluster.scope import Scope, without_managed_fields
from container_update.model.cluster import DryRun, DryRunVerb, Keep, Listing, Right, WatchEvent
from container_update.model.errors import ClusterError
from container_update.model.objects import Collection, Json, ObjectKey

Hook = Callable[[str, ObjectKey], None]
"""Called with the verb before a request takes effect; may raise ClusterError."""


class Everything(Scope):
    """What an informer keeps whole, whatever an operation is about."""

    def keep(self, body: Json) -> Json:
        return without_managed_fields(body)

    def rounds(self, collections: Iterable[Collection]) -> list[list[Collection]]:
        return [sorted(collections)]


class FakeCluster:
    journal_key = ""
    access: Mapping[str, str] = MappingProxyType({})
    """Implements ``container_update.model.cluster.Cluster``."""

    def __init__(self, *objects: Json) -> None:
        self.objects: dict[ObjectKey, Json] = {}
        self.version = 100
        self.requests = 0
        self.calls: list[str] = []
        self.watches: dict[Collection, queue.Queue[WatchEvent | ClusterError | None]] = {}
        self.watched_from: list[tuple[Collection, str]] = []
        self.hooks: list[Hook] = []
        self.logs: dict[tuple[str, bool], list[str]] = {}
        """Lines by the name of a pod, and whether they are of the run before."""
        for body in objects:
            self.put(body)

    def put(self, body: Json) -> Json:
        """Store an object as its controller or another client would."""
        self.version += 1
        stored = copy.deepcopy(body)
        metadata = stored["metadata"]
        metadata.setdefault("uid", f"uid-{self.version}")
        metadata["resourceVersion"] = str(self.version)
        self.objects[ObjectKey.of(stored)] = stored
        return copy.deepcopy(stored)

    def list(self, collection: Collection, keep: Keep | None = None) -> Listing:
        self._called("list", ObjectKey(collection.group, collection.kind, collection.namespace, ""))
        every = replace(collection, fields="", labels="")
        field, _, value = collection.fields.partition("=")
        items = [b for k, b in self.objects.items() if Collection.of(k) == every]
        items = [b for b in items if value in ("", b["metadata"]["name"], b.get(field))]
        for label, values in re.findall(r"([^,]+) in \((.*?)\)", collection.labels):
            labels = [b["metadata"].get("labels") or {} for b in items]
            items = [b for b, its in zip(items, labels, strict=True) if its.get(label) in values]
        copies = (copy.deepcopy(body) for body in items)
        kept = (keep(body) if keep else body for body in copies)
        return Listing(tuple(body for body in kept if body is not None), str(self.version))

    def watch(
        self, collection: Collection, resource_version: str, seconds: float
    ) -> Iterator[WatchEvent]:
        events = self.watches.setdefault(collection, queue.Queue())
        self.watched_from.append((collection, resource_version))  # now events can be sent
        while (event := events.get()) is not None:
            if isinstance(event, ClusterError):
                raise event
            yield event

    def get(self, key: ObjectKey) -> Json | None:
        self._called("get", key)
        return copy.deepcopy(self.objects.get(key))

    def log(self, pod: ObjectKey, container: str, *, previous: bool, lines: int, limit: int) -> str:
        self._called("log", pod)
        return "".join(f"{line}\n" for line in self.logs.get((pod.name, previous), ()))

    def create(self, body: Json) -> Json:
        key = ObjectKey.of(body)
        self._called("create", key)
        if key in self.objects:
            raise ClusterError(f"{key} already exists", status=409, reason="AlreadyExists")
        return self.put(body)

    def replace(self, body: Json) -> Json:
        self._check_version(body)
        return self.put(body)

    def look_up_versions(self, group: str, kind: str) -> frozenset[str]:
        return frozenset()

    def dry_run(self, verb: DryRunVerb, body: Json) -> DryRun:
        assert verb == "replace"
        self._check_version(body)
        return DryRun(copy.deepcopy(body))

    def _check_version(self, body: Json) -> None:
        key = ObjectKey.of(body)
        self._called("replace", key)
        version = body["metadata"].get("resourceVersion")
        if key not in self.objects:
            raise ClusterError(f"{key} not found", status=404)
        if version and version != self.objects[key]["metadata"]["resourceVersion"]:
            raise ClusterError(f"{key} has been modified", status=409, reason="Conflict")

    def delete(
        self,
        key: ObjectKey,
        *,
        uid: str | None = None,
        version: str | None = None,
        orphans: bool = False,
    ) -> None:
        self._called("delete", key)
        metadata = self.objects.get(key, {}).get("metadata")
        if metadata is not None and uid not in (None, metadata["uid"]):
            raise ClusterError("the UID does not match", status=409, reason="Conflict")
        if metadata is not None and version not in (None, metadata["resourceVersion"]):
            raise ClusterError("the version does not match", status=409, reason="Conflict")
        self.objects.pop(key, None)

    def evict(self, key: ObjectKey, *, uid: str | None = None) -> None:
        self._called("evict", key)
        self.objects.pop(key, None)

    def rights_in(self, namespace: str) -> Callable[[Right], bool]:
        return lambda right: not self.missing_rights([right])

    def missing_rights(self, rights: Sequence[Right]) -> tuple[Right, ...]:
        return ()

    def close(self) -> None:
        """Nothing is open."""

    def _called(self, verb: str, key: ObjectKey) -> None:
        self.requests += 1
        self.calls.append(f"{verb} {key}")
        for hook in self.hooks:
            hook(verb, key)


def config_map(name: str, data: dict[str, str], **more: Any) -> Json:
    metadata = {"name": name, "namespace": "ns"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data, **more}


def pod(name: str, *, image: str = "app:1", restarts: int = 0, ready: bool = True) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "a", "image": image}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [
                {
                    "name": "a",
                    "ready": ready,
                    "restartCount": restarts,
                    "containerID": f"c-{restarts}",
                    "state": {"running": {}},
                }
            ],
        },
    }
