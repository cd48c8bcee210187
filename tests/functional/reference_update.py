# SPDX-License-Identifier: Apache-2.0
"""The update that the fault matrix runs, with one of everything that an update can do.

Packages, the CNF's states before and after, and a lab to run it in.
"""

from __future__ import annotations

import itertools
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from container_update import (
    CancelToken,
    Options,
    Outcome,
    UpdateRequest,
    connect,
    resume,
    rollback,
    update,
)
from container_update.emulator.faults import Fault, Faults
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from container_update.emulator.kubernetes.kubelet.behaviour import Exit
from tests.functional import server
from tests.functional.cnf import IMAGES, INSTANCE
from tests.functional.manifests import config_map, secret, workload
from tests.functional.promise import Expected, Running, Snapshot, settled
from tests.functional.real import REAL, SETTLE_SECONDS
from tests.functional.server import EmbeddedServer, RealServer, Server
from tests.internals.core import (
    INSTANCE_LABEL,
    ClusterInstance,
    Collection,
    History,
    KubernetesCluster,
    ObjectKey,
    RetryingCluster,
    keeping,
)

Files = dict[str, str]

_SECONDS = 120 if REAL else 20

OPTIONS = Options(
    timeout=_SECONDS,
    undo_timeout=_SECONDS,
    grace_period=0.3,
    retry_seconds=5,
    lease_seconds=9,
    workers=16,
)
"""Small, so that a run that fails fails soon."""

CONFIGURATION = ("Files/sec.yaml", "Files/cm.yaml", "Files/typed.yaml")
"""What a request lists that has the new Secret: what is listed is written, and nothing else."""

BESIDE = {"Namespace": "", "ClusterRole": "rbac.authorization.k8s.io"}
"""What may be beside a CNF's namespace: its name begins with that of the namespace."""


CM, TYPED = "configMapKeyRef: {name: cm, key: setting}", "secretKeyRef: {name: typed, key: setting}"


def _env(source: str) -> str:
    """Return SETTING from a ConfigMap or Secret and TOKEN from an optional Secret."""
    return f"""
env:
- name: SETTING
  valueFrom: {{{source}}}
- name: TOKEN
  valueFrom: {{secretKeyRef: {{name: sec, key: token, optional: true}}}}
"""


def _files(value: str, image: str) -> Files:
    on_delete = "updateStrategy: {type: OnDelete}"
    on_one_node = "nodeSelector: {kubernetes.io/hostname: node-1}"
    return {
        "cm": config_map("cm", setting=value),
        "typed": secret("typed", kind=f"example.org/{value}", setting=value),
        "deployment": workload("Deployment", "d", container=_env(CM), image=image),
        "replicas": workload("ReplicaSet", "r", container=_env(CM), image=image, replicas=2),
        "stateful": workload("StatefulSet", "s", container=_env(TYPED)),
        "daemon": workload(
            "DaemonSet", "o", container=_env(TYPED), spec=on_delete, pod=on_one_node, image=image
        ),
        "restarted": workload("Pod", "p", container=_env(CM), image=image),
        "recreated": workload("Pod", "q", container=_env(TYPED)),
        "bystander": workload("Deployment", "b"),
    }


OLD_FILES = _files("old", IMAGES[0])
NEW_FILES = {**_files("new", IMAGES[1]), "sec": secret("sec", token="new")}
BAD_FILES = {**NEW_FILES, "stateful": workload("StatefulSet", "s", image="bad:missing")}
"""The update to these fails when everything else is done or under way."""


def _expected(value: str, image: str, token: str | None) -> Expected:
    env = {"SETTING": value} | ({"TOKEN": token} if token else {})
    runs = {
        ("Deployment", "d"): Running(image, env),
        ("ReplicaSet", "r"): Running(image, env, pods=2),
        ("StatefulSet", "s"): Running(IMAGES[0], env),
        ("DaemonSet", "o"): Running(image, env),
        ("Pod", "p"): Running(image, env),
        ("Pod", "q"): Running(IMAGES[0], env),
        ("Deployment", "b"): Running(IMAGES[0], {}),
    }
    config = {
        ("ConfigMap", "cm"): {"setting": value},
        ("Secret", "typed"): {"setting": value},
        ("Secret", "sec"): {"token": token} if token else None,
    }
    return Expected(config, runs)


OLD = _expected("old", IMAGES[0], None)
NEW = _expected("new", IMAGES[1], "new")


def quick() -> Behaviour:
    """Return containers that start and stop at once, and images for each kind of failure."""
    return Behaviour(
        start_seconds=0.002,
        stop_seconds=0.002,
        backoff_seconds=0.05,
        flaky_images={"flaky:*": 1},
        exits=[
            Exit(image="crash:*", code=3),
            Exit(image="late:*", code=3, after_seconds=0.1),
        ],
    )


