# SPDX-License-Identifier: Apache-2.0
"""What must be known about a kind of workload: one subclass per kind, listed in the registry. Pure.

A kind from elsewhere is a subclass in a distribution of its own, named by an entry point in the
group ``container_update.workloads``: ``doc/source/developers/architecture.rst`` says how.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from container_update.model.objects import Collection, Json, get_at
from container_update.model.plan import Action, ImageChange
from container_update.workloads import readiness
from container_update.workloads.config_references import Use
from container_update.workloads.pod_status import is_deleting, is_finished
from container_update.workloads.readiness import Baseline, Counts, Readiness

POD = ("", "Pod")
REPLICA_SET = ("apps", "ReplicaSet")
"""(group, kind) of pods, and of what may stand between a workload and its pods."""


def pods_in(namespace: str) -> Collection:
    """Return the collection of all pods of a namespace."""
    return Collection(*POD, namespace)


class WorkloadKind:
    """A kind of object that runs containers. What is here holds for most; a subclass says the rest.

    The defaults are those of a kind with ``spec.template``, ``spec.replicas``, the status fields of
    a Deployment, and a controller that replaces the pods when the template changes.

    >>> class Rollout(WorkloadKind):
    ...     group, kind = "argoproj.io", "Rollout"
    >>> Rollout().can_change
    True
    """

    group: ClassVar[str]
    """Its API group, without the version."""
    kind: ClassVar[str]
    template_path: ClassVar[tuple[str, ...]] = ("spec", "template")
    """The fields down to the pod template."""
    replica_set_label: ClassVar[str | None] = None
    """The pod label whose value ends the name of each of its ReplicaSets; None where it owns its
    pods itself."""
    runs_to_completion: ClassVar[bool] = False
    """Its pods end by themselves: they are no VNFCs."""
    can_change: ClassVar[bool] = True
    """The server accepts another pod template."""
    is_scaled: ClassVar[bool] = True
    """An operator or an autoscaler owns ``spec.replicas``: it is never written."""
    restart_action: ClassVar[Action] = Action.ROLL
    """How it restarts, unless its ``spec.updateStrategy`` waits for deletions (OnDelete)."""
    keeps_broken_pods: ClassVar[bool] = False
    """Its controller waits for a pod that does not get Ready, even if the template was corrected:
    the pod has to be deleted, forwards and back."""

    refusals_are_events: ClassVar[bool] = False
    """Its controller reports a pod that the server refuses by an Event alone, in no condition."""
    risks_one_pod: ClassVar[bool] = False
    """One pod of many is missing where the server refuses new ones: an update tries none first."""

    @property
    def is_pod(self) -> bool:
        """The object is its own and only pod."""
        return not self.template_path

    # --- its pods -------------------------------------------------------------------------------

    def watched_collections(self, namespace: str) -> frozenset[Collection]:
        """Return the collections to list and watch for the progress of an object of this kind."""
        if self.runs_to_completion:
            return frozenset()
        followed = {Collection(self.group, self.kind, namespace), pods_in(namespace)}
        if self.replica_set_label is not None:
            followed.add(Collection(*REPLICA_SET, namespace))
        return frozenset(followed)

    def controller_of_pods(self, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
        """Return (kind, name) of the controller that a pod of the workload *name* refers to.

        :param labels: the pod's.
        """
        if self.replica_set_label is None:
            return self.kind, name
        return REPLICA_SET[1], f"{name}-{labels.get(self.replica_set_label)}"

    # --- planning -------------------------------------------------------------------------------

    def action(self, live: Json, images: Sequence[ImageChange], uses: Sequence[Use]) -> Action:
        """Return how it restarts.

        :param images: the images that change.
        :param uses: the uses of configuration that it restarts for.
        """
        del images, uses
        strategy = (live.get("spec") or {}).get("updateStrategy") or {}
        return Action.EVICT if strategy.get("type") == "OnDelete" else self.restart_action

    def deletes_first(self, live: Json) -> bool:
        """Tell whether an old pod goes before the new one in its place comes."""
        spec = live.get("spec") or {}
        rolling = (spec.get("strategy") or spec.get("updateStrategy") or {}).get("rollingUpdate")
        surges = (rolling or {}).get("maxSurge") not in (None, 0, "0%")
        return not (self.is_pod or self.runs_to_completion or surges)

    def may_replace_pods(self, before: Json, after: Json) -> bool:
        """Tell whether its controller may replace pods although their template is as before: it
        goes on with a roll that was held, or numbers them anew."""
        fields = (("spec", "updateStrategy"), ("spec", "ordinals"))
        is_same = all(get_at(before, field) == get_at(after, field) for field in fields)
        return not is_same and self.action(after, (), ()) is Action.ROLL

    def fixed_fields(self, manifest: Json) -> frozenset[str]:
        """Return the fields of spec that cannot change either, where the template cannot."""
        del manifest
        return frozenset()

    def removes_itself(self, manifest: Json) -> bool:
        """Tell whether the server deletes an object of *manifest* once its work is done."""
        del manifest
        return False

    def fixed_part(self, body: Json, manifest: Json) -> Json:
        """Return what of *body* the server does not let change to what *manifest* says."""
        if self.can_change:
            return {}
        said = body.get("spec") or {}
        spec = {name: said[name] for name in self.fixed_fields(manifest) & said.keys()}
        return {"metadata": {}, "spec": spec, "template": get_at(body, self.template_path)}

    def refusal(self, live: Json) -> str | None:
        """Return why a change of *live* would not be carried out and what to do; None: it would."""
        del live
        return None

    def never_starts(self, manifest: Json) -> str | None:
        """Return why no pod of *manifest* would start and what to do; None: they would."""
        del manifest
        return None

    def number_to_replace(self, live: Json) -> int:
        """Return how many pods its controller replaces when the template changes."""
        return self.counts(live).desired

    def notes(self, live: Json) -> Iterator[str]:
        """Yield what the operator should know when *live* restarts."""
        del live
        yield from ()

    # --- readiness ------------------------------------------------------------------------------

    def counts(self, live: Json) -> Counts:
        """Return how many pods it should have and has, by its own status."""
        return Counts(
            desired=readiness.replicas(live),
            updated=readiness.status_count(live, "updatedReplicas"),
            ready=readiness.status_count(live, "readyReplicas"),
            available=readiness.status_count(live, "availableReplicas"),
            total=readiness.status_count(live, "replicas"),
        )

    def is_waited_for(self, body: Json) -> bool:
        """Tell whether an object that is created is waited for."""
        del body
        return not self.runs_to_completion

    def why_stopped(self, written: Json, live: Json) -> str:
        """Return why none of its pods is to run any more, '' where some are or none was to.

        :param written: the object as an operation wrote it.
        """
        one, other = self.counts(written).desired, self.counts(live).desired
        generations = (body["metadata"].get("generation") for body in (written, live))
        is_changed = len(set(generations)) > 1 and readiness.is_observed(live)
        return f"expected {one} pods, found 0" if is_changed and one > other == 0 else ""

    def counts_without(self, live: Json, leaving: Sequence[Json]) -> Counts:
        """Return the counts for a workload that gets no pod in the place of *leaving*.

        For most kinds a pod that is being deleted is none already.
        """
        counts, left_out = self.counts(live), sum(not is_deleting(pod) for pod in leaving)
        return replace(
            counts, desired=max(0, counts.desired - left_out), total=counts.total - left_out
        )

    def readiness(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Readiness:
        """Judge whether every pod from before is replaced and all are Ready.

        :param pods: all that it owns now.
        """
        if self.runs_to_completion:
            return readiness.DONE
        allowed = baseline.allowed | self.left_alone(live, pods)
        baseline = replace(baseline, allowed=allowed)
        return readiness.judge(live, self._counts(live, pods, baseline), pods, baseline)

    def left_alone(self, live: Json, pods: Sequence[Json]) -> frozenset[str]:
        """Return the UIDs of those pods that its controller does not replace."""
        del live, pods
        return frozenset()

    def is_no_less_ready(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> bool:
        """Tell whether it is as ready as it was before, though that was not wholly.

        :param pods: all that it owns now.
        """
        counts = self._counts(live, pods, baseline)
        return readiness.is_no_less_ready(live, counts, pods, baseline)

    def lacks_pods(self, live: Json, pods: Sequence[Json]) -> bool:
        """Tell whether it has fewer pods than it should, those counted that are being deleted."""
        present = sum(not is_finished(pod) for pod in pods)
        return readiness.is_observed(live) and present < self.counts(live).desired

    def completeness(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Readiness:
        """Judge whether all of its pods are there, Ready or not, and the change was seen.

        From then on a pod that goes is replaced by one of the present template.
        """
        desired = self._counts(live, pods, baseline).desired
        return readiness.all_there(live, desired, pods, baseline)

    def _counts(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Counts:
        return self.counts_without(live, [pod for pod in pods if baseline.leaves_out(pod)])
