# SPDX-License-Identifier: Apache-2.0
"""Check the promise without the engine: a CNF is wholly new or wholly as it was before.

Looks at the stored objects, and at what each container was really started with. Nothing of the
package's plan, readiness or edits is used here.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.functional.real import REAL, SETTLE_SECONDS
from tests.functional.server import Server

KINDS = (
    "ConfigMap",
    "Secret",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Pod",
    "Lease",
    "Service",
    "EndpointSlice",
    "ServiceAccount",
    "PersistentVolumeClaim",
)
BESIDE = "beside/"
"""Begins the name of an object that is in no namespace, or in the one beside the CNF's."""
STANDS_FOR = "container-update/stands-for"
"""The annotation of a Deployment that got another name: its name in the package."""
JOURNAL = "container-update/journal"
"""The type of the Secret that holds the journal of a running update."""
JOURNAL_PART, PART = f"{JOURNAL}-part", "container-update/revision-part"
"""The types of the Secrets that another one owns, of a journal and of the history."""

TAKEN_OVER = "container-update/taken-over"
"""The label on the objects of a run that another one goes on for."""
POLL_SECONDS = 0.2 if REAL else 0.01
RECORDS = ("Secret", "Lease")
"""What owns objects only while a run lasts: its journal, and its lease."""


@dataclass(frozen=True)
class Running:
    """What a workload's containers have to run with."""

    image: str
    env: Mapping[str, str | frozenset[str]]
    """Part of the environment that each container saw when it was started; a set of values if
    any of them is right."""
    pods: int = 1


@dataclass(frozen=True)
class Expected:
    """A state of the CNF."""

    config: Mapping[tuple[str, str], Mapping[str, str] | None]
    """(kind, name) to data; None: does not exist."""
    workloads: Mapping[tuple[str, str], Running | None]
    """(kind, name) to what it runs with; None: does not exist."""
    serves: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Service to the (kind, name) whose pods get its traffic, all of them and no others."""


@dataclass(frozen=True)
class Snapshot:
    """The objects of a namespace, and of what is beside it, at one moment."""

    objects: Mapping[str, Mapping[str, Any]]
    """Kind to objects by name."""

    @classmethod
    def at(cls, server: Server, namespace: str) -> Snapshot:
        """Take a snapshot now."""
        beside = f"{namespace}-beside"

        def named(prefix: str, bodies: Iterable[Any]) -> dict[str, Any]:
            return {prefix + body["metadata"]["name"]: body for body in bodies}

        places = [(kind, space) for kind in KINDS for space in (namespace, beside)]
        found = server.objects([*places, ("ClusterRole", "")])
        objects = {
            kind: {**named("", found[kind, namespace]), **named(BESIDE, found[kind, beside])}
            for kind in KINDS
        }
        roles = named("", found["ClusterRole", ""])
        own = {n: body for n, body in roles.items() if n.startswith(f"{namespace}-")}
        names = {n.replace(f"{namespace}-", BESIDE): body for n, body in own.items()}
        return cls({**objects, "ClusterRole": names})

    def get(self, kind: str, name: str) -> Any:
        """Return an object, None if there is none."""
        return self.objects[kind].get(name)

    def named(self, kind: str, name: str) -> list[Any]:
        """Return the objects that stand for this name of the package."""
        return [
            body
            for live_name, body in self.objects[kind].items()
            if name in (live_name, (body["metadata"].get("annotations") or {}).get(STANDS_FOR))
        ]

    def served(self, service: str) -> set[str]:
        """Return the UIDs of the pods that get a Service's traffic."""
        return {
            endpoint["targetRef"]["uid"]
            for body in self.objects["EndpointSlice"].values()
            if body["metadata"]["labels"].get("kubernetes.io/service-name") == service
            for endpoint in body.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
        }

    def pods_of(self, kind: str, name: str) -> list[Any]:
        """Return the pods of a workload that have not ended."""
        top = next(iter(self.named(kind, name)), None)
        pods = list(self.objects["Pod"].values())
        if top is None or kind == "Pod":
            return [top] if top else []
        owners = {top["metadata"]["uid"]}
        owners |= {
            s["metadata"]["uid"] for s in self.objects["ReplicaSet"].values() if _owner(s) in owners
        }
        ended = ("Succeeded", "Failed")
        return [p for p in pods if _owner(p) in owners and p["status"].get("phase") not in ended]