@dataclass
class Lab:
    """A server with room for many CNFs, each in a namespace of its own."""

    server: Server
    folder: Path
    cluster: KubernetesCluster = field(init=False)
    kubeconfig: str = field(init=False)
    kept: set[str] = field(default_factory=set, init=False)
    """Namespaces whose ServiceAccounts nobody may delete."""
    before_removal: dict[str, Callable[[], None]] = field(default_factory=dict, init=False)
    """By namespace: what has to be done before it can go."""
    _packages: dict[str, str] = field(default_factory=dict, init=False)
    _numbers: Any = field(default_factory=itertools.count, init=False)
    _arranged: set[str] = field(default_factory=set, init=False)
    _arranging: threading.Lock = field(default_factory=threading.Lock, init=False)

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[Lab]:
        """Yield a lab whose server runs while the block does."""
        with server.running(REAL, quick(), OPTIONS) as one:
            yield cls(one, folder)

    def __post_init__(self) -> None:
        self.kubeconfig = self.server.write_kubeconfig(self.folder / "kubeconfig")
        self.cluster = connect(self.kubeconfig, options=OPTIONS)

    @property
    def embedded(self) -> EmbeddedCluster:
        """The embedded cluster, for what no API can do."""
        assert isinstance(self.server, EmbeddedServer), "this server is not embedded"
        return self.server.front

    @property
    def behaviour(self) -> Behaviour:
        """How containers behave on the embedded cluster."""
        return self.embedded.behaviour

    @property
    def admin(self) -> KubernetesCluster:
        """A client whose requests meet no fault on a real server, to arrange what is there."""
        return self.server.admin if isinstance(self.server, RealServer) else self.cluster

    def package(self, files: Files) -> str:
        """Return a package folder with these manifests; the same one for the same files."""
        text = repr(sorted(files.items()))
        if text not in self._packages:
            root = self.folder / f"package-{next(self._numbers)}"
            for name, content in files.items():
                path = root / (name if "/" in name else f"Files/{name}.yaml")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            self._packages[text] = str(root)
        return self._packages[text]

    def request(self, namespace: str, old: Files, new: Files) -> UpdateRequest:
        """Return a request from these files to those; one with a new Secret lists files."""
        return UpdateRequest(
            old=self.package(old),
            new=self.package(new),
            config_paths=CONFIGURATION if "sec" in new and "sec" not in old else (),
            namespace=namespace,
            instance_id=INSTANCE,
        )

    def deploy(self, files: Files, arrange: Callable[[str], object] = lambda _: None) -> str:
        """Deploy these files in a new namespace and return its name.

        :param arrange: called with the name before anything is in the namespace.
        """
        unique = f"-{uuid.uuid4().hex[:8]}" if REAL else ""
        namespace = self.add_namespace(f"n{next(self._numbers)}v{unique}")
        arrange(namespace)
        bodies = [yaml.load(text, yaml.CSafeLoader) for text in files.values()]
        for body in bodies:
            body["metadata"] |= {"namespace": namespace, "labels": {INSTANCE_LABEL: INSTANCE}}
            self.admin.create(body)
        until(lambda: _all_ready(Snapshot.at(self.server, namespace), bodies))
        return namespace

    def add_namespace(self, name: str) -> str:
        """Create a namespace in which pods can be created; return its name."""
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = ObjectKey("", "ServiceAccount", name, "default")
        until(lambda: self.admin.get(account) is not None)
        self.server.follow(name)
        return name

    def once(self, name: str, arrange: Callable[[], object]) -> None:
        """Arrange something on the server, unless that was done before under this name."""
        with self._arranging:
            if name not in self._arranged:
                self._arranged.add(name)
                arrange()

    @contextmanager
    def script(self, namespace: str, *faults: Fault) -> Iterator[Faults]:
        """Inject these faults into the requests for a namespace, and for what is beside it, while
        the block runs."""
        script = Faults(*faults, path=f"*/{namespace}*")
        self.server.middlewares.append(script)
        try:
            yield script
        finally:
            script.end_outage()
            self.server.middlewares.remove(script)

    def remove(self, namespace: str) -> None:
        """Delete a namespace, and what is beside it."""

        self.before_removal.pop(namespace, lambda: None)()
        found = self.server.objects((kind, "") for kind in BESIDE)
        for (kind, _), bodies in found.items():
            for name in (body["metadata"]["name"] for body in bodies):
                if name.startswith(namespace):
                    self.admin.delete(ObjectKey(BESIDE[kind], kind, "", name))
                    self.server.leave(name)

    def update(
        self, request: UpdateRequest, cancel: CancelToken | None = None, options: Options = OPTIONS
    ) -> Outcome:
        """Run an update, over connections of its own."""
        with connect(self.kubeconfig, options=options) as cluster:
            return update(request, cluster, options, cancel)

    def instance(self, namespace: str) -> ClusterInstance:
        """Return the operation as another host sees it."""
        cluster = RetryingCluster(self.cluster, OPTIONS.retry_seconds)
        return ClusterInstance(cluster, namespace, INSTANCE, OPTIONS)

    def free_leases(self, namespace: str) -> None:
        """Have nobody hold the namespace's leases, as if their holders had been silent long."""

        leases = Collection("coordination.k8s.io", "Lease", namespace)
        for lease in self.admin.list(leases).items:
            self.admin.replace({**lease, "spec": {**lease["spec"], "holderIdentity": ""}})


