# SPDX-License-Identifier: Apache-2.0
"""From two packages and the live cluster to an ordered Plan, each step with its reasons.

Pure: no call leaves this module. The rules are those of ``architecture.rst``: configuration is
compared with the live objects, images old manifest against new, and a workload restarts only if a
changed key of a changed object reaches it or its image changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from container_update.model.errors import MissingError, PlanError
from container_update.model.objects import (
    INSTANCE_LABEL,
    Collection,
    Json,
    Manifest,
    ObjectKey,
    instance_of,
    is_of,
)
from container_update.model.plan import (
    CHANGED_KEYS,
    Action,
    ImageChange,
    Note,
    Plan,
    Reason,
    image_place,
)
from container_update.model.requests import CONFIG_PATHS
from container_update.planning.comparison import diff
from container_update.planning.comparison.match import Matching
from container_update.planning.configuration import ChangedUse, ConfigPlanner, Live, reasons_of
from container_update.planning.steps import ConfigStep, RestartStep
from container_update.planning.steps.manifest import StoredImages, manifest_digest, recorded_digest
from container_update.workloads import pod_template
from container_update.workloads.kind import pods_in
from container_update.workloads.ownership import owned_pods
from container_update.workloads.registry import ENTRY_POINTS, is_workload, kind_of, known_kind

_UNLISTED = f"{CONFIG_PATHS} does not list that file"


def collections(keys: Iterable[ObjectKey]) -> frozenset[Collection]:
    """Return the collections to read to plan for these objects and to follow their pods."""
    needed: set[Collection] = set()
    for key in keys:
        kind = kind_of(key)
        if kind is not None:
            needed |= {Collection.of(key), *kind.watched_collections(key.namespace)}
        elif key.is_config:
            needed.add(Collection.of(key))
    return frozenset(needed)


def unknown_workloads(manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Return the manifests of unknown kinds with a pod template: they may use configuration."""
    return tuple(
        manifest
        for manifest in manifests
        if kind_of(manifest.key) is None and pod_template.pod_spec(manifest.body)
    )


def differing_others(
    pairs: Iterable[tuple[Manifest, Manifest | None]],
) -> tuple[Manifest, ...]:
    """Return the old manifests that differ from their new ones, of kinds not listed."""
    return tuple(
        old
        for old, new in pairs
        if new is not None and not collections([old.key])
        if diff.field_changes(old, new, by_meaning=True)
    )


def traffic(keys: Iterable[ObjectKey]) -> frozenset[Collection]:
    """Return the collections that tell which pods the Services among these objects select."""
    return frozenset(
        collection
        for key in keys
        if key.group == "" and key.kind == "Service"
        for collection in (
            Collection.of(key),
            pods_in(key.namespace),
            Collection("discovery.k8s.io", "EndpointSlice", key.namespace),
        )
    )


def make_plan(  # noqa: PLR0913
    matching: Matching,
    live: Live,
    *,
    namespace: str,
    instance_id: str | None = None,
    stored: StoredImages | None = None,
    restart_for: str = CHANGED_KEYS,
) -> Plan:
    """Return the plan of an update.

    :param matching: the old objects with their new manifests.
    :param live: every object of :func:`collections` and of :func:`unknown_workloads`, by identity.
    :param stored: what the server makes of the images of :func:`unexplained_workloads`.
    :param restart_for: see :class:`~container_update.model.options.Options`.
    :raises PackageError: a manifest is wrong (a container vanished, a value is no string).
    :raises PlanError: an object is in no state to be changed; the message names it.
    """
    planner = UpdatePlanner(live, instance_id, stored or {}, restart_for=restart_for)
    config = tuple(planner.config_steps(matching))
    steps = (*config, *planner.workload_steps(matching))
    touched = {step.key for step in steps}
    return Plan(
        namespace=namespace,
        instance_id=instance_id,
        steps=steps,
        unchanged=tuple(old.key for old, _ in matching.pairs if old.key not in touched),
        ignored=tuple(_note_ignored(matching, planner.live)),
        notes=tuple(dict.fromkeys(planner.notes)),
        left=tuple(
            old.key
            for old, new in matching.pairs
            if new is None and not planner.is_foreign(old.key)
        ),
        def_files=matching.def_files,
        manifests=tuple(in_force(matching)),
    )


