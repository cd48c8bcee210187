# SPDX-License-Identifier: Apache-2.0
"""Whether a workload is done, progressing, failing or failed: the rules that kinds share. Pure.

Status counts can lag behind, so a workload is done only when every pod that it owns is proven new.
"""

from __future__ import annotations

import copy
import enum
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from container_update.model.objects import Json
from container_update.workloads import pod_status
from container_update.workloads.pod_status import was_started


class RolloutState(enum.Enum):
    """The state of a workload that restarts."""

    DONE = "done"
    PROGRESSING = "progressing"
    FAILING = "failing"
    """All of its new pods are in trouble, or the server refuses them: a failure if it lasts for the
    grace period."""
    FAILED = "failed"
    """Waiting will not help."""


@dataclass(frozen=True)
class Readiness:
    """A state, and its reason for the operator."""

    state: RolloutState
    message: str = ""
    patience: float = math.inf
    """Seconds after which a failing state does not get better by waiting."""
    ready: int | None = field(default=None, compare=False)
    """New pods that are ready; None: they are not told from the old ones."""
    trouble: str = field(default="", compare=False)
    """Of a new pod, in a word or two: 'ImagePullBackOff "upf:2"'."""


DONE = Readiness(RolloutState.DONE)
NOT_SEEN = Readiness(RolloutState.PROGRESSING, "its controller has not seen the change yet")


@dataclass(frozen=True)
class Counts:
    """The numbers of pods in a workload's status."""

    desired: int
    updated: int
    ready: int
    available: int
    total: int
    """Pods of the old template too."""


