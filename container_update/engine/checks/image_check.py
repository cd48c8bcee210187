# SPDX-License-Identifier: Apache-2.0
"""Has the nodes pull every image that is new in a plan, before the first write of it is sent.

A pod for each of them, with what decides on a pull where it is to run: pull secrets, service
account, node selector and tolerations. Its command is in no image: nothing of the image ever runs.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from container_update.cluster.informer import Informer
from container_update.cluster.retry import RetryingCluster
from container_update.cluster.scope import Scope
from container_update.model import context_threads
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Right
from container_update.model.errors import ClusterError, PlanError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.options import Options
from container_update.model.plan import Note, Plan, image_place
from container_update.planning.steps import ManifestStep, ObjectStep, object_steps
from container_update.workloads import pod_template
from container_update.workloads.pod_status import (
    NEVER_PULLS,
    NOT_FOUND,
    PULLS,
    container_statuses,
    pull_refusal,
    pull_text,
)

LOG = logging.getLogger(__name__)

LABEL = "container-update/pull"
"""On the pods: what stands for the instance, by which the next run finds what a killed one left."""

_SECONDS, _PAUSE = 300.0, 0.2
"""How long an image may take at most, and between two looks at the pods."""
_PLACING = ("imagePullSecrets", "serviceAccountName", "nodeSelector", "tolerations")
_PENDING = (None, "ContainerCreating")


class UnpulledImagesError(PlanError):
    """The nodes cannot pull some new images of *plan*, to be shown; nothing was written."""

    def __init__(self, plan: Plan, message: str) -> None:
        super().__init__(message)
        self.plan = plan


@dataclass(frozen=True)
class _Finding:
    """Why an image was not pulled."""

    text: str
    is_certain: bool
    """The nodes cannot pull it; False: that is not known."""


@dataclass(frozen=True)
class _Image:
    """A new image, and the first place in the plan that needs it."""

    reference: str
    step: ObjectStep
    place: str
    spec: Json

    def pod(self, label: str, seconds: float) -> Json:
        """Return the pod for which the kubelet pulls the image."""
        named = (each for _, each in pod_template.containers(self.spec))
        policies = (c["imagePullPolicy"] for c in named if c.get("imagePullPolicy"))
        tiny = {"cpu": "10m", "memory": "16Mi"}
        container = {
            "name": "pull",
            "image": self.reference,
            "command": ["/container-update/pulls-only"],
            "imagePullPolicy": next(policies, "IfNotPresent"),
            "resources": {"requests": tiny, "limits": tiny},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            },
        }
        metadata = {
            "name": f"container-update-pull-{uuid.uuid4().hex[:10]}",
            "namespace": self.step.key.namespace,
            "labels": {LABEL: label},
        }
        spec = {
            **{name: self.spec[name] for name in _PLACING if name in self.spec},
            "activeDeadlineSeconds": int(seconds) + 60,
            "automountServiceAccountToken": False,
            "containers": [container],
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": 0,
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def check_images_pullable(
    plan: Plan, cluster: RetryingCluster, options: Options, cancel: CancelToken | None = None
) -> Plan:
    """Return the plan with a note on each image that is not known to be pulled, or refuse it."""
    images = list(_new_images(plan))
    pulling = _Pulling(cluster, plan.instance_id, min(options.timeout, _SECONDS))
    if cancel is not None:
        cancel.on_request(pulling.stopped.set)
    pulling.remove_leftovers({each.step.key.namespace for each in images})
    with context_threads.pool(options.workers) as pool:
        findings = list(zip(images, pool.map(pulling.about, images), strict=True))
    noted = [
        (Note(each.step.key, f"{each.place}: image {each.reference}: {finding.text}"), finding)
        for each, finding in findings
        if finding
    ]
    plan = replace(plan, notes=(*plan.notes, *(note for note, _ in noted)))
    if failed := [note for note, finding in noted if finding.is_certain]:
        texts = "; ".join(f"{note.key}, {note.text}" for note in failed)
        raise UnpulledImagesError(
            plan,
            f"the nodes cannot pull {len(failed)} of {len(images)} new images: {texts}: nothing "
            "was written; push them, or correct the pull secrets",
        )
    return plan


def _new_images(plan: Plan) -> Iterator[_Image]:
    """Yield each image that no workload of the plan has yet, once for each namespace."""
    steps = [step for step in object_steps(plan) if step.starts_pods]
    known = {
        (step.key.namespace, image)
        for step in steps
        for image in pod_template.images(step.before or {}).values()
    }
    for step in steps:
        created = step.content if isinstance(step, ManifestStep) else None
        body = step.with_change(step.before) if step.before else created or {}
        for name, image in pod_template.images(body).items():
            if image and (step.key.namespace, image) not in known:
                known.add((step.key.namespace, image))
                yield _Image(image, step, image_place(name), pod_template.pod_spec(body))


@dataclass(frozen=True)
class _Pulling:
    """The pods of one plan."""

    cluster: RetryingCluster
    instance_id: str | None
    seconds: float
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def label(self) -> str:
        """A digest of the instance's id, which may be too long for a label."""
        return hashlib.sha256((self.instance_id or "").encode()).hexdigest()[:16]

    def remove_leftovers(self, namespaces: Iterable[str]) -> None:
        """Delete the pods of a run that was killed."""
        for namespace in namespaces:
            pods = Collection("", "Pod", namespace, labels=f"{LABEL}={self.label}")
            with suppress(ClusterError):  # each image has a note where a right is missing
                for pod in self.cluster.list(pods).items:
                    self._delete(pod)

    def about(self, image: _Image) -> _Finding | None:
        """Have an image pulled; return why it was not, None where it was."""
        namespace = image.step.key.namespace
        needed = [Right(namespace, "", "Pod", verb) for verb in ("create", "get", "delete")]
        if missing := self.cluster.missing_rights(needed):
            rights = "; ".join(map(str, missing))
            return _Finding(f"not known: this account may not {rights}", is_certain=False)
        try:
            pod = self.cluster.create(image.pod(self.label, self.seconds))
        except ClusterError as error:
            if error.status is None or error.transient:
                raise
            return _Finding(f"not known: {error}", is_certain=False)
        try:
            return self._waited_for(pod)
        finally:
            self._delete(pod)

    def _waited_for(self, pod: Json) -> _Finding | None:
        key, deadline, why = ObjectKey.of(pod), time.monotonic() + self.seconds, ""
        while time.monotonic() < deadline and not self.stopped.wait(_PAUSE):
            status = (self.cluster.get(key) or {}).get("status") or {}
            container = next(iter(container_statuses({"status": status})), {})
            state = container.get("state") or {}
            waiting: Json = state.get("waiting") or {}
            if waiting.get("reason") in PULLS | NEVER_PULLS:
                # while it waits for the next pull, its status may not say why one failed
                events = Informer(self.cluster, Scope()).events_about(pod, reason="Failed")
                said = [str(each.get("message")) for each in (waiting, *events)]
                why = f"{waiting['reason']}: {pull_text(said[-1])}"
                if refusal := lasting_cause(waiting["reason"], said):
                    return _Finding(f"{refusal} ({why})", is_certain=True)
            elif state.keys() <= {"waiting"} and waiting.get("reason") in _PENDING:
                conditions = (c.get("message") for c in status.get("conditions") or ())
                why = why or str(status.get("message") or next(filter(None, conditions), ""))
                if status.get("phase") == "Failed":  # a node refused it
                    break
            else:
                return None  # the image is there, even if its container cannot start
        return _Finding(f"not known: {why or 'it was not pulled in time'}", is_certain=False)

    def _delete(self, pod: Json) -> None:
        try:
            self.cluster.delete(ObjectKey.of(pod), uid=pod["metadata"]["uid"])
        except ClusterError as error:
            LOG.warning("%s: the next check of images does that, or its deadline ends it", error)


def lasting_cause(reason: str, messages: Iterable[str]) -> str:
    """Return why a pull fails for good; '': it may still succeed."""
    if reason in NEVER_PULLS:
        return NOT_FOUND
    return next(filter(None, map(pull_refusal, messages)), "")
