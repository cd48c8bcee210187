# SPDX-License-Identifier: Apache-2.0
"""A step that makes an object what a manifest says, or deletes it.

Unlike a modify operation's steps, which touch content and images, everything that the manifest says
takes effect. What stays is what the manifest cannot know: what the cluster chose (addresses,
replicas), and labels and annotations that others set.

An annotation with the manifest's digest shows whether the manifest has taken effect. The server
fills in defaults, so comparing fields would report changes where there are none.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from container_update.model.objects import (
    DIGEST_ANNOTATION,
    Json,
    Manifest,
    ObjectKey,
    get_at,
    instance_of,
)
from container_update.model.plan import Action
from container_update.planning.comparison import live_objects, meaning, stored_versions
from container_update.planning.release_labels import with_live_limits
from container_update.planning.steps import metadata
from container_update.planning.steps.config import ConfigStep
from container_update.planning.steps.new_objects import new_object
from container_update.planning.steps.workload import WorkloadStep
from container_update.workloads import pod_template
from container_update.workloads.registry import is_workload, kind_of, kind_of_body, known_kind

_OURS = frozenset({"metadata", "status"})
"""Top-level fields that no manifest replaces as a whole."""

_CLUSTERS: Mapping[str, tuple[str, ...]] = {
    "Ingress": ("ingressClassName",),
    "PersistentVolumeClaim": ("storageClassName", "volumeMode", "volumeName"),
    "Service": (
        "clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy",
        "loadBalancerClass",
    ),
}  # fmt: skip
"""What the cluster chose in a kind's spec, kept where the manifest does not choose."""

_STORAGE = ("spec", "resources", "requests", "storage")
"""Of a claim: what its volume is to hold."""

_POINTERS: Mapping[str, str] = {"HorizontalPodAutoscaler": "scaleTargetRef", "Service": "selector"}
"""What a kind's spec points with: the same manifest may have to point elsewhere."""


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """Return a digest that stands for a manifest, in any order of its fields."""
    text = json.dumps(manifest, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def recorded_digest(body: Mapping[str, Any]) -> str:
    """Return the manifest digest in an object's annotation, '' where it has none."""
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(DIGEST_ANNOTATION, ""))


def with_recorded_digest(manifest: Json, digest: str) -> Json:
    """Return a copy with the digest in its annotation."""
    body = copy.deepcopy(manifest)
    annotations = body["metadata"].get("annotations") or {}
    body["metadata"]["annotations"] = {**annotations, DIGEST_ANNOTATION: digest}
    return body


def without_recorded_digest(body: Json) -> Json:
    """Return a copy without the digest, as its author wrote the manifest."""
    annotations = dict(body["metadata"].get("annotations") or {})
    annotations.pop(DIGEST_ANNOTATION, None)
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def is_made_of(content: Json, live: Json, instance_id: str | None) -> bool:
    """Tell whether a plan of an instance has created an object from this content."""
    same_manifest = recorded_digest(live) == recorded_digest(content)
    return same_manifest and instance_of(live) == (instance_id or None)


