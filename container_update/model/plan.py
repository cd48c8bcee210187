# SPDX-License-Identifier: Apache-2.0
"""The plan of an update: what differs, and the steps that take it to the cluster."""

from __future__ import annotations

import enum
from abc import ABC
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from container_update.model.objects import Manifest, ObjectKey, Source
from container_update.model.requests import PackageIdentity

UPDATE, UNDO, INSTALL, UNINSTALL = "update", "undo", "install", "uninstall"
"""Kinds of operations, as the history calls them; the other ones are upgrade types."""


class ConfigChange(enum.Enum):
    """How the live content of a ConfigMap or Secret becomes that of the package."""

    CREATE = "create"
    REPLACE = "replace"
    RECREATE = "recreate"
    """Deleted and created: it is immutable, or the type changes, which the server refuses."""
    DELETE = "delete"


VOLUME = "volume "
"""How a volume's name begins among those of containers, which have no spaces: it has an image too.
"""


def image_place(name: str, *, init: bool = False) -> str:
    """Return the holder of an image in words: 'container web', 'volume models'."""
    role = "" if name.startswith(VOLUME) else "init container " if init else "container "
    return f"{role}{name}"


@dataclass(frozen=True)
class ImageChange:
    """A container, or a volume with an image, whose image the new package changes."""

    container: str
    """Its name; of a volume after :data:`VOLUME`."""
    old: str
    new: str
    init: bool = False
    """It is an init container that runs to its end (not a sidecar)."""

    @property
    def place(self) -> str:
        """The container or volume in words."""
        return image_place(self.container, init=self.init)

    def __str__(self) -> str:
        """Return the change for people: without the repository's path where that stays the same."""
        (path, _, old), (new_path, _, new) = (each.rpartition("/") for each in (self.old, self.new))
        shown = f"{old} -> {new}" if path == new_path else f"{self.old} -> {self.new}"
        return f"{self.place}: image {shown}"


@dataclass(frozen=True)
class KeyChange:
    """What happens to a key of a ConfigMap or Secret."""

    key: str
    how: str
    """'new', 'removed' or 'changed'."""

    def __str__(self) -> str:
        return f"key {self.key}: {self.how}"


@dataclass(frozen=True)
class ConfigUse:
    """The use of changed configuration by a workload."""

    object: ObjectKey
    """The ConfigMap or Secret."""
    keys: tuple[str, ...]
    """Those that are used and change; empty where the object's type changes."""
    path: str
    """The place in the pod template in words: 'env CMENV of container nginx'."""


HIDDEN = "(not shown)"
"""Stands for the value of a Secret."""


@dataclass(frozen=True)
class FieldChange:
    """A field that the new package describes in another way than the old one."""

    path: str
    """With the names of list entries: 'spec.template.spec.containers[web].env[A].value'."""
    old: str | None
    """Its value in the old package as compact JSON, shortened; None if it is absent there."""
    new: str | None
    source: Source
    """Where it is in the new package; in the old one if it is absent in the new one."""

    @property
    def place(self) -> str:
        """The file and the line, with the package where that is the old one."""
        return f"{self.source}{' of the old package' if self.new is None else ''}"

    def __str__(self) -> str:
        values = f"{_or_none(self.old)} -> {_or_none(self.new)}"
        hidden = self.old == self.new == HIDDEN
        return f"{self.path}: {'changed' if hidden else values} ({self.place})"


def _or_none(value: str | None) -> str:
    return "none" if value is None else value


Cause = ImageChange | KeyChange | ConfigUse | FieldChange
"""What stands behind a reason, for programs."""


@dataclass(frozen=True)
class Reason:
    """Why a step is in the plan, as a sentence without its full stop."""

    text: str
    """It has no value of a field: journals and logs keep it. The cause has them, for a reader."""
    cause: Cause | None = field(default=None, compare=False)
    """The same as data; None where there is nothing to add, or a journal has only the sentence."""

    def __str__(self) -> str:
        return self.text


CHANGED_KEYS, CHANGED_OBJECTS = "changed-keys", "changed-objects"
"""What restarts a workload: a changed key that it uses, or any change of an object that it uses."""


@dataclass(frozen=True)
class ConfigDifference:
    """A ConfigMap or Secret whose live content is not what the new package says."""

    key: ObjectKey
    how: ConfigChange
    keys: frozenset[str]
    """The data keys that are added, removed or have another value."""
    whole: bool
    """Every use counts, whatever its key: the object appears or goes, its type changed, or
    ``restart_for`` says so."""
    source: Source
    reasons: tuple[Reason, ...] = ()
    """What differs: a reason for each key, never with a value."""


@dataclass(frozen=True)
class Note:
    """Something that the operator should know and that changes nothing."""

    key: ObjectKey
    text: str
    change: FieldChange | None = field(default=None, compare=False)
    """The same as data, where it is about a field that differs."""

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


@dataclass(frozen=True)
class Obstacle(Note):
    """What would make the plan fail as the cluster is now; no part of a plan that is saved."""


