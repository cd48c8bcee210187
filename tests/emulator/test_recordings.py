# SPDX-License-Identifier: Apache-2.0
"""The requests that a real API server 1.36 was sent get the same answers here.

Compared: status, and in the body everything but ids, times, addresses and random names; of a
write's answer not the status part: a race between the write and the controllers on the real
server too. Some requests need objects that were created before the recording began: SETUP creates
them.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.client import Answer, Api, eventually
from tests.emulator.sameness import AGE, Pairs, differences

RECORDINGS = Path(__file__).parent / "recordings"
LONG_NAME = "very-long-cloud-native-function-workload-name-1234"


def workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """Return a workload as the recorder created them."""
    container = {
        "name": "a",
        "image": "app:1",
        "env": [{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "cfg", "key": "k"}}}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template} | spec,
    }


def coloured(colour: str) -> dict[str, Any]:
    body = workload("Deployment", f"app-{colour}", replicas=2)
    body["spec"]["template"]["metadata"]["labels"]["version"] = colour
    return body


ON_DELETE = {"type": "OnDelete"}
SURGE = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
SETUP: dict[str, list[dict[str, Any]]] = {
    "deployment-strategies": [
        workload("Deployment", "recreate", replicas=2, strategy={"type": "Recreate"}),
        workload("Deployment", "surge", replicas=4, strategy=SURGE),
    ],
    "long-names": [workload("Deployment", LONG_NAME, replicas=1)],
    "ondelete": [
        workload("DaemonSet", "ondelete-daemonsets", updateStrategy=ON_DELETE),
        workload(
            "StatefulSet",
            "ondelete-statefulsets",
            replicas=2,
            updateStrategy=ON_DELETE,
            serviceName="ondelete-statefulsets",
        ),
    ],
    "owners-and-finalizers": [],
    "service-switch": [coloured("blue"), coloured("green")],
}
NEEDS_CONFIGURATION = (
    "daemonset", "deployment", "deployment-strategies", "long-names", "ondelete",
    "owners-and-finalizers", "replicaset", "service-switch", "statefulset",
)  # fmt: skip
RACES = {"pod-recreate": (2,)}
"""Reads that came before the kubelet could notice the write before them."""
EVERY_SCENARIO = sorted(path.stem for path in RECORDINGS.glob("*.json"))
PLURALS = {"Deployment": "deployments", "DaemonSet": "daemonsets", "StatefulSet": "statefulsets"}
TOO_LARGE = {"metadata": {"name": "big"}, "stringData": {"k": "x" * 1048577}}


@pytest.mark.parametrize("scenario", [name for name in EVERY_SCENARIO if name != "discovery"])
def test_every_recorded_request_is_answered_as_recorded(api: Api, scenario: str) -> None:
    replay = Replay(api, scenario)
    replay.set_up()
    for entry in json.loads((RECORDINGS / f"{scenario}.json").read_text()):
        replay.check(entry)


class Replay:
    """A recorded scenario, request by request."""

    def __init__(self, api: Api, scenario: str) -> None:
        self._api = api
        self._scenario = scenario
        self._pairs = Pairs()

    def set_up(self) -> None:
        if self._scenario in NEEDS_CONFIGURATION:
            body = {"metadata": {"name": "cfg"}, "data": {"k": "v"}}
            assert self._api.post("/api/v1/namespaces/rec/configmaps", body).status == 201
        for body in SETUP.get(self._scenario, []):
            path = f"/apis/apps/v1/namespaces/rec/{PLURALS[body['kind']]}"
            assert self._api.post(path, body).status == 201
        self._until_pods_are_ready()

    def check(self, entry: dict[str, Any]) -> None:
        if entry["method"] == "GET" or entry["status"] == 429:
            eventually(lambda: self._try(entry), lambda problems: not problems, self._name(entry))
            return
        self._until_pods_are_ready()
        problems = self._try(entry)
        if entry["status"] != 409 and any(line.startswith("status 409") for line in problems):
            # a kubelet wrote after the version was read: nothing was changed, so it is read again
            eventually(lambda: self._try(entry), lambda other: not other, self._name(entry))
            return
        assert not problems, f"{self._name(entry)}:\n" + "\n".join(problems)

    def _name(self, entry: dict[str, Any]) -> str:
        return f"{self._scenario} {entry['number']}: {entry['method']} {entry['path']}"

    def _try(self, entry: dict[str, Any]) -> list[str]:
        """Send the request and return where its response differs from the recorded one."""
        answer = self._send(entry)
        pairs = copy.deepcopy(self._pairs)
        problems = []
        if answer.status != entry["status"]:
            problems.append(f"status {answer.status}, recorded {entry['status']}: {answer.body}")
        recorded = compared(self._scenario, entry, entry["body"])
        ours = compared(self._scenario, entry, answer.body)
        problems += differences(recorded, ours, pairs)
        if not problems:
            self._pairs = pairs
        return problems

    def _send(self, entry: dict[str, Any]) -> Answer:
        body = self._request_body(entry)
        token = "" if entry["status"] == 401 else None
        path = self._pairs.translate(entry["path"])
        if path.endswith("/eviction"):
            path, body = self._of_a_live_pod(path, body)
        return self._api.request(entry["method"], path, body, entry["headers"], token)

    def _request_body(self, entry: dict[str, Any]) -> Any:
        body = self._pairs.translate(entry["request"])
        if isinstance(body, str):
            return TOO_LARGE
        if isinstance(body, dict) and (body.get("metadata") or {}).get("resourceVersion"):
            body["metadata"] = dict(body["metadata"])
            self._put_live_version(entry, body)
        return body

    def _put_live_version(self, entry: dict[str, Any], body: dict[str, Any]) -> None:
        """A recorded PUT is based on a live object that the recording may not contain."""
        recorded = entry["request"]["metadata"]["resourceVersion"]
        live = self._api.get(self._pairs.translate(entry["path"])).body["metadata"]
        if self._pairs.knows(f"rv{recorded}") and entry["status"] == 409:
            body["metadata"]["resourceVersion"] = self._pairs.translate(f"rv{recorded}")[2:]
        else:
            body["metadata"]["resourceVersion"] = live["resourceVersion"]
        body["metadata"]["uid"] = live["uid"]

    def _of_a_live_pod(self, path: str, body: Any) -> tuple[str, Any]:
        """Return an eviction of a live pod, for a recorded one of a pod with a random name."""
        base, name = path.removesuffix("/eviction").rsplit("/", 1)
        names = [
            pod["metadata"]["name"]
            for pod in self._api.get(base).body["items"]
            if "deletionTimestamp" not in pod["metadata"]
        ]
        if name not in names:
            name = next(live for live in names if live[:-5] == name[:-5])
        return f"{base}/{name}/eviction", {**body, "metadata": {"name": name}}

    def _until_pods_are_ready(self) -> None:
        """The recorder waited for its workloads before each write, if they could become ready."""
        if self._scenario in ("configmaps", "secrets", "leases", "namespace-delete"):
            return
        eventually(self._unsettled, lambda unsettled: not unsettled, f"{self._scenario} settles")

    def _unsettled(self) -> list[str]:
        return self._api.cluster.call(unsettled)


def unsettled(registry: Any) -> list[str]:
    """Return what is not yet settled; pods that cannot start count as settled."""
    pending = []
    stuck = False
    for pod in registry.list("pods", "rec"):
        status = pod["status"]
        ready = any(
            entry["type"] == "Ready" and entry["status"] == "True"
            for entry in status.get("conditions", [])
        )
        waiting = any(
            "BackOff" in entry["state"].get("waiting", {}).get("reason", "")
            or "ConfigError" in entry["state"].get("waiting", {}).get("reason", "")
            for entry in status.get("containerStatuses", [])
        )
        stuck = stuck or waiting
        if "deletionTimestamp" in pod["metadata"] or not (ready or waiting):
            pending.append(pod["metadata"]["name"])
    for plural in ("deployments", "daemonsets", "replicasets", "statefulsets"):
        for item in registry.list(plural, "rec"):
            if not _is_settled(plural, item, stuck):
                pending.append(f"{plural}/{item['metadata']['name']}")
    for item in registry.list("poddisruptionbudgets", "rec"):
        if item["status"].get("observedGeneration") != item["metadata"]["generation"]:
            pending.append("poddisruptionbudgets")
    return pending


def _is_settled(plural: str, item: dict[str, Any], stuck: bool) -> bool:
    status, metadata = item["status"], item["metadata"]
    if status.get("observedGeneration") != metadata["generation"]:
        return False
    if item["spec"].get("paused") or stuck:
        return True
    if plural == "daemonsets":
        return bool(status.get("numberAvailable") == status["desiredNumberScheduled"])
    desired = item["spec"]["replicas"]
    return bool(status.get("availableReplicas", 0) >= desired == status.get("replicas", 0))


def compared(scenario: str, entry: dict[str, Any], body: Any) -> Any:
    """Return the part of a response that has to be the same."""
    if not isinstance(body, dict):
        return body
    body = copy.deepcopy(body)
    if body.get("type") == "ERROR":
        body["object"]["message"] = body["object"]["message"].partition("(")[0]
    if body.get("kind") == "Table":
        return _compared_table(body)
    if str(body.get("kind")).endswith("List") and "metadata" in body:
        body["metadata"].pop("resourceVersion", None)
    if body.get("kind") == "Status":
        return _compared_status(entry, body)
    if entry["method"] in ("PUT", "PATCH", "DELETE"):
        body.pop("status", None)
    if entry["number"] in RACES.get(scenario, ()):
        del body["status"], body["metadata"]["resourceVersion"]
    if body.get("kind") == "EndpointSliceList":  # their order is none
        for item in body["items"]:
            item["endpoints"].sort(key=lambda endpoint: _last_number(endpoint["addresses"][0]))
    return body


def _last_number(address: str) -> int:
    return int(address.rpartition(".")[2])


def _compared_table(body: dict[str, Any]) -> dict[str, Any]:
    for column in body["columnDefinitions"]:
        column.pop("description", None)
    for row in body["rows"]:
        row["cells"] = [
            "<age>" if AGE.fullmatch(str(cell)) else "<address>" if _is_address(cell) else cell
            for cell in row["cells"]
        ]
        metadata = row["object"]["metadata"]
        metadata.pop("resourceVersion")
        if "annotations" in metadata:  # the real server forgets this one on the way to a Table
            metadata["annotations"].pop("deprecated.daemonset.template.generation", None)
        if metadata.get("annotations") == {}:
            del metadata["annotations"]
    body["metadata"].pop("resourceVersion")
    return body


def _is_address(cell: Any) -> bool:
    return str(cell).count(".") == 3


def _compared_status(entry: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Truncate the messages that the recording has truncated."""
    for theirs, ours in zip(_messages(entry["body"]), _messages(body), strict=False):
        if theirs["message"].endswith("..."):
            length = len(theirs["message"]) - 3
            ours["message"] = ours["message"][:length] + "..."
    return body


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    causes = (body.get("details") or {}).get("causes", [])
    return [holder for holder in (body, *causes) if "message" in holder]