@dataclass(frozen=True)
class ManifestStep(WorkloadStep):
    """Create an object from a manifest, bring a live one to it, or delete it."""

    content: Json | None = field(default=None, repr=False)
    """The manifest that takes effect; None for a deletion."""
    dropped: metadata.Dropped = field(default=(), kw_only=True)
    successor: str = field(default="", kw_only=True)
    """Of a Deployment that is removed: the name of the one that takes its place, with as many pods
    as it has by then."""
    mends: bool = field(default=False, kw_only=True)
    """Other clients' changes of the live object are reverted too."""

    @property
    def can_be_repeated(self) -> bool:
        """See Step: a Job that has run may be gone, and would run again."""
        kind = kind_of(self.key) if self.action is Action.CREATE else None
        return kind is None or not kind.removes_itself(self._manifest)

    @property
    def concerns(self) -> tuple[ObjectKey, ...]:
        """See Step: a hand-over concerns the giver of the pods too."""
        return (self.key, self.giver) if self.action is Action.HAND_OVER else (self.key,)

    @property
    def giver(self) -> ObjectKey:
        """The Deployment that has the pods before a hand-over."""
        return replace(self.key, name=str(self.old["metadata"]["name"]))

    @property
    def way_back(self) -> Action:
        """See :class:`WorkloadStep`: its update strategy comes back too."""
        if self.action not in (Action.ROLL, Action.EVICT):
            return self.action
        return known_kind(self.key).action(self.old, (), ())

    @property
    def points_elsewhere(self) -> bool:
        """It changes to which pods, or to which workload, the object points."""
        pointer = _POINTERS.get(self.key.kind)
        return pointer is not None and not meaning.is_same(
            _at_pointer(self.old, pointer), _at_pointer(self._manifest, pointer), (pointer,)
        )

    @property
    def remark(self) -> str:
        """What to know of a claim that is to get another size, and of a definition that is to get
        other versions; '' where there is nothing."""
        now, then = get_at(self.old, _STORAGE), get_at(self._manifest, _STORAGE)
        if self.key.kind != "PersistentVolumeClaim":
            return stored_versions.remark(self._manifest, self.old)
        if meaning.is_less(now, then):
            return "a volume never shrinks: an undo leaves it as large as it gets"
        is_smaller = meaning.is_less(then, now)
        return "a volume never shrinks: it stays as it is" if is_smaller else ""

    def is_made(self, live: Json) -> bool:
        """Tell whether a Deployment is one of the two, by manifest and selector."""
        one, other = (body["spec"].get("selector") for body in (self._manifest, live))
        is_of_name = live_objects.manifest_name(live) == self.key.name
        is_of_manifest = recorded_digest(live) == recorded_digest(self._manifest)
        return is_of_name and is_of_manifest and meaning.is_same(one, other)

    def with_change(self, live: Json) -> Json:
        """Return the live object as the manifest says; *live* itself where it is so already."""
        if self.is_applied(live):
            return live
        changed = _with_fields(live, self._manifest)
        metadata.lay_over(changed, self._manifest, self.dropped)
        keep_chosen(live, changed)
        _keep_storage(live, changed)
        if self.before is not None:
            changed = with_live_limits(changed, self.before, live)
        kind = kind_of(self.key)
        if kind is not None and not kind.is_pod and self.digest is not None:
            changed = pod_template.with_digest(changed, self.digest)
        return changed

    def without_change(self, live: Json) -> Json:
        """Return the live object as it was before; *live* itself where it is so already."""
        if self.is_restored(live):
            return live
        written = self.with_change(self.old)
        source, _ = live_objects.three_ways(self.old, written, live)
        source = live_objects.with_fields_of_others(source, written, live, is_whole=True)
        changed = _with_fields(live, stored_versions.with_stored_versions(source, live))
        names = metadata.written_metadata(self._manifest, self.dropped, self.old)
        metadata.restore(changed, self.old, names)
        _keep_replicas(live, changed)
        _keep_storage(live, changed)
        return changed

    def is_applied(self, live: Json) -> bool:
        """Tell whether the live object was made from the manifest and still agrees with it.

        Of a pod that a workload owns, only the configuration digest shows that the step started it.
        """
        if self.digest is not None and pod_template.config_digest(live) != self.digest:
            return False
        if live.get("kind", self.key.kind) != self.key.kind:
            return self.digest is not None
        if self.mends and not live_objects.covers(live, self._manifest):
            return False
        if self.action is Action.HAND_OVER:
            return self.is_made(live) and not live["spec"].get("paused")
        return _agrees(self._manifest, live)

    def is_same(self, one: Json, other: Json) -> bool:
        """See :class:`ObjectStep`."""
        if self.is_config:  # which it deletes; to change one is a ConfigStep
            step = ConfigStep(self.key, Action.REPLACE, one, one)
            return step.is_same(one, other)
        digests = map(pod_template.config_digest, (one, other))
        if is_workload(self.key) and len(set(digests)) > 1:
            return False
        return _agrees(one, other)

    def is_restored(self, live: Json) -> bool:
        """See :class:`ObjectStep`."""
        if self.mends and _fields(live) != _fields(self.old):
            return False
        return self.is_same(self.old, live)

    def is_own(self, live: Json) -> bool:
        """Tell whether the step, or a coordination script in its place, has changed the object."""
        pointer = _POINTERS.get(self.key.kind)
        if pointer is not None and meaning.is_same(
            _at_pointer(live, pointer), _at_pointer(self._manifest, pointer), (pointer,)
        ):
            return True
        return recorded_digest(self._manifest) == recorded_digest(live)

    def is_untouched(self, live: Json) -> bool:
        """Tell whether every field is as it was, or as it is to be."""
        if self.old["metadata"]["uid"] != live["metadata"]["uid"]:
            return False
        was, desired, now = map(_fields, (self.old, self.with_change(live), live))
        return all(now.get(name) in (was.get(name), desired.get(name)) for name in {*was, *now})

    def loss(self, written: Json, live: Json) -> str:
        """See :class:`ObjectStep`; all that the manifest says of the pods counts."""
        if lost := super().loss(written, live):
            return lost
        kind = kind_of(self.key)
        if kind is None or self.content is None:
            return ""
        said, was, now = (
            {"metadata": {}, "spec": get_at(body, (*kind.template_path, "spec"))}
            for body in (self.content, written, live)
        )
        is_lost = live_objects.covers(was, said) and not live_objects.covers(now, said)
        text = "was changed by another client: its pods are not what the manifest says"
        return text if is_lost else ""

    def has_traces(self, live: Json) -> bool:
        """See :class:`ObjectStep`; an image of neither package is another client's, and stays."""
        return super().has_traces(live) and not self._has_image_of_others(live)

    def _has_image_of_others(self, live: Json) -> bool:
        if self.action in (Action.CREATE, Action.DELETE) or not is_workload(self.key):
            return False
        was, now = pod_template.images(self.old), pod_template.images(self._manifest)
        return any(
            image not in (was.get(name, image), now.get(name, image))
            for name, image in pod_template.images(live).items()
        )

    def new_pod(self, labels: Mapping[str, str]) -> Json:
        """Return the manifest's Pod."""
        return new_object(self._manifest, self.key.namespace, labels)

    def with_stored(self, images: Mapping[str, str]) -> ManifestStep:
        """See :class:`WorkloadStep`."""
        return replace(self, content=pod_template.with_images(self._manifest, images))

    @property
    def _manifest(self) -> Json:
        assert self.content is not None, "only a deletion has no manifest"
        return self.content


