# SPDX-License-Identifier: Apache-2.0
"""A step that lies in the cluster, with no other content than a package says. Pure.

An account that may write Secrets in the VNF's namespace chooses which object a journal changes, and
what it was before. Of RBAC, and of what is outside that namespace, only the manifests of this
request say the content: such a step can finish the operation or go back, and nothing else. What the
server added stays where it is live.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from container_update.model.objects import DIGEST_ANNOTATION, INSTANCE_LABEL, Json
from container_update.planning.comparison import diff, live_objects
from container_update.planning.comparison.live_objects import covers
from container_update.planning.order import RBAC
from container_update.planning.release_labels import RELEASE_LABEL
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep
from container_update.planning.steps.manifest import manifest_digest
from container_update.planning.steps.metadata import stated_metadata
from container_update.workloads import pod_template

_CHOSEN = frozenset({live_objects.NAME_ANNOTATION, RELEASE_LABEL})
"""Labels and annotations of ours whose values no manifest says."""
_LISTED = ("labels", "annotations")
_OF_THE_SERVER = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")
_REFERRED = ("finalizers", "ownerReferences")


def as_described(
    step: ObjectStep, manifests: Sequence[Json], live: Json | None, instance_id: str | None
) -> ObjectStep | None:
    """Return the step with content from the manifests, before and after.

    :param manifests: what the packages of the request say about its object, of each the body.
    :param live: the object as it is now; None: there is none.
    :returns: None where it says what no package says.
    """
    content = step.content if isinstance(step, (ConfigStep, ManifestStep)) else None
    forwards = next((each for each in manifests if content and covers(content, each)), None)
    images = {image for each in manifests for image in pod_template.images(each).values()}
    if (content and forwards is None) or not images.issuperset(step.images.values()):
        return None
    if step.before is not None:
        others = [each for each in manifests if each != forwards] or manifests
        covered = (each for each in manifests if covers(step.before, each))
        said = next(covered, others[0])
        metadata = _metadata(step.before, said, live, instance_id)
        before = _only(step.before, said, manifests, live) | metadata
        step = replace(step, before=before)
    if content is None or forwards is None:
        return step
    named = frozenset[tuple[str, str]]().union(*map(stated_metadata, manifests))
    assert isinstance(step, (ConfigStep, ManifestStep))
    step = replace(step, dropped=tuple(entry for entry in step.dropped if entry in named))
    if isinstance(step, ManifestStep):
        metadata = _metadata(content, forwards, None, instance_id)
        return replace(step, content=_only(content, forwards, manifests, live) | metadata)
    known = {name for each in manifests for name in diff.key_names(each)}
    removed = tuple(name for name in step.removed if name in known)
    return replace(step, content=forwards, removed=removed)


def _only(body: Json, manifest: Json, manifests: Sequence[Json], live: Json | None) -> Json:
    """Return the live body with the fields of a manifest, and with those of other clients."""
    now, around = live or {}, {"apiVersion", "kind", "metadata", "status"}
    is_rbac = str(body.get("apiVersion", "")).startswith(f"{RBAC}/")
    names = dict.fromkeys([*manifest, *body])
    said = {
        name: manifest[name] if is_rbac else _said(body.get(name), manifest[name], now.get(name))
        for name in names
        if name in manifest and name not in around
    }
    kept = {
        name: body[name]
        for name in names
        if name in body and (name in around or (name not in said and now.get(name) == body[name]))
    }
    only = {**kept, **said}
    if live is None:
        return only
    other = next((each for each in manifests if each != manifest), manifest)
    return live_objects.with_fields_of_others(only, other, live)


def _said(value: Any, said: Any, live: Any) -> Any:
    if isinstance(said, dict) and isinstance(value, dict):
        now = live if isinstance(live, dict) else {}
        beyond = {n: v for n, v in value.items() if n not in said and n in now and now[n] == v}
        return {**beyond, **{n: _said(value.get(n), v, now.get(n)) for n, v in said.items()}}
    lists = [each for each in (said, value, live) if isinstance(each, list)]
    if len({len(each) for each in lists}) == 1 and len(lists) == len((said, value, live)):
        return [_said(*items) for items in zip(value, said, live, strict=True)]
    return said


def _metadata(
    body: Json, manifest: Json, live: Json | None, instance_id: str | None
) -> dict[str, Json]:
    """Return the metadata with the labels that the manifest says, that are live, or our own."""
    own, said, now = (each.get("metadata") or {} for each in (body, manifest, live or {}))
    result = {name: own[name] for name in _OF_THE_SERVER if name in own}
    result |= {n: own[n] for n in _REFERRED if n in own and own[n] == now.get(n)}
    ours = {INSTANCE_LABEL: instance_id, DIGEST_ANNOTATION: manifest_digest(manifest)}
    for field in _LISTED:
        stated, values, there = (each.get(field) or {} for each in (said, own, now))
        entries = {
            name: value
            for name, value in values.items()
            if name in _CHOSEN or value in (ours.get(name, there.get(name)), there.get(name))
        }
        if entries := {**entries, **stated}:
            result[field] = entries
    return {"metadata": result}
