# SPDX-License-Identifier: Apache-2.0
"""Which live objects an operation concerns, and which of them are kept. Pure.

A namespace may hold thousands of other pods: a label selector leaves them out where it can, and the
rest is dropped as soon as it is read.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from container_update.model.objects import (
    INSTANCE_LABEL,
    Collection,
    Json,
    ObjectKey,
    instance_of,
)
from container_update.planning.comparison.live_objects import manifest_name
from container_update.planning.release_labels import pod_labels, selector_of
from container_update.planning.steps import ManifestStep, ObjectStep
from container_update.workloads import ownership
from container_update.workloads.config_references import uses
from container_update.workloads.kind import POD, REPLICA_SET
from container_update.workloads.pod_template import pod_template
from container_update.workloads.registry import kind_of
from container_update.workloads.traffic import SERVICE_LABEL, matches, selects

_SERVICE = ("", "Service")
_DEPLOYMENT = "Deployment"

_ROUNDS = {_SERVICE: 0, REPLICA_SET: 2, POD: 3}
"""When a kind is read where the selectors have to be read first; all others: 1."""

_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""A value of a label, as the API reference has it; the server refuses a selector with another."""

_LONGEST_SELECTOR = 2000
"""Characters; proxies limit the length of a URL."""

_MOST_PARTS = 16
"""Of a collection that is read in parts: a list for each of them."""

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_POD_SPEC = (*_CONTAINERS, "volumes", "nodeName", "imagePullSecrets")
_CONTAINER = ("name", "image", "restartPolicy", "envFrom")
_POD_STATUS = ("phase", "reason", "message", "conditions", "podIP", "startTime")
_READY = frozenset({"Ready", "ContainersReady"})
"""The conditions of a pod that are judged also where they are met."""
_CONTAINER_STATUSES = ("initContainerStatuses", "containerStatuses")
"""The fields of a pod with a controller that are judged, shown or told to scripts; no manifest
writes it."""
_ACCESS_VOLUME = "kube-api-access-"
"""How the names of the volumes begin that the server adds to pods for their ServiceAccount."""


def without_managed_fields(body: Json) -> Json:
    """Return an object without who wrote which field, which is half of its size."""
    body["metadata"].pop("managedFields", None)
    return body


def scope_of(steps: Iterable[ObjectStep]) -> Scope:
    """Return the scope of an operation that carries out these steps, or undoes them."""
    steps, scope = tuple(steps), Scope()
    bodies = [(step.key, step.before) for step in steps if step.before is not None]
    for step in steps:
        if isinstance(step, ManifestStep) and step.content is not None:
            bodies.append((step.key, step.content))
    scope.include((step.key for step in steps), bodies)
    return scope


