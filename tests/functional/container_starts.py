# SPDX-License-Identifier: Apache-2.0
"""What the containers of a real cluster were started with, as far as its API tells.

No API has the environment of a container. It is that of the ConfigMaps and Secrets at the moment
when the kubelet reports that the container runs; the order of the two is that of their
resourceVersions, which are revisions of one store.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

from container_update.emulator.loop_thread import LoopThread
from tests.functional.proxy import Upstream

RETRY_SECONDS = 0.2
FOLLOWED = ("configmaps", "secrets", "pods")
SOURCES = {"configMapKeyRef": "configmaps", "secretKeyRef": "secrets"}
CONTAINER = "main"


@dataclass(frozen=True)
class Start:
    """A start of a container."""

    image: str
    env: Mapping[str, str]


@dataclass(frozen=True)
class _Running:
    """What a kubelet has reported of a container, and at which revision."""

    revision: int
    container_id: str
    image: str
    env: Any
    """As the manifest has it."""


class ContainerStarts(LoopThread):
    """Follows the pods, ConfigMaps and Secrets of namespaces."""

    def __init__(self, upstream: Upstream) -> None:
        super().__init__("container-starts")
        self._upstream = upstream
        self._contents: dict[tuple[str, str, str], list[tuple[int, Mapping[str, str]]]] = (
            defaultdict(list)
        )
        self._running: dict[str, list[_Running]] = defaultdict(list)
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._upstream.context, limit=0),
            headers={"Authorization": f"Bearer {self._upstream.token}"},
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=2**22,
        )

    async def _close(self) -> None:
        for tasks in self._tasks.values():
            for task in tasks:
                task.cancel()
        await self._session.close()

    def follow(self, namespace: str) -> None:
        """Begin to follow a namespace."""

        def begin() -> None:
            self._tasks[namespace] = [
                self._loop.create_task(self._follow(namespace, plural)) for plural in FOLLOWED
            ]

        self._on_loop(begin)

    def leave(self, namespace: str) -> None:
        """Follow a namespace no longer."""

        def end() -> None:
            for task in self._tasks.pop(namespace, ()):
                task.cancel()

        self._on_loop(end)

    def of(self, pod: Any) -> list[Start]:
        """Return the starts of a pod's main container, the oldest first."""
        namespace, uid = pod["metadata"]["namespace"], pod["metadata"]["uid"]
        return self._on_loop(
            lambda: [
                Start(running.image, self._environment(namespace, running))
                for running in self._running[uid]
            ]
        )

    async def _follow(self, namespace: str, plural: str) -> None:
        url = f"{self._upstream.url}/api/v1/namespaces/{namespace}/{plural}"
        while True:
            with suppress(aiohttp.ClientError):
                async with self._session.get(url, params={"watch": "true"}) as answer:
                    async for line in answer.content:
                        self._take(plural, json.loads(line))
            await asyncio.sleep(RETRY_SECONDS)

    def _take(self, plural: str, event: Any) -> None:
        if event["type"] == "ERROR":
            return
        body, metadata = event["object"], event["object"]["metadata"]
        revision = int(metadata["resourceVersion"])
        if plural == "pods":
            self._take_pod(revision, body)
            return
        data = {} if event["type"] == "DELETED" else body.get("data") or {}
        key = (metadata["namespace"], plural, metadata["name"])
        self._contents[key].append((revision, data))

    def _take_pod(self, revision: int, pod: Any) -> None:
        known = self._running[pod["metadata"]["uid"]]
        for status in pod["status"].get("containerStatuses") or ():
            number = status.get("containerID", "")
            is_new = number and number not in {each.container_id for each in known}
            if status["name"] == CONTAINER and is_new:
                (spec,) = (c for c in pod["spec"]["containers"] if c["name"] == CONTAINER)
                env = spec.get("env") or []
                known.append(_Running(revision, number, status["image"], env))

    def _environment(self, namespace: str, running: _Running) -> dict[str, str]:
        env = {entry["name"]: entry["value"] for entry in running.env if "value" in entry}
        for entry in running.env:
            for source, plural in SOURCES.items():
                reference = (entry.get("valueFrom") or {}).get(source)
                if reference:
                    key = (namespace, plural, reference["name"])
                    data = self._content_at(key, running.revision)
                    if reference["key"] in data:
                        text = data[reference["key"]]
                        is_secret = plural == "secrets"
                        env[entry["name"]] = base64.b64decode(text).decode() if is_secret else text
        return env

    def _content_at(self, key: tuple[str, str, str], revision: int) -> Mapping[str, str]:
        versions = sorted(self._contents[key], key=lambda version: version[0])
        return next((data for at, data in reversed(versions) if at < revision), {})