def test_discovery_tells_of_every_served_kind_what_the_real_server_tells(api: Api) -> None:
    for entry in json.loads((RECORDINGS / "discovery.json").read_text()):
        answer = api.request("GET", entry["path"], headers=entry["headers"])
        assert answer.status == entry["status"]
        assert not untrue(answer.body, entry["body"], entry["path"])


NOT_SERVED = {"events.k8s.io"}


def test_every_group_and_kind_of_the_real_server_is_served(api: Api) -> None:
    recorded = {
        entry["path"]: set(by_name(entry["body"]))
        for entry in json.loads((RECORDINGS / "discovery.json").read_text())
        if not entry["headers"]
    }
    for path in ("/apis", "/api/v1", "/apis/apps/v1", "/apis/policy/v1"):
        served = set(by_name(api.get(path).body))
        missing = {name for name in recorded[path] - served if "/" not in name}
        assert missing <= NOT_SERVED


def untrue(ours: Any, recorded: Any, path: str) -> list[str]:
    """Return what only the emulator says of a kind; the real server may serve more."""
    known = by_name(recorded)
    return [
        f"{path}: {name}: {entry}"
        for name, entry in by_name(ours).items()
        if name not in known or any(known[name].get(key) != value for key, value in entry.items())
    ]


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the resources or groups of a discovery document by name."""
    if document.get("kind") == "APIGroupDiscoveryList":
        (group,) = document["items"]
        (version,) = group["versions"]
        resources = copy.deepcopy(version["resources"])
        return {
            f"{entry['resource']}/{below['subresource']}": below
            for entry in resources
            for below in entry.pop("subresources", [])
        } | {entry["resource"]: entry for entry in resources}
    if "groups" in document:
        return {entry["name"]: entry for entry in document["groups"]}
    if "resources" in document:
        return {entry["name"]: entry for entry in document["resources"]}
    return {"": {key: document[key] for key in ("major", "minor", "kind") if key in document}}
