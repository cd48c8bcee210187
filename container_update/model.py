"""The nouns of an update: frozen values, and the Cluster they are read from and written to.

Objects of the Kubernetes API are plain dicts, exactly as the server sent them (:data:`Json`). What
is ours is frozen. Nothing in this module does any I/O.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = dict[str, Any]
"""An object as the API server sends it and as YAML spells it."""

INSTANCE_LABEL = "tacker_vnf_instance_id"
"""The label that Tacker puts on the objects it creates: the VNF instance's id."""

CLUSTER_SCOPED = frozenset(
    {
        "APIService", "CSIDriver", "CSINode", "ClusterRole", "ClusterRoleBinding",
        "CustomResourceDefinition", "IngressClass", "MutatingWebhookConfiguration", "Namespace",
        "Node", "PersistentVolume", "PriorityClass", "RuntimeClass", "StorageClass",
        "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration", "VolumeAttachment",
    }
)  # fmt: skip
"""Built-in kinds that live in no namespace (Kubernetes API reference)."""

CONFIG_KINDS = frozenset({"ConfigMap", "Secret"})
"""The kinds that hold configuration, all of the core group."""

POD_TEMPLATE_KINDS = frozenset(
    {"Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "Job", "CronJob"}
)
"""The kinds that make Pods from a template."""

WORKLOAD_KINDS = POD_TEMPLATE_KINDS | {"Pod"}
"""The kinds that run containers."""


@dataclass(frozen=True, order=True)
class ObjectKey:
    """What makes two manifests the same object: ConfigMap x and Secret x are two objects."""

    group: str
    """The API group, '' for the core group; without the version: apps/v1 and apps/v1beta1 agree."""
    kind: str
    namespace: str
    """'' for an object that lives in no namespace."""
    name: str

    @classmethod
    def of(cls, body: Mapping[str, Any], default_namespace: str = "") -> ObjectKey:
        """The identity of an object or manifest; its namespace, else *default_namespace*."""
        group, _, _ = str(body.get("apiVersion", "")).rpartition("/")
        kind = str(body["kind"])
        metadata = body["metadata"]
        namespace = metadata.get("namespace") or default_namespace
        if kind in CLUSTER_SCOPED:
            namespace = ""
        return cls(group, kind, str(namespace), str(metadata["name"]))

    @property
    def is_config(self) -> bool:
        """A ConfigMap or a Secret of the core group."""
        return self.group == "" and self.kind in CONFIG_KINDS

    @property
    def is_workload(self) -> bool:
        """One of the built-in kinds that run containers."""
        groups = {"Pod": "", "Job": "batch", "CronJob": "batch"}
        return self.kind in WORKLOAD_KINDS and self.group == groups.get(self.kind, "apps")

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


@dataclass(frozen=True)
class Source:
    """Where a manifest is written."""

    path: str
    """The def-file as the package names it."""
    line: int
    """The first line of the object, from 1."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Manifest:
    """One object of a def-file."""

    key: ObjectKey
    body: Json = field(repr=False)
    source: Source


# --- what differs -----------------------------------------------------------------------------


class ConfigChange(enum.Enum):
    """How the content of a ConfigMap or Secret gets from what is live to what the package says."""

    CREATE = "create"
    REPLACE = "replace"
    RECREATE = "recreate"
    """Deleted and created: it is immutable, or the type changes, which the server refuses."""


@dataclass(frozen=True)
class Change:
    """A ConfigMap or Secret whose live content is not what the new package says."""

    key: ObjectKey
    how: ConfigChange
    keys: frozenset[str]
    """The data keys that are added, removed or have another value."""
    whole: bool
    """Every use counts, whatever its key: the object appears, or its type changed."""
    source: Source
    details: tuple[str, ...] = ()
    """For the operator: one line a key, Secrets' values only as digests."""


@dataclass(frozen=True)
class ImageChange:
    """A container whose image the new package changes."""

    container: str
    old: str
    new: str
    init: bool = False
    """It is an init container that runs to its end (not a sidecar)."""

    def __str__(self) -> str:
        role = "init container" if self.init else "container"
        return f"{role} {self.container}: image {self.old} -> {self.new}"


@dataclass(frozen=True)
class Reason:
    """Why a workload restarts, as a sentence without its full stop."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Note:
    """Something that the operator should know and that changes nothing."""

    key: ObjectKey
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


# --- the plan -----------------------------------------------------------------------------------


class Action(enum.Enum):
    """What a step does to its object."""

    CREATE = "create"
    REPLACE = "replace"
    RECREATE = "recreate"
    UPDATE = "update in place"
    """A Heat stack, or a server in one: what it is made of stays, or is rebuilt or resized."""
    ROLL = "roll"
    """Replace the template; the controller replaces the pods."""
    EVICT = "replace pods one by one"
    """Replace the template, then evict pod by pod, each replacement Ready before the next."""
    RESTART_CONTAINERS = "restart in place"
    """A Pod with new images: the kubelet restarts the containers, the Pod stays."""
    RECREATE_POD = "recreate pod"
    TEMPLATE = "replace template"
    """A CronJob: its next Job has the new template, running Jobs finish."""
    HOLD = "hold to the old pods"
    """A Service that would send traffic to the new pods as soon as they are ready."""
    SWITCH = "switch to the new pods"
    """A Service, or what else points at pods, once the new ones are ready."""
    DELETE = "delete"


class Stage(enum.IntEnum):
    """When a step's turn comes: everything of a stage is done before the next one begins."""

    OBJECTS = 1
    """Configuration and everything else that runs no containers."""
    WORKLOADS = 2
    SWITCH = 3
    REMOVE = 4


@dataclass(frozen=True)
class Step:
    """One object to be written, with what is needed to write it, explain it and undo it."""

    key: ObjectKey
    action: Action
    before: Json | None = field(repr=False)
    """The live object the plan was made from; None where there is none."""
    content: Json | None = field(default=None, repr=False)
    """For configuration, and for a whole object: the manifest that takes effect."""
    images: Mapping[str, str] = field(default_factory=dict)
    """For a workload: container name to new image, init containers too."""
    digest: str | None = None
    """A workload: the pod template's new annotation; None where only images change."""
    reasons: tuple[Reason, ...] = ()
    whole: bool = False
    """Everything that the manifest says takes effect, not only content or images."""
    dropped: tuple[tuple[str, str], ...] = ()
    """For a whole object: ('labels' or 'annotations', name) of what only the old manifest had."""

    @property
    def is_config(self) -> bool:
        """The step writes a ConfigMap or Secret."""
        return self.key.is_config

    @property
    def place(self) -> tuple[ObjectKey, Action]:
        """Tells it from every other step of its plan: a Service may be held, then switched."""
        return self.key, self.action

    @property
    def stage(self) -> Stage:
        """When its turn comes."""
        if self.action is Action.DELETE:
            return Stage.REMOVE
        if self.action is Action.SWITCH:
            return Stage.SWITCH
        return Stage.WORKLOADS if self.key.is_workload else Stage.OBJECTS


@dataclass(frozen=True)
class Plan:
    """Everything an update will do, in order, and all that it will leave alone, with reasons."""

    namespace: str
    instance_id: str | None
    steps: tuple[Step, ...]
    """In the order of their stages: configuration first, then workloads."""
    unchanged: tuple[ObjectKey, ...] = ()
    """Objects of the CNF that the update has no reason to touch."""
    ignored: tuple[Note, ...] = ()
    """Differences between the packages that do not take effect, with their field paths."""
    notes: tuple[Note, ...] = ()
    """Drift, opt-outs, objects left alone, Jobs that cannot change."""
    def_files: tuple[str, ...] = ()
    """The instance's def-files after the update."""
    manifests: tuple[Manifest, ...] = ()
    """The CNF's manifests as they are in force after the update: old ones with the new images and
    the new configuration."""

    @property
    def is_empty(self) -> bool:
        """There is nothing to do."""
        return not self.steps


@dataclass(frozen=True)
class UpdateRequest:
    """What is asked for: from which package to which, for which instance."""

    old: str
    """The old package: a folder, a CSAR zip, or the path of a package that Tacker unpacked."""
    new: str
    def_files: tuple[str, ...] = ()
    """The instance's def-files: paths in the package or URLs. Empty: every manifest it lists."""
    config_paths: tuple[str, ...] = ()
    """``configmap_secret_paths`` of the request: paths in the new package. May be empty."""
    namespace: str = "default"
    """Where manifests without a namespace go."""
    one_namespace: bool = False
    """All objects are in *namespace*, whatever their manifests say: as Tacker creates them."""
    instance_id: str | None = None
    """The VNF instance; objects that bear another one's label are refused."""


# --- what became of it --------------------------------------------------------------------------


class StepState(enum.Enum):
    """What became of a step."""

    DONE = "done"
    FAILED = "failed"
    NOT_STARTED = "not started"
    UNDONE = "undone"
    UNDO_FAILED = "could not be undone"


@dataclass(frozen=True)
class StepResult:
    """What became of a step, in a sentence where there is something to say."""

    step: Step
    state: StepState
    message: str = ""
    seconds: float = 0.0
    """From its first request until it was done or failed."""


@dataclass(frozen=True)
class Vnfc:
    """A pod of a VDU: what the host's vnfcResourceInfo records (SOL003, 5.5.3.5)."""

    vdu_id: str
    pod_name: str
    namespace: str
    workload_kind: str
    """The kind of the VDU's workload: 'Deployment', 'Pod', ..."""
    workload_name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of an update."""

    plan: Plan
    results: tuple[StepResult, ...] = ()
    vnfcs: tuple[Vnfc, ...] = ()
    """The live pods of every VDU of the VNFD, restarted or not; empty where the update failed."""
    restarted: Mapping[ObjectKey, tuple[str, ...]] = field(default_factory=dict)
    """The names of the pods that each restarted workload has now."""
    requests: int = 0
    """How many requests went to the API server."""
    seconds: float = 0.0


Event = Plan | Step | StepResult
"""A plan that was made, a step that begins, a step that ended."""

Progress = Callable[[Event], object]
"""Told what happens when it does; from several threads."""


# --- the cluster, as the pure part sees it ------------------------------------------------------


@dataclass(frozen=True, order=True)
class Collection:
    """All objects of a kind in a namespace: what is listed and watched."""

    group: str
    kind: str
    namespace: str

    @classmethod
    def of(cls, key: ObjectKey) -> Collection:
        """The collection that an object belongs to."""
        return cls(key.group, key.kind, key.namespace)

    def __str__(self) -> str:
        return f"{self.kind}s in namespace {self.namespace}"


@dataclass(frozen=True)
class Listing:
    """The answer to a list: complete, whatever number of pages it took."""

    items: tuple[Json, ...]
    resource_version: str
    """Where a watch goes on from."""


@dataclass(frozen=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED, BOOKMARK, and the object it is about."""

    type: str
    object: Json


@dataclass(frozen=True, order=True)
class Right:
    """Something that an account may be allowed to do, as the rules of a Role have it."""

    namespace: str
    group: str
    kind: str
    verb: str
    """'get', 'create', 'update', ..."""
    name: str = ""
    """Of the object; '': whatever its name."""
    subresource: str = ""
    """'eviction' for pods/eviction."""

    def __str__(self) -> str:
        kind = f"{self.kind}/{self.subresource}" if self.subresource else self.kind
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {kind} {self.name}".rstrip() + where


class Cluster(Protocol):
    """An API server. Every method may raise ClusterError; nothing is retried behind its back."""

    @property
    def requests(self) -> int:
        """How many requests were sent so far."""

    def list(self, collection: Collection) -> Listing:
        """Every object of the collection, in pages."""

    def watch(
        self, collection: Collection, resource_version: str, seconds: float
    ) -> Iterator[WatchEvent]:
        """Events after *resource_version*, for at most *seconds*; ends early when the connection
        does. ClusterError with status 410: the version is too old, list again."""

    def get(self, key: ObjectKey) -> Json | None:
        """The object, or None where there is none."""

    def create(self, body: Json) -> Json:
        """The object as created."""

    def replace(self, body: Json) -> Json:
        """Replace the object of that name. With a resourceVersion: only that version (else 409)."""

    def delete(self, key: ObjectKey, *, uid: str | None = None) -> None:
        """Delete it, only the one with this UID if given. Gone already: nothing happens."""

    def evict(self, key: ObjectKey, *, uid: str | None = None) -> None:
        """Ask for a Pod's eviction. ClusterError with status 429: a disruption budget forbids it
        now. Gone already: nothing happens."""

    def refused(self, rights: Sequence[Right]) -> tuple[Right, ...]:
        """Those that this account does not have; none where the server cannot tell."""

    def close(self) -> None:
        """Give the connections back."""


class Package(Protocol):
    """An opened CSAR, as the update needs it."""

    source: str
    """What it was opened from, for messages."""

    def read(self, path: str) -> bytes:
        """The bytes of a def-file (a path in the package, or a URL). PackageError where missing."""

    def has(self, path: str) -> bool:
        """Whether the package has this path; URLs are taken to exist."""

    def manifest_files(self) -> Sequence[str]:
        """Every file listed in the package that may hold Kubernetes manifests, in listed order."""

    def vdus(self) -> Mapping[str, str]:
        """VDU id to the name of its workload (the VDU node's ``properties.name``)."""
