"""What a whole manifest makes of a live object, and the way back. Pure.

Unlike an update's edits, which touch content and images, everything that the manifest says takes
effect. What is left is what the manifest cannot know: what the cluster chose (addresses, replicas)
and labels and annotations that others put there.

Whether it has taken effect is told by an annotation with the manifest's digest: the server fills in
defaults, so that comparing fields would call an object changed that is not.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json
from container_update.model.plan import Step
from container_update.planning import diff
from container_update.workloads import pod_template

DIGEST_ANNOTATION = "container-update/manifest-digest"
"""On an object: which manifest it was last made of."""

_OVERLAID = ("labels", "annotations")
_OURS = frozenset({"metadata", "status"})
"""Top-level fields that no manifest replaces as a whole."""

_CLUSTERS: Mapping[str, tuple[str, ...]] = {
    "PersistentVolumeClaim": ("storageClassName", "volumeMode", "volumeName"),
    "Service": (
        "clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy",
    ),
}  # fmt: skip
"""What the cluster chose in a kind's spec, kept where the manifest does not choose."""

_POINTERS: Mapping[str, str] = {"HorizontalPodAutoscaler": "scaleTargetRef", "Service": "selector"}
"""What a kind's spec points with: the same manifest may have to point elsewhere."""


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Stands for a manifest."""
    text = json.dumps(manifest, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stamp_of(body: Mapping[str, Any]) -> str:
    """The digest on an object, '' where it bears none."""
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(DIGEST_ANNOTATION, ""))


def stamped(manifest: Json, digest: str) -> Json:
    """A copy that bears the digest."""
    body = copy.deepcopy(manifest)
    metadata = body["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), DIGEST_ANNOTATION: digest}
    return body


# --- there and back -----------------------------------------------------------------------------


def desired(step: Step, live: Json) -> Json:
    """The live object as the step's manifest wants it; *live* itself where it is so already."""
    if is_applied(step, live):
        return live
    manifest = _content(step)
    changed = _with_fields(live, manifest)
    for field in _OVERLAID:
        merged = {
            **(live["metadata"].get(field) or {}),
            **(manifest["metadata"].get(field) or {}),
        }
        _set(changed["metadata"], field, _without(merged, field, step))
    _keep(live, changed)
    if step.key.is_workload and step.key.kind != "Pod":
        _lay_over_template_annotations(step, live, changed)
    return changed


def restored(step: Step, live: Json) -> Json:
    """The live object as it was before the step; *live* itself where it is so already."""
    if is_restored(step, live):
        return live
    before, manifest = _before(step), _content(step)
    changed = _with_fields(live, before)
    written = {(f, name) for f in _OVERLAID for name in manifest["metadata"].get(f) or ()}
    for field, name in written | {d for d in step.dropped if d[0] in _OVERLAID}:
        values = dict(changed["metadata"].get(field) or {})
        old = (before["metadata"].get(field) or {}).get(name)
        values.pop(name, None)
        if old is not None:
            values[name] = old
        _set(changed["metadata"], field, values)
    _keep_replicas(live, changed)
    return changed


def is_applied(step: Step, live: Json) -> bool:
    """The live object was made of the step's manifest and nothing that counts differs since.

    Of a pod that a workload owns only the configuration digest tells whether the step started it.
    """
    if live.get("kind") == "Pod" and step.key.kind != "Pod":
        return step.digest is not None and pod_template.digest_of(live) == step.digest
    if step.digest is not None and pod_template.digest_of(live) != step.digest:
        return False
    return _agrees(_content(step), live)


def is_restored(step: Step, live: Json) -> bool:
    """The live object is as it was before the step."""
    before = _before(step)
    if step.key.is_workload and pod_template.digest_of(live) != pod_template.digest_of(before):
        return False
    return _agrees(before, live)


def is_ours(step: Step, live: Json) -> bool:
    """The step, or a script in its place, left its mark: it is there to be taken back."""
    pointer = _POINTERS.get(step.key.kind)
    wanted = (_content(step).get("spec") or {}).get(pointer)
    moved = pointer is not None and (live.get("spec") or {}).get(pointer) == wanted
    return moved or stamp_of(_content(step)) == stamp_of(live)


def is_untouched(step: Step, live: Json) -> bool:
    """Nobody else changed it: every field is as it was, or as it is to be."""
    before = _before(step)
    if before["metadata"]["uid"] != live["metadata"]["uid"]:
        return False
    wanted = desired(step, live)
    return _each_of(before, wanted, live, below="spec")


def same_template(one: Json, other: Json) -> bool:
    """Both start the same pods."""
    return pod_template.pod_template(one) == pod_template.pod_template(other)