class Action(enum.Enum):
    """What a step does to its object."""

    CREATE = "create"
    REPLACE = "replace"
    RECREATE = "recreate"
    UPDATE = "update in place"
    """A Heat stack, or a server in one: its resources stay, or are rebuilt or resized."""
    ROLL = "roll"
    """Replace the template; the controller replaces the pods."""
    EVICT = "replace pods one by one"
    """Replace the template, then evict pod by pod, each replacement Ready before the next."""
    RESTART_CONTAINERS = "restart in place"
    """A Pod with new images: the kubelet restarts the containers, the Pod stays."""
    RECREATE_POD = "recreate pod"
    REPLACE_PODS = "replace pods"
    """Delete single pods; the controller creates them anew."""
    SCALE = "scale"
    TEMPLATE = "replace template"
    """A CronJob: its next Job has the new template, running Jobs finish."""
    HOLD = "hold to the old pods"
    """A Service that would send traffic to the new pods as soon as they are ready."""
    SWITCH = "switch to the new pods"
    """A Service, or what else points at pods, once the new ones are ready."""
    DELETE = "delete"
    HAND_OVER = "hand over the pods"
    """Pods that run belong to a Deployment of another name afterwards, without a restart."""
    RUN = "run"
    """Run a coordination script of the new or of the old VNF."""
    WAIT = "wait"
    """Wait for a person, or for a time."""
    CHECK = "check"
    """Ask a metric."""


Place = tuple[ObjectKey, Action, int]
"""Identifies a step in its plan: its object, what it does, and its group."""


@dataclass(frozen=True)
class Step(ABC):
    """One thing that a plan does, with its explanation.

    >>> for step in plan_update(request, cluster).steps:  # doctest: +SKIP
    ...     print(step.key, step.action.value, *step.reasons, sep="; ")
    Deployment cnf/web; roll; container nginx: image nginx:1.27 -> nginx:1.28

    Each kind of step is a class of its own: what the step makes of its object, how to recognise
    that, and the way back. See :mod:`container_update.planning.steps` and
    :mod:`container_update.openstack.plan`.
    """

    key: ObjectKey
    action: Action
    reasons: tuple[Reason, ...] = field(default=(), kw_only=True)
    images: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Container name to new image, init containers too; empty where no image changes."""
    group: int = field(default=0, kw_only=True)
    """The number of its group in the plan: the steps of a group are carried out at the same time,
    when everything in the groups before is done."""

    @property
    def can_be_repeated(self) -> bool:
        """It may be carried out twice: the end is the same."""
        return True

    @property
    def starts_pods(self) -> bool:
        """The pods of a workload are started by it, or started anew."""
        return False

    @property
    def waits_again(self) -> bool:
        """A resumed run looks again, when its group has ended, whether its pods are Ready."""
        return self.starts_pods and self.action is not Action.SCALE

    @property
    def is_switch(self) -> bool:
        """It sends traffic to the new pods."""
        return self.action is Action.SWITCH

    @property
    def is_removal(self) -> bool:
        """It deletes old objects."""
        return self.action is Action.DELETE

    @property
    def is_config(self) -> bool:
        """The step writes a ConfigMap or Secret."""
        return self.key.is_config

    @property
    def concerns(self) -> tuple[ObjectKey, ...]:
        """Every object that it creates, changes or deletes."""
        return (self.key,)

    @property
    def place(self) -> Place:
        """Identifies it among the steps of its plan: a Service may be held, then switched."""
        return self.key, self.action, self.group


@dataclass(frozen=True)
class Plan:
    """Everything an update will do, in order, and all that it will leave alone, with reasons.

    >>> Plan(namespace="cnf", instance_id=None, steps=()).is_empty
    True
    """

    namespace: str
    instance_id: str | None
    steps: tuple[Step, ...]
    """In the order of their groups: configuration first, then workloads."""
    unchanged: tuple[ObjectKey, ...] = ()
    """Objects of the CNF that the update has no reason to touch."""
    ignored: tuple[Note, ...] = ()
    """Differences between the packages that do not take effect, with their field paths."""
    notes: tuple[Note, ...] = ()
    """Drift, opt-outs, objects left alone, Jobs that cannot change."""
    left: tuple[ObjectKey, ...] = ()
    """Objects that stay and that another request deletes: those of the old package that the new one
    does not have, those that an uninstallation includes if it is asked to."""
    def_files: tuple[str, ...] = ()
    """The instance's def-files after the update."""
    manifests: tuple[Manifest, ...] = ()
    """The CNF's manifests as they are in force after the update: old ones with the new images and
    the new configuration."""
    vdus: Mapping[str, str] = field(default_factory=dict)
    """The id of each VDU afterwards, to the name that its workload has in the manifests."""
    instance: bytes | None = field(default=None, repr=False)
    """What the instance runs from afterwards, as its history has it already; None: what the
    packages, the manifests and the VDUs say."""
    context: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Plain values that a resume needs besides the steps."""
    packages: tuple[PackageIdentity, ...] = ()
    """The old package and the new one, or the only one; empty where they are not known."""
    kind: str = ""
    """Of the operation: 'update', 'install', an upgrade type; empty where the history has none."""
    writes: int = field(default=0, compare=False)
    """How many writes the API server was asked about; 0: it was not asked."""
    tried: int = field(default=0, compare=False)
    """How many of them it could try, and accepts; the notes say why not the others."""

    @property
    def is_empty(self) -> bool:
        """There is nothing to do."""
        return not self.steps

    @property
    def groups(self) -> Iterator[tuple[Step, ...]]:
        """The steps in their order, those together that are carried out at the same time."""
        for _, group in groupby(self.steps, key=lambda step: step.group):
            yield tuple(group)

    @property
    def unrepeatable(self) -> frozenset[Place]:
        """The steps that are not to be carried out again once their group has ended."""
        last = {key: step.place for step in self.steps for key in step.concerns}
        return frozenset(
            step.place
            for step in self.steps
            if not step.can_be_repeated or any(step.place != last[key] for key in step.concerns)
        )