Request = TypeVar("Request")


def named(files: Files, namespace: str) -> Files:
    """Return manifests with the name of the namespace they are for."""
    return {name: text.replace("NAMESPACE", namespace) for name, text in files.items()}


@dataclass(frozen=True)
class Reference(ABC, Generic[Request]):
    """A run from one package to another that faults are injected into."""

    old_files: Files
    ways: Mapping[str, Files]
    """'done': the new package; 'undone': one that fails near the end and has the run go back."""
    old: Expected
    new: Expected
    options: Options
    part_bytes: int = keeping.PART_BYTES
    """How much of the journal one Secret holds, in the processes that run this reference."""

    def deploy(self, lab: Lab) -> str:
        """Deploy the old files in a new namespace and return its name."""
        return lab.deploy(self.old_files)

    def make_room(self, lab: Lab, namespace: str) -> None:
        """Remove what keeps a good package from being run at all."""

    def untruths(self, lab: Lab, namespace: str, expected: Expected) -> list[str]:
        """Return what the history says of the instance that is not so in a state."""
        record = History(lab.cluster, namespace, INSTANCE).instance()
        return ["the history says it ended well"] if record and expected is self.old else []

    @abstractmethod
    def request(self, lab: Lab, namespace: str, files: Files) -> Request:
        """Return a request to change to these files, which can be sent to another process."""

    @abstractmethod
    def run(self, cluster: KubernetesCluster, request: Request, options: Options) -> None:
        """Execute the request."""

    def resume(self, lab: Lab, namespace: str) -> Outcome | None:
        """Finish an interrupted run from another host."""
        return resume(lab.cluster, self.options, **self._where(lab, namespace))

    def rollback(self, lab: Lab, namespace: str) -> Outcome | None:
        """Undo an interrupted run from another host."""
        return rollback(lab.cluster, self.options, **self._where(lab, namespace))

    def _where(self, lab: Lab, namespace: str) -> dict[str, Any]:
        packages = [lab.package(named(files, namespace)) for files in self.described]
        return {"namespace": namespace, "instance_id": INSTANCE, "packages": packages}

    @property
    def described(self) -> Iterable[Files]:
        """Every package that a run may be about."""
        return filter(None, (self.old_files, *self.ways.values()))


class ReferenceUpdate(Reference[UpdateRequest]):
    """The reference update."""

    def request(self, lab: Lab, namespace: str, files: Files) -> UpdateRequest:
        return lab.request(namespace, self.old_files, files)

    def run(self, cluster: KubernetesCluster, request: UpdateRequest, options: Options) -> None:
        update(request, cluster, options)


UPDATE = ReferenceUpdate(
    old_files=OLD_FILES,
    ways={"done": NEW_FILES, "undone": BAD_FILES},
    old=OLD,
    new=NEW,
    options=OPTIONS,
)


def _all_ready(snapshot: Snapshot, bodies: list[Any]) -> bool:
    for body in bodies:
        if body["kind"] in ("ConfigMap", "Secret", "Service", "CronJob"):
            continue
        pods = snapshot.pods_of(body["kind"], body["metadata"]["name"])
        if len(pods) != int(body["spec"].get("replicas", 1)):
            return False
        for pod in pods:
            conditions = pod["status"].get("conditions") or ()
            if not any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
                return False
    return True


def until(condition: Callable[[], bool], seconds: float = SETTLE_SECONDS) -> None:
    """Wait for a condition.

    :raises AssertionError: it did not come true in time.
    """
    assert not settled(lambda: [] if condition() else ["not yet"], seconds)


__all__ = ["BAD_FILES", "NEW", "NEW_FILES", "OLD", "OLD_FILES", "OPTIONS", "Lab", "quick", "until"]
