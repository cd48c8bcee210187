# SPDX-License-Identifier: Apache-2.0
"""The deletion of all objects of a VNF instance, as a goal.

What a VNFM does at the end: for the service and small sites; Tacker terminates by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from container_update.cluster.history import History
from container_update.cluster.scope import Scope
from container_update.engine.checks.namespaces import refuse_if_known_missing
from container_update.engine.claims import claims_of_set
from container_update.engine.goal import Goal, Intent, Observed
from container_update.engine.instances import list_if_allowed
from container_update.engine.read_packages import described_by
from container_update.model.cluster import if_allowed, items_if_allowed
from container_update.model.objects import (
    DEFINITION,
    Collection,
    Json,
    Manifest,
    ObjectKey,
    is_kept,
)
from container_update.model.options import Options
from container_update.model.plan import UNINSTALL, Plan
from container_update.model.requests import TerminateRequest
from container_update.planning.configuration import Live
from container_update.planning.lifecycle import own_objects, uninstall_plan
from container_update.planning.order import RBAC, has_finalizers
from container_update.planning.staying import Included
from container_update.planning.update import collections
from container_update.workloads import ownership, registry

_OTHERS = (("", "ConfigMap"), ("", "PersistentVolumeClaim"), ("", "Secret"), ("", "Service"))
"""(group, kind) of what belongs to workloads."""
_CLAIM = ("", "PersistentVolumeClaim")


class Uninstall(Goal):
    """A VNF instance that is gone, but for what stays; *is_recorded*: it may be gone already."""

    def __init__(
        self,
        request: TerminateRequest,
        options: Options = Options(),  # noqa: B008
        *,
        is_recorded: bool = False,
    ) -> None:
        self.intent = Intent(request.namespace, request.instance_id, UNINSTALL)
        self._included = Included(data=request.delete_data, shared=request.delete_shared)
        self._is_recorded = is_recorded
        self._manifests = described_by(request, options)
        self._described = [manifest.key for manifest in self._manifests]

    def digest(self) -> str:
        """See Goal."""
        return f"{UNINSTALL} {self._included}"

    def read_manifests(self) -> Sequence[Manifest] | None:
        """See Goal."""
        return self._manifests or None

    def scope(self) -> Scope:
        """See Goal."""
        instance_id = self.intent.instance_id
        return Scope(instance_id=instance_id) if instance_id else Scope(self._described)

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        namespace, instance_id = self.intent.where
        record = History(observed.cluster, namespace, instance_id).instance()
        recorded = {manifest.key for manifest in record.manifests} if record else set[ObjectKey]()
        live = self._read([*recorded, *self._described], observed)
        if not observed.cluster.journal_key:  # elsewhere the package and the label say what is its
            here = {k for k in recorded if k.namespace == namespace and k.group != RBAC}
            recorded = here | recorded.intersection(self._described)
        live = own_objects(live, recorded, instance_id)
        claims = _claims(live.values(), observed)
        taken = _used_by_others(live, claims, observed)
        live |= own_objects(claims, claims, instance_id)
        live = {key: body for key, body in live.items() if key not in taken}
        plan = uninstall_plan(
            live,
            namespace,
            instance_id,
            self._included,
            {key: text for key in live if (text := _goes_with(key, live[key], observed))},
            _held_objects(live, observed) if self._included.shared else {},
        )
        if plan.is_empty and not (self._is_recorded or observed.resumed):
            refuse_if_known_missing(namespace, observed.cluster)
        return replace(plan, packages=(record.package,) if record and record.package else ())

    def _read(self, keys: Sequence[ObjectKey], observed: Observed) -> Live:
        """Return what exists of the instance, as far as the account may look."""
        observed.list(keys)
        spaces = {self.intent.namespace, *(key.namespace for key in keys if key.namespace)}
        kinds = (*registry.installed_kinds(), *_OTHERS)
        others = {Collection(*kind, space) for kind in kinds for space in spaces}
        list_if_allowed(observed.informer, others - collections(keys))
        live = {
            key: body
            for key, body in observed.live.items()
            if not ownership.controller(body)  # whose end is its controller's business
        }
        missing = {key: observed.cluster.get(key) for key in keys if key not in live}
        return {**live, **{key: body for key, body in missing.items() if body is not None}}


def _claims(bodies: Iterable[Json], observed: Observed) -> Live:
    """Return the PersistentVolumeClaims that the controllers of StatefulSets have created."""
    return {
        ObjectKey.of(claim): claim
        for body in bodies
        for claim in claims_of_set(observed.cluster, body, body["metadata"].get("namespace", ""))
    }


def _used_by_others(live: Live, claims: Live, observed: Observed) -> frozenset[ObjectKey]:
    """Return the instance's claims that another instance's StatefulSet has taken over since."""
    earlier = {key for key in live if (key.group, key.kind) == _CLAIM and key not in claims}
    own = {ObjectKey.of(body) for body in live.values()}
    spaces = {key.namespace for key in earlier}
    every = (Collection("apps", "StatefulSet", space) for space in spaces)
    sets = (body for each in every for body in items_if_allowed(observed.cluster, each))
    others = [body for body in sets if ObjectKey.of(body) not in own]
    return frozenset(earlier & _claims(others, observed).keys())


def _volume_of(claim: Json, observed: Observed) -> str:
    """Return what becomes of the volume of a claim that is deleted, as its reclaim policy says."""
    name = (claim.get("spec") or {}).get("volumeName") or ""
    volume = ObjectKey("", "PersistentVolume", "", name)
    body = if_allowed(partial(observed.cluster.get, volume), None) if name else None
    policy = ((body or {}).get("spec") or {}).get("persistentVolumeReclaimPolicy")
    if policy == "Retain":
        return f"its hold on {volume}, which keeps the data (its reclaim policy is Retain)"
    why = f" (its reclaim policy is {policy})" if policy else ""
    return f"its volume, and the data on it{why}"


def _held_objects(live: Live, observed: Observed) -> Live:
    """Return others' custom objects that go with their definition, and are held or kept."""
    bodies = (item for key in live for item in _objects_of(key, live[key], observed) or ())
    held = {ObjectKey.of(body): body for body in bodies if has_finalizers(body) or is_kept(body)}
    own = {body["metadata"]["uid"] for body in live.values()}
    return {key: body for key, body in held.items() if body["metadata"]["uid"] not in own}


def _objects_of(key: ObjectKey, body: Json, observed: Observed) -> Sequence[Json] | None:
    """Return the objects that a definition defines; None where they cannot be listed."""
    if (key.group, key.kind) != DEFINITION:
        return ()
    every = Collection(body["spec"]["group"], body["spec"]["names"]["kind"], "")
    listing = if_allowed(lambda: observed.cluster.list(every), None, if_missing=True)
    return None if listing is None else listing.items


def _goes_with(key: ObjectKey, body: Json, observed: Observed) -> str:
    """Return in words what the server deletes with an object; '' for nothing else."""
    if (key.group, key.kind) == ("", "Namespace"):
        return "everything that is in it"
    if (key.group, key.kind) == _CLAIM:
        return _volume_of(body, observed)
    if (key.group, key.kind) != DEFINITION:
        return ""
    kind, items = body["spec"]["names"]["kind"], _objects_of(key, body, observed)
    if items is None:
        return f"every {kind} of every namespace"
    spaces = sorted({item["metadata"].get("namespace", "") for item in items} - {""})
    number = f"every {kind}: {len(items)}"
    return f"{number} in {', '.join(spaces)}" if spaces else number