def _agrees(manifest: Json, live: Json) -> bool:
    if stamp_of(manifest) != stamp_of(live) or diff.images(manifest) != diff.images(live):
        return False
    pointer = _POINTERS.get(str(live.get("kind")))
    if pointer is None:
        return True
    return bool((manifest.get("spec") or {}).get(pointer) == (live.get("spec") or {}).get(pointer))


def _each_of(before: Json, wanted: Json, live: Json, below: str) -> bool:
    for field in {*before, *live} - _OURS:
        was, is_now = before.get(field), live.get(field)
        if field == below and isinstance(was, dict) and isinstance(is_now, dict):
            ignored = {"replicas": None}
            is_to_be = wanted.get(field) or {}
            if not _each_of({**was, **ignored}, {**is_to_be, **ignored}, {**is_now, **ignored}, ""):
                return False
        elif is_now not in (was, wanted.get(field)):
            return False
    return True


# --- what stays ---------------------------------------------------------------------------------


def _with_fields(live: Json, source: Json) -> Json:
    """*live* with every top-level field but metadata and status as *source* has it."""
    changed = {name: copy.deepcopy(value) for name, value in live.items() if name in _OURS}
    for name, value in source.items():
        if name not in _OURS:
            changed[name] = copy.deepcopy(value)
    return changed


def _keep(live: Json, changed: Json) -> None:
    """Take over what the cluster chose."""
    _keep_replicas(live, changed)
    kind = str(changed.get("kind"))
    spec, old = changed.get("spec"), live.get("spec") or {}
    if not isinstance(spec, dict) or spec.get("type") == "ExternalName":
        return
    for field in _CLUSTERS.get(kind, ()):
        if field in old and field not in spec:
            spec[field] = copy.deepcopy(old[field])
    if kind == "Service" and spec.get("type") in ("NodePort", "LoadBalancer"):
        _keep_node_ports(old.get("ports") or (), spec.get("ports") or ())


def _keep_replicas(live: Json, changed: Json) -> None:
    """An autoscaler or an operator owns them."""
    if changed.get("kind") not in ("Deployment", "ReplicaSet", "StatefulSet"):
        return
    changed["spec"].pop("replicas", None)
    if "replicas" in live["spec"]:
        changed["spec"]["replicas"] = live["spec"]["replicas"]


def _keep_node_ports(old: Any, new: Any) -> None:
    chosen = {(port.get("port"), port.get("protocol", "TCP")): port for port in old}
    for port in new:
        known = chosen.get((port.get("port"), port.get("protocol", "TCP"))) or {}
        if "nodePort" not in port and known.get("nodePort"):
            port["nodePort"] = known["nodePort"]


def _lay_over_template_annotations(step: Step, live: Json, changed: Json) -> None:
    """On the pod template annotations of others stay too: taking one away would restart pods."""
    old = (pod_template.pod_template(live).get("metadata") or {}).get("annotations") or {}
    template = pod_template.pod_template(changed)
    metadata = dict(template.get("metadata") or {})
    _set(metadata, "annotations", {**old, **(metadata.get("annotations") or {})})
    for field, name in step.dropped:
        if field == TEMPLATE_ANNOTATIONS:
            metadata.get("annotations", {}).pop(name, None)
    if step.digest is not None:
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            pod_template.DIGEST_ANNOTATION: step.digest,
        }
    template["metadata"] = metadata


TEMPLATE_ANNOTATIONS = "template annotations"
"""In a step's ``dropped``: an annotation that only the old manifest's pod template had."""


def dropped(old: Json | None, new: Json) -> tuple[tuple[str, str], ...]:
    """What only the old manifest had of labels and annotations, for a step."""
    if old is None:
        return ()
    found = [
        (field, _names(old["metadata"], field), _names(new["metadata"], field))
        for field in _OVERLAID
    ]
    if pod_template.pod_template(new) is not new:
        was = pod_template.pod_template(old).get("metadata") or {}
        now = pod_template.pod_template(new).get("metadata") or {}
        found.append((TEMPLATE_ANNOTATIONS, _names(was, "annotations"), _names(now, "annotations")))
    return tuple((field, name) for field, was, now in found for name in sorted(was - now))


def _names(metadata: Mapping[str, Any], field: str) -> set[str]:
    return set(metadata.get(field) or ())


def _without(values: dict[str, Any], field: str, step: Step) -> dict[str, Any]:
    gone = {name for kind, name in step.dropped if kind == field}
    return {name: value for name, value in values.items() if name not in gone}


def _set(target: Json, field: str, values: Mapping[str, Any]) -> None:
    if values:
        target[field] = dict(values)
    else:
        target.pop(field, None)


def _content(step: Step) -> Json:
    assert step.content is not None, "a whole step always has its manifest"
    return step.content


def _before(step: Step) -> Json:
    assert step.before is not None, "what was created is deleted, not restored"
    return step.before
