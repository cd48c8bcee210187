# SPDX-License-Identifier: Apache-2.0
"""Writes single objects and notices a lost response, a conflict or another writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from container_update.cluster.waiting import NotReadyError, Waiter
from container_update.model.cluster import (
    Cluster,
    DryRun,
    ReadOnlyCluster,
    Right,
    items_if_allowed,
)
from container_update.model.errors import AdmissionError, ClusterError, NoDryRunError, QuotaError
from container_update.model.objects import INSTANCE_LABEL, Collection, Json, ObjectKey, instance_of
from container_update.model.options import NOTE
from container_update.planning.comparison import meaning
from container_update.planning.steps import ObjectStep, WorkloadStep
from container_update.planning.steps.new_objects import new_object, pod_of
from container_update.workloads.api_resources import is_built_in
from container_update.workloads.kind import POD
from container_update.workloads.pod_status import is_deleting
from container_update.workloads.pod_template import images, with_images

_ATTEMPTS = 5
"""How often a write is tried that conflicts with the writes of other clients."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two looks at an object that is being deleted."""


_COUNTING = 10.0
"""Seconds until quotas have noticed what was written or deleted."""

_OF_PODS = frozenset({"pods", "count/pods", "cpu", "memory", "ephemeral-storage"})
_OF_CLAIMS = "requests.storage"
"""What quotas limit (Kubernetes documentation, "Resource Quotas")."""

HOW_WITHOUT_DRY_RUN = (
    f"; where admission denies dry runs alone, set the option dry_run_denials to {NOTE}"
)
"""How an operation gets past such admission."""

_NO_CA = "InvalidCABundle"
"""Why a definition is not established whose conversion webhook has no CA yet (since 1.31)."""


class ChangedByAnotherError(Exception):
    """Another client changed the object of a step since the plan was made."""


class OverwrittenError(ChangedByAnotherError):
    """Another client changed an object after this run has written it."""


def try_creation_again(cluster: ReadOnlyCluster, body: Json) -> DryRun:
    """Try to create an object while another one has its name, which the server checks last: quotas
    judge before that, and count both. One that is exceeded already has no room for another pod
    afterwards either."""
    try:
        return cluster.dry_run("create", body)
    except ClusterError as error:
        has_no_quota = isinstance(error, QuotaError)
        if error.status != 409 and not has_no_quota:
            raise
        if has_no_quota and body["kind"] == "Pod" and _is_exceeded(cluster, body):
            raise
        return DryRun({})


def _is_exceeded(cluster: ReadOnlyCluster, pod: Json) -> bool:
    """Tell whether pods have more of a quota than there is, as far as this account may see it."""
    quotas = Collection("", "ResourceQuota", pod["metadata"]["namespace"])
    return any(
        meaning.is_less(hard, (quota["status"].get("used") or {}).get(name))
        for quota in items_if_allowed(cluster, quotas)
        for name, hard in ((quota.get("status") or {}).get("hard") or {}).items()
        if name in _OF_PODS or (name.startswith(("requests.", "limits.")) and name != _OF_CLAIMS)
    )


