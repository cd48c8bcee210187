# SPDX-License-Identifier: Apache-2.0
"""A real cluster that the tests of Tacker have for themselves, and leave as they found it."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.tacker.lab import LabError

GONE_SECONDS = 90.0
TRACES = frozenset({"Event", "Endpoints", "EndpointSlice", "Node", "APIService"})
"""Kinds that come and go by themselves."""


class RealCluster:
    """The cluster of a kubeconfig with a token, and what is in it."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        self.url: str = cluster["server"]
        self.ca_text = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.token: str = content["users"][0]["user"]["token"]
        self._kubeconfig = kubeconfig
        self._tls = ssl.create_default_context(cadata=self.ca_text)
        self._collections = list(self._discovered())
        self._known = set(self._objects())

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig with the address, the authority and the token, as the embedded one
        does."""
        path.write_text(self._kubeconfig.read_text())
        return path

    def call(self, method: str, path: str, body: Any = None, kind: str = "json") -> Any:
        """Send a request and return the response; None: there is no such object."""
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": f"application/{kind}",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (404, 405, 409):
                return None
            raise

    def _discovered(self) -> Iterator[tuple[str, str]]:
        groups = self.call("GET", "/apis")["groups"]
        versions = [each["preferredVersion"]["groupVersion"] for each in groups]
        for base in ("/api/v1", *(f"/apis/{version}" for version in versions)):
            for kind in (self.call("GET", base) or {}).get("resources", ()):
                if {"list", "delete"} <= set(kind["verbs"]) and kind["kind"] not in TRACES:
                    yield f"{base}/{{}}{kind['name']}", kind["kind"]

    def _objects(self) -> dict[str, tuple[str, str]]:
        """Return the path and a name for people of each object by its UID, but for those that
        belong to another one or to Kubernetes itself."""
        found = {}
        for path, kind in self._collections:
            listing = self.call("GET", path.format("")) or {}
            for each in listing.get("items") or ():
                metadata = each["metadata"]
                namespace, name = metadata.get("namespace"), metadata["name"]
                if metadata.get("ownerReferences") or str(namespace).startswith("kube-"):
                    continue
                place = path.format(f"namespaces/{namespace}/" if namespace else "")
                found[metadata["uid"]] = f"{place}/{name}", f"{kind} {name}"
        return found

    def clean(self) -> list[str]:
        """Delete what was not there in the beginning; return what it was."""
        left = new = self._new()
        deadline = time.monotonic() + GONE_SECONDS
        while new:
            if time.monotonic() > deadline:
                raise LabError(f"not gone after {GONE_SECONDS} s: {sorted(new.values())}")
            for path, _ in new.values():
                self.call("DELETE", path, {"propagationPolicy": "Background"})
            time.sleep(1)
            new = self._new()
        return sorted(name for _, name in left.values())

    def _new(self) -> dict[str, tuple[str, str]]:
        return {uid: each for uid, each in self._objects().items() if uid not in self._known}

    def one_of_several_nodes(self) -> str:
        """Return the name of a node if there are others."""
        nodes = self.call("GET", "/api/v1/nodes")["items"]
        return str(nodes[0]["metadata"]["name"]) if len(nodes) > 1 else ""
