# SPDX-License-Identifier: Apache-2.0
"""What happens to the ConfigMaps and Secrets of a CNF, and who restarts because of it. Pure.

Three ways, key by key: what the new manifest has is written where the live value differs, what only
the old one has is removed, and what neither has is another client's and stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from container_update.model.errors import PlanError
from container_update.model.objects import (
    INSTANCE_LABEL,
    Json,
    Manifest,
    ObjectKey,
    Source,
    instance_of,
)
from container_update.model.plan import (
    CHANGED_KEYS,
    CHANGED_OBJECTS,
    Action,
    ConfigChange,
    ConfigDifference,
    ConfigUse,
    Note,
    Reason,
)
from container_update.planning.comparison import diff, live_objects
from container_update.planning.steps import ConfigStep
from container_update.planning.steps.config import laid_over
from container_update.workloads import config_references, pod_status, pod_template
from container_update.workloads.registry import is_workload, kind_of

OPT_OUT_ANNOTATION = "container-update/on-config-change"
"""On a workload, a ConfigMap or a Secret: ``ignore`` or ``reload``."""
_DATA = ("data", "binaryData")
_OPT_OUTS = ("", "ignore", "reload")

Live = Mapping[ObjectKey, Json]


@dataclass(frozen=True)
class ChangedUse:
    """A changed object as a workload's live pod spec uses it."""

    use: config_references.Use
    change: ConfigDifference

    @property
    def reason(self) -> Reason:
        """Why the workload restarts for it."""
        what, key = self.use.what, self.change.key
        if self.change.how is ConfigChange.CREATE:
            text = f"{what} uses {self._used} {key}, which appears"
        elif self.change.how is ConfigChange.DELETE:
            text = f"{what} uses {self._used} {key}, which goes"
        elif self.use.keys is None:
            keys = ", ".join(self._changed) or "its type"
            text = f"{what} uses all keys of {key}, of which {keys} changed"
        else:
            text = f"{what} uses {self._used} {key}, which changed"
        return Reason(text, ConfigUse(key, self._changed, what))

    @property
    def _changed(self) -> tuple[str, ...]:
        """The keys that are used and change, sorted."""
        used, changed = self.use.keys, self.change.keys
        return tuple(sorted(changed if used is None else changed & used))

    @property
    def _used(self) -> str:
        if self.use.keys is None:
            return "all keys of"
        keys = sorted(self.use.keys) if self.change.whole else self._changed
        return f"key{'s' if len(keys) > 1 else ''} {', '.join(keys)} of"


