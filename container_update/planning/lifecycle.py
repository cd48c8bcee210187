# SPDX-License-Identifier: Apache-2.0
"""The plans of the beginning and the end of a VNF instance: what of a package is to be created,
what of the instance is deleted, and what stays. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from container_update.model.errors import PlanError
from container_update.model.objects import INSTANCE_LABEL, Json, Manifest, ObjectKey, instance_of
from container_update.model.plan import Action, Note, Plan, Reason, Step
from container_update.planning.comparison import diff, live_objects
from container_update.planning.configuration import Live
from container_update.planning.finished_jobs import HAS_RUN, has_run
from container_update.planning.order import defined_by, in_groups, in_order
from container_update.planning.staying import Included, why_they_stay, with_claims_kept
from container_update.planning.steps import ConfigStep, ManifestStep
from container_update.planning.steps.manifest import manifest_digest, with_recorded_digest
from container_update.workloads.registry import refuse_idle

# --- an installation ----------------------------------------------------------------------------
# An installation only creates: objects of the instance stay, so that a second one adds what is
# missing. Objects of another client are not touched.


def install_plan(  # noqa: PLR0913, PLR0917
    manifests: Iterable[Manifest],
    live: Live,
    namespace: str,
    instance_id: str,
    def_files: Sequence[str] = (),
    recorded: Mapping[ObjectKey, Manifest] = MappingProxyType({}),
) -> Plan:
    """Return the plan that creates what is missing; a Job that the record lists has run."""
    ordered = in_order(manifests)
    steps: list[Step] = []
    kept: list[Manifest] = []
    notes: list[Note] = []
    for manifest in ordered:
        body = live.get(manifest.key)
        if body is None and has_run(manifest, recorded.get(manifest.key)):
            notes.append(Note(manifest.key, HAS_RUN))
        elif body is None:
            steps.append(_creation(manifest))
        else:
            kept.append(manifest)
            notes += _notes(manifest.key, manifest, body, instance_id)
    return Plan(
        namespace=namespace,
        instance_id=instance_id,
        steps=tuple(steps),
        unchanged=tuple(manifest.key for manifest in kept),
        notes=tuple(notes),
        def_files=tuple(def_files),
        manifests=tuple(ordered),
    )


def _creation(manifest: Manifest) -> Step:
    if manifest.key.is_config:
        diff.stated_content(manifest)  # raises an error for invalid values
        return ConfigStep(manifest.key, Action.CREATE, None, manifest.body)
    refuse_idle(manifest)
    content = with_recorded_digest(manifest.body, manifest_digest(manifest.body))
    return ManifestStep(manifest.key, Action.CREATE, None, content)


def _notes(key: ObjectKey, manifest: Manifest, live: Json, instance_id: str) -> Iterator[Note]:
    """Yield notes on an object that exists; refuse one that is another's and cannot be shared."""
    owner, is_equal = instance_of(live), _covers(key, live, manifest)
    if live["metadata"].get("deletionTimestamp"):
        raise PlanError(f"{key}: is being deleted: wait until it is gone, then install")
    if owner == instance_id:
        if not is_equal:
            text = f"differs from {manifest.source}: an installation does not change it"
            yield Note(key, f"{text}; an update or a change of the package applies it")
    elif not live["metadata"].get("namespace") and is_equal:
        yield Note(key, f"already exists and belongs to {_whose(owner)}: shared, not changed")
    else:
        what = "" if is_equal else ", and it differs from the package's"
        label = f"label it with {INSTANCE_LABEL}={instance_id} if it is this instance's"
        raise PlanError(
            f"{key} ({manifest.source}): already exists and belongs to {_whose(owner)}{what}: "
            f"choose another namespace or name{'' if owner else f', delete it, or {label}'}"
        )


def _covers(key: ObjectKey, live: Json, manifest: Manifest) -> bool:
    """Tell whether an object that exists is what the package describes."""
    if key.is_config:
        step = ConfigStep(key, Action.REPLACE, live, manifest.body)
        return step.is_applied(live)
    if key.kind == "Namespace":  # its owner chooses its labels
        return True
    named = live_objects.as_made_by(live, manifest.body)
    return live_objects.covers(named, manifest.body)


def _whose(owner: str | None) -> str:
    return f"VNF instance {owner}" if owner else "no VNF instance"


# --- an uninstallation --------------------------------------------------------------------------
# Deleted is what bears the instance's label, or what its record lists and no other instance's label
# claims; never what merely has a name from a package. What holds data, or what others may use too,
# stays unless it is asked for.


def own_objects(
    live: Live, recorded: Container[ObjectKey], instance_id: str | None
) -> dict[ObjectKey, Json]:
    """Return which of these objects are the instance's; *recorded*: those that its record lists."""
    owners = {key: instance_of(body) for key, body in live.items()}
    own = (key for key, has in owners.items() if (has == instance_id if has else key in recorded))
    return {key: live[key] for key in own}


def uninstall_plan(  # noqa: PLR0913, PLR0917
    live: Live,
    namespace: str,
    instance_id: str | None,
    included: Included = Included(),  # noqa: B008
    goes_with: Mapping[ObjectKey, str] | None = None,
    held: Live = MappingProxyType({}),
) -> Plan:
    """Return the plan that deletes the objects of the instance.

    :param live: the objects of the instance that exist; see :func:`own_objects`.
    :param goes_with: in words, what else is deleted with an object.
    :param held: other clients' custom objects with a finalizer, whose definition may be deleted.
    """
    staying = why_they_stay({**live, **held}, included)
    going = {key: body for key, body in live.items() if key not in staying}
    defined = frozenset(defined_by(going))
    staying = {key: why for key, why in staying.items() if key in live}
    always = why_they_stay({**live, **held}, Included(data=True, shared=True))
    with_definition = {k: body for k, body in held.items() if (k.group, k.kind) in defined}
    steps = []
    for key, body in {**going, **with_definition}.items():
        more = (goes_with or {}).get(key)
        what = f"part of the instance{f'; this also deletes {more}' if more else ''}"
        reason = Reason(what if key in going else "its definition is deleted, and its controller")
        step = ManifestStep(key, Action.DELETE, body, reasons=(reason,))
        steps.append(with_claims_kept(step))
    return Plan(
        namespace=namespace,
        instance_id=instance_id,
        steps=in_groups(steps, among=live),
        unchanged=tuple(staying),
        notes=tuple(Note(key, f"stays: {why}") for key, why in staying.items()),
        left=tuple(key for key in staying if key not in always),
    )


def claims_of(body: Json, names: Iterable[str]) -> Iterator[str]:
    """Yield the names of the PersistentVolumeClaims that a StatefulSet's controller created.

    Source: API reference, StatefulSet: they are called TEMPLATE-SET-ORDINAL, and stay when it goes.

    :param names: of the claims that exist.
    """
    spec, name = body.get("spec") or {}, body["metadata"]["name"]
    for template in spec.get("volumeClaimTemplates") or ():
        claim = re.compile(rf"{re.escape(template['metadata']['name'])}-{re.escape(name)}-[0-9]+")
        yield from filter(claim.fullmatch, names)