def _note_ignored(matching: Matching, live: Mapping[ObjectKey, Json]) -> Iterator[Note]:
    # labels and annotations of configuration take effect, as its content does
    effective = ("metadata.labels", "metadata.annotations")
    for old, new in matching.pairs:
        if new is None or _is_fixed(old, new):
            continue
        for change in diff.field_changes(old, new, by_meaning=True, live=live.get(old.key)):
            if not (old.key.is_config and change.path.startswith(effective)):
                text = f"{change.path} differs and does not take effect ({change.place})"
                yield Note(old.key, text, change)
    for new in matching.not_added:
        why = f": {_UNLISTED}, so it" if new.key in matching.unlisted else " and"
        yield Note(new.key, f"is new in {new.source}{why} is not created by a modify operation")


def _is_fixed(old: Manifest, new: Manifest) -> bool:
    """Tell whether an object cannot become what the new package says, by no operation."""
    kind = kind_of(old.key)
    return kind is not None and kind.fixed_part(old.body, new.body) != (
        kind.fixed_part(new.body, new.body)
    )


def in_force(matching: Matching) -> Iterator[Manifest]:
    """Yield the manifests of the CNF after the update: old ones with what takes effect."""
    for old, new in matching.pairs:
        if new is None:
            yield old
        elif old.key.is_config and old.key not in matching.unlisted:
            yield new
        elif is_workload(old.key):
            body = pod_template.with_images(old.body, pod_template.images(new.body))
            yield replace(old, body=body, source=new.source)
        else:
            yield replace(old, source=new.source)
    yield from matching.added


@dataclass(eq=False, repr=False)
class UpdatePlanner(ConfigPlanner):
    """Decides one update; collects the notes on the way."""

    stored: StoredImages = field(default_factory=dict)

    def is_foreign(self, key: ObjectKey) -> bool:
        """Tell whether a live object does not have the label of the instance."""
        live = self.live.get(key)
        return live is not None and not is_of(self.instance_id, live)

    def config_steps(self, matching: Matching) -> Iterator[ConfigStep]:
        """Yield a step for each ConfigMap and Secret that has other content in the new package."""
        for old, new in matching.pairs:
            if new is None:
                unlabelled = ", and without this VNF's label no change deletes it"
                why = unlabelled if self.is_foreign(old.key) else ""
                self.note(old.key, f"is not in the new package: kept{why}")
            elif old.key in matching.unlisted:
                self._note_unlisted(old, new)
            elif old.key.is_config:
                demanded = new.key in matching.listed
                before, after = self.as_stated(old, new, is_demanded=demanded)
                if step := self.config_step(before, after):
                    self._note_drift(before or old, after)
                    yield step
        for new in matching.added:
            if step := self.config_step(*self.as_stated(None, new)):
                self._refuse_foreign(new)
                yield step
        for old in matching.removed:
            self.withdraw(old.key, old.source)

    def _note_unlisted(self, old: Manifest, new: Manifest) -> None:
        if self.change(*self.as_stated(old, new, is_demanded=True)) is not None:
            self.note(new.key, f"differs from {new.source}: {_UNLISTED}, so it is not written")

    def _note_drift(self, old: Manifest, new: Manifest) -> None:
        """Note what another client changed in a ConfigMap or Secret that is overwritten now."""
        live = self.live.get(new.key)
        how = {"new": "added", "removed": "removed", "changed": "edited"}
        for change in diff.drift(old, new, live) if live else ():
            what = f"key {change.key} was {how[change.how]} since the old package"
            self.note(new.key, f"drift: {what}: the new content replaces that")

    def _refuse_foreign(self, new: Manifest) -> None:
        live = self.live.get(new.key)
        if live is not None and self.instance_id and instance_of(live) is None:
            raise PlanError(
                f"{new.key} ({new.source}) is new in the package, and the cluster has one that "
                f"does not have the label {INSTANCE_LABEL}: give it another name, or label it if "
                "it is this instance's"
            )

    def workload_steps(self, matching: Matching) -> Iterator[RestartStep]:
        """Yield a step for each workload that has to restart."""
        for old, new in matching.pairs:
            if not is_workload(old.key):
                self.note_unknown(old.key)
                continue
            changes = diff.image_changes(old, new) if new is not None else ()
            if (live := self.live.get(old.key)) is not None:
                yield from self._workload_step(old, new, changes, live)
            elif changes and known_kind(old.key).can_change:
                raise MissingError(
                    f"{old.key}: is not in the cluster, so its image cannot change: change the "
                    "package by the upgrade type RollingUpdate, which creates it again"
                )
            else:
                self.note(old.key, "is not in the cluster: left alone")

    def _workload_step(
        self, old: Manifest, new: Manifest | None, changes: Sequence[ImageChange], live: Json
    ) -> Iterator[RestartStep]:
        images = self.effective_images(old, changes, live)
        if not images:
            live, images = as_its_pods(live, changes, self.live)
        uses = self.config_uses(old.key, live)
        kind = known_kind(old.key)
        if not images and not uses:
            if new is not None and _is_fixed(old, new):
                fields = diff.field_changes(old, new, by_meaning=True, live=live)
                text = f"a {kind.kind} cannot change"
                self.notes += (Note(old.key, f"{text}: {field}") for field in fields)
            return
        step = self.restart_step(old.key, live, images, uses)
        if not kind.can_change:
            text = f"a {kind.kind} cannot change, it would restart because {step.reasons[0]}"
            self.note(old.key, text)
            return
        self.refuse_unfit(old.key, live)
        self.notes += (Note(old.key, text) for text in kind.notes(live))
        yield replace(step, manifest_digest=_digest_in_force(old, new)) if images and new else step

    def restart_step(
        self, key: ObjectKey, live: Json, images: Sequence[ImageChange], uses: Sequence[ChangedUse]
    ) -> RestartStep:
        """Return the step that restarts a workload for these images and this configuration."""
        return RestartStep(
            key,
            known_kind(key).action(live, images, [use.use for use in uses]),
            live,
            images={change.container: change.new for change in images},
            digest=self.config_digest(live, uses),
            reasons=(*(Reason(str(change), change) for change in images), *reasons_of(uses)),
        )

    def effective_images(
        self, old: Manifest, changes: Sequence[ImageChange], live: Json
    ) -> list[ImageChange]:
        """Return the image changes that are not live yet; note drift from the old manifest."""
        live_images = pod_template.images(live)
        packaged = {change.container: change for change in changes}
        stored = self.stored.get(old.key, {})
        effective = []
        for name, image in pod_template.images(old.body).items():
            now, change = live_images.get(name), packaged.get(name)
            if now is None:
                self._container_gone(old, name, change)
            elif change is None and now != image:
                text = f"{image_place(name)} has image {now}, both packages say {image}: left alone"
                self.note(old.key, f"drift: {text}")
            elif change is not None and now not in (change.new, stored.get(name)):
                if now != image:
                    text = f"{image_place(name)} had image {now}, the old package says {image}"
                    self.note(old.key, f"drift: {text}")
                effective.append(replace(change, old=now))
        return effective

    def _container_gone(self, old: Manifest, name: str, change: ImageChange | None) -> None:
        text = f"{image_place(name)} of {old.source} is not in the live object"
        if change is not None:
            raise MissingError(
                f"{old.key}: {text}, so its image cannot change: change the package by the upgrade "
                "type RollingUpdate, which creates it again"
            )
        self.note(old.key, f"drift: {text}")

    def note_unknown(self, key: ObjectKey) -> None:
        """Note where pods of an object of an unknown kind use configuration that changes."""
        live = self.live.get(key)
        for reason in reasons_of(self.config_uses(key, live)) if live else ():
            self.note(
                key,
                f"{reason}; the kind {key.kind} is not known: restart it yourself, or install a "
                f"plugin for {ENTRY_POINTS}",
            )


