"""The promise, checked without the engine: a CNF is wholly new or wholly as it was before.

Looks into the embedded cluster itself: at the stored objects, and at what each container was really
started with. Nothing of the package's plan, readiness or edits is used here.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.emulator.kubernetes import EmbeddedCluster, Registry

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
)
STANDS_FOR = "container-update/stands-for"
"""On a Deployment that had to be called otherwise: its name in the package."""
LONG_AGO = "2020"
"""The year of a lock that has expired and is in nobody's way."""
JOURNAL = "container-update/journal"
"""The type of the Secret that an update keeps while it is under way."""


@dataclass(frozen=True)
class Running:
    """What a workload's containers are to run with."""

    image: str
    env: Mapping[str, str | frozenset[str]]
    """Part of the environment that each container saw when it was started; several values where
    any of them will do."""
    pods: int = 1


@dataclass(frozen=True)
class Expected:
    """A state of the CNF."""

    config: Mapping[tuple[str, str], Mapping[str, str] | None]
    """(kind, name) to data; None: is not there."""
    workloads: Mapping[tuple[str, str], Running | None]
    """(kind, name) to what it runs with; None: is not there."""
    serves: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Service to the (kind, name) whose pods get its traffic, all of them and no others."""


@dataclass(frozen=True)
class Look:
    """What is in a namespace at one moment."""

    objects: Mapping[str, Mapping[str, Any]]
    """Kind to objects by name."""

    @classmethod
    def at(cls, cluster: EmbeddedCluster, namespace: str) -> Look:
        """As it is now."""

        def read(registry: Registry) -> dict[str, dict[str, Any]]:
            return {
                kind: {
                    body["metadata"]["name"]: body
                    for body in registry.list(f"{kind.lower()}s", namespace)
                }
                for kind in KINDS
            }

        return cls(cluster.call(read))

    def get(self, kind: str, name: str) -> Any:
        """An object, None where there is none."""
        return self.objects[kind].get(name)

    def called(self, kind: str, name: str) -> list[Any]:
        """The objects that are what a package calls so."""
        return [
            body
            for called, body in self.objects[kind].items()
            if name in (called, (body["metadata"].get("annotations") or {}).get(STANDS_FOR))
        ]

    def served(self, service: str) -> set[str]:
        """The UIDs of the pods that get a Service's traffic."""
        return {
            endpoint["targetRef"]["uid"]
            for body in self.objects["EndpointSlice"].values()
            if body["metadata"]["labels"].get("kubernetes.io/service-name") == service
            for endpoint in body.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
        }

    def pods_of(self, kind: str, name: str) -> list[Any]:
        """The pods of a workload that count: not at their end."""
        top = next(iter(self.called(kind, name)), None)
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

    cluster: EmbeddedCluster
    namespace: str
    before: Look = field(init=False)

    def __post_init__(self) -> None:
        self.before = Look.at(self.cluster, self.namespace)

    def differences(self, expected: Expected, *, as_before: bool) -> list[str]:
        """What is not as expected; *as_before*: the workloads' own specs are compared too."""
        look = Look.at(self.cluster, self.namespace)
        found = [
            f"{kind} {name}: {_data(look.get(kind, name))}, expected {data}"
            for (kind, name), data in expected.config.items()
            if _data(look.get(kind, name)) != data
        ]
        for (kind, name), running in expected.workloads.items():
            if running is None:
                found += [f"{kind} {name} is there" for _ in look.called(kind, name)]
                continue
            found += self._workload(look, kind, name, running)
            if as_before and kind != "Pod":
                old, now = self.before.get(kind, name), look.get(kind, name)
                if now is None or old["spec"] != now["spec"]:
                    found.append(f"{kind} {name}: its spec is not as before")
        if as_before:
            found += self._config_metadata(look, expected)
        for name, served in expected.serves.items():
            found += self._service(look, name, served, as_before=as_before)
        return found

    def _service(
        self, look: Look, name: str, served: tuple[str, str], *, as_before: bool
    ) -> list[str]:
        found = []
        live = look.get("Service", name)
        if live is None:
            return [f"Service {name} is not there"]
        if as_before and live["spec"] != self.before.get("Service", name)["spec"]:
            found.append(f"Service {name}: its spec is not as before")
        if look.served(name) != {pod["metadata"]["uid"] for pod in look.pods_of(*served)}:
            found.append(f"Service {name} does not serve the pods of {' '.join(served)}")
        return found

    def left_over(self) -> list[str]:
        """Journals and locks that nobody removed."""
        look = Look.at(self.cluster, self.namespace)
        leases = [
            f"Lease {name}"
            for name, body in look.objects["Lease"].items()
            if not body["spec"]["renewTime"].startswith(LONG_AGO)
        ]
        return leases + [
            f"journal {name}"
            for name, body in look.objects["Secret"].items()
            if body.get("type") == JOURNAL
        ]

    def _config_metadata(self, look: Look, expected: Expected) -> list[str]:
        found = []
        for kind, name in expected.config:
            old, now = self.before.get(kind, name), look.get(kind, name)
            for part in ("labels", "annotations"):
                if old and now and old["metadata"].get(part) != now["metadata"].get(part):
                    found.append(f"{kind} {name}: its {part} are not as before")
            if old and now and old.get("immutable") != now.get("immutable"):
                found.append(f"{kind} {name}: immutable is not as before")
        return found

    def _workload(self, look: Look, kind: str, name: str, running: Running) -> list[str]:
        pods = look.pods_of(kind, name)
        found = []
        if len(look.called(kind, name)) > 1:
            found.append(f"{kind} {name}: there are several")
        if len(pods) != running.pods:
            found.append(f"{kind} {name}: {len(pods)} pods, expected {running.pods}")
        for pod in pods:
            found += [f"{kind} {name}: {text}" for text in self._pod(pod, running)]
        return found

    def _pod(self, pod: Any, running: Running) -> list[str]:
        name = pod["metadata"]["name"]
        found = []
        if pod["metadata"].get("deletionTimestamp"):
            found.append(f"pod {name} is being deleted")
        conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions") or ()}
        if conditions.get("Ready") != "True":
            found.append(f"pod {name} is not Ready: {pod['status'].get('containerStatuses')}")
        starts = self.cluster.behaviour.started(self.namespace, name, "main")
        starts = [start for start in starts if start.pod_uid == pod["metadata"]["uid"]]
        if not starts:
            return [*found, f"pod {name} was never started"]
        last = starts[-1]
        if last.image != running.image or pod["spec"]["containers"][0]["image"] != running.image:
            found.append(f"pod {name} runs {last.image}, expected {running.image}")
        for variable, value in running.env.items():
            saw = last.env.get(variable)
            if saw not in (value if isinstance(value, frozenset) else {value}):
                found.append(f"pod {name} was started with {variable}={saw}, expected {value}")
        return found


def _data(body: Any) -> dict[str, str] | None:
    if body is None:
        return None
    data = dict(body.get("data") or {})
    if body["kind"] == "Secret":
        data = {key: base64.b64decode(value).decode() for key, value in data.items()}
    return data


def settled(look: Callable[[], list[str]], seconds: float = 10.0) -> list[str]:
    """What is still wrong when nothing is, or at the deadline."""
    deadline = time.monotonic() + seconds
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