@dataclass(frozen=True)
class Baseline:
    """A workload before the change, to distinguish new from old."""

    uids: frozenset[str] = frozenset()
    """UIDs of the pods from before."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """For a restart in place: container to its restart count before; only those to restart.
    -1 for one that never started: its first start is not counted as a restart."""
    allowed: frozenset[str] = frozenset()
    """UIDs of pods from before that are not to be replaced yet."""
    abandoned: frozenset[str] = frozenset()
    """UIDs of pods that were being deleted before the change."""
    conditions: Sequence[Json] = ()
    """Of its status before the change: its controller may leave them there, see :meth:`news`."""
    restores: Counts | None = None
    """On the way back, what its status counted before the way there: it need not have more. None:
    it is to have all that it should."""

    @classmethod
    def of(cls, pods: Sequence[Json], containers: Sequence[str] = ()) -> Baseline:
        """Return the baseline of these pods; with *containers*, of their restart in place."""
        statuses = (status for pod in pods for status in pod_status.container_statuses(pod))
        counts = {
            status["name"]: int(status.get("restartCount", 0)) if was_started(status) else -1
            for status in statuses
            if status["name"] in containers
        }
        return cls(frozenset(pod["metadata"]["uid"] for pod in pods), counts)

    def with_old(self, pods: Iterable[Json]) -> Baseline:
        """Return the baseline with these pods as those that are to be replaced."""
        return replace(self, uids=frozenset(pod["metadata"]["uid"] for pod in pods))

    def news(self, live: Json) -> Iterator[Json]:
        """Yield the conditions in its status that are newer than the change.

        A Deployment's controller keeps the verdict on the roll before until there is progress, and
        a change back to what ran before needs none. Clocks are not compared.
        """
        yield from (condition for condition in conditions(live) if condition not in self.conditions)

    def leaves_out(self, pod: Json) -> bool:
        """Tell whether a pod is neither waited for nor counted: it is being deleted, and was before
        the change, or is on a lost node.

        There the node controller deletes it some minutes later. On the way there its replacement is
        waited for: nothing proves that the new template works. The way back needs no such proof.
        """
        if pod_status.is_on_lost_node(pod):
            return pod_status.is_deleting(pod) or self.restores is not None
        return pod_status.is_deleting(pod) and pod["metadata"]["uid"] in self.abandoned


def abandoned_pods(pods: Sequence[Json], before: Collection[str]) -> frozenset[str]:
    """Return the UIDs of the pods being deleted, without those that were not so *before*."""
    uids = (pod["metadata"]["uid"] for pod in pods if pod_status.is_deleting(pod))
    return frozenset(uid for uid in uids if uid not in before)


def conditions(live: Json) -> Sequence[Json]:
    """Return the conditions in the status of a workload."""
    reported: Sequence[Json] = (live.get("status") or {}).get("conditions") or ()
    return reported


def _progressing(
    count: str, new: Sequence[Json], pods: Sequence[Json], live: Json, baseline: Baseline
) -> Readiness:
    """Report that it is not done yet: failing where all new pods are in trouble or refused, of
    which the cause is said first. A refusal from before the write may be over, and is only said; so
    is one while pods go or get ready, as that may make room for more."""
    refused = refusal(baseline.news(live))
    if refused and not _is_moving(live, new, pods):
        return Readiness(RolloutState.FAILING, f"{refused} ({count})")
    problems = [pod_status.problem(pod) for pod in new if not pod_status.is_deleting(pod)]
    if problems and all(problems):
        patience = min(map(pod_status.patience, new))
        return Readiness(RolloutState.FAILING, f"{problems[0]} ({count})", patience)
    waiting = pod_status.waiting_for(new) or pod_status.waiting_for(pods)
    waiting = waiting or refusal(conditions(live))
    return Readiness(RolloutState.PROGRESSING, f"{count}: {waiting}" if waiting else count)


def _is_moving(live: Json, new: Sequence[Json], pods: Sequence[Json]) -> bool:
    """Tell whether a pod is going, or is on its way to be available: then an old one goes."""
    return (
        any(map(pod_status.is_deleting, pods))
        or any(not (pod_status.is_ready(pod) or pod_status.problem(pod)) for pod in new)
        or status_count(live, "availableReplicas") < status_count(live, "readyReplicas")
    )


def refusal(news: Iterable[Json]) -> str:
    """Return why the server refuses to create or delete its pods, '' where it does not.

    Source: API reference, Deployment and ReplicaSet, condition ReplicaFailure.
    """
    for condition in news:
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            return f"{condition.get('reason')}: {condition.get('message')}"
    return ""


# --- workloads with a controller ----------------------------------------------------------------


def judge(live: Json, counts: Counts, pods: Sequence[Json], baseline: Baseline) -> Readiness:
    """Judge all pods that a workload owns by the rule that all controllers share."""
    if not is_observed(live):
        # forwards no pod is new yet; on the way back those that are there may be wanted ones
        return NOT_SEEN if baseline.restores else replace(NOT_SEEN, ready=0)
    present = _present(pods, baseline)
    uids = [pod["metadata"]["uid"] for pod in present]
    new = [pod for pod in present if pod["metadata"]["uid"] not in baseline.uids]
    to_replace = baseline.uids - baseline.allowed
    old = sum(uid in to_replace for uid in uids)
    least = _least(counts, baseline)
    needed = min(counts.desired - sum(uid in baseline.allowed for uid in uids), least.updated)
    # those that are to be replaced later need not be well: else they would never be replaced
    unwell = sum(
        pod["metadata"]["uid"] in baseline.allowed and not pod_status.is_ready(pod)
        for pod in present
    )
    wanted = counts.desired - unwell
    enough, serving = min(least.ready, wanted), min(counts.ready, counts.available)
    is_serving = counts.ready >= enough and counts.available >= min(least.available, wanted)
    ready = sum(map(pod_status.is_ready, present))
    if counts.updated < needed:
        message = f"{counts.updated} of {needed} pods are updated{_never_ending(pods, baseline)}"
    elif counts.total > least.total:
        message = _old_pods(counts.total - least.total, new)
    elif not is_serving:
        message = f"{serving} of {counts.desired} pods are ready"
    elif old:
        message = _old_pods(old, new)
    # a status may lag: the pods themselves count too. All that are there have to be Ready, those
    # beyond the wanted number as well; on the way back a stuck roll may have started such ones.
    elif ready < (enough if baseline.restores else max(len(present) - unwell, wanted)):
        message = f"{ready} of {counts.desired} pods are ready"
    else:
        return DONE
    verdict = _progressing(message, new, present, live, baseline)
    ends_here = verdict.state is RolloutState.FAILING or _has_lost_pod(pods)
    if ends_here and is_no_less_ready(live, counts, pods, baseline):
        return DONE  # what is in trouble was so before, or waits for a node
    troubles = [pod_status.trouble(pod) for pod in new if not pod_status.is_deleting(pod)]
    refused = refusal(baseline.news(live)).partition(":")[0]
    trouble = refused or next(filter(None, troubles), "")
    return replace(verdict, ready=sum(map(pod_status.is_ready, new)), trouble=trouble)


def _present(pods: Sequence[Json], baseline: Baseline) -> list[Json]:
    """Return the pods that count. On the way back those that are being deleted do not: what ran
    before does not wait for them."""
    return [
        pod
        for pod in pods
        if not (pod_status.has_ended(pod) or baseline.leaves_out(pod))
        and not (baseline.restores is not None and pod_status.is_deleting(pod))
    ]


def _least(counts: Counts, baseline: Baseline) -> Counts:
    """Return the counts to reach: all that it should have, on the way back no more than it had."""
    all_ = counts.desired
    had = baseline.restores or Counts(all_, all_, all_, all_, all_)
    return Counts(
        all_,
        updated=min(all_, had.updated),
        ready=min(all_, had.ready),
        available=min(all_, had.available),
        total=max(all_, had.total),
    )


def is_no_less_ready(live: Json, counts: Counts, pods: Sequence[Json], baseline: Baseline) -> bool:
    """Tell whether a workload that was not wholly ready is so again, on the way back.

    Its controller may keep ready pods of the other template for ever, because those that ran before
    do not get ready.
    """
    enough = _least(counts, baseline).ready
    is_whole = enough >= counts.desired and not _has_lost_pod(pods)
    if baseline.restores is None or is_whole or not is_observed(live):
        return False
    own = [pod for pod in _present(pods, baseline) if pod["metadata"]["uid"] not in baseline.uids]
    return sum(map(pod_status.is_ready, own)) >= enough


def _has_lost_pod(pods: Iterable[Json]) -> bool:
    """Tell whether a pod is on a lost node and is not being deleted yet.

    Until the node controller deletes it, minutes later, pods of the other template may stay.
    """
    return any(pod_status.is_on_lost_node(p) and not pod_status.is_deleting(p) for p in pods)


def _never_ending(pods: Iterable[Json], baseline: Baseline) -> str:
    """Name a pod that does not end, for which only the controller may wait."""
    for pod in filter(pod_status.is_deleting, pods):
        metadata = pod["metadata"]
        name, finalizers = metadata["name"], ", ".join(metadata.get("finalizers") or ())
        if finalizers:
            return f", and pod {name} ends when its finalizers are removed: {finalizers}"
        if baseline.leaves_out(pod):
            since = metadata["deletionTimestamp"]
            return f", and pod {name}, which should have ended at {since}, has not"
    return ""


def _old_pods(number: int, new: Sequence[Json]) -> str:
    """Say that there are old pods, or which of the new ones they wait for."""
    ready = sum(map(pod_status.is_ready, new))
    if ready < len(new):
        return f"{ready} of {len(new)} new pods are ready"
    return f"{number} old {'pod is' if number == 1 else 'pods are'} still there"


def all_there(live: Json, desired: int, pods: Sequence[Json], baseline: Baseline) -> Readiness:
    """Judge whether the controller has seen the last change, and *desired* pods are there."""
    if not is_observed(live):
        return NOT_SEEN
    number = sum(map(pod_status.is_active, pods))
    if baseline.restores is not None:
        desired = min(desired, baseline.restores.total)
    if number < desired:
        count = f"{number} of {desired} pods are there"
        return _progressing(count, (), (), live, baseline)
    return DONE


def is_observed(live: Json) -> bool:
    """Return whether the controller has seen the last change of the spec."""
    return status_count(live, "observedGeneration") >= int(live["metadata"].get("generation", 0))


def replicas(live: Json) -> int:
    """Return ``spec.replicas``, which is 1 where it is not given."""
    number = (live.get("spec") or {}).get("replicas")
    return 1 if number is None else int(number)


def with_replicas(body: Json, number: int) -> Json:
    """Return a workload with another number of pods; *body* itself where it has that number."""
    if replicas(body) == number:
        return body
    changed = copy.deepcopy(body)
    changed["spec"] = {**(changed.get("spec") or {}), "replicas": number}
    return changed


def status_count(live: Json, name: str) -> int:
    """Return a number of the status, 0 where it has none of that name."""
    return int((live.get("status") or {}).get(name) or 0)
