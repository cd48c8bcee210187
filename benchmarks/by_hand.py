# SPDX-License-Identifier: Apache-2.0
"""The hand-made limit: the same changes with plain concurrent writes, and nothing else.

    python -m benchmarks.by_hand DESCRIPTION.json

What an engineer would write who takes every risk: both packages are read, each object that differs
gets one patch, and the pods are listed until those of the changed workloads are new and Ready, and
no old one is left. No rights, no lease, no journal, no undo, no diagnosis. Prints how many objects
it wrote, and how many requests it sent.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

_CONFIGURATION = {"ConfigMap": "api/v1", "Secret": "api/v1"}
_WORKLOADS = {
    "Pod": "api/v1",
    "Deployment": "apis/apps/v1",
    "DaemonSet": "apis/apps/v1",
    "ReplicaSet": "apis/apps/v1",
}
_APIS = {**_CONFIGURATION, **_WORKLOADS}
_POLL_SECONDS = 0.1

Objects = dict[tuple[str, str], Any]


def load(package: str) -> Objects:
    """Return the objects of a package by kind and name."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    files = [path.read_text() for path in sorted(Path(package, "Files").rglob("*.yaml"))]
    bodies = [body for text in files for body in yaml.load_all(text, loader) if body]
    return {(body["kind"], body["metadata"]["name"]): body for body in bodies}


@dataclass(frozen=True)
class Changes:
    """What differs between two packages, as patches."""

    configuration: Objects
    workloads: Objects

    @classmethod
    def between(cls, old: Objects, new: Objects) -> Changes:
        """Return the changes; a workload restarts where an image or a name that it has changed."""
        changed = {k: b for k, b in new.items() if k[0] in _CONFIGURATION and old.get(k) != b}
        names = [f'"{name}"' for _, name in changed]
        workloads = {}
        for key, body in old.items():
            if key[0] in _WORKLOADS:
                spec, wanted = _pod_spec(body), _pod_spec(new[key])
                images = [
                    {"name": before["name"], "image": after["image"]}
                    for before, after in zip(spec["containers"], wanted["containers"], strict=True)
                    if before["image"] != after["image"]
                ]
                if images or any(name in json.dumps(spec) for name in names):
                    workloads[key] = _restart(key[0], images)
        fields = ("data", "binaryData", "stringData")
        patches = {k: {n: b[n] for n in fields if n in b} for k, b in changed.items()}
        return cls(patches, workloads)


def _pod_spec(body: Any) -> Any:
    return body["spec"] if body["kind"] == "Pod" else body["spec"]["template"]["spec"]


def _restart(kind: str, images: list[Any]) -> Any:
    spec = {"containers": images} if images else {}
    metadata = {"annotations": {"by-hand/restarted-at": str(time.time())}}
    return {"spec": spec if kind == "Pod" else {"template": {"metadata": metadata, "spec": spec}}}


class Hand:
    """The plain concurrent writes."""

    def __init__(self, given: dict[str, str], folder: Path) -> None:
        authority = folder / "ca.crt"
        authority.write_text(given["ca_text"])
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = str(authority)
        self.session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=16))
        self.session.headers["Authorization"] = f"Bearer {given['token']}"
        self.url, self.namespace = given["url"], given["namespace"]
        self.sent: list[str] = []

    def change(self, changes: Changes) -> int:
        """Carry out the changes, the configuration first; return how many objects were written."""
        before = self._pods()
        sets = [name for kind, name in changes.workloads if kind == "ReplicaSet"]
        replaced = [pod for pod in before if any(_is_of("ReplicaSet", s, pod) for s in sets)]
        with ThreadPoolExecutor(16) as pool:
            for patches in (changes.configuration, changes.workloads):
                list(pool.map(self._patch, patches, patches.values()))
            names = [pod["metadata"]["name"] for pod in replaced]
            list(pool.map(lambda name: self._send("DELETE", self._path("Pod", name)), names))
        while not _are_done(changes.workloads, before, self._pods()):
            time.sleep(_POLL_SECONDS)
        return len(changes.configuration) + len(changes.workloads) + len(replaced)

    def _path(self, kind: str, name: str = "") -> str:
        return f"{self.url}/{_APIS[kind]}/namespaces/{self.namespace}/{kind.lower()}s/{name}"

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/strategic-merge-patch+json"} if body else {}
        self.sent.append(method)
        answer = self.session.request(
            method, path, headers=headers, data=json.dumps(body) if body else None
        )
        answer.raise_for_status()
        return answer.json()

    def _patch(self, key: tuple[str, str], body: Any) -> None:
        self._send("PATCH", self._path(*key), body)

    def _pods(self) -> list[Any]:
        found: list[Any] = self._send("GET", self._path("Pod").rstrip("/"))["items"]
        return found


def _is_of(kind: str, name: str, pod: Any) -> bool:
    """Tell whether a pod is a workload's; of a Deployment by its name alone."""
    owners = pod["metadata"].get("ownerReferences", ())
    pod_name: str = pod["metadata"]["name"]
    if kind == "Pod":
        return pod_name == name
    if kind == "Deployment":
        return pod_name.rsplit("-", 2)[0] == name
    return any((owner["kind"], owner["name"]) == (kind, name) for owner in owners)


def _are_done(keys: Iterable[tuple[str, str]], before: list[Any], pods: list[Any]) -> bool:
    """All pods of these workloads are new and Ready, and there are as many as before."""
    old = {status["containerID"] for pod in before for status in _statuses(pod)}
    for kind, name in keys:
        now = [pod for pod in pods if _is_of(kind, name, pod)]
        if len(now) != sum(_is_of(kind, name, pod) for pod in before):
            return False
        if not all(_is_ready(pod) for pod in now):
            return False
        if any(status.get("containerID") in old for pod in now for status in _statuses(pod)):
            return False
    return True


def _statuses(pod: Any) -> Any:
    return pod["status"].get("containerStatuses", ())


def _is_ready(pod: Any) -> bool:
    conditions = pod["status"].get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def main() -> None:
    """Carry out the changes that a file describes."""
    file = Path(sys.argv[1])
    given = json.loads(file.read_text())
    changes = Changes.between(load(given["old"]), load(given["new"]))
    hand = Hand(given, file.parent)
    print(json.dumps({"objects": hand.change(changes), "requests": len(hand.sent)}))


if __name__ == "__main__":
    main()