class Scope:
    """The objects with these names, and the pods and ReplicaSets that they control.

    It learns the UIDs of controllers as their objects are read: controllers first, unless manifests
    name them; see :meth:`rounds` and :attr:`has_missed`. Kept are also objects whose controller may
    not be read yet; pods and workloads that a Service among the objects selects, and its
    EndpointSlices; and each foreign Deployment that would adopt the pods of a manifest.

    :param instance_id: instead of the names: all objects with the label of this VNF instance.
    """

    def __init__(self, keys: Iterable[ObjectKey] = (), *, instance_id: str = "") -> None:
        self._instance_id = instance_id
        self._label = f"{INSTANCE_LABEL}={instance_id}" if _LABEL.fullmatch(instance_id) else ""
        self._keys: frozenset[ObjectKey] = frozenset()
        self._names: set[tuple[str, str]] = set()
        self._own: set[str] = set()
        self._foreign: set[str] = set()
        self._passed_over: set[str] = set()
        """The UIDs of the controllers of dropped objects."""
        self._fields: dict[str, Json] = {}
        """The fields that a client wrote into objects, by their JSON."""
        self._manifests: dict[ObjectKey, list[Json]] = {}
        self._served: defaultdict[str, list[Json]] = defaultdict(list)
        """By namespace: the selectors of the Services."""
        self._pods: defaultdict[tuple[str, str, str], list[Json]] = defaultdict(list)
        """By namespace and label, its name and value: the pods of the manifests' Deployments; by ''
        all of them."""
        self.include(keys)

    def include(
        self, keys: Iterable[ObjectKey], manifests: Iterable[tuple[ObjectKey, Json]] = ()
    ) -> None:
        """Add objects, before they are read or created.

        :param manifests: what the operation may create or switch them to, by key: their selectors
            count beside those that are live.
        """
        self._keys |= {*keys}
        self._names |= {(key.namespace, key.name) for key in self._keys if kind_of(key)}
        for key, body in manifests:
            self._manifests.setdefault(key, []).append(body)
            self._note_traffic(key, body)
            if key.kind == _DEPLOYMENT:
                pods = pod_labels(body)
                every = {**(pods["metadata"].get("labels") or {}), "": ""}
                for name, value in every.items():
                    self._pods[key.namespace, name, str(value)].append(pods)

    def rounds(self, collections: Iterable[Collection]) -> Sequence[Sequence[Collection]]:
        """Return the collections in the order to be read; pods last, unless manifests tell all."""
        rounds: tuple[list[Collection], ...] = ([], [], [], [])
        last = 1 if self._is_foreseen else len(rounds)
        for collection in collections:
            kind = (collection.group, collection.kind)
            rounds[min(_ROUNDS.get(kind, 1), last)].append(collection)
        return [sorted(each) for each in rounds if each]

    @property
    def _is_foreseen(self) -> bool:
        controllers = [key for key in self._keys if _has_pods(key) and (key.group, key.kind) != POD]
        return bool(controllers) and all(key in self._manifests for key in controllers)

    @property
    def has_missed(self) -> bool:
        """Something was dropped before it was known that the operation is about its controller."""
        return not self._own.isdisjoint(self._passed_over)

    def forget_missed(self) -> None:
        """Begin anew: the missed objects have been read again."""
        self._passed_over.clear()

    def select(
        self, collection: Collection, live: Mapping[ObjectKey, Json]
    ) -> tuple[str, Sequence[Collection]]:
        """Return a label selector for everything of a collection that may be kept, '': there is
        none but all; and parts of it that hold the same, none: it is to be read as a whole.

        :param live: the workloads, read before.
        """
        named, selectors = self._selectors(collection, live)
        common = _common_selector(selectors)
        whole = "" if named else common  # a named one may have any labels
        if self._instance_id and (collection.group, collection.kind) not in (POD, REPLICA_SET):
            whole = self._label  # which what they control does not have
        if common and not named:
            return whole, ()  # the server is asked for nothing else
        each = {_common_selector([selector]) for selector in selectors}
        labels = [common] if common else sorted(each)
        parts = [*(replace(collection, labels=selector) for selector in labels), *named]
        return whole, parts if all(labels) and len(parts) <= _MOST_PARTS else ()

    def _selectors(
        self, collection: Collection, live: Mapping[ObjectKey, Json]
    ) -> tuple[Sequence[Collection], list[Any]]:
        """Return parts with what is named, and the selectors of controllers and Services here."""
        kind, namespace = (collection.group, collection.kind), collection.namespace
        if kind not in (POD, REPLICA_SET):
            return [], []
        here = sorted(key for key in self._keys if key.namespace == namespace)
        here = [key for key in here if _has_pods(key) or (key in self._manifests and kind_of(key))]
        named = [
            replace(collection, fields=f"metadata.name={key.name}")
            for key in here
            if Collection.of(key) == collection
        ]
        if self._label:
            named.append(replace(collection, labels=self._label))
        bodies = [
            body
            for key in here
            if (key.group, key.kind) != POD
            for body in [*self._manifests.get(key, ()), *([live[key]] if key in live else ())]
            or [{}]  # its selector is not known
        ]
        bodies += [
            body
            for key, body in live.items()
            if key.namespace == namespace
            and key not in self._keys
            and self._is_named(key, body)
            and _controls_pods(key, body)
        ]
        selectors = [(body.get("spec") or {}).get("selector") for body in bodies]
        for each in self._served[namespace]:  # a ReplicaSet itself may have any labels
            selectors.append({"matchLabels": each} if kind == POD else None)
        return named, selectors

    def keep(self, body: Json) -> Json | None:
        """Return the part of an object to keep; None where the operation does not concern it."""
        key, metadata = ObjectKey.of(body), body["metadata"]
        controller, is_named = ownership.controller(body), self._is_named(key, body)
        is_pod = (key.group, key.kind) == POD
        if not is_named or is_pod:
            without_managed_fields(body)
        elif entries := metadata.get("managedFields"):
            metadata["managedFields"] = [
                self._share_fields(entry)
                for entry in entries
                if entry.get("subresource") != "status"
            ]
        if is_named:
            self._names.add((key.namespace, key.name))
            self._note_traffic(key, body)
        elif controller.get("uid") not in self._own:
            is_near = controller and self._may_control(controller, key.namespace)
            if is_near or self._gets_traffic(key, body) or self._would_adopt(key, body):
                return _judged_fields(body) if is_pod else body
            if not is_pod:  # which controls nothing
                self._foreign.add(metadata["uid"])
            self._passed_over.add(controller.get("uid", ""))
            return None
        elif is_pod:
            return _judged_fields(body)
        self._own.add(metadata["uid"])
        return body

    def _share_fields(self, entry: Json) -> Json:
        """Return who wrote which fields; objects in which these are the same share them."""
        fields = entry.get("fieldsV1") or {}
        return {**entry, "fieldsV1": self._fields.setdefault(json.dumps(fields), fields)}

    def _note_traffic(self, key: ObjectKey, body: Json) -> None:
        if (key.group, key.kind) == _SERVICE:
            selector, known = (body.get("spec") or {}).get("selector"), self._served[key.namespace]
            if selector and selector not in known:
                known.append(selector)

    def _gets_traffic(self, key: ObjectKey, body: Json) -> bool:
        """Tell whether a Service sends traffic to pods, or whether this is what says so."""
        if kind_of(key):
            pods = {"metadata": pod_template(body).get("metadata") or {}}
            return any(selects(selector, pods) for selector in self._served[key.namespace])
        service = (body["metadata"].get("labels") or {}).get(SERVICE_LABEL)
        return bool(service) and ObjectKey(*_SERVICE, key.namespace, str(service)) in self._keys

    def _would_adopt(self, key: ObjectKey, body: Json) -> bool:
        """Tell whether this is a Deployment that selects pods of one of the manifests."""
        if key.kind != _DEPLOYMENT:
            return False
        selector = selector_of(body)
        label = next(iter(_match_labels(selector).items()), ("", ""))
        return any(matches(selector, pods) for pods in self._pods.get((key.namespace, *label), ()))

    def _is_named(self, key: ObjectKey, body: Json) -> bool:
        """Tell whether the operation is about an object itself, not about who controls it."""
        if self._instance_id and instance_of(body) == self._instance_id:
            return True
        name = manifest_name(body)
        return key in self._keys or (name != key.name and replace(key, name=name) in self._keys)

    def _may_control(self, controller: Mapping[str, Any], namespace: str) -> bool:
        """Tell whether an unread controller may be a workload in scope, or its new ReplicaSet."""
        name = str(controller["name"])
        if controller["uid"] in self._foreign:
            return False
        names = {name}
        if controller["kind"] == REPLICA_SET[1]:
            names.add(name := name.rpartition("-")[0])
        if controller["kind"] in (REPLICA_SET[1], _DEPLOYMENT):  # which may stand in for another
            names.add(name.rpartition("-")[0])
        return any((namespace, each) in self._names for each in names)


