# SPDX-License-Identifier: Apache-2.0
"""Carries out steps that create, change or delete an object by its manifest."""

from __future__ import annotations

import logging
from functools import partial

from container_update.cluster.lease import IN_FORCE_SECONDS
from container_update.engine import claims
from container_update.engine.checks.namespaces import content
from container_update.engine.context import StepExecutor
from container_update.engine.writer import ChangedByAnotherError
from container_update.model.objects import DEFINITION, Json, is_kept, namespace_key
from container_update.model.outcome import Reverted
from container_update.model.plan import Action
from container_update.planning.comparison.live_objects import manifest_name
from container_update.planning.order import QUOTA, judges
from container_update.planning.steps import ManifestStep
from container_update.planning.steps.manifest import is_made_of
from container_update.planning.steps.new_objects import created_again, new_object
from container_update.workloads.pod_status import is_deleting
from container_update.workloads.pod_template import images
from container_update.workloads.readiness import Baseline
from container_update.workloads.registry import is_workload, kind_of

LOG = logging.getLogger(__name__)


class ManifestExecutor(StepExecutor[ManifestStep]):
    """See :class:`~container_update.engine.context.StepExecutor`."""

    def apply(self, step: ManifestStep, deadline: float) -> None:
        """Create, change or delete the object, and wait for its pods or its traffic."""
        if step.action is Action.DELETE:
            self._delete(step, deadline)
        elif step.action is Action.CREATE:
            self._create(step, deadline)
        else:
            self._replace(step, deadline)

    def revert(self, step: ManifestStep, deadline: float) -> Reverted:
        """Delete a created object, create a deleted one, restore a changed one."""
        if step.action is Action.DELETE:
            return self._create_again(step, deadline)
        if step.action is Action.CREATE:
            return self._delete_created(step, deadline)
        return self._restore(step, deadline)

    def _create(self, step: ManifestStep, deadline: float) -> None:
        assert step.content is not None, "a creation has its manifest"
        body = new_object(step.content, step.key.namespace, self.writer.labels)
        is_own = partial(self._is_made_of, step.content)
        created = self.writer.create_new(body, is_own, deadline)
        self._wait_served(step, created, deadline)
        if step.starts_pods:
            self.expect(step.with_stored(images(created)), created)
            self.rollout.until_ready(step.key, deadline)

    def _replace(self, step: ManifestStep, deadline: float) -> None:
        """Replace the object; wait until a switched Service's traffic goes to the new pods."""
        written = self.writer.apply(step, self.cluster.get(step.key))
        self.expect(step, written)
        self._wait_served(step, written, deadline)
        if step.action is Action.SWITCH and step.key.kind == "Service":
            self.rollout.until_served(step.key, self.context.leaving, deadline)

    def _wait_served(self, step: ManifestStep, written: Json, deadline: float) -> None:
        """Wait until the server does what a definition or a quota says: other objects follow."""
        kind = (step.key.group, step.key.kind)
        if kind == DEFINITION:
            self.writer.until_kind_is_served(written, deadline)
        elif kind == QUOTA:
            self.writer.until_quota_counts(written, deadline)

    def _is_made_of(self, content: Json, live: Json) -> bool:
        return is_made_of(content, live, self.writer.instance_id)

    def _delete(self, step: ManifestStep, deadline: float) -> None:
        """Delete the object that the plan was made from, and no other of its name."""
        live = self.cluster.get(step.key)
        if live is None:
            return
        uid, now = step.old["metadata"].get("uid"), live["metadata"]["uid"]
        is_planned = self._is_made_of(step.old, live) if uid is None else now == uid
        if not is_planned:
            raise ChangedByAnotherError(f"{step.key} was created again by another client")
        self._remove(step, live, deadline)

    def _remove(self, step: ManifestStep, live: Json, deadline: float) -> None:
        if step.key == namespace_key(self.writer.owner_namespace):
            return  # the journal is in it: JournalledRun.end deletes both
        pods = Baseline.of(self.informer.pods_of(live)).uids
        if is_workload(step.key) and not is_deleting(live):
            live = claims.keep_when_deleted(self.writer, live, deadline)
        self.writer.delete(live, deadline)
        if judges(step.key):  # by a server's cache, it does so for a moment longer
            self.rollout.waiter.sleep(IN_FORCE_SECONDS)
        self._wait_gone(step, live["metadata"]["uid"], deadline, pods)
        is_undone = step.action is Action.CREATE
        left = claims.label_left(self.writer, live, only_new=is_undone)
        if is_undone and left:
            self.context.left[step.key] = left

    def _wait_gone(
        self, step: ManifestStep, uid: str, deadline: float, pods: frozenset[str] = frozenset()
    ) -> None:
        kind = kind_of(step.key)
        if kind is not None and not kind.runs_to_completion:
            known = pods | self.context.pods_before.get(step.key, frozenset())
            self.rollout.until_gone(step.key, uid, deadline, known)

    def _create_again(self, step: ManifestStep, deadline: float) -> Reverted:
        if step.is_of_new_object:  # it goes in any case
            return Reverted.UNCHANGED
        uid = step.old["metadata"]["uid"]
        live = self.cluster.get(step.key)
        if live is not None and is_deleting(live):
            self._wait_gone(step, uid, deadline)
            live = self.writer.wait_until_settled(step.key, deadline)
        if live is not None and live["metadata"]["uid"] == uid:
            had_another = claims.restore_policy(self.writer, live, step.old)
            return Reverted.RESTORED if had_another else Reverted.UNCHANGED
        if live is not None and not step.is_restored(live):
            return Reverted.OF_OTHERS
        reverted = Reverted.UNCHANGED
        if live is None:
            body = created_again(step.old, step.key.namespace)
            live = self.writer.create(body, lambda _: True, deadline)
            self._wait_served(step, live, deadline)
            reverted = Reverted.RESTORED
        if is_workload(step.key):
            self.informer.observe(live)
            self.rollout.until_ready(step.key, deadline, step.old)
        return reverted

    def _delete_created(self, step: ManifestStep, deadline: float) -> Reverted:
        live = self.cluster.get(step.key)
        if live is None:
            self._wait_gone(step, "", deadline)
            return Reverted.UNCHANGED
        assert step.content is not None, "a creation has its manifest"
        if not self._is_made_of(step.content, live):
            return Reverted.OF_OTHERS
        if step.key == namespace_key(self.writer.owner_namespace) and (
            others := content(step.key.name, self.cluster)
        ):
            LOG.warning("%s stays: %s in it", step.key, ", ".join(map(str, others[:3])))
            return Reverted.NOT_EMPTY
        if is_kept(live) and manifest_name(live) == step.key.name:  # no stand-in for another one
            return Reverted.KEPT
        self._remove(step, live, deadline)
        return Reverted.DELETED

    def _restore(self, step: ManifestStep, deadline: float) -> Reverted:
        live = self.cluster.get(step.key)
        if live is None or is_deleting(live):
            return Reverted.OF_OTHERS
        reverted = self.restore(step, live)
        if reverted is not Reverted.OF_OTHERS and step.key.kind == "Service":
            self.rollout.until_served(step.key, frozenset(), deadline)
        if reverted is Reverted.RESTORED:
            self._wait_served(step, step.old, deadline)
        return reverted
