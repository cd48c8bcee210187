"""What a step makes of the live object, and how it is put back. Pure.

An edit is applied to the object as it is read now, not as it was when the plan was made: what
others wrote in the meantime (replicas by an autoscaler, a label) stays.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json
from container_update.model.plan import Step
from container_update.planning import diff, manifest_edits
from container_update.workloads import pod_template

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
        return _without(_with_content(live, step.content), step.dropped)
    if step.whole:
        return manifest_edits.desired(step, live)
    changed = pod_template.with_images(live, step.images)
    return changed if step.digest is None else pod_template.with_digest(changed, step.digest)


def restored(step: Step, live: Json) -> Json:
    """The live object with everything that the step writes put back to what it was before."""
    assert step.before is not None, "what was created is deleted, not restored"
    if step.is_config:
        assert step.content is not None, "a configuration step always has its manifest"
        return _with_content_of_before(step.before, step, live)
    if step.whole:
        return manifest_edits.restored(step, live)
    before = diff.images(step.before)
    images = {name: before[name] for name in step.images if name in before}
    changed = pod_template.with_images(live, images)
    if step.digest is None:
        return changed
    return pod_template.with_digest(changed, pod_template.digest_of(step.before))


def is_applied(step: Step, live: Json) -> bool:
    """The live object is as the step wants it already."""
    if step.whole and not step.is_config:
        return manifest_edits.is_applied(step, live)
    return _same(step, desired(step, live), live)


def is_restored(step: Step, live: Json) -> bool:
    """The live object is as it was before the step."""
    if step.whole and not step.is_config:
        return manifest_edits.is_restored(step, live)
    return _same(step, restored(step, live), live)


def is_ours(step: Step, live: Json) -> bool:
    """What the step wrote is there, to be taken back."""
    if step.whole and not step.is_config:
        return manifest_edits.is_ours(step, live)
    return is_applied(step, live)


def is_none_of(step: Step, live: Json) -> bool:
    """Nothing that the step writes is in the workload (any more)."""
    if step.whole:
        return not manifest_edits.is_ours(step, live)
    images = diff.images(live)
    return not any(images.get(name) == image for name, image in step.images.items()) and (
        step.digest is None or pod_template.digest_of(live) != step.digest
    )


def is_untouched(step: Step, live: Json) -> bool:
    """Nobody else changed, since the plan was made, what the step is to change."""
    assert step.before is not None, "there was an object"
    if step.whole and not step.is_config:
        return manifest_edits.is_untouched(step, live)
    if step.before["metadata"]["uid"] != live["metadata"]["uid"]:
        return False
    return _same(step, step.before, live)


def _same(step: Step, one: Json, other: Json) -> bool:
    if step.is_config:
        same = diff.content(one) == diff.content(other)
        return same and (not step.whole or _same_metadata(step, one, other))
    names = step.images
    one_images, other_images = diff.images(one), diff.images(other)
    return all(one_images.get(name) == other_images.get(name) for name in names) and (
        step.digest is None or pod_template.digest_of(one) == pod_template.digest_of(other)
    )


# --- configuration ------------------------------------------------------------------------------


def _with_content(live: Json, manifest: Json) -> Json:
    """The manifest's content; labels and annotations of both, the manifest's over the live ones."""
    changed = copy.deepcopy(live)
    for field in _CONTENT:
        _copy_field(manifest, changed, field)
    if manifest.get("kind") == "Secret":
        _copy_field(manifest, changed, "stringData")  # the server lays it over data
    metadata = changed["metadata"]
    for field in _OVERLAID:
        merged = {**(metadata.get(field) or {}), **(manifest["metadata"].get(field) or {})}
        if merged:
            metadata[field] = merged
    return changed


def _with_content_of_before(before: Json, step: Step, live: Json) -> Json:
    """The content of before, and its labels and annotations where the step changed them."""
    changed = copy.deepcopy(live)
    for field in _CONTENT:
        _copy_field(before, changed, field)
    for field, name in _metadata_of(step):
        target = changed["metadata"].setdefault(field, {})
        _copy_field(before["metadata"].get(field) or {}, target, name)
    return changed


def _metadata_of(step: Step) -> list[tuple[str, str]]:
    """(field, name) of each label and annotation that a configuration step writes or takes away."""
    metadata = (step.content or {})["metadata"]
    written = [(field, name) for field in _OVERLAID for name in metadata.get(field) or ()]
    return [*written, *step.dropped]


def _same_metadata(step: Step, one: Json, other: Json) -> bool:
    def value(body: Json, field: str, name: str) -> Any:
        return (body["metadata"].get(field) or {}).get(name)

    return all(value(one, *place) == value(other, *place) for place in _metadata_of(step))


def _without(changed: Json, dropped: tuple[tuple[str, str], ...]) -> Json:
    for field, name in dropped:
        (changed["metadata"].get(field) or {}).pop(name, None)
    return changed


def _copy_field(source: Mapping[str, Any], target: Json, field: str) -> None:
    if source.get(field) is None:
        target.pop(field, None)
    else:
        target[field] = copy.deepcopy(source[field])


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
    pod = new_object(pod_template.with_images(live, images), live["metadata"]["namespace"], {})
    spec = pod["spec"]
    spec.pop("nodeName", None)
    spec.pop("ephemeralContainers", None)
    tokens = {v["name"] for v in spec.get("volumes") or () if _is_token_volume(v)}
    spec["volumes"] = [v for v in spec.get("volumes") or () if v["name"] not in tokens]
    for _, container in pod_template.containers(spec):
        mounts = container.get("volumeMounts") or ()
        container["volumeMounts"] = [m for m in mounts if m["name"] not in tokens]
    return pod


def _is_token_volume(volume: Json) -> bool:
    sources = (volume.get("projected") or {}).get("sources") or ()
    has_token = any("serviceAccountToken" in source for source in sources)
    return has_token and _TOKEN_VOLUME.fullmatch(volume["name"]) is not None
