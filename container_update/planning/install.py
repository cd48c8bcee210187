# SPDX-License-Identifier: Apache-2.0
"""The plan of an installation: what of a package is to be created. Pure.

An installation only creates. What the instance has already stays as it is, so that a second one
only adds what is missing; what is somebody else's is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from container_update.model.errors import PlanError
from container_update.model.objects import INSTANCE_LABEL, Json, Manifest, ObjectKey, instance_of
from container_update.model.plan import Action, Note, Plan, Reason, Step
from container_update.planning.comparison import diff, live_objects
from container_update.planning.configuration import Live
from container_update.planning.order import in_order
from container_update.planning.steps import ConfigStep, ManifestStep
from container_update.planning.steps.manifest import manifest_digest, with_recorded_digest

_MISSING = Reason("is not there yet")


def install_plan(
    manifests: Iterable[Manifest],
    live: Live,
    namespace: str,
    instance_id: str,
    def_files: Sequence[str] = (),
) -> Plan:
    """Return the plan that creates what is missing.

    :param manifests: everything that the package describes.
    :param live: what exists of that.
    :raises PlanError: an object exists and is not this instance's.
    """
    ordered, names = in_order(manifests), live_objects.live_names(live)
    steps: list[Step] = []
    kept: list[Manifest] = []
    notes: list[Note] = []
    for manifest in ordered:
        key = names.get(manifest.key, manifest.key)
        body = live.get(key)
        if body is None:
            steps.append(_creation(manifest))
        else:
            kept.append(manifest)
            notes += _notes(key, manifest, body, instance_id)
    return Plan(
        namespace=namespace,
        instance_id=instance_id,
        steps=tuple(steps),
        unchanged=tuple(names.get(manifest.key, manifest.key) for manifest in kept),
        notes=tuple(notes),
        def_files=tuple(def_files),
        manifests=tuple(live_objects.with_live_name(manifest, names) for manifest in ordered),
    )


def _creation(manifest: Manifest) -> Step:
    if manifest.key.is_config:
        diff.stated(manifest)  # raises what is wrong with its values
        return ConfigStep(manifest.key, Action.CREATE, None, manifest.body, reasons=(_MISSING,))
    content = with_recorded_digest(manifest.body, manifest_digest(manifest.body))
    return ManifestStep(manifest.key, Action.CREATE, None, content, reasons=(_MISSING,))


def _notes(key: ObjectKey, manifest: Manifest, live: Json, instance_id: str) -> Iterator[Note]:
    """Yield what is to be known of an object that exists.

    :raises PlanError: it is not this instance's, and cannot be shared.
    """
    owner, is_equal = instance_of(live), _covers(key, live, manifest)
    if live["metadata"].get("deletionTimestamp"):
        raise PlanError(f"{key}: is being deleted: wait until it is gone, then install")
    if owner == instance_id:
        if not is_equal:
            text = f"differs from {manifest.source}: an installation leaves it as it is"
            yield Note(key, f"{text}; an update or a change of the package brings it there")
    elif key.namespace == "" and is_equal:
        yield Note(key, f"is there already, {_whose(owner)}: shared, nothing of it is changed")
    else:
        what = "" if is_equal else ", and it differs from the package's"
        raise PlanError(
            f"{key} ({manifest.source}): expected no object of this name, found one that is "
            f"{_whose(owner)}{what}: give the package's another name, delete that one, or label it "
            f"with {INSTANCE_LABEL}={instance_id} if it is this instance's"
        )


def _covers(key: ObjectKey, live: Json, manifest: Manifest) -> bool:
    """Tell whether an object that exists is what the package describes."""
    if key.is_config:
        step = ConfigStep(key, Action.REPLACE, live, manifest.body)
        return step.is_applied(live)
    if key.kind == "Namespace":  # whoever made it labels it as he likes
        return True
    return live_objects.covers(live, manifest.body)


def _whose(owner: str | None) -> str:
    return f"VNF instance {owner}'s" if owner else "no VNF instance's"