def _controls_pods(key: ObjectKey, body: Json) -> bool:
    kind = kind_of(key)
    if kind is None or kind.is_pod:
        return False
    return not kind.runs_to_completion or "selector" in body["spec"]  # a CronJob controls Jobs


def _has_pods(key: ObjectKey) -> bool:
    kind = kind_of(key)
    return kind is not None and not kind.runs_to_completion


def _common_selector(selectors: Sequence[Any]) -> str:
    """Return a selector for all that any of these (``spec.selector`` of workloads) selects.

    Source: API reference, LabelSelector: its requirements are ANDed, so one of them selects no
    less.
    """
    labels = [_match_labels(selector) for selector in selectors]
    if not labels:
        return ""
    requirements: list[str] = []
    for name in sorted(set(labels[0]).intersection(*labels[1:])):
        values = sorted({each[name] for each in labels})
        requirements.append(f"{name} in ({','.join(values)})")
        if "" in values or len(",".join(requirements)) > _LONGEST_SELECTOR:  # () is refused
            requirements.pop()
    return ",".join(requirements)


def _match_labels(selector: Any) -> Mapping[str, str]:
    labels = selector.get("matchLabels") if isinstance(selector, dict) else None
    return labels if isinstance(labels, dict) else {}


def _judged_fields(pod: Json) -> Json:
    """Return a pod with the fields that are judged."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    kept = {name: spec[name] for name in _POD_SPEC if name in spec}
    for group in _CONTAINERS:
        if group in kept:
            kept[group] = [_judged_container(container) for container in kept[group]]
    if "volumes" in kept:
        kept["volumes"] = [volume for volume in kept["volumes"] if _is_judged(volume)]
    judged = _only((*_POD_STATUS, *_CONTAINER_STATUSES), status)
    if "conditions" in judged:
        judged["conditions"] = [
            condition
            for condition in judged["conditions"]
            if condition.get("type") in _READY or condition.get("status") != "True"
        ]
    return {**_only(("apiVersion", "kind", "metadata"), pod), "spec": kept, "status": judged}


def _judged_container(container: Json) -> Json:
    """Return a container with the fields that are judged, and its references to configuration."""
    judged = _only(_CONTAINER, container)
    references = [env for env in container.get("env") or () if env.get("valueFrom")]
    return {**judged, "env": references} if references else judged


def _is_judged(volume: Json) -> bool:
    """Tell whether a volume is a claim, an image or configuration, and no token."""
    if str(volume.get("name")).startswith(_ACCESS_VOLUME):
        return False
    own = volume.get("persistentVolumeClaim") or volume.get("image")
    return bool(own or uses({"volumes": [volume]}))


def _only(names: Iterable[str], fields: Mapping[str, Any]) -> Json:
    return {name: fields[name] for name in names if name in fields}
