# SPDX-License-Identifier: Apache-2.0
"""Steps about the pods of a workload: a restart for new images or a new configuration digest on the
pod template, another number of pods, single pods that are replaced."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from container_update.model.objects import DIGEST_ANNOTATION, Json, instance_of
from container_update.model.plan import Action
from container_update.planning.release_labels import selector_of
from container_update.planning.steps import metadata
from container_update.planning.steps.base import ObjectStep
from container_update.planning.steps.new_objects import recreated_pod
from container_update.workloads import pod_template
from container_update.workloads.readiness import replicas, with_replicas

CHANGE_CAUSE = "kubernetes.io/change-cause"
"""What ``kubectl rollout history`` shows; controllers copy it to the revision that they make
(Kubernetes documentation, "Well-known Labels, Annotations and Taints")."""


@dataclass(frozen=True)
class WorkloadStep(ObjectStep):
    """A step that may change a workload in place, so that its pods are replaced."""

    digest: str | None = field(default=None, kw_only=True)
    """The pod template's new configuration digest; None where only images change."""

    @property
    def way_back(self) -> Action:
        """How its pods are replaced in an undo."""
        return self.action

    @abstractmethod
    def new_pod(self, labels: Mapping[str, str]) -> Json:
        """Return the Pod to create in place of the old one; *labels* for one of a manifest."""

    @abstractmethod
    def with_stored(self, images: Mapping[str, str]) -> WorkloadStep:
        """Return the step that wants its images as the server's answer to a write has them."""

    def is_outdated(self, pod: Json) -> bool:  # noqa: ARG002
        """Tell whether a pod has the old template; False where a pod does not show it."""
        return False


@dataclass(frozen=True)
class RestartStep(WorkloadStep):
    """Change images and configuration digest of a live workload, and nothing else."""

    change_cause: str = field(default="", kw_only=True)
    """What the annotation of that name is to say; '': it stays as it is. Not a change by itself."""

    manifest_digest: str = field(default="", kw_only=True)
    """The digest of the manifest in force afterwards; written only where the object has one: it was
    made from a manifest. Not a change by itself."""

    def with_change(self, live: Json) -> Json:
        """Return the live workload with the new images and digest; see :class:`ObjectStep`."""
        changed = pod_template.with_images(live, self.images)
        if self.digest is not None:
            changed = pod_template.with_digest(changed, self.digest)
        written = {CHANGE_CAUSE: self.change_cause} if self.change_cause else {}
        digest = DIGEST_ANNOTATION
        if self.manifest_digest and metadata.value_of(live, "annotations", digest) is not None:
            written[digest] = self.manifest_digest
        return _with_annotations(changed, written)

    def without_change(self, live: Json) -> Json:
        """Return the live workload with the images and the digest that it had."""
        before = pod_template.images(self.old)
        images = {name: before[name] for name in self.images if name in before}
        changed = pod_template.with_images(live, images)
        if self.digest is not None:
            changed = pod_template.with_digest(changed, pod_template.config_digest(self.old))
        names = {CHANGE_CAUSE: self.change_cause, DIGEST_ANNOTATION: self.manifest_digest}
        written = {
            name: metadata.value_of(self.old, "annotations", name)
            for name, value in names.items()
            if value
        }
        return _with_annotations(changed, written)

    def with_stored(self, images: Mapping[str, str]) -> RestartStep:
        """See :class:`WorkloadStep`."""
        wanted = {name: images.get(name, image) for name, image in self.images.items()}
        return replace(self, images=wanted)

    def is_same(self, one: Json, other: Json) -> bool:
        """See :class:`ObjectStep`."""
        one_images, other_images = pod_template.images(one), pod_template.images(other)
        same_images = all(one_images.get(name) == other_images.get(name) for name in self.images)
        return same_images and (
            self.digest is None
            or pod_template.config_digest(one) == pod_template.config_digest(other)
        )

    def is_untouched(self, live: Json) -> bool:
        """Tell whether the digest is as it was, and every image so or as it is to be.

        Another tool may have written images into a template whose pods have not got them; see
        :mod:`container_update.planning.update`.
        """
        old = self.old
        was, now = pod_template.images(old), pod_template.images(live)
        digests = {pod_template.config_digest(old), pod_template.config_digest(live)}
        return (
            old["metadata"]["uid"] == live["metadata"]["uid"]
            and all(now.get(name) in (was.get(name), new) for name, new in self.images.items())
            and (self.digest is None or len(digests) == 1)
        )

    def is_applied(self, live: Json) -> bool:
        """Tell whether the live workload, or a pod of it, has the new images and the digest."""
        now = pod_template.images(live)
        own = {name: new for name, new in self.images.items() if name in now}
        has_digest = self.digest in (None, pod_template.config_digest(live))
        return own.items() <= now.items() and has_digest

    def has_traces(self, live: Json) -> bool:
        """Tell whether one of the new images, or the digest, is there."""
        images = pod_template.images(live)
        has_image = any(images.get(name) == image for name, image in self.images.items())
        has_digest = self.digest is not None and pod_template.config_digest(live) == self.digest
        return has_image or has_digest

    def new_pod(self, labels: Mapping[str, str]) -> Json:  # noqa: ARG002, it has its own
        """Return the live Pod's spec with the new images."""
        return recreated_pod(self.old, self.images)

    def is_outdated(self, pod: Json) -> bool:
        """Tell whether a pod has another image or digest than the step wants."""
        return not self.is_applied(pod)

    def loss(self, written: Json, live: Json) -> str:
        """See :class:`ObjectStep`; names the first image that is another one."""
        one, other = pod_template.images(written), pod_template.images(live)
        for name, image in self.images.items():
            if one.get(name) == image != other.get(name):
                found = f"expected {image}, found {other.get(name, 'no such container')}"
                return f"was changed by another client: container {name}: {found}"
        return super().loss(written, live)


