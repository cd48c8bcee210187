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

from container_update.model.objects import Json, ObjectKey, instance_of, is_of, namespace_key
from container_update.model.plan import Action
from container_update.planning.comparison.live_objects import manifest_name
from container_update.planning.described_content import as_described
from container_update.planning.order import RBAC
from container_update.planning.steps import ManifestStep, ObjectStep
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
        return as_described(step, known, live, self.instance_id) if is_guarded else step

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
