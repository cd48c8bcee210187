# SPDX-License-Identifier: Apache-2.0
"""From two packages and the live cluster to a plan in which all of the new package takes effect.

Pure, like the plan of an update, and with its rules for configuration. What differs: objects are
added, changed as a whole and removed, removal last. Here is what all strategies share; each is a
subclass that says how workloads get from old to new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

from container_update.model.errors import PackageError, PlanError
from container_update.model.objects import Json, Manifest, ObjectKey, is_of
from container_update.model.pauses import GateStep, HoldStep
from container_update.model.plan import CHANGED_KEYS, Action, ImageChange, Note, Plan, Reason, Step
from container_update.model.scripts import NEW, OLD, ScriptStep, VduChange
from container_update.planning import followers, release_labels
from container_update.planning.comparison import diff, live_objects, meaning
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.comparison.stored_versions import with_stored_versions
from container_update.planning.configuration import Live, reasons_of, starts_without, users
from container_update.planning.finished_jobs import HAS_RUN, has_run
from container_update.planning.order import frees, in_groups
from container_update.planning.staying import why_it_stays, with_claims_kept
from container_update.planning.steps import ManifestStep, ObjectStep
from container_update.planning.steps.manifest import (
    StoredImages,
    keep_chosen,
    manifest_digest,
    recorded_digest,
    with_recorded_digest,
)
from container_update.planning.steps.metadata import dropped_metadata
from container_update.planning.update import UpdatePlanner
from container_update.workloads import pod_template
from container_update.workloads.readiness import replicas
from container_update.workloads.registry import is_workload, kind_of, known_kind, refuse_idle

# --- what a plan waits for ----------------------------------------------------------------------
# ``hold`` is true (until it is promoted) or a number of seconds; ``gate`` has a Prometheus query
# with bounds, or a script. Their form was checked with the request.

HOLD, GATE = "hold", "gate"
"""The names of these parameters."""


def pauses(
    params: Mapping[str, Any], what: str, vdus: Iterable[VduChange]
) -> Iterator[Iterable[Step]]:
    """Yield the phases that wait: for the gate first, whose values a person may want to see."""
    if gate := params.get(GATE):
        path = gate.get("script")
        scripts: list[ScriptStep | None] = [None]
        if path:
            scripts = [replace(ScriptStep.of(NEW, path, vdu), path=path) for vdu in vdus]
        yield [GateStep.of(what, **{**gate, "script": each}) for each in scripts]
    hold = params.get(HOLD)
    if hold:
        yield [HoldStep.of(what, None if hold is True else float(hold))]


FOLLOWS_PODS = {("", "Service"), ("autoscaling", "HorizontalPodAutoscaler")}
"""(group, kind) of what sends traffic to pods or scales them: switched after the workloads."""


@dataclass(eq=False, repr=False)
class Strategy:
    """Decides one change of the package, and collects the notes on the way.

    A subclass has eight hooks: ``workload_step`` and ``other_step`` say what becomes of an object,
    ``phases`` in which order, ``waits`` for what; ``moves`` says whose pods change, and
    ``successors``, ``names`` and ``connection_points`` what replaces what, for the VNFM's records.
    Everything else is private. A strategy is found by its entry point in
    ``container_update.strategies``.

    >>> class OneByOne(Strategy):
    ...     def phases(self, steps):
    ...         yield from ([step] for step in steps)

    :param params: the request's ``additionalParams``.
    :param scripts: 'new' and 'old' to the path of that VNF's coordination script.
    """

    new_vnfc_ids: ClassVar[bool] = True
    """VNFCs whose pods are new get new ids in the VNFM's record."""
    script_roles: ClassVar[frozenset[str]] = frozenset({NEW, OLD})
    """The VNFs whose script is run."""

    brings_back: ClassVar[bool] = False
    """What others have changed becomes what the manifests say again."""

    packages: Packages
    live: Live
    namespace: str
    instance_id: str | None
    stored: StoredImages = field(default_factory=dict)
    restart_for: str = field(default=CHANGED_KEYS, kw_only=True)
    params: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    scripts: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    notes: list[Note] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.config = UpdatePlanner(self.live, self.instance_id, restart_for=self.restart_for)
        self._merge_results: dict[ObjectKey, Json] = {}
        self._staying: list[ObjectKey] = []
        """Old objects that are not in the new package and stay."""

    def plan(self) -> Plan:
        """Return the plan.

        :raises PackageError: a manifest is wrong.
        :raises PlanError: an object is in no state to be changed; the message names it.
        """
        self._note_out_of_scope()
        self._note_replicas()
        steps = [*self._config_steps()]
        withdrawn = [*self._withdrawals()]
        self._follow()
        for key in filter(is_workload, self.packages.new):
            steps += self.workload_step(key)
        steps += [*self._restarts(), *self._other_steps()]
        steps += self._removals()
        withdrawn += filter(frees, steps)
        steps = [step for step in steps if not frees(step)]
        if not any(is_workload(step.key) for step in steps):
            steps = [_in_its_place(step) for step in steps]
        untouched = self.live.keys() - {step.key for step in (*withdrawn, *steps)}
        self._note_drift()
        keys = dict.fromkeys((*self.packages.new, *self.packages.kept))
        before = {key: old.body for key, old in self.packages.old.items()}
        return Plan(
            namespace=self.namespace,
            instance_id=self.instance_id,
            steps=in_groups(withdrawn, *self.phases(steps), among={**before, **self._bodies}),
            unchanged=tuple(key for key in keys if key in untouched),
            notes=tuple(dict.fromkeys((*self.notes, *self.config.notes))),
            def_files=self.packages.def_files,
            manifests=tuple(self._in_force()),
        )

    # --- the eight hooks: what a strategy may say otherwise ---------------------------------------

    def phases(self, steps: Sequence[Step]) -> Iterator[Iterable[Step]]:
        """Yield the steps in their order, with the scripts: one phase is done before the next.

        Within a phase the kinds of the objects and their waves decide.

        :param steps: that change, create or delete objects.
        """
        yield [step for step in steps if not (step.is_switch or step.is_removal)]
        yield from self._script_phases(NEW, steps)
        yield from self.waits(steps)
        yield [step for step in steps if step.is_switch]
        yield from self._script_phases(OLD, steps)
        yield [step for step in steps if step.is_removal]

    def waits(self, steps: Sequence[Step]) -> Iterator[Iterable[Step]]:  # noqa: ARG002
        """Yield the phases that wait before the traffic is switched.

        :param steps: as for :meth:`phases`.
        :raises PackageError: the request wants to, and this strategy has no such place.
        """
        if wanted := {HOLD, GATE}.intersection(self.params):
            raise PackageError(
                "expected a strategy that has new pods beside the old ones to wait with: use "
                "Blue-Green or Canary, or leave it out",
                path=f"additionalParams.{min(wanted)}",
            )
        return iter(())

    def successors(self) -> dict[str, str]:
        """Return old to new name of each VDU's workload that is replaced, while both run."""
        return {}

    def names(self) -> dict[str, str]:
        """Return the same with the names at the end of the change."""
        return {}

    def connection_points(self) -> dict[str, str]:
        """Return old to new name of the VNF's Services, where another one replaces it."""
        return {}

    def moves(self) -> Iterator[followers.Move]:
        """Yield the workloads whose pods change in place."""
        for key, new in self.packages.new.items():
            live = self.live.get(key) if is_workload(key) else None
            if live is not None and self.packages.concerns(key):
                body = self._merge_others(new, self.packages.old.get(key), live)
                before, after = map(release_labels.pod_labels, (live, body))
                yield followers.Move(key, key.name, before, after)

    def workload_step(self, key: ObjectKey) -> Iterator[Step]:
        """Yield the step that changes one workload in place, or creates it; none where it stays."""
        new, old = self.packages.new[key], self.packages.old.get(key)
        live = self.live.get(key)
        if not self.packages.concerns(key):
            self._leave(key, live)
        elif live is None and has_run(new, old if self.packages.former is None else new):
            self._note(key, HAS_RUN)
        elif live is None:
            if old is not None:
                self._note(key, "was not in the cluster any more: created")
            yield self._creation(new)
        elif old is not None and known_kind(key).is_pod and _only_images_differ(old, new):
            yield from self._pod_images(old, new, live)
        else:
            yield from self._in_place(new, live)

    def other_step(self, key: ObjectKey, new: Manifest) -> Iterator[Step]:
        """Yield the step for an object that runs no containers and holds no configuration."""
        old, live = self.packages.old.get(key), self.live.get(key)
        if live is None:
            yield self._creation(new)
            return
        step = self._replacement(new, live)
        if step.remark and (old is None or old.body != new.body):
            self._note(key, step.remark)
        if self._is_changed(step, new):
            self.config.refuse_unfit(key, live)
            self._refuse_foreign(key, old, live)
            refuse_headless(new, live)
            is_switch = (key.group, key.kind) in FOLLOWS_PODS and not _has_spec(step, old, new)
            action = Action.SWITCH if is_switch else Action.REPLACE
            yield replace(step, action=action, reasons=tuple(what_differs(old, new)))

    # --- scripts, and records --------------------------------------------------------------------

    def _script_phases(self, role: str, steps: Sequence[Step]) -> Iterator[Iterable[Step]]:
        """Yield a phase for each VDU that changes, with its script; none where there is none."""
        path = self.scripts.get(role)
        if path and role in self.script_roles:
            for vdu in self._changes(steps):
                yield [ScriptStep.of(role, path, vdu)]

    def _changes(self, steps: Sequence[Step]) -> Iterator[VduChange]:
        """Yield the VDUs whose workloads change."""
        old_names = {new: old for old, new in self.successors().items()}
        services = [
            {
                "name": s.key.name,
                "namespace": s.key.namespace,
                "selector": release_labels.selector_of(s.content or {}),
            }
            for s in steps
            if isinstance(s, ManifestStep) and s.is_switch and s.key.kind == "Service"
        ]
        for step in steps:
            if not (isinstance(step, ObjectStep) and step.starts_pods):
                continue
            body = step.content if isinstance(step, ManifestStep) else step.before
            named = live_objects.manifest_name(body) if body else step.key.name
            yield VduChange(
                vdu_id=self.packages.vdu_of(replace(step.key, name=named)),
                old_resource=old_names.get(step.key.name, step.key.name if step.before else ""),
                new_resource=step.key.name,
                details={
                    "group": step.key.group,
                    "kind": step.key.kind,
                    "namespace": step.key.namespace,
                    "services": services,
                },
            )

    def claims(self, plan: Plan) -> dict[str, str]:
        """Return old to new PersistentVolumeClaim of the workloads that others replace."""
        steps = {
            (step.action, step.key.name): step
            for step in plan.steps
            if isinstance(step, ManifestStep) and is_workload(step.key)
        }
        claims = {}
        for old_name, new_name in self.successors().items():
            old, new = steps.get((Action.DELETE, old_name)), steps.get((Action.CREATE, new_name))
            before = pod_template.claims(old.before or {}) if old else {}
            after = pod_template.claims(new.content or {}) if new else {}
            claims.update({before[volume]: after[volume] for volume in before if volume in after})
        return {old: new for old, new in claims.items() if old != new}

    def _in_force(self) -> Iterator[Manifest]:
        packages = self.packages
        in_force = [
            new if packages.concerns(key) else self._made_from(new)
            for key, new in packages.new.items()
        ]
        in_force += [
            self._made_from(new) for key, new in packages.kept.items() if key not in packages.new
        ]
        in_force += [packages.old[key] for key in self._staying]
        yield from filter(None, in_force)

    def _made_from(self, new: Manifest) -> Manifest | None:
        """Return the manifest of an object that stays as it is; None where there is no object. Only
        its digest shows whether an earlier change made it from the new manifest."""
        live, old = self.live.get(new.key), self.packages.old.get(new.key)
        is_new = live is not None and recorded_digest(live) == manifest_digest(new.body)
        return new if is_new or (live is not None and old is None) else old

    def _keep(self, key: ObjectKey, why: str) -> None:
        """Keep an old object that is in no file of the new package, and note why."""
        self._staying.append(key)
        self._note(key, why)

    def _note(self, key: ObjectKey, text: str) -> None:
        """Note something for the operator."""
        self.notes.append(Note(key, text))

    # --- what the request leaves out ------------------------------------------------------------

    def _note_out_of_scope(self) -> None:
        for key, new in self.packages.out_of_scope.items():
            old, what = self.packages.old.get(key), "is of no VDU in vdu_params"
            if old is None:
                self._note(key, f"{what}: not created ({new.source})")
            elif old.body != new.body:
                self._note(key, f"differs in {new.source}, but {what}: stays as it is")

    def _note_replicas(self) -> None:
        """Note where another number of replicas does not take effect: an autoscaler sets it."""
        for key, new in self.packages.new.items():
            old, live = self.packages.old.get(key), self.live.get(key)
            if not is_workload(key) or old is None or live is None:
                continue
            before, current, after = map(replicas, (old.body, live, new.body))
            if after not in (before, current):
                self._note(
                    key, f"keeps its {current} replicas: {after} in {new.source} do not take effect"
                )

    def _restarts(self) -> Iterator[Step]:
        """Yield the restarts of workloads that stay and use configuration that changes."""
        for key in self.packages.kept:
            live = self.live.get(key) if is_workload(key) else None
            if live is None:
                continue
            if not self.packages.concerns(key):
                self._leave(key, live)
                continue
            kind, uses = known_kind(key), self.config.config_uses(key, live)
            if uses and kind.can_change:
                self.config.refuse_unfit(key, live)
                yield self.config.restart_step(key, live, (), uses)
            elif uses:
                self._note(key, f"a {kind.kind} cannot change, it uses configuration that does")

    def _follow(self) -> None:
        """Make the Services and autoscalers that stay follow the pods that change."""
        pairs = list(followers.followers(self.packages.kept, self.live, list(self.moves())))
        for _, after in pairs:
            self._note(
                after.key,
                "is in no file of the request: only its selector or scaleTargetRef changes, for "
                "the new pods",
            )
        self.packages = replace(
            self.packages,
            old={**self.packages.old, **{before.key: before for before, _ in pairs}},
            new={**self.packages.new, **{after.key: after for _, after in pairs}},
        )

    # --- configuration --------------------------------------------------------------------------

    def _config_steps(self) -> Iterator[Step]:
        for key, manifest in self.packages.new.items():
            if not key.is_config:
                continue
            old, live = self.packages.old.get(key), self.live.get(key)
            stated = self.config.as_stated(old, manifest, is_demanded=self.brings_back)
            step = self.config.config_step(*stated)
            if step is not None and live is not None and self.instance_id:
                self._refuse_foreign(key, old, live)
            if step is not None:
                yield step

    # --- workloads ------------------------------------------------------------------------------

    def _note_drift(self) -> None:
        """Note what another client has changed in the objects that no step has looked at, too."""
        for key, new in self.packages.new.items():
            old, live = self.packages.old.get(key), self.live.get(key)
            if old and live and self.packages.concerns(key) and not key.is_config:
                self._merge_others(new, old, live)

    def _leave(self, key: ObjectKey, live: Json | None) -> None:
        if live is None:
            self._note(key, "is of no VDU in vdu_params: not created")
        elif self.config.config_uses(key, live):
            text = "uses configuration that changes, but is of no VDU in vdu_params: not restarted"
            self._note(key, text)

    def _creation(self, new: Manifest) -> ManifestStep:
        """Return the step that creates an object."""
        refuse_idle(new)
        content = self._content_of(new, None)
        return ManifestStep(new.key, Action.CREATE, None, content, reasons=(Reason("it is new"),))

    def _pod_images(self, old: Manifest, new: Manifest, live: Json) -> Iterator[Step]:
        """Yield the step for a Pod whose manifests differ in images alone: it restarts in place."""
        now, stored = pod_template.images(live), self.stored.get(new.key, {})
        images = [
            change
            for change in diff.image_changes(old, new)
            if now.get(change.container) not in (change.new, stored.get(change.container))
        ]
        uses = self.config.config_uses(new.key, live)
        if images or uses:
            self.config.refuse_unfit(new.key, live)
            yield self.config.restart_step(new.key, live, images, uses)

    def _in_place(self, new: Manifest, live: Json) -> Iterator[Step]:
        step, old = self._replacement(new, live), self.packages.old.get(new.key)
        uses = self.config.config_uses(step.key, live)
        if not self._is_changed(step, new) and not uses:
            return
        kind = known_kind(new.key)
        if not kind.can_change and (uses or _changes_what_is_fixed(live, old, new)):
            if uses or old is None or not diff.are_alike(old, new, live):
                text = f"a {kind.kind} cannot change: delete it to have the new one started"
                self._note(new.key, text)
            return
        self.config.refuse_unfit(step.key, live)
        self._refuse_foreign(step.key, old, live)
        refuse_idle(new)
        refuse_other_selector(step)
        for text in kind.notes(live):
            self._note(step.key, text)
        references = [use.use for use in uses]
        now = pod_template.images(live)
        if not kind.is_pod:
            action = kind.action(step.with_change(live), (), references)
        else:
            action = self._action_of_pod(live, old, new) if not uses else Action.RECREATE_POD
            if action is not Action.RECREATE_POD:  # what its manifest says of metadata and images
                images = pod_template.images(step.content or {})
                spec = pod_template.with_images(live, images)["spec"]
                step = replace(step, content={**(step.content or {}), "spec": spec})
        yield replace(
            step,
            action=action,
            reasons=(*what_differs(old, new), *reasons_of(uses)),
            digest=self.config.config_digest(live, uses),
            images={
                name: image
                for name, image in pod_template.images(step.content or {}).items()
                if now.get(name) not in (None, image)
            },
        )

    def _action_of_pod(self, live: Json, old: Manifest | None, new: Manifest) -> Action:
        """Return what brings a Pod to its new manifest: metadata and images can change in it."""
        if not self._has_spec(live, old, new):
            return Action.RECREATE_POD
        now = pod_template.images(live)
        changes = [] if old is None else diff.image_changes(old, new)
        images = [each for each in changes if now.get(each.container) != each.new]
        return known_kind(new.key).action(live, images, ()) if images else Action.REPLACE

    def _has_spec(self, live: Json, old: Manifest | None, new: Manifest) -> bool:
        """Tell whether a Pod has the spec of its new manifest, images of the old one aside."""
        if old is None or self._base(new, old, live) is None:
            then = {"metadata": {}, "spec": new.body["spec"]}
            return live_objects.covers(live_objects.as_made_by(live, new.body), then)
        # what the live Pod has already is no change: the manifest may be an export of it
        fields = diff.field_changes(old, new, by_meaning=True, live=live)
        return not any(each.path.startswith("spec.") for each in fields)

    def _is_changed(self, step: ManifestStep, new: Manifest) -> bool:
        """Tell whether the live object was made from another manifest."""
        old = self.packages.old.get(new.key)
        stored = self.stored.get(step.key)
        if (step if stored is None else step.with_stored(stored)).is_applied(step.old):
            return False
        if old is None or old.body != new.body or self._is_left_behind(new, step.old):
            return True
        stamp, digest = recorded_digest(step.old), manifest_digest(new.body)
        kind = kind_of(new.key)
        if kind is not None:
            return stamp not in ("", digest) and not kind.is_pod
        body = self._merge_others(new, old, step.old)
        return bool(stamp) or step.content != with_recorded_digest(body, digest)

    def _is_left_behind(self, new: Manifest, live: Json) -> bool:
        """Tell whether an earlier change left the object as it was before its present manifest.

        That change did not list its file. An object with a digest tells by itself what it was made
        from; without any digest in the VNF there was no such change.
        """
        return (
            self._had_a_change
            and not recorded_digest(live)
            and not live_objects.covers(live, new.body)
        )

    @cached_property
    def _had_a_change(self) -> bool:
        return any(recorded_digest(self.live.get(key, {})) for key in self.packages.keys)

    def _replacement(self, new: Manifest, live: Json) -> ManifestStep:
        key, content = new.key, self._content_of(new, live)
        old = self.packages.old.get(new.key)
        if is_workload(key) and not known_kind(key).can_change:
            content = _around_template(content, None if old is None else old.body, live)
        dropped = dropped_metadata(old, new)
        return ManifestStep(key, Action.REPLACE, live, content, dropped=dropped)

    def _content_of(self, new: Manifest, live: Json | None) -> Json:
        """Return a manifest with its digest and what earlier changes added: labels and names."""
        old = self.packages.old.get(new.key)
        body = new.body
        if live is not None:
            body = with_stored_versions(self._merge_others(new, old, live), live)
        if old is not None and live is not None:
            body = release_labels.with_live_limits(body, old.body, live)
        release = release_labels.release_of(live) if live is not None else ""
        if release and new.key.kind in ("Deployment", "Service"):
            body = release_labels.with_release(body, release)
        return self._with_choices(with_recorded_digest(body, manifest_digest(new.body)), new, live)

    def _with_choices(self, content: Json, new: Manifest, live: Json | None) -> Json:
        """Return content with what the cluster chose for the object that an undo brings back, such
        as the port on each node: clients find it there again."""
        former = (self.packages.former or {}).get(new.key)
        for body in filter(None, (live, former)) if former else ():
            keep_chosen(body, content)
        return content

    def _merge_others(self, new: Manifest, old: Manifest | None, live: Json) -> Json:
        """Return a manifest with what others wrote where the packages agree or say nothing."""
        if new.key not in self._merge_results:
            base = self._base(new, old, live)
            body = new.body
            drift: tuple[live_objects.Drift, ...] = ()
            if base is not None:
                shown = live_objects.as_made_by(live, new.body)
                body, drift = live_objects.three_ways(new.body, base.body, shown)
            before = None if old is None else old.body
            made_from = {manifest_digest(each.body) for each in (old, new) if each}
            self._merge_results[new.key] = live_objects.with_fields_of_others(
                body, before, live, is_whole=recorded_digest(live) in made_from
            )
            for each in drift:
                self._note(new.key, each.note(new.source))
        return self._merge_results[new.key]

    def _base(self, new: Manifest, old: Manifest | None, live: Json) -> Manifest | None:
        """Return the old manifest, where the live object was made from it, in its version of the
        API: then what differs in it is another client's."""
        if old is None or self.brings_back or self._is_left_behind(new, live):
            return None
        versions = {body.get("apiVersion") for body in (old.body, new.body, live)}
        made_from = ("", *(manifest_digest(each.body) for each in (old, new)))
        return old if len(versions) == 1 and recorded_digest(live) in made_from else None

    # --- everything else ------------------------------------------------------------------------

    def _other_steps(self) -> Iterator[Step]:
        for key, new in self.packages.new.items():
            if not key.is_config and not is_workload(key):
                yield from self.other_step(key, new)
                self.config.note_unknown(key)

    def _refuse_foreign(self, key: ObjectKey, old: Manifest | None, live: Json) -> None:
        """Raise PlanError where an object of another owner has a new object's name."""
        if old is None and not is_of(self.instance_id, live) and not recorded_digest(live):
            raise PlanError(
                f"{key}: is new in the new package, but the cluster already has one that is not "
                "this VNF's: give the new one another name, or delete the one in the cluster"
            )

    # --- removals --------------------------------------------------------------------------------

    def _withdrawals(self) -> Iterator[Step]:
        """Yield deletions of optional configuration: before a pod starts and reads it once more."""
        for key in filter(self._is_optional, self.packages.old):
            for step in self._removal(key):
                self.config.withdraw(step.key, self.packages.old[key].source)
                yield step

    def _removals(self) -> Iterator[Step]:
        for key in self.packages.old:
            gone = not self._is_there(key) and not self._is_optional(key)
            if gone and not self._is_succeeded(key):
                yield from self._removal(key)

    def _is_there(self, key: ObjectKey) -> bool:
        return key in self.packages.new or key in self.packages.kept

    def _is_optional(self, key: ObjectKey) -> bool:
        return key in self._starts_without and not self._is_there(key)

    @cached_property
    def _starts_without(self) -> frozenset[ObjectKey]:
        return starts_without(self._bodies)

    @cached_property
    def _bodies(self) -> dict[ObjectKey, Json]:
        """The manifests of all objects after the change."""
        manifests = {**self.packages.kept, **self.packages.new}
        return {key: manifest.body for key, manifest in manifests.items()}

    def _is_succeeded(self, key: ObjectKey) -> bool:  # noqa: ARG002
        """Tell whether an old object is removed because another one takes its place."""
        return False

    def _removal(self, key: ObjectKey) -> Iterator[Step]:
        live = self.live.get(key)
        if live is None:
            return
        source = self.packages.old[key].source
        what = f"no file of the new package describes it (it was in {source})"
        staying = self._why_out_of_reach(key, live) or why_it_stays(key, live)
        if staying:
            self._keep(key, f"{what}, but {staying}: stays")
        else:
            self._note_users(key)
            step = ManifestStep(key, Action.DELETE, live, reasons=(Reason(what),))
            yield with_claims_kept(step)

    def _note_users(self, gone: ObjectKey) -> None:
        """Note which workloads cannot start without an object that is deleted."""
        for user, config, use in users(self._bodies) if gone.is_config else ():
            if config == gone and not use.optional:
                self._note(gone, f"is deleted, and {user} of the new package needs it: {use.what}")

    def _why_out_of_reach(self, key: ObjectKey, live: Json) -> str:
        """Return why a change may not delete an object that another one would; '' where it may."""
        successor = self.packages.unlisted_successor(key)
        if not self.packages.concerns(key):
            return "it is of no VDU in vdu_params"
        if successor is not None:
            return f"{successor}, which takes its place, is in no file of the request"
        return "" if is_of(self.instance_id, live) else "it does not have this VNF's label"