def _digest_in_force(old: Manifest, new: Manifest) -> str:
    """Return the digest of a workload's manifest after an update or a way back."""
    body = pod_template.with_images(old.body, pod_template.images(new.body))
    return recorded_digest(new.body) or manifest_digest(body)


# --- pods that still run the old image ----------------------------------------------------------
# A ReplicaSet, and a DaemonSet or StatefulSet with ``OnDelete``, leaves its pods as they are when
# a client writes a new template. Source: Kubernetes API reference, ReplicaSet; "Update strategies".


def as_its_pods(
    workload: Json, changes: Sequence[ImageChange], live: Mapping[ObjectKey, Json]
) -> tuple[Json, list[ImageChange]]:
    """Return a workload with the images that its pods run, and the image changes that they lack.

    An undo restores the workload that is returned. With the images in its live template no replaced
    pod could come back.

    Only a pod with the old package's image counts. An image that a webhook has put into a pod is in
    neither package, and the next pod would get it again.

    :param changes: what the packages change, all of it in the template already.
    """
    lacking = [change for change in changes if _is_lacking(change, workload, live)]
    if lacking:
        workload = pod_template.with_images(workload, {c.container: c.old for c in lacking})
    return workload, lacking


def _is_lacking(change: ImageChange, workload: Json, live: Mapping[ObjectKey, Json]) -> bool:
    if known_kind(ObjectKey.of(workload)).action(workload, [change], ()) is not Action.EVICT:
        return False
    namespace = workload["metadata"]["namespace"]
    pods = (body for key, body in live.items() if (key.kind, key.namespace) == ("Pod", namespace))
    return any(
        pod_template.images(pod).get(change.container) == change.old
        for pod in owned_pods(workload, pods, ())
    )