@dataclass(frozen=True)
class ObjectWriter:
    """Writes objects of one cluster for one VNF instance."""

    cluster: Cluster
    waiter: Waiter
    instance_id: str | None = None
    resumed: bool = False
    """A run before this one was interrupted: objects may be as the steps want them already."""
    owner: Json | None = None
    """An ownerReference for new objects, until the run has ended."""
    owner_namespace: str = ""
    """Where that owner is: it owns objects of no other namespace."""
    stored: dict[ObjectKey, Mapping[str, str]] = field(default_factory=dict)
    """The images that the server has stored of what this run applied."""
    notes_denials: bool = False
    """Admission may deny dry runs alone: its denial of one says nothing."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of every created object."""
        return {INSTANCE_LABEL: self.instance_id} if self.instance_id else {}

    def with_label(self, live: Json) -> Json:
        """Return an object with the instance's label; *live* itself where it has an instance's."""
        metadata = live["metadata"]
        if not self.labels or instance_of(live):
            return live
        labels = {**(metadata.get("labels") or {}), **self.labels}
        return {**live, "metadata": {**metadata, "labels": labels}}

    def read(self, step: ObjectStep) -> Json | None:
        """Return the object that the plan was made from; in a resumed run, read it again."""
        return self.cluster.get(step.key) if self.resumed else step.before

    def wait_until_settled(self, key: ObjectKey, deadline: float) -> Json | None:
        """Return the live object, None where there is none; wait while it is being deleted.

        Until its finalizers are removed it can be read and even changed, although it counts as
        gone. Its kind may not be watched: it is read again with growing pauses.

        :param deadline: by the waiter's clock.
        :raises NotReadyError: its finalizers are still there at the deadline.
        """
        pause = _FIRST_PAUSE
        while (live := self.cluster.get(key)) is not None and is_deleting(live):
            left = deadline - self.waiter.clock()
            if left <= 0:
                finalizers = ", ".join(live["metadata"].get("finalizers") or ())
                raise NotReadyError(
                    f"not gone in time: {key} is being deleted and waits for its finalizers "
                    f"({finalizers}): the controller that set them has to remove them"
                )
            self.waiter.sleep(min(left, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)
        return live

    def create(self, body: Json, is_own: Callable[[Json], bool], deadline: float) -> Json:
        """Create an object; one that exists already may be ours, its response having been lost.

        :param is_own: tells whether this run created a live object.
        :param deadline: until when one of that name is waited for that is being deleted.
        :raises ChangedByAnotherError: another created one of that name.
        :raises NotReadyError: see :meth:`wait_until_settled`.
        """
        key = ObjectKey.of(body)
        for attempt in range(_ATTEMPTS):
            try:
                return self.cluster.create(body)
            except ClusterError as error:
                if error.status != 409 or attempt == _ATTEMPTS - 1:
                    raise
                live = self.wait_until_settled(key, deadline)
                if live is not None and is_own(live):
                    return live
                if live is not None:
                    raise ChangedByAnotherError(f"{key} was created by another client") from error
        raise AssertionError("the last attempt returns or raises")

    def create_new(self, body: Json, is_own: Callable[[Json], bool], deadline: float) -> Json:
        """Create an object that has not been there before the run; otherwise as :meth:`create`."""
        if self.owner is not None and body["metadata"].get("namespace") == self.owner_namespace:
            owners = [*(body["metadata"].get("ownerReferences") or ()), self.owner]
            body = {**body, "metadata": {**body["metadata"], "ownerReferences": owners}}
        key, pause, is_served = ObjectKey.of(body), _FIRST_PAUSE, False
        while True:
            try:
                return self.create(body, is_own, deadline)
            except ClusterError as error:
                left = deadline - self.waiter.clock()
                if left <= 0 or error.status != 404 or is_built_in(key.group) or is_served:
                    raise
            # its definition waits for a CA, or was in force just after that answer
            is_served = bool(self.cluster.look_up_versions(key.group, key.kind))
            self.waiter.sleep(min(left, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def until_kind_is_served(self, definition: Json, deadline: float) -> None:
        """Wait until the server serves the kind of a CustomResourceDefinition that was written, in
        the versions that it says and in no others.

        Its conditions come first, the URL of its objects a moment later. That is not asked where a
        webhook converts them, which may come later, nor is a definition waited for that waits for
        the CA of its conversion webhook.

        :raises NotReadyError: it does not, the message has the reason that the server gives.
        """
        spec, key, pause = definition["spec"], ObjectKey.of(definition), _FIRST_PAUSE
        space = self.owner_namespace if spec.get("scope") == "Namespaced" else ""
        of_kind = spec["group"], spec["names"]["kind"]
        collection = Collection(*of_kind, space)
        versions = {f"{spec['group']}/{v['name']}" for v in spec["versions"] if v.get("served")}
        converts = (spec.get("conversion") or {}).get("strategy") == "Webhook"
        while self.cluster.look_up_versions(*of_kind) != versions or not (
            converts or self._is_served(collection)
        ):
            live = self.cluster.get(key)
            if live is not None and any(c.get("reason") == _NO_CA for c in _conditions(live)):
                return
            left = deadline - self.waiter.clock()
            if left <= 0:
                raise NotReadyError(f"not served in time: {_state(live)}")
            self.waiter.sleep(min(left, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def until_quota_counts(self, quota: Json, deadline: float) -> None:
        """Wait until the server allows what a ResourceQuota that was written says: a controller
        copies its limits to its status, by which admission judges.

        The write that follows says so where that controller does not run.
        """
        live: Json | None = quota
        end = min(deadline, self.waiter.clock() + _COUNTING)
        while live and (live.get("status") or {}).get("hard") != live["spec"].get("hard"):
            if self.waiter.clock() >= end:
                return
            self.waiter.sleep(_FIRST_PAUSE)
            live = self.cluster.get(ObjectKey.of(quota))

    def _is_served(self, collection: Collection) -> bool:
        try:
            self.cluster.list(collection, lambda _: None)
        except ClusterError as error:
            if error.status not in (403, 404):
                raise
            return error.status == 403  # it is, though this account may not list it
        return True

    def recreate(self, body: Json, is_own: Callable[[Json], bool], deadline: float) -> None:
        """Delete the object with the UID in *body* and create it as that says.

        :raises ClusterError: the server would not let it be created; it was not deleted.
        :raises NotReadyError: see :meth:`wait_until_settled`.
        """
        new = new_object(body, body["metadata"]["namespace"], {})
        self.delete_for(new, body)
        self.create_again(new, is_own, deadline)

    def delete_for(self, new: Json, live: Json) -> None:
        """Delete an object that another one takes the place of, where that could be created: what
        the server refuses after the deletion could not be put back either.

        :raises ClusterError: it could not; nothing was deleted.
        """
        self._try_creation(new)
        self.delete(live)

    def try_pod(self, workload: Json) -> None:
        """Try a pod of a workload whose old pods go before new ones come: where the server refuses
        those it would go on with fewer, and an undo would not get them back.

        :raises ClusterError: the server does not let it be created; nothing was deleted.
        """
        try:
            self._try_creation(pod_of(workload))
        except ClusterError as error:
            may = Right(workload["metadata"]["namespace"], *POD, "create")  # its controller may
            if isinstance(error, AdmissionError | QuotaError) or (
                error.status == 403 and not self.cluster.missing_rights([may])
            ):
                raise

    def _try_creation(self, new: Json) -> None:
        try:
            with suppress(NoDryRunError):  # a kind without dry runs is created untried
                try_creation_again(self.cluster, new)
        except AdmissionError as error:
            if not self.notes_denials:
                raise AdmissionError(
                    f"{error}: the one that is there was not deleted{HOW_WITHOUT_DRY_RUN}",
                    status=error.status,
                    reason=error.reason,
                ) from error

    def create_again(self, body: Json, is_own: Callable[[Json], bool], deadline: float) -> Json:
        """Create an object in place of a deleted one, which quotas count for a moment longer;
        otherwise as :meth:`create`."""
        until = min(deadline, self.waiter.clock() + _COUNTING)
        while True:
            try:
                return self.create(body, is_own, deadline)
            except QuotaError:
                left = until - self.waiter.clock()
                if left <= 0:
                    raise
            self.waiter.sleep(min(left, _FIRST_PAUSE))

    def delete(self, live: Json, deadline: float | None = None, *, orphans: bool = False) -> None:
        """Delete the object with this UID, in the version that was read or in a later one.

        :param deadline: until when to wait for one with finalizers until it is gone; None: not.
        :param orphans: what it owns stays; the server holds it by a finalizer until then.
        :raises ClusterError: with status 409: another object has its name.
        :raises NotReadyError: see :meth:`wait_until_settled`.
        """
        key, uid = ObjectKey.of(live), live["metadata"]["uid"]
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                version = live["metadata"]["resourceVersion"]
                self.cluster.delete(key, uid=uid, version=version, orphans=orphans)
                break
            except ClusterError as error:
                now = self.cluster.get(key) if error.status == 409 else live
                if now is None:
                    return
                if error.status != 409 or now["metadata"]["uid"] != uid or attempt == _ATTEMPTS:
                    raise
                live = now
        if deadline is not None and (orphans or live["metadata"].get("finalizers")):
            self.wait_until_settled(key, deadline)

    def with_stored_images(
        self, step: WorkloadStep, live: Json, *, back: bool = False
    ) -> WorkloadStep:
        """Return the step with its images as the server stores them.

        Asked, by a dry run, only where the live object is neither as before, as the step wants it,
        nor as the server has answered this run's write. So this run, or another host's, knows what
        it wrote from what another client did. Where admission denies dry runs alone, nothing knows
        it: on the way back of an interrupted run the images count as its own.
        """
        if live is step.before or step.is_restored(live) or step.is_applied(live):
            return step
        written = self.stored.get(step.key)
        if written is not None and written == images(live):
            return step.with_stored(written)
        try:
            answer = self.cluster.dry_run("replace", step.with_change(live))
        except AdmissionError:
            if not (back and self.notes_denials and written is None):
                raise
            return step.with_stored(images(live))
        return step.with_stored(images(answer.body))

    def is_stored_as(self, live: Json, desired: Json) -> bool:
        """Tell whether a live Pod has the images of *desired*, or what the server makes of them."""
        wanted = images(desired)
        if images(live) == wanted:
            return True
        answer = self.cluster.dry_run("replace", with_images(live, wanted))
        return images(answer.body) == images(live)

    def apply(self, step: ObjectStep, live: Json | None) -> Json:
        """Replace the live object by what the step wants; otherwise as :meth:`edit`.

        :raises ChangedByAnotherError: another client changed what the step is about.
        """
        applied = self._replace(step, live, back=False)
        if isinstance(step, WorkloadStep):
            self.stored[step.key] = images(applied)
        return applied

    def restore(self, step: ObjectStep, live: Json) -> Json:
        """Restore the object before the step; as :meth:`apply`."""
        return self._replace(step, live, back=True)

    def _replace(self, step: ObjectStep, live: Json | None, *, back: bool) -> Json:
        def edit(live: Json) -> Json:
            own = step
            if isinstance(step, WorkloadStep):
                own = self.with_stored_images(step, live, back=back)
            desired = own.without_change(live) if back else own.with_change(live)
            if desired != live and not (own.is_own(live) if back else own.is_untouched(live)):
                raise ChangedByAnotherError(
                    f"{step.key} was changed by another client since it was read"
                )
            return desired

        return self.edit(step.key, live, edit)

    def edit(self, key: ObjectKey, live: Json | None, change: Callable[[Json], Json]) -> Json:
        """Replace an object by what *change* makes of it; on a conflict read it again and go on.

        :param live: the object as it was read.
        :returns: the object as it is in the cluster now.
        :raises ChangedByAnotherError: another client deleted it, or changes it all the time.
        """
        for _ in range(_ATTEMPTS):
            if live is None or is_deleting(live):
                raise ChangedByAnotherError(f"{key} was deleted by another client")
            try:
                desired = change(live)
                return live if desired == live else self.cluster.replace(desired)
            except ClusterError as error:
                if error.status != 409:
                    raise
            live = self.cluster.get(key)
        raise ChangedByAnotherError(f"{key} is changed again and again by another client")


def _conditions(definition: Json) -> Sequence[Json]:
    return (definition.get("status") or {}).get("conditions") or ()


def _state(definition: Json | None) -> str:
    """Return what a CustomResourceDefinition says of its own state."""
    if definition is None:
        return "it was deleted by another client"
    found = _conditions(definition)
    texts = (f"{c.get('type')}={c.get('status')}: {c.get('message')}" for c in found)
    return "; ".join(texts) or "the server has not accepted it yet"