def refuse_other_selector(step: ManifestStep) -> None:
    """Raise PlanError where a workload's manifest has another selector than the live object."""
    now, desired = (
        ((body or {}).get("spec") or {}).get("selector") for body in (step.before, step.content)
    )
    if not meaning.is_same(now, desired):
        raise PlanError(
            f"{step.key}: expected the selector that it has, found another one in the new package: "
            "a selector cannot change, give the workload another name"
            + (" or use Blue-Green" if step.key.kind == "Deployment" else "")
        )


def refuse_headless(new: Manifest, live: Json) -> None:
    """Refuse an address for a headless Service: the server keeps ``clusterIP: None``."""
    spec, now = (body.get("spec") or {} for body in (new.body, live))
    wants_one = not spec.get("clusterIP") and not spec.get("clusterIPs")
    if (
        (new.key.group, new.key.kind) == ("", "Service")
        and now.get("clusterIP") == "None"
        and wants_one
        and spec.get("type") != "ExternalName"
    ):
        raise PlanError(
            f"{new.key} ({new.source}): expected a headless Service (clusterIP: None) as it is, "
            "found one with an address in the new package: that cannot change, give the Service "
            "another name or delete it first"
        )


def what_differs(old: Manifest | None, new: Manifest) -> Iterator[Reason]:
    """Yield how two manifests differ: images, then the other fields with both values."""
    if old is None:
        yield Reason(f"it is new in {new.source}")
        return
    before = pod_template.images(old.body)
    for name, image in pod_template.images(new.body).items():
        if before.get(name, image) != image:
            yield Reason(str(change := ImageChange(name, before[name], image)), change)
    for field_change in diff.field_changes(old, new):
        if field_change.path != "spec.replicas":
            text = f"{field_change.path} differs ({field_change.place})"
            yield Reason(text, field_change)


