# SPDX-License-Identifier: Apache-2.0
"""Which steps of a journal or a history are trusted. Pure.

Any account that may create a Secret in a namespace can write a journal or a history there. So a
step may concern objects that the packages of the request describe, and objects with the instance's
label in its own namespaces: only an account that may write an object can label it. RBAC, objects
of other namespaces and cluster-scoped objects need a package that describes them, with the same
content; without one a step may only delete them, if they have the label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from container_update.model.objects import (
    DIGEST_ANNOTATION,
    INSTANCE_LABEL,
    Json,
    ObjectKey,
    instance_of,
    is_of,
    namespace_key,
)
from container_update.model.plan import Action
from container_update.planning.comparison import diff, live_objects
from container_update.planning.comparison.live_objects import covers, manifest_name
from container_update.planning.order import RBAC
from container_update.planning.release_labels import RELEASE_LABEL
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep
from container_update.planning.steps.manifest import manifest_digest
from container_update.planning.steps.metadata import stated_metadata
from container_update.workloads import pod_template
from container_update.workloads.registry import is_workload


@dataclass(frozen=True)
class Owned:
    """The objects of a VNF instance, by the request alone.

    :param namespace: the VNF's. The content of RBAC and of objects elsewhere has to be that of a
        package of the request.
    :param described: the objects that the packages describe, each with its manifests.
    :param namespaces: the VNF's, and those in which its journal has a Secret. One whose Namespace
        has the instance's label is the instance's too.
    :param all_of_it: objects in these without a label are the instance's too: the user has asked
        for exactly what is recorded.
    """

    instance_id: str | None
    namespace: str
    described: Mapping[ObjectKey, Sequence[Json]]
    namespaces: frozenset[str]
    all_of_it: bool
    checks_content: bool = True
    """The steps write content that is not from the packages of the request."""

    def unknown(self, steps: Iterable[ObjectStep]) -> tuple[ObjectKey, ...]:
        """Return the objects of the steps, and the namespaces of undescribed ones."""
        keys = [step.key for step in steps]
        others = {key.namespace for key in keys if key not in self.described}
        unknown = sorted(others - {"", *self.namespaces})
        return (*keys, *map(namespace_key, unknown))

    def trusted_steps(
        self, steps: Iterable[ObjectStep], live: Mapping[ObjectKey, Json], deletes: Action
    ) -> tuple[tuple[ObjectStep, ...], tuple[ObjectKey, ...]]:
        """Return the steps that may be carried out or undone, and the objects of the others.

        :param live: the objects of :meth:`unknown` that exist.
        :param deletes: the action whose steps only delete their object: DELETE, or CREATE where
            steps are undone.
        """
        trusted, foreign = list[ObjectStep](), list[ObjectKey]()
        for step in steps:
            key, body = step.key, live.get(step.key)
            is_near = not key.namespace or self._is_its_namespace(key.namespace, live)
            is_own = body is None or is_of(self.instance_id, body)
            known = self._described_contents(step, body)
            if known is not None:
                only = self._as_described(step, known, body, deletes)
                trusted.extend([only] if only else [])
                foreign.extend([] if only else [key])
            elif is_near and step.action is deletes and is_own:
                trusted.extend(_only_deleting(step, body))
            elif is_near and self._may_be_written(key, body):
                trusted.append(step)
            else:
                foreign.append(key)
        return tuple(trusted), tuple(foreign)

    def _described_contents(self, step: ObjectStep, live: Json | None) -> Sequence[Json] | None:
        """Return the packages' manifests of an object, by its name before a change too, or None."""
        key = step.key
        if key in self.described or not is_workload(key):
            return self.described.get(key)
        planned = step.content if isinstance(step, ManifestStep) else None
        body = live or planned or step.before
        return self.described.get(replace(key, name=manifest_name(body))) if body else None

    def _as_described(
        self, step: ObjectStep, known: Sequence[Json], live: Json | None, deletes: Action
    ) -> ObjectStep | None:
        """Return the trusted part of a step about a described object; None: there is none."""
        owner = self.instance_id if live is None else instance_of(live)
        is_elsewhere = step.key.group == RBAC or step.key.namespace != self.namespace
        is_guarded, is_own = self.checks_content and is_elsewhere, owner == self.instance_id
        if not is_own and (owner is not None or (is_guarded and step.action is deletes)):
            return None
        return _with_described_content(step, known, live, self.instance_id) if is_guarded else step

    def _is_its_namespace(self, name: str, live: Mapping[ObjectKey, Json]) -> bool:
        body = live.get(namespace_key(name))
        return name in self.namespaces or (body is not None and is_of(self.instance_id, body))

    def _may_be_written(self, key: ObjectKey, live: Json | None) -> bool:
        """Tell whether an object that no package describes may be created or changed."""
        if key.namespace != self.namespace or key.group == RBAC:
            return False
        if live is not None and instance_of(live) is not None:
            return is_of(self.instance_id, live)
        return self.all_of_it


def _only_deleting(step: ObjectStep, live: Json | None) -> Iterator[ObjectStep]:
    """Yield a step that deletes its object, unless it is gone; its undo creates the live object,
    not the one in the journal.

    A creation is undone even so: a late request may still create the object.
    """
    if step.action is Action.CREATE:
        yield step
    elif live is not None:
        yield replace(step, before=live)


# --- a step with no other content than a package says --------------------------------------------
# An account that may write Secrets in the VNF's namespace chooses which object a journal changes,
# and what it was before. Of RBAC, and of what is outside that namespace, only the manifests of this
# request say the content: such a step can finish the operation or go back, and nothing else. What
# the server added stays where it is live.

_CHOSEN = frozenset({live_objects.NAME_ANNOTATION, RELEASE_LABEL})
"""Labels and annotations of ours whose values no manifest says."""
_OF_THE_SERVER = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")
_REFERRED = ("finalizers", "ownerReferences")


def _with_described_content(
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
    for field in ("labels", "annotations"):
        stated, values, there = (each.get(field) or {} for each in (said, own, now))
        entries = {
            name: value
            for name, value in values.items()
            if name in _CHOSEN or value in (ours.get(name, there.get(name)), there.get(name))
        }
        if entries := {**entries, **stated}:
            result[field] = entries
    return {"metadata": result}