@dataclass(eq=False, repr=False)
class ConfigPlanner:
    """Decides what becomes of configuration; collects the notes on the way."""

    live: Live
    instance_id: str | None
    restart_for: str = field(default=CHANGED_KEYS, kw_only=True)
    notes: list[Note] = field(default_factory=list, init=False)
    changes: dict[ObjectKey, ConfigDifference] = field(default_factory=dict, init=False)
    opt_outs: dict[ObjectKey, str] = field(default_factory=dict, init=False)
    left_alone: dict[ObjectKey, frozenset[str]] = field(default_factory=dict, init=False)
    """The keys of objects that others have written, and that a note is about."""

    def as_stated(
        self, old: Manifest | None, new: Manifest, *, is_demanded: bool = False
    ) -> tuple[Manifest | None, Manifest]:
        """Return the manifests of a ConfigMap or Secret as its creator reads them, without
        the keys that others have filled in, and the labels and annotations that they have changed
        since, which are noted.

        :param is_demanded: the labels and annotations take effect whatever others have written.
        """
        live = self.live.get(new.key)
        diff.stated_content(new)  # before anything is made of it
        new = diff.as_created(new, old, live)
        if live is None:
            return old, new
        theirs = {
            key: f"key {key}: {name} has written it and owns it: left alone"
            for key, name in keys_of_others(old, new, live).items()
        }
        drift: tuple[live_objects.Drift, ...] = ()
        if old is not None and not is_demanded:
            labels, drift = live_objects.three_ways(_metadata(new.body), _metadata(old.body), live)
            new = replace(new, body={**new.body, **labels})
        texts = [*sorted(theirs.values()), *(each.note(new.source) for each in drift)]
        self.notes += (Note(new.key, text) for text in texts)
        self.left_alone[new.key] = frozenset(theirs)
        return old and without_keys(old, theirs), without_keys(new, theirs)

    def config_step(self, old: Manifest | None, new: Manifest) -> ConfigStep | None:
        """Return the step that brings one object to what the new manifest says; None where it is so
        already.

        :raises PackageError: a manifest has a value that the server would refuse.
        :raises PlanError: the object is in no state to be changed.
        """
        live = self.live.get(new.key)
        self._note_what_stays(old, new, live)
        change = self.change(old, new)
        if change is None:
            return None
        step = laid_over(old, new, live)
        if live is not None:
            self.refuse_unfit(new.key, live)
        self._refuse_cached(new, live or (old.body if old else {}), step.after)
        by_object = self.restart_for == CHANGED_OBJECTS and bool(change.keys)
        self.changes[new.key] = replace(change, whole=change.whole or by_object)
        self.opt_outs[new.key] = _opt_out(step.after)
        return replace(step, action=Action[change.how.name], reasons=change.reasons)

    def withdraw(self, key: ObjectKey, source: Source) -> None:
        """Count a live object as deleted, for workloads that refer to it as optional."""
        live = self.live[key]
        keys, how = diff.key_names(live), ConfigChange.DELETE
        self.changes[key] = ConfigDifference(key, how, keys, whole=True, source=source)
        self.opt_outs[key] = _opt_out(live)

    def change(self, old: Manifest | None, new: Manifest) -> ConfigDifference | None:
        """Return what the new manifest changes in the live object; None for nothing."""
        step = laid_over(old, new, self.live.get(new.key))
        return diff.config_change(old, new, step.before, step.after)

    def _refuse_cached(self, new: Manifest, before: Json, after: Json) -> None:
        """Raise PlanError where an immutable object is to have other content under its name, while
        a pod that runs refers to it.

        A kubelet reads an immutable object once. New pods get what it has read, as long as any pod
        on its node refers to that name: kubernetes/kubernetes#119733.
        """
        if not before.get("immutable") or diff.stated_content(new, before) == diff.content(after):
            return
        users = sorted(key for key, body in self.live.items() if _may_run_with(new.key, key, body))
        if users:
            more = f" and {len(users) - 1} more" if len(users) > 1 else ""
            raise PlanError(
                f"{new.key} ({new.source}) is immutable and has other content in the new package: "
                f"expected no running pod that refers to it, found {users[0]}{more}: while one "
                "is on its node, a kubelet gives new pods the old content. Give it a new name, in "
                "a change of the package. To change content under one name, never make it immutable"
            )

    def _note_what_stays(self, old: Manifest | None, new: Manifest, live: Json | None) -> None:
        known = diff.key_names(new.body) | (diff.key_names(old.body) if old else frozenset())
        known |= self.left_alone.get(new.key, frozenset())
        if theirs := sorted(diff.key_names(live or {}) - known):
            keys = f"key{'s' if len(theirs) > 1 else ''} {', '.join(theirs)}"
            self.note(new.key, f"{keys}: in no manifest, so another client's: left alone")

    def config_uses(self, key: ObjectKey, live: Json) -> list[ChangedUse]:
        """Return the uses of changed keys that make the workload restart; note opt-outs."""
        uses = []
        for use in _uses(live):
            change = self.changes.get(ObjectKey("", use.kind, key.namespace, use.name))
            if change is None or (change.how is ConfigChange.DELETE and not use.optional):
                continue
            used = change.keys if use.keys is None else change.keys & use.keys
            if not change.whole and not used:
                continue
            opt_out = self._opt_out_of(use, change, live)
            if opt_out is None:
                uses.append(ChangedUse(use, change))
            else:
                self.note(key, opt_out)
        return uses

    def config_digest(self, live: Json, uses: Sequence[ChangedUse]) -> str | None:
        """Return a digest that stands for the configuration that new pods start with.

        It is made of the UIDs and versions of the changed objects, never of their content: the
        digest of a short password would give it away. Each change of an object gives another one.

        :returns: None where no configuration changes.
        """
        if not uses:
            return None
        parts = {live["metadata"].get("uid", ""), live["metadata"].get("resourceVersion", "")}
        for use in uses:
            metadata = self.live.get(use.change.key, {}).get("metadata", {})
            parts.add(f"{use.change.key}@{metadata.get('resourceVersion', '')}")
        return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:32]

    def _opt_out_of(
        self, use: config_references.Use, change: ConfigDifference, live: Json
    ) -> str | None:
        key = ObjectKey.of(live)
        choices = {"its": _opt_out(live), f"{change.key}'s": self.opt_outs[change.key]}
        for owner, choice in choices.items():
            if choice == "ignore":
                return f"{owner} annotation says ignore, so {use.what} does not restart it"
            if choice == "reload" and use.reach is config_references.Reach.VOLUME:
                return f"{owner} annotation says reload, so the kubelet refreshes {use.what}"
            if choice not in _OPT_OUTS:
                text = f"{owner} annotation {OPT_OUT_ANNOTATION} is neither ignore nor reload"
                self.note(key, f"{text}: it has no effect")
        return None

    def note(self, key: ObjectKey, text: str) -> None:
        """Note something for the operator."""
        self.notes.append(Note(key, text))

    def refuse_unfit(self, key: ObjectKey, live: Json) -> None:
        """Raise PlanError where an object is another instance's, being deleted, or paused."""
        owner = instance_of(live)
        if self.instance_id and owner and owner != self.instance_id:
            raise PlanError(
                f"{key}: expected an object of VNF instance {self.instance_id}, found the label "
                f"{INSTANCE_LABEL}={owner}: it belongs to another instance, check the namespace"
            )
        if live["metadata"].get("deletionTimestamp"):
            raise PlanError(
                f"{key}: is being deleted: wait until it is gone, create it again, then update"
            )
        if (kind := kind_of(key)) is not None and (refusal := kind.refusal(live)) is not None:
            raise PlanError(f"{key}: {refusal}")