def _in_its_place(step: Step) -> Step:
    """Return the step of a plan that changes no pods: what points where it did is no switch."""
    stays = isinstance(step, ManifestStep) and step.is_switch and not step.points_elsewhere
    return replace(step, action=Action.REPLACE) if stays else step


def _has_spec(step: ManifestStep, old: Manifest | None, new: Manifest) -> bool:
    """Tell whether only labels and annotations change: the live object has the spec already."""
    if old is None or old.body.get("spec") != new.body.get("spec"):
        return False
    return live_objects.covers(step.old, {**(step.content or {}), "metadata": {}})


def _changes_what_is_fixed(live: Json, old: Manifest | None, new: Manifest) -> bool:
    """Tell whether a manifest changes the template of a workload, or what else is fixed."""
    part = partial(known_kind(new.key).fixed_part, manifest=new.body)

    def has(body: Json) -> bool:
        return live_objects.covers(part(live), part(body))

    if not has(new.body):
        return True
    # what only the old one has is in the live one still
    return old is not None and part(old.body) != part(new.body) and has(old.body)


def _around_template(content: Json, old: Json | None, live: Json) -> Json:
    """Return a manifest with the live pod template, which cannot change, and its defaults."""
    spec = content["spec"]
    gone = () if old is None else old["spec"].keys() - spec.keys()
    kept = {name: value for name, value in live["spec"].items() if name not in gone}
    return {**content, "spec": {**kept, **spec, "template": kept["template"]}}


def _only_images_differ(old: Manifest, new: Manifest) -> bool:
    images = pod_template.images(new.body)
    same_containers = pod_template.images(old.body).keys() <= images.keys()
    return same_containers and pod_template.with_images(old.body, images) == new.body
