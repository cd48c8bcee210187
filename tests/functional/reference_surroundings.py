# SPDX-License-Identifier: Apache-2.0
"""The reference update where something around it is special: what the fault matrix runs besides.

A journal of three parts, objects with finalizers, a webhook that rewrites images, and a
ResourceQuota that refuses the first or the second Secret of the journal.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from container_update import ClusterError, connect
from container_update.emulator.kubernetes import Registry
from container_update.emulator.kubernetes.resources import Resource
from tests.functional.admission import WORKLOADS, Policy, tried
from tests.functional.promise import Expected
from tests.functional.reference_update import UPDATE, Files, Lab, ReferenceUpdate, until
from tests.functional.server import EmbeddedServer
from tests.internals.core import (
    Collection,
    Json,
    KubernetesCluster,
    ObjectKey,
    containers,
    images,
    pod_spec,
)

PART_BYTES = 1250
"""The journal of the reference update has about 3.2 kB: three parts."""

HOLD = "example.com/hold"
HELD_KINDS = ("Secret", "Pod", "PersistentVolumeClaim")
RELEASE_SECONDS = 0.05
RECREATED = ("typed", "recreated")
"""The files of the reference update whose objects are deleted and created again."""

ORIGINAL, MIRROR = "original.example/", "mirror.example/"
MIRRORED = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Pod")

QUOTA = "limit"


@dataclass(frozen=True)
class HeldUpdate(ReferenceUpdate):
    """The update of objects with finalizers, which a controller removes a little later."""

    def deploy(self, lab: Lab) -> str:
        namespace = super().deploy(lab)
        release_finalizers(lab, namespace)
        return namespace


def release_finalizers(lab: Lab, namespace: str) -> None:
    """Have a controller remove the finalizers of what is being deleted in a namespace."""
    if isinstance(lab.server, EmbeddedServer):
        call = lab.server.front.call
        lab.once("finalizers", lambda: call(lambda each: each.subscribe(Releasing(each))))
        return
    held = [Collection("", kind, namespace) for kind in HELD_KINDS]
    lab.before_removal[namespace] = partial(_free, lab.admin, held)
    for collection in held:
        follow = partial(_follow, lab.admin, collection)
        threading.Thread(target=follow, daemon=True).start()


def _free(admin: KubernetesCluster, collections: Iterable[Collection]) -> None:
    """Remove the finalizers of everything: no controller will, once the tests have ended."""
    for body in (body for each in collections for body in admin.list(each).items):
        with suppress(ClusterError):  # it is gone, or was freed just now
            _release(admin, body)


def _follow(admin: KubernetesCluster, collection: Collection) -> None:
    """Remove the finalizers of what is being deleted, until the namespace is gone."""
    space = ObjectKey("", "Namespace", "", collection.namespace)
    while admin.get(space) is not None:
        with suppress(ClusterError):  # another client wrote it, or the watch ended
            listing = admin.list(collection)
            for body in listing.items:
                _release_deleted(admin, body)
            for event in admin.watch(collection, listing.resource_version, 5):
                _release_deleted(admin, event.object)


def _release_deleted(admin: KubernetesCluster, body: Json) -> None:
    if "deletionTimestamp" in body["metadata"]:
        _release(admin, body)


def _release(admin: KubernetesCluster, body: Json) -> None:
    metadata = body["metadata"]
    finalizers = metadata.get("finalizers") or ()
    if HOLD in finalizers:
        kept = [other for other in finalizers if other != HOLD]
        admin.replace({**body, "metadata": {**metadata, "finalizers": kept}})


@dataclass(frozen=True)
class Releasing:
    """A subscriber that removes the finalizers of what is being deleted, a little later."""

    registry: Registry

    def __call__(self, event: str, resource: str, body: Json, _: Json | None) -> None:
        metadata = body["metadata"]
        if event == "DELETED" or "deletionTimestamp" not in metadata:
            return
        if HOLD in metadata.get("finalizers", ()):
            key = (resource, metadata["namespace"], metadata["name"], metadata["uid"])
            asyncio.get_running_loop().call_later(RELEASE_SECONDS, self._release, *key)

    def _release(self, resource: str, namespace: str, name: str, uid: str) -> None:
        live = self.registry.get(resource, namespace, name)
        if live is None or live["metadata"]["uid"] != uid:
            return
        kept = [other for other in live["metadata"].get("finalizers", ()) if other != HOLD]
        metadata = {**live["metadata"], "finalizers": kept}
        self.registry.update(resource, namespace, name, {**live, "metadata": metadata})


@dataclass(frozen=True)
class MirroredUpdate(ReferenceUpdate):
    """The update behind a webhook that has images come from a mirror."""

    def deploy(self, lab: Lab) -> str:
        if isinstance(lab.server, EmbeddedServer):
            call = lab.server.front.call
            lab.once("mirror", lambda: call(lambda registry: registry.webhooks.append(mirror)))
        return super().deploy(lab)


@contextmanager
def images_mirrored(real: str | None) -> Iterator[None]:
    """Have a real server do the same while the block runs; no other test has such images."""
    with ExitStack() as stack:
        if real is not None:
            admin = stack.enter_context(connect(real))
            for kind, of, pods in (
                (WORKLOADS, "Deployment", "spec.template.spec"),
                ("Pod", "Pod", "spec"),
            ):
                policy = Policy(f"mirror-{uuid.uuid4().hex[:8]}", "", kind, _mirroring(pods))
                is_seen = partial(_is_mirrored, admin, of)
                stack.enter_context(policy.in_force(admin, is_seen))
        yield


def _mirroring(pods: str) -> Json:
    """Return the part of a policy that rewrites the image below this field."""
    image = f"object.{pods}.containers[0].image"
    path = f"/{pods.replace('.', '/')}/containers/0/image"
    patch = f"op: 'replace', path: '{path}', value: {image}.replace('{ORIGINAL}', '{MIRROR}')"
    condition = {"name": "original", "expression": f"{image}.startsWith('{ORIGINAL}')"}
    expression = {"expression": f"[JSONPatch{{{patch}}}]"}
    return {
        "matchConditions": [condition],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": expression}],
    }


def _is_mirrored(admin: KubernetesCluster, kind: str) -> bool:
    stored = tried(admin, "default", kind, image=f"{ORIGINAL}any:1")
    return all(image.startswith(MIRROR) for image in images(stored).values())


def mirror(resource: Resource, body: Json) -> None:
    """Rewrite the images of one registry."""
    if resource.kind not in MIRRORED:
        return
    whole = {**body, "kind": resource.kind, "apiVersion": resource.api_version}
    for _, container in containers(pod_spec(whole)):
        container["image"] = str(container.get("image")).replace(ORIGINAL, MIRROR)


@dataclass(frozen=True)
class RefusedUpdate(ReferenceUpdate):
    """The update in a namespace whose quota allows so many more Secrets, too few for the
    journal."""

    secrets: int = 0

    def deploy(self, lab: Lab) -> str:
        namespace = super().deploy(lab)
        there = len(lab.admin.list(Collection("", "Secret", namespace)).items)
        spec = {"hard": {"secrets": str(there + self.secrets)}}
        metadata = {"name": QUOTA, "namespace": namespace}
        kind = {"apiVersion": "v1", "kind": "ResourceQuota"}
        lab.admin.create({**kind, "metadata": metadata, "spec": spec})
        until(lambda: bool((lab.admin.get(_quota(namespace)) or {}).get("status")))
        return namespace

    def make_room(self, lab: Lab, namespace: str) -> None:
        lab.admin.delete(_quota(namespace))


def _quota(namespace: str) -> ObjectKey:
    return ObjectKey("", "ResourceQuota", namespace, QUOTA)


def _all_held(files: Files) -> Files:
    held = {
        name: files[name]
        .replace("metadata: {", f"metadata: {{finalizers: [{HOLD}], ")
        .replace("metadata:\n", f"metadata:\n  finalizers: [{HOLD}]\n", 1)
        for name in RECREATED
    }
    return {**files, **held}


def _from_original(files: Files) -> Files:
    return {
        name: text.replace("image: nginx", f"image: {ORIGINAL}nginx")
        for name, text in files.items()
    }


def _from_mirror(expected: Expected) -> Expected:
    runs = {
        key: running and replace(running, image=MIRROR + running.image)
        for key, running in expected.workloads.items()
    }
    return replace(expected, workloads=runs)


HELD = HeldUpdate(
    old_files=_all_held(UPDATE.old_files),
    ways={way: _all_held(files) for way, files in UPDATE.ways.items()},
    old=UPDATE.old,
    new=UPDATE.new,
    options=UPDATE.options,
)
MIRRORED_UPDATE = MirroredUpdate(
    old_files=_from_original(UPDATE.old_files),
    ways={way: _from_original(files) for way, files in UPDATE.ways.items()},
    old=_from_mirror(UPDATE.old),
    new=_from_mirror(UPDATE.new),
    options=UPDATE.options,
)


def _refused(secrets: int) -> RefusedUpdate:
    return RefusedUpdate(
        old_files=UPDATE.old_files,
        ways={"done": UPDATE.ways["done"], "undone": UPDATE.ways["done"]},
        old=UPDATE.old,
        new=UPDATE.new,
        options=UPDATE.options,
        part_bytes=PART_BYTES,
        secrets=secrets,
    )


BEHIND_MIRROR = "update behind a webhook that rewrites images"
IN_PARTS = "update with a journal of three parts"
SURROUNDINGS: Mapping[str, ReferenceUpdate] = {
    IN_PARTS: replace(UPDATE, part_bytes=PART_BYTES),
    "update of objects with finalizers": HELD,
    BEHIND_MIRROR: MIRRORED_UPDATE,
}
REFUSED: Mapping[str, ReferenceUpdate] = {
    "update whose journal is refused at its first Secret": _refused(0),
    "update whose journal is refused at its second Secret": _refused(1),
}
"""They only end undone: nothing is begun."""
