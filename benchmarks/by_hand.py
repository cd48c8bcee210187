"""The hand-made limit: the same changes with plain concurrent writes, and nothing else.

    python -m benchmarks.by_hand --kubeconfig FILE --namespace NAME CHANGES.json

What an engineer would write who knows which objects change and takes every risk: no comparison, no
rights, no lease, no journal, no undo, no diagnosis. One patch for each object with the client that
everybody has, one watch on the pods until all of those workloads have new ones that are Ready and
no old ones. Prints how many requests it sent.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_RESTARTED = "by-hand/restarted-at"


@dataclass
class Workload:
    """What is waited for."""

    kind: str
    name: str
    number: int
    """How many pods it has."""
    old: dict[str, int]
    """Its pods by UID, with the restarts of their containers."""
    pods: dict[str, Any] = field(default_factory=dict)

    def owns(self, pod: Any) -> bool:
        """Tell whether a pod is its."""
        if self.kind == "Pod":
            return bool(pod.metadata.name == self.name)
        owners = [(owner.kind, owner.name) for owner in pod.metadata.owner_references or ()]
        if self.kind == "Deployment":
            owners = [("Deployment", name.rpartition("-")[0]) for _, name in owners]
        return (self.kind, self.name) in owners

    def see(self, event: str, pod: Any) -> None:
        """Take an event about one of its pods."""
        if event == "DELETED":
            self.pods.pop(pod.metadata.uid, None)
        else:
            self.pods[pod.metadata.uid] = pod

    @property
    def is_done(self) -> bool:
        """All of its pods are new and Ready, and no old one is left."""
        return len(self.pods) == self.number and all(map(self._is_new, self.pods.values()))

    def _is_new(self, pod: Any) -> bool:
        statuses = pod.status.container_statuses or ()
        restarts = sum(status.restart_count for status in statuses)
        before = self.old.get(pod.metadata.uid)
        is_new = before is None or (self.kind == "Pod" and restarts > before)
        ready = any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())
        return is_new and ready and pod.metadata.deletion_timestamp is None


class Hand:
    """The plain concurrent writes."""

    def __init__(self, kubeconfig: str, context: str | None, namespace: str) -> None:
        from kubernetes import client, config  # noqa: PLC0415

        loader: Any = config
        loader.load_kube_config(kubeconfig, context=context)
        self.core, self.apps = client.CoreV1Api(), client.AppsV1Api()
        self.namespace, self.requests = namespace, 0

    def change(self, changes: list[dict[str, Any]]) -> None:
        """Carry out the changes: the configuration, then the workloads."""
        listed = self._pods()
        configuration = [each for each in changes if "body" in each]
        workloads = [each for each in changes if "body" not in each]
        waiting = [_workload(each, listed.items) for each in workloads]
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(self._write_configuration, configuration))
            list(pool.map(self._restart, workloads, waiting))
        self._wait(waiting, listed.metadata.resource_version)

    def _pods(self) -> Any:
        self.requests += 1
        return self.core.list_namespaced_pod(self.namespace)

    def _write_configuration(self, change: dict[str, Any]) -> None:
        self.requests += 1
        write = f"patch_namespaced_{'secret' if change['kind'] == 'Secret' else 'config_map'}"
        getattr(self.core, write)(change["name"], self.namespace, change["body"])

    def _restart(self, change: dict[str, Any], workload: Workload) -> None:
        self.requests += 1
        spec = {
            group: [{"name": name, "image": image} for name, image in images.items()]
            for group, images in change["images"].items()
        }
        if change["kind"] == "Pod":
            self.core.patch_namespaced_pod(change["name"], self.namespace, {"spec": spec})
            return
        template = {"metadata": {"annotations": {_RESTARTED: change["at"]}}, "spec": spec}
        patch = getattr(self.apps, f"patch_namespaced_{_snake(change['kind'])}")
        patch(change["name"], self.namespace, {"spec": {"template": template}})
        if change["kind"] == "ReplicaSet":
            for name in [pod.metadata.name for pod in workload.pods.values()]:
                self.requests += 1
                self.core.delete_namespaced_pod(name, self.namespace)

    def _wait(self, waiting: Iterable[Workload], version: str) -> None:
        from kubernetes import watch  # noqa: PLC0415

        self.requests += 1
        left = [workload for workload in waiting if not workload.is_done]
        watching: Any = watch
        events = watching.Watch().stream(
            self.core.list_namespaced_pod, self.namespace, resource_version=version
        )
        for event in events:
            for workload in left:
                if workload.owns(event["object"]):
                    workload.see(event["type"], event["object"])
            left = [workload for workload in left if not workload.is_done]
            if not left:
                return


def _workload(change: dict[str, Any], pods: list[Any]) -> Workload:
    workload = Workload(change["kind"], change["name"], change["replicas"], {})
    for pod in pods:
        if workload.owns(pod):
            statuses = pod.status.container_statuses or ()
            workload.old[pod.metadata.uid] = sum(status.restart_count for status in statuses)
            workload.pods[pod.metadata.uid] = pod
    return workload


def _snake(kind: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind)[1:]


def main() -> None:
    """Carry out the changes of a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--context")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("changes", type=Path)
    given = parser.parse_args()
    hand = Hand(given.kubeconfig, given.context, given.namespace)
    hand.change(json.loads(given.changes.read_text()))
    print(json.dumps({"requests": hand.requests}))


if __name__ == "__main__":
    main()