def _with_annotations(body: Json, written: Mapping[str, str | None]) -> Json:
    """Return the body with these annotations; without one whose value is None."""
    if not written:
        return body
    changed = {**body, "metadata": dict(body["metadata"])}
    annotations = {**(changed["metadata"].get("annotations") or {}), **written}
    values = {name: value for name, value in annotations.items() if value is not None}
    metadata.assign(changed["metadata"], "annotations", values)
    return changed


@dataclass(frozen=True)
class ScaleStep(ObjectStep):
    """Write ``spec.replicas``, and nothing else."""

    replicas: int = field(kw_only=True)

    @property
    def is_scale_in(self) -> bool:
        """Its way forward takes pods away."""
        return self.replicas < replicas(self.old)

    def with_change(self, live: Json) -> Json:
        """Return the live workload with the new number of pods."""
        return with_replicas(live, self.replicas)

    def without_change(self, live: Json) -> Json:
        """Return the live workload with the number of pods that it had."""
        return with_replicas(live, replicas(self.old))

    def is_of_others(self, live: Json) -> bool:
        """Tell whether the name is another workload's: no selector ever changes."""
        one, other = ((instance_of(body), selector_of(body)) for body in (live, self.old))
        return one != other

    def is_same(self, one: Json, other: Json) -> bool:
        """Tell whether two states of the workload ask for the same number of pods."""
        return replicas(one) == replicas(other)

    def loss(self, written: Json, live: Json) -> str:
        """See :class:`ObjectStep`; an autoscaler may write another number at any time."""
        return super().loss(written, with_replicas(live, self.replicas) if replicas(live) else live)

    def loss_of_restored(self, written: Json, live: Json) -> str:
        """See :meth:`loss`."""
        number = replicas(written)
        return super().loss_of_restored(
            written, with_replicas(live, number) if replicas(live) else live
        )


@dataclass(frozen=True)
class PodsStep(ObjectStep):
    """Delete pods, so that their controller creates them anew. There is nothing to be undone."""

    pods: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    """Name and UID of each."""

    def with_change(self, live: Json) -> Json:
        """Return the workload as it is."""
        return live

    def without_change(self, live: Json) -> Json:
        """Return the workload as it is."""
        return live

    def is_same(self, one: Json, other: Json) -> bool:  # noqa: ARG002
        """Return True: the step writes nothing in the workload."""
        return True
