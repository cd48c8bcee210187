# SPDX-License-Identifier: Apache-2.0
"""The plan of a Blue-Green change: new Deployments beside the old ones, then the traffic. Pure.

Two Deployments of one VDU must not share pods, and a Service must send traffic to one of them only.
Where the package's own labels do not tell them apart, a release label does, in the new pods
and in the Service's selector; and a Service that would take in the new pods as soon as they are
ready is held to the old ones until it is switched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from container_update.model.errors import PlanError
from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.model.plan import Action, Reason, Step
from container_update.planning import release_labels as labels
from container_update.planning.comparison import diff, live_objects
from container_update.planning.comparison.package_pair import Objects
from container_update.planning.configuration import ChangedUse, reasons_of
from container_update.planning.followers import Move
from container_update.planning.staying import why_it_stays
from container_update.planning.steps import ManifestStep
from container_update.planning.steps.manifest import (
    manifest_digest,
    recorded_digest,
    with_recorded_digest,
)
from container_update.planning.steps.metadata import dropped_metadata, with_metadata_of_others
from container_update.planning.steps.new_objects import new_object
from container_update.planning.strategy import HOLD, Strategy, pauses, refuse_headless, what_differs
from container_update.planning.summary import count_noun
from container_update.workloads.kind import POD
from container_update.workloads.kinds.deployment import HASH_LABEL
from container_update.workloads.pod_status import is_active
from container_update.workloads.pod_template import host_ports
from container_update.workloads.readiness import replicas
from container_update.workloads.registry import is_workload, refuse_idle
from container_update.workloads.traffic import matches, selects

_NAME_LENGTH, _RELEASE_LENGTH = 63, 5
_PREVIEW_LENGTH = _NAME_LENGTH - len("-preview")

_RECREATES = (
    "its strategy is Recreate, but its new pods run beside the old ones until those are removed: "
    "use RollingUpdate if they cannot run together, as with a volume for one pod only"
)


@dataclass(frozen=True)
class Pair:
    """A Deployment that a new one replaces."""

    blue: ObjectKey
    """The old one, by its name in the cluster."""
    live: Json
    """The old one."""
    new: Manifest
    body: Json
    """The new manifest, with what other clients have written into the old one."""
    old: Manifest | None
    uses: tuple[ChangedUse, ...]
    """Configuration that changes and that the old one uses."""

    @property
    def old_pods(self) -> Json:
        """The labels of the pods that run now."""
        return labels.pod_labels(self.live)

    @property
    def new_pods(self) -> Json:
        """The labels of the new pods, without a release label."""
        return labels.pod_labels(self.body)


class BlueGreenPlanner(Strategy):
    """Decides a Blue-Green change.

    Source: the specification's "Blue-Green deployment process for Kubernetes VIM": the Deployment's
    name changes, VNFCs keep their ids.
    """

    new_vnfc_ids = False

    @cached_property
    def pairs(self) -> dict[ObjectKey, Pair]:
        """The new manifest's identity to its pair, for every Deployment that changes."""
        return {
            key: pair
            for key, new in self.packages.new.items()
            if key.kind == "Deployment" and self.packages.concerns(key)
            if (pair := self._pair(key, new)) is not None
        }

    def _old_key(self, key: ObjectKey) -> ObjectKey:
        """Return the old package's Deployment of that name; without one, that of the same VDU."""
        if key in self.packages.old:
            return key
        vdu = self.packages.vdu_of(key)
        return replace(key, name=self.packages.old_vdus.get(vdu, key.name))

    def _pair(self, key: ObjectKey, new: Manifest) -> Pair | None:
        old_key = self._old_key(key)
        old, blue = self.packages.old.get(old_key), old_key
        live = self.live.get(blue)
        if live is None:
            return None
        uses = tuple(self.config.config_uses(blue, live))
        stamp = recorded_digest(live)  # an update may have left out what the old package says
        alike = old is not None and old_key == key and diff.are_alike(old, new, live)
        from_old = old is not None and stamp in ("", manifest_digest(old.body))
        same = alike and from_old and not self._is_left_behind(new, live)
        if (same or stamp == manifest_digest(new.body)) and not uses:
            return None
        self.config.refuse_unfit(blue, live)
        self._refuse_foreign(blue, old, live)
        refuse_idle(new)
        body = self._merge_others(new, old, labels.without_own_marks(live, new.body))
        return Pair(blue, live, new, body, old, uses)

    @cached_property
    def release(self) -> str:
        """Tells the pods of this change from all others."""
        parts = [
            (str(pair.blue), pair.live["metadata"].get("uid", ""), manifest_digest(pair.new.body))
            for pair in self.pairs.values()
        ]
        return hashlib.sha256(repr(sorted(parts)).encode()).hexdigest()[:_RELEASE_LENGTH]

    @cached_property
    def needs_release(self) -> bool:
        """The package's own labels do not distinguish old from new pods."""
        return any(
            labels.overlap(pair.live, pair.body)
            or any(self._mixes(service, pair) for service in self.packages.new.values())
            for pair in self.pairs.values()
        )

    def _mixes(self, service: Manifest, pair: Pair) -> bool:
        """Tell whether a Service selects the new pods now, or the old ones afterwards."""
        return _is_near(service.key, pair) and (
            selects(labels.selector_of(self.live.get(service.key, {})), pair.new_pods)
            or selects(labels.selector_of(service.body), pair.old_pods)
        )

    def first_replicas(self, pair: Pair) -> int:
        """Return with how many pods the new Deployment is created."""
        return replicas(pair.live)

    def waits(self, steps: Sequence[Step]) -> Iterator[Iterable[Step]]:
        """Yield the waits before the switch, also where no Deployment replaces another one."""
        gone = (step.is_removal and is_workload(step.key) for step in steps)
        if any(gone) or any(step.is_switch for step in steps):
            yield from pauses(self.params, "before the switch", self._changes(steps))

    def successors(self) -> dict[str, str]:
        """See Strategy."""
        return {pair.blue.name: self.beside[key].name for key, pair in self.pairs.items()}

    def names(self) -> dict[str, str]:
        """See Strategy: the names in the manifests."""
        return {pair.blue.name: key.name for key, pair in self.pairs.items()}

    def connection_points(self) -> dict[str, str]:
        """Return old to new name of a Service that another one has replaced."""
        replaced: dict[str, str] = {}
        for pair in self.pairs.values():
            old = _serving(self.packages.old, pair.old, but_in=self.packages.new)
            new = _serving(self.packages.new, pair.new, but_in=self.packages.old)
            replaced.update(zip(old, new, strict=False))
        return replaced

    def moves(self) -> Iterator[Move]:
        """Yield the pairs, then the workloads that change in place."""
        for key, pair in self.pairs.items():
            yield Move(pair.blue, key.name, pair.old_pods, pair.new_pods, beside=True)
        for move in super().moves():
            if move.workload.kind != "Deployment":
                yield move

    def phases(self, steps: Sequence[Step]) -> Iterator[Iterable[Step]]:
        """Yield, as the last phase, the hand-overs to the names in the manifests."""
        yield from super().phases(steps)
        yield from self.hand_overs()

    def hand_overs(self) -> Iterator[Iterable[Step]]:
        """Yield the phase that hands pods over to Deployments with the names in the manifests."""
        handed = {key: pair for key, pair in self.pairs.items() if self.beside[key] != key}
        self._refuse_rivals(handed)
        yield [self._hand_over(key, pair) for key, pair in handed.items()]

    def _refuse_rivals(self, handed: Iterable[ObjectKey]) -> None:
        """Refuse a Deployment that would adopt a handed-over ReplicaSet, and scale it down."""
        bodies = {key: self._new_body(pair) for key, pair in self.pairs.items()}
        gone = {pair.blue for pair in self.pairs.values()}
        others = {
            key: body
            for key, body in self.live.items()
            if key.kind == "Deployment" and key not in gone
        } | {
            key: bodies.get(key, manifest.body)
            for key, manifest in self.packages.new.items()
            if key.kind == "Deployment" and self.packages.concerns(key)
        }
        selectors = {key: labels.selector_of(body) for key, body in others.items()}
        for key in handed:
            for other, selector in selectors.items():
                is_near = other != key and other.namespace == key.namespace
                if is_near and matches(selector, bodies[key]["spec"]["template"]):
                    raise PlanError(
                        f"{key}: expected no other Deployment that selects its pods, found "
                        f"{other}, which would take its ReplicaSet while the pods are handed over: "
                        "give the pods of one of them another label, give the new Deployment a "
                        "name of its own, or use a rolling update"
                    )

    def _hand_over(self, key: ObjectKey, pair: Pair) -> ManifestStep:
        green, body = self.green_body(pair), self._new_body(pair)
        why = Reason(f"it adopts the pods of {green['metadata']['name']} without a restart")
        giver = new_object(green, key.namespace, {})
        return ManifestStep(key, Action.HAND_OVER, giver, body, reasons=(why,))

    @cached_property
    def beside(self) -> dict[ObjectKey, ObjectKey]:
        """Identity in the new manifest to the Deployment's identity beside the old one."""
        return {
            key: replace(key, name=self._green_name(key, pair)) for key, pair in self.pairs.items()
        }

    def workload_step(self, key: ObjectKey) -> Iterator[Step]:
        """Yield a new Deployment beside the old one; anything else in place."""
        pair = self.pairs.get(key)
        if pair is not None:
            if (pair.live["spec"].get("strategy") or {}).get("type") == "Recreate":
                self._note(pair.blue, _RECREATES)
            if ports := host_ports(pair.new.body):
                self._note(
                    pair.blue,
                    f"a node has each of its host ports ({ports}) once: its new pods need nodes "
                    "without old ones",
                )
            yield self._green(key, pair)
            yield from self._end_of(key, pair)
            return
        is_there = self.packages.concerns(key) and key in self.live
        if key.kind == "Deployment" and is_there:
            return  # it agrees with the new package, or it would be in a pair
        for step in super().workload_step(key):
            if step.action is not Action.CREATE:
                self._note(key, "is no Deployment: changed in place")
            yield step

    def _end_of(self, key: ObjectKey, pair: Pair) -> Iterator[Step]:
        """Yield the end of the old Deployment; one of another name may have to stay."""
        successor, old_key = self.beside[key].name, self._old_key(key)
        what = f"{successor} takes its place"
        if old_key != key and (staying := why_it_stays(pair.blue, pair.live)):
            self._keep(old_key, f"{what}, but {staying}: stays")
        else:
            yield ManifestStep(
                pair.blue, Action.DELETE, pair.live, reasons=(Reason(what),), successor=successor
            )

    def _green_name(self, key: ObjectKey, pair: Pair) -> str:
        if key not in self.live:
            return key.name
        room = _NAME_LENGTH - _RELEASE_LENGTH - 1
        name = f"{key.name[:room]}-{self.release}"
        text = "the new Deployment has the same name; until the old one is gone it is named"
        self._note(pair.blue, f"{text} {name}")
        return name

    def green_body(self, pair: Pair) -> Json:
        """Return the new Deployment as it is created."""
        body = self._new_body(pair)
        live_objects.rename(body, self.beside[pair.new.key].name)
        return body

    def _new_body(self, pair: Pair) -> Json:
        """Return the new Deployment under the name of its manifest."""
        dropped = dropped_metadata(pair.old, pair.new)
        body = with_metadata_of_others(pair.body, pair.live, dropped)
        if self.needs_release:
            body = labels.with_release(body, self.release)
        body = with_recorded_digest(body, manifest_digest(pair.new.body))
        body["spec"]["replicas"] = self.first_replicas(pair)
        return body

    def _green(self, key: ObjectKey, pair: Pair) -> ManifestStep:
        for use in pair.uses:
            self._note(
                use.change.key,
                f"changes while pods of {pair.blue} still serve: one that restarts before the "
                "traffic is switched starts with the new content",
            )
        pods = count_noun(self.first_replicas(pair), "replica")
        reasons = [
            Reason(f"it takes the place of {pair.blue}, with {pods}"),
            *what_differs(pair.old, pair.new),
            *reasons_of(pair.uses),
        ]
        if self.needs_release:
            label = f"{labels.RELEASE_LABEL}={self.release}"
            reasons.append(
                Reason(
                    f"its pods get the label {label}, which distinguishes them from the old ones"
                )
            )
        body = self.green_body(pair)
        return ManifestStep(self.beside[key], Action.CREATE, None, body, reasons=tuple(reasons))

    def _is_succeeded(self, key: ObjectKey) -> bool:
        """Return True for an old Deployment that is removed with its pair."""
        return any(pair.blue == key for pair in self.pairs.values())

    def other_step(self, key: ObjectKey, new: Manifest) -> Iterator[Step]:
        """Yield the steps that hold a Service to the old pods and switch it to the new ones."""
        live = self.live.get(key)
        pairs = [pair for pair in self.pairs.values() if self._serves(new, live or {}, pair)]
        if not pairs:
            yield from super().other_step(key, new)
        elif live is None:
            yield replace(self._creation(new), content=self._switched_service(new, None, pairs))
        else:
            self.config.refuse_unfit(key, live)
            refuse_headless(new, live)
            yield from self._switch(new, live, pairs)
            if self.params.get(HOLD) is True:
                yield from self._preview(new, pairs)

    def _serves(self, new: Manifest, live: Json, pair: Pair) -> bool:
        """Tell whether a Service sends traffic to the pair's old pods, or would to its new ones."""
        return _is_near(new.key, pair) and (
            selects(labels.selector_of(live), pair.old_pods)
            or selects(labels.selector_of(new.body), pair.new_pods)
        )

    def _switch(self, new: Manifest, live: Json, pairs: list[Pair]) -> Iterator[Step]:
        old = self.packages.old.get(new.key)
        content = self._switched_service(new, live, pairs)
        dropped = dropped_metadata(old, new)
        selector = ", ".join(f"{k}={v}" for k, v in labels.selector_of(content).items())
        reasons = (Reason(f"its selector becomes {selector}"), *what_differs(old, new))
        step = ManifestStep(new.key, Action.SWITCH, live, content, reasons=reasons, dropped=dropped)
        now = labels.selector_of(live)
        if any(selects(now, labels.pod_labels(self.green_body(pair))) for pair in pairs):
            held = self._hold(new.key, live, pairs)
            yield held
            assert held.content is not None, "a hold has its selector"
            step = replace(step, before={**live, "spec": held.content["spec"]})
        yield step

    def _preview(self, new: Manifest, pairs: list[Pair]) -> Iterator[Step]:
        """Yield a Service for the new pods alone, while a person looks, and its end."""
        green = labels.pod_labels(self.green_body(pairs[0]))["metadata"].get("labels") or {}
        names = {*labels.selector_of(new.body), labels.RELEASE_LABEL}
        selector = {name: value for name, value in green.items() if name in names}
        key = replace(new.key, name=f"{new.key.name[:_PREVIEW_LENGTH]}-preview")
        body = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": {"selector": selector, "ports": _without_node_ports(new.body)},
        }
        body = with_recorded_digest(body, manifest_digest(body))
        why = Reason("it shows the new pods alone, until the change is promoted or aborted")
        yield ManifestStep(key, Action.CREATE, None, body, reasons=(why,))
        yield ManifestStep(key, Action.DELETE, body, reasons=(Reason("everybody sees them now"),))

    def _switched_service(self, new: Manifest, live: Json | None, pairs: list[Pair]) -> Json:
        """Return the Service as it is after the switch: it does not select the old pods."""
        selector = labels.selector_of(new.body)
        for pair in pairs:
            if not selects(selector, pair.new_pods):
                raise PlanError(
                    f"{new.key}: expected its selector to select the new pods of {pair.new.key}, "
                    f"found {selector} in {new.source}: all traffic would be lost, correct one of "
                    "them"
                )
        body = self.service_body(new, live) if live else new.body
        if any(selects(selector, pair.old_pods) for pair in pairs):
            body = labels.with_release(body, self.release)
            self._refuse_losers(
                new, labels.selector_of(live or {}), labels.selector_of(body), pairs
            )
        content = with_recorded_digest(body, manifest_digest(new.body))
        return self._with_choices(content, new, live)

    def service_body(self, new: Manifest, live: Json) -> Json:
        """Return a Service's manifest for the new pods, with what others have written."""
        pointed = {**live, "spec": {**live["spec"], "selector": labels.selector_of(new.body)}}
        return self._merge_others(new, self.packages.old.get(new.key), pointed)

    def _refuse_losers(
        self, new: Manifest, now: dict[str, str], then: dict[str, str], pairs: list[Pair]
    ) -> None:
        """Raise PlanError where a workload that stays would lose the Service's traffic."""
        changing = {pair.blue for pair in pairs}
        if key := labels.loser(new.key, now, then, self.live, changing):
            names = ", ".join(str(pair.new.key) for pair in pairs)
            raise PlanError(
                f"{new.key}: sends traffic to {key} too, which does not change, and no label "
                f"distinguishes its pods and those of {names} from the old pods: give the pod "
                "templates of the new package a label with its version and add it to the selector, "
                "or use a rolling update"
            )

    def _hold(self, key: ObjectKey, live: Json, pairs: list[Pair]) -> ManifestStep:
        """Return the step that keeps a Service at its present pods, by their template's hash."""
        selector = labels.selector_of(live)
        hashes = {
            str((pod["metadata"].get("labels") or {}).get(HASH_LABEL, ""))
            for other, pod in self.live.items()
            if (other.group, other.kind) == POD
            and other.namespace == key.namespace
            and selects(selector, pod)
            and is_active(pod)
        }
        if len(hashes) > 1 or "" in hashes:
            raise PlanError(
                f"{key}: its selector {selector} would take in the new pods as soon as they are "
                f"ready, and no single label distinguishes the {len(hashes)} kinds of old pods "
                "from them: before this change, use a rolling update to give the pod templates a "
                "label with their version and to add it to the selector"
            )
        content = new_object(live, key.namespace, {})
        held = hashes.pop() if hashes else "none"
        content["spec"]["selector"] = {**selector, HASH_LABEL: held}
        names = ", ".join(str(pair.blue) for pair in pairs)
        why = f"its selector would take in the new pods before they are to serve; stays at {names}"
        return ManifestStep(key, Action.HOLD, live, content, reasons=(Reason(why),))


def _without_node_ports(service: Json) -> list[Json]:
    """Return the ports of a Service without node ports, which no second one can have."""
    ports = (service.get("spec") or {}).get("ports") or ()
    return [{name: value for name, value in port.items() if name != "nodePort"} for port in ports]


def _serving(objects: Objects, served: Manifest | None, *, but_in: Objects) -> list[str]:
    return [
        key.name
        for key, manifest in objects.items()
        if key.kind == "Service"
        and key not in but_in
        and served is not None
        and selects(labels.selector_of(manifest.body), labels.pod_labels(served.body))
    ]


def _is_near(key: ObjectKey, pair: Pair) -> bool:
    """Tell whether an object is a Service in the namespace of a pair."""
    return (key.group, key.kind, key.namespace) == ("", "Service", pair.blue.namespace)