def _metadata(body: Json) -> Json:
    return {"metadata": body["metadata"]}


def starts_without(workloads: Mapping[ObjectKey, Json]) -> frozenset[ObjectKey]:
    """Return the ConfigMaps and Secrets that these workloads refer to as optional."""
    return frozenset(config for _, config, use in users(workloads) if use.optional)


def users(
    workloads: Mapping[ObjectKey, Json],
) -> Iterator[tuple[ObjectKey, ObjectKey, config_references.Use]]:
    """Yield each workload among these with each ConfigMap and Secret that it uses, and how."""
    for key, body in workloads.items():
        for use in _uses(body) if is_workload(key) else ():
            yield key, ObjectKey("", use.kind, key.namespace, use.name), use


def keys_of_others(old: Manifest | None, new: Manifest, live: Json) -> dict[str, str]:
    """Return the keys of manifests that another client fills in or applies, with its name."""
    try:
        was, now = diff.content((old or new).body).data, diff.content(live).data
    except ValueError:
        return {}
    to_be, theirs = diff.stated_content(new).data, dict[str, str]()
    said, live_data = dict.fromkeys(_DATA, was), dict.fromkeys(_DATA, now)
    for manager in live_objects.managers(said, {**live_data, "metadata": live["metadata"]}):
        for step in (step for name in _DATA for step in manager.fields.get(f"f:{name}") or ()):
            key = step.removeprefix("f:")
            before, after = was.get(key), to_be.get(key)
            # gone, in no manifest (it stays in any case), or as it is to be: no conflict
            if key not in now or before is after is None or now[key] == after:
                continue
            if not after or (manager.applies and after == before):
                theirs[key] = manager.name
    return theirs


def without_keys(manifest: Manifest, keys: Iterable[str]) -> Manifest:
    """Return the manifest of a ConfigMap or Secret without these keys."""
    gone = set(keys)
    if not gone:
        return manifest
    body = {
        name: {key: value[key] for key in value if key not in gone}
        if name in (*_DATA, "stringData") and isinstance(value, dict)
        else value
        for name, value in manifest.body.items()
    }
    return replace(manifest, body=body)


def reasons_of(uses: Iterable[ChangedUse]) -> tuple[Reason, ...]:
    """Return why a workload restarts for these uses, each reason once."""
    return tuple(dict.fromkeys(use.reason for use in uses))


def _may_run_with(config: ObjectKey, key: ObjectKey, body: Json) -> bool:
    """Tell whether a running pod, or one that is not read, refers to a ConfigMap or Secret."""
    if key.namespace != config.namespace or not _may_run(key, body):
        return False
    return any((use.kind, use.name) == (config.kind, config.name) for use in _uses(body))


def _uses(body: Json) -> Sequence[config_references.Use]:
    """Return how an object's pods use configuration; none where its fields mean something else."""
    try:
        return config_references.uses(pod_template.pod_spec(body))
    except (AttributeError, TypeError):
        return ()


def _may_run(key: ObjectKey, body: Json) -> bool:
    kind, status = kind_of(key), body.get("status") or {}
    if kind is None:
        return True
    if kind.is_pod:  # before it has a node, no kubelet knows of it
        return bool(body["spec"].get("nodeName")) and not pod_status.is_finished(body)
    return kind.runs_to_completion and bool(status.get("active"))


def _opt_out(body: Json) -> str:
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(OPT_OUT_ANNOTATION, ""))
