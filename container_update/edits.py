"""What a step makes of the live object, and how it is put back. Pure.

An edit is applied to the object as it is read now, not as it was when the plan was made: what
others wrote in the meantime (replicas by an autoscaler, a label) stays.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from container_update import diff, workload
from container_update.model import Json, Step

_CONTENT = ("data", "binaryData", "type", "immutable")
_OVERLAID = ("labels", "annotations")

_SERVER_METADATA = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Metadata that the server sets and a new object must not bring along."""


def desired(step: Step, live: Json) -> Json:
    """The live object as the step wants it, with the resourceVersion that was read."""
    if step.is_config:
        assert step.content is not None, "a configuration step always has its manifest"
        return _with_content(live, step.content)
    changed = workload.with_images(live, step.images)
    return changed if step.digest is None else workload.with_digest(changed, step.digest)


def restored(step: Step, live: Json) -> Json:
    """The live object with everything that the step writes put back to what it was before."""
    assert step.before is not None, "what was created is deleted, not restored"
    if step.is_config:
        assert step.content is not None, "a configuration step always has its manifest"
        return _with_content_of_before(step.before, step.content, live)
    before = diff.images(step.before)
    images = {name: before[name] for name in step.images if name in before}
    changed = workload.with_images(live, images)
    if step.digest is None:
        return changed
    return workload.with_digest(changed, workload.digest_of(step.before))


def is_applied(step: Step, live: Json) -> bool:
    """The live object is as the step wants it already."""
    return _same(step, desired(step, live), live)


def is_restored(step: Step, live: Json) -> bool:
    """The live object is as it was before the step."""
    return _same(step, restored(step, live), live)


def is_untouched(step: Step, live: Json) -> bool:
    """Nobody else changed, since the plan was made, what the step is to change."""
    assert step.before is not None, "there was an object"
    if step.before["metadata"]["uid"] != live["metadata"]["uid"]:
        return False
    return _same(step, step.before, live)


def _same(step: Step, one: Json, other: Json) -> bool:
    if step.is_config:
        return diff.content(one) == diff.content(other)
    names = step.images
    one_images, other_images = diff.images(one), diff.images(other)
    return all(one_images.get(name) == other_images.get(name) for name in names) and (
        step.digest is None or workload.digest_of(one) == workload.digest_of(other)
    )


# --- configuration ------------------------------------------------------------------------------


def _with_content(live: Json, manifest: Json) -> Json:
    """The manifest's content; labels and annotations of both, the manifest's over the live ones."""
    changed = copy.deepcopy(live)
    for field in _CONTENT:
        _copy_field(manifest, changed, field)
    if manifest.get("kind") == "Secret":
        _fold_string_data(manifest, changed)
    metadata = changed["metadata"]
    for field in _OVERLAID:
        merged = {**(metadata.get(field) or {}), **(manifest["metadata"].get(field) or {})}
        if merged:
            metadata[field] = merged
    return changed


def _with_content_of_before(before: Json, manifest: Json, live: Json) -> Json:
    """The content of before, and its labels and annotations where the manifest's were laid over."""
    changed = copy.deepcopy(live)
    for field in _CONTENT:
        _copy_field(before, changed, field)
    for field in _OVERLAID:
        for name in manifest["metadata"].get(field) or ():
            target = changed["metadata"].setdefault(field, {})
            _copy_field(before["metadata"].get(field) or {}, target, name)
    return changed


def _copy_field(source: Mapping[str, Any], target: Json, field: str) -> None:
    if source.get(field) is None:
        target.pop(field, None)
    else:
        target[field] = copy.deepcopy(source[field])


def _fold_string_data(manifest: Json, changed: Json) -> None:
    """``stringData`` is only merged by the server, so that a key gone from it would stay."""
    changed.pop("stringData", None)
    if manifest.get("stringData"):
        changed["stringData"] = dict(manifest["stringData"])


def new_object(body: Json, namespace: str, labels: Mapping[str, str]) -> Json:
    """A body that can be created: without what the server sets, *labels* laid under its own."""
    created = copy.deepcopy(body)
    created.pop("status", None)
    metadata = created["metadata"]
    for field in _SERVER_METADATA:
        metadata.pop(field, None)
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = {**labels, **(metadata.get("labels") or {})}
    return created


# --- pods ---------------------------------------------------------------------------------------

_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
"""What admission calls the token volume it adds (ServiceAccount admission plug-in)."""


def recreated_pod(live: Json, images: Mapping[str, str]) -> Json:
    """A Pod to create in place of *live*, from its spec, with other images.

    Left out: what the server put in or refuses at creation: status, server-set metadata, nodeName,
    ephemeralContainers (422), and the token volume of admission with its mounts, which comes anew.
    """
    pod = new_object(workload.with_images(live, images), live["metadata"]["namespace"], {})
    spec = pod["spec"]
    spec.pop("nodeName", None)
    spec.pop("ephemeralContainers", None)
    tokens = {v["name"] for v in spec.get("volumes") or () if _is_token_volume(v)}
    spec["volumes"] = [v for v in spec.get("volumes") or () if v["name"] not in tokens]
    for _, container in workload.containers(spec):
        mounts = container.get("volumeMounts") or ()
        container["volumeMounts"] = [m for m in mounts if m["name"] not in tokens]
    return pod


def _is_token_volume(volume: Json) -> bool:
    sources = (volume.get("projected") or {}).get("sources") or ()
    has_token = any("serviceAccountToken" in source for source in sources)
    return has_token and _TOKEN_VOLUME.fullmatch(volume["name"]) is not None