def _owner(body: Any) -> str | None:
    for reference in body["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference["uid"])
    return None


@dataclass
class Checker:
    """Compares a namespace with what is promised."""

    server: Server
    namespace: str
    before: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        self.before = Snapshot.at(self.server, self.namespace)

    def differences(self, expected: Expected, *, as_before: bool) -> list[str]:
        """Return what is not as expected; *as_before*: compare the workloads' own specs too."""
        snapshot = Snapshot.at(self.server, self.namespace)
        differences = [
            f"{kind} {name}: {_data(snapshot.get(kind, name))}, expected {data}"
            for (kind, name), data in expected.config.items()
            if _data(snapshot.get(kind, name)) != data
        ]
        for (kind, name), running in expected.workloads.items():
            if running is None:
                differences += [f"{kind} {name} is there" for _ in snapshot.named(kind, name)]
                continue
            differences += self._workload(snapshot, kind, name, running, as_before=as_before)
            if as_before and kind != "Pod":
                old, now = self.before.get(kind, name), snapshot.get(kind, name)
                if now is None or old["spec"] != now["spec"]:
                    differences.append(f"{kind} {name}: its spec is not as before")
        if as_before:
            differences += self._config_metadata(snapshot, expected)
        for name, served in expected.serves.items():
            differences += self._service(snapshot, name, served, as_before=as_before)
        return differences

    def _service(
        self, snapshot: Snapshot, name: str, served: tuple[str, str], *, as_before: bool
    ) -> list[str]:
        problems = []
        live = snapshot.get("Service", name)
        if live is None:
            return [f"Service {name} is not there"]
        if as_before and live["spec"] != self.before.get("Service", name)["spec"]:
            problems.append(f"Service {name}: its spec is not as before")
        pods = _staying(snapshot.pods_of(*served), as_before=as_before)
        if snapshot.served(name) != {pod["metadata"]["uid"] for pod in pods}:
            problems.append(f"Service {name} does not serve the pods of {' '.join(served)}")
        return problems

    def left_over(self) -> list[str]:
        """Return journals and leases that were not removed, and marks of a run on objects."""
        snapshot = Snapshot.at(self.server, self.namespace)
        leases = [
            f"Lease {name}"
            for name, body in snapshot.objects["Lease"].items()
            if body["spec"].get("holderIdentity")
        ]
        journals = [
            f"journal {name}"
            for name, body in snapshot.objects["Secret"].items()
            if body.get("type") in (JOURNAL, JOURNAL_PART)
        ]
        marks = [
            f"{kind} {name}: {mark}"
            for kind, bodies in snapshot.objects.items()
            for name, body in bodies.items()
            for mark in _marks(body["metadata"])
            if body.get("type") not in (JOURNAL, JOURNAL_PART, PART)
        ]
        return leases + journals + marks

    def _config_metadata(self, snapshot: Snapshot, expected: Expected) -> list[str]:
        problems = []
        for kind, name in expected.config:
            old, now = self.before.get(kind, name), snapshot.get(kind, name)
            for part in ("labels", "annotations"):
                if old and now and old["metadata"].get(part) != now["metadata"].get(part):
                    problems.append(f"{kind} {name}: its {part} are not as before")
            if old and now and old.get("immutable") != now.get("immutable"):
                problems.append(f"{kind} {name}: immutable is not as before")
        return problems

    def _workload(
        self, snapshot: Snapshot, kind: str, name: str, running: Running, *, as_before: bool
    ) -> list[str]:
        pods = _staying(snapshot.pods_of(kind, name), as_before=as_before)
        problems = []
        if len(snapshot.named(kind, name)) > 1:
            problems.append(f"{kind} {name}: there are several")
        if len(pods) != running.pods:
            problems.append(f"{kind} {name}: {len(pods)} pods, expected {running.pods}")
        for pod in pods:
            problems += [f"{kind} {name}: {text}" for text in self._pod(pod, running)]
        return problems

    def _pod(self, pod: Any, running: Running) -> list[str]:
        name = pod["metadata"]["name"]
        problems = []
        if pod["metadata"].get("deletionTimestamp"):
            problems.append(f"pod {name} is being deleted")
        conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions") or ()}
        if conditions.get("Ready") != "True":
            problems.append(f"pod {name} is not Ready: {pod['status'].get('containerStatuses')}")
        starts = self.server.started(pod)
        if not starts:
            return [*problems, f"pod {name} was never started"]
        last = starts[-1]
        if last.image != running.image or pod["spec"]["containers"][0]["image"] != running.image:
            problems.append(f"pod {name} runs {last.image}, expected {running.image}")
        for variable, value in running.env.items():
            value_seen = last.env.get(variable)
            if value_seen not in (value if isinstance(value, frozenset) else {value}):
                problems.append(
                    f"pod {name} was started with {variable}={value_seen}, expected {value}"
                )
        return problems


def _staying(pods: list[Any], *, as_before: bool) -> list[Any]:
    """Return the pods that count: on the way back not those that are being deleted, since what ran
    before does not wait until they have ended."""
    return [pod for pod in pods if not (as_before and pod["metadata"].get("deletionTimestamp"))]


def _marks(metadata: Any) -> list[str]:
    labels = [label for label in metadata.get("labels") or () if label == TAKEN_OVER]
    owners = metadata.get("ownerReferences") or ()
    return labels + [f"of {o['kind']} {o['name']}" for o in owners if o["kind"] in RECORDS]


def _data(body: Any) -> dict[str, str] | None:
    if body is None:
        return None
    data = dict(body.get("data") or {})
    if body["kind"] == "Secret":
        data = {key: base64.b64decode(value).decode() for key, value in data.items()}
    return data


def settled(check: Callable[[], list[str]], seconds: float = SETTLE_SECONDS) -> list[str]:
    """Wait until a check returns no problems and return those that remain at the deadline."""
    deadline = time.monotonic() + seconds
    while (problems := check()) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return problems
