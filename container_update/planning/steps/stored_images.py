# SPDX-License-Identifier: Apache-2.0
"""Images that the server changes as it stores an object: a webhook names a mirror. Pure.

Then the live image is neither the old package's nor the new one's, and stays so. It is compared
with what the server makes of a write, which a dry run tells. Source: Kubernetes API concepts,
"Dry-run"; "Dynamic Admission Control": mutating webhooks are idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.planning.steps.manifest import manifest_digest, recorded_digest
from container_update.workloads import pod_template
from container_update.workloads.registry import is_workload

StoredImages = Mapping[ObjectKey, Mapping[str, str]]
"""For live workloads the new package's images as the server stores them, by container name."""


def unexplained(
    pairs: Iterable[tuple[Manifest | None, Manifest | None]], live: Mapping[ObjectKey, Json]
) -> Iterator[Json]:
    """Yield live workloads, with the new package's images, for a dry run.

    Only those with an image that is in neither package, of a container that the packages change:
    without such a webhook there are none.

    :param pairs: old and new manifests, with the names of the live objects.
    """
    for old, new in pairs:
        body = None if new is None else live.get(new.key)
        if new is not None and body is not None and is_workload(new.key):
            desired = pod_template.images(new.body)
            if _is_unexplained(pod_template.images(body), desired, _before(old, new, body)):
                yield pod_template.with_images(body, desired)


def _before(old: Manifest | None, new: Manifest, live: Json) -> Mapping[str, str]:
    """Return the images of the manifest that the live object was made from; none where that is the
    new one: then every container is to have its image."""
    if old is None or recorded_digest(live) == manifest_digest(new.body):
        return {}
    return pod_template.images(old.body)


def _is_unexplained(
    now: Mapping[str, str], desired: Mapping[str, str], before: Mapping[str, str]
) -> bool:
    return any(
        now.get(name) not in (None, image, before.get(name))
        for name, image in desired.items()
        if before.get(name) != image
    )