def _agrees(manifest: Json, live: Json) -> bool:
    pointer = _POINTERS.get(str(live.get("kind")))
    return (
        recorded_digest(manifest) == recorded_digest(live)
        and pod_template.images(manifest) == pod_template.images(live)
        and (
            pointer is None
            or meaning.is_same(_at_pointer(manifest, pointer), _at_pointer(live, pointer))
        )
    )


def _at_pointer(body: Json, pointer: str) -> object:
    return (body.get("spec") or {}).get(pointer)


def _fields(body: Json) -> Json:
    """Return the fields that a manifest decides on, those of the spec one by one."""
    fields = {name: value for name, value in body.items() if name not in _OURS}
    if isinstance(fields.get("spec"), dict):
        spec = fields.pop("spec")
        fields |= {f"spec.{name}": value for name, value in spec.items() if name != "replicas"}
    return fields


def _with_fields(live: Json, source: Json) -> Json:
    """Return *live* with every top-level field but metadata and status as *source* has it."""
    given = {name: value for name, value in source.items() if name not in _OURS}
    kept = {name: value for name, value in live.items() if name in _OURS}
    return copy.deepcopy({**given, **kept})


def keep_chosen(live: Json, changed: Json) -> None:
    """Take over what the cluster chose."""
    _keep_replicas(live, changed)
    kind = str(changed.get("kind"))
    spec, old = changed.get("spec"), live.get("spec") or {}
    if not isinstance(spec, dict) or spec.get("type") == "ExternalName":
        return
    for name in _CLUSTERS.get(kind, ()):
        if name in old and name not in spec:
            spec[name] = copy.deepcopy(old[name])
    if kind == "Service" and spec.get("type") in ("NodePort", "LoadBalancer"):
        _keep_node_ports(old.get("ports") or (), spec.get("ports") or ())


def _keep_replicas(live: Json, changed: Json) -> None:
    """Keep the live replicas: an autoscaler or an operator owns them."""
    kind = kind_of_body(changed)
    if kind is None or not kind.is_scaled:
        return
    changed["spec"].pop("replicas", None)
    if "replicas" in live["spec"]:
        changed["spec"]["replicas"] = live["spec"]["replicas"]


def _keep_storage(live: Json, changed: Json) -> None:
    """Keep the size of a claim that has grown: the server refuses a smaller one."""
    now, then = get_at(live, _STORAGE), get_at(changed, _STORAGE)
    if changed.get("kind") == "PersistentVolumeClaim" and meaning.is_less(then, now):
        changed["spec"]["resources"]["requests"]["storage"] = now


def _keep_node_ports(old: Any, new: Any) -> None:
    chosen = {(port.get("port"), port.get("protocol", "TCP")): port for port in old}
    for port in new:
        known = chosen.get((port.get("port"), port.get("protocol", "TCP"))) or {}
        if "nodePort" not in port and known.get("nodePort"):
            port["nodePort"] = known["nodePort"]


# --- images that the server changes as it stores an object --------------------------------------
# Then the live image is neither the old package's nor the new one's, and stays so. It is compared
# with what the server makes of a write, which a dry run tells. Source: Kubernetes API concepts,
# "Dry-run"; "Dynamic Admission Control": mutating webhooks are idempotent.

StoredImages = Mapping[ObjectKey, Mapping[str, str]]
"""For live workloads the new package's images as the server stores them, by container name."""


def unexplained_workloads(
    pairs: Iterable[tuple[Manifest | None, Manifest | None]], live: Mapping[ObjectKey, Json]
) -> Iterator[Json]:
    """Yield live workloads, with the new package's images, for a dry run.

    Only those with an image that is in neither package, of a container that the packages change:
    without such a webhook there are none.

    :param pairs: old and new manifests, with the names of the live objects.
    """
    for old, new in pairs:
        body = None if new is None else live.get(new.key)
        if new is None or body is None or not is_workload(new.key):
            continue
        now, desired = pod_template.images(body), pod_template.images(new.body)
        is_new = recorded_digest(body) == manifest_digest(new.body)  # made from it already
        before = {} if old is None or is_new else pod_template.images(old.body)
        if any(
            now.get(name) not in (None, image, before.get(name))
            for name, image in desired.items()
            if before.get(name) != image
        ):
            yield pod_template.with_images(body, desired)
