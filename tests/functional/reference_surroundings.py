# SPDX-License-Identifier: Apache-2.0
"""The reference update where something around it is special: what the fault matrix runs besides.

A journal of three parts, objects with finalizers, a webhook that rewrites images, and a
ResourceQuota that refuses the first or the second Secret of the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from container_update.emulator.kubernetes import Registry
from container_update.emulator.kubernetes.resources import Resource
from tests.functional.promise import Expected
from tests.functional.reference_update import UPDATE, Files, Lab, ReferenceUpdate
from tests.internals.core import Json, containers, pod_spec

PART_BYTES = 1250
"""The journal of the reference update has about 3.2 kB: three parts."""

HOLD = "example.com/hold"
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
        lab.once("finalizers", lambda registry: registry.subscribe(Releasing(registry)))
        return super().deploy(lab)


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
        lab.once("mirror", lambda registry: registry.webhooks.append(mirror))
        return super().deploy(lab)


def mirror(resource: Resource, body: Json) -> None:
    """Rewrite the images of one registry."""
    if resource.kind not in MIRRORED:
        return
    whole = {**body, "kind": resource.kind, "apiVersion": resource.api_version}
    for _, container in containers(pod_spec(whole)):
        container["image"] = str(container.get("image")).replace(ORIGINAL, MIRROR)


@dataclass(frozen=True)
class RefusedUpdate(ReferenceUpdate):
    """The update in a namespace whose quota allows so many Secrets, too few for the journal."""

    secrets: int = 0

    def deploy(self, lab: Lab) -> str:
        namespace = super().deploy(lab)
        body = {"metadata": {"name": QUOTA}, "spec": {"hard": {"secrets": str(self.secrets)}}}
        lab.embedded.call(lambda registry: registry.create("resourcequotas", namespace, body))
        return namespace

    def make_room(self, lab: Lab, namespace: str) -> None:
        lab.embedded.call(lambda registry: registry.delete("resourcequotas", namespace, QUOTA))


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


IN_PARTS = "update with a journal of three parts"
SURROUNDINGS: Mapping[str, ReferenceUpdate] = {
    IN_PARTS: replace(UPDATE, part_bytes=PART_BYTES),
    "update of objects with finalizers": HELD,
    "update behind a webhook that rewrites images": MIRRORED_UPDATE,
}
REFUSED: Mapping[str, ReferenceUpdate] = {
    "update whose journal is refused at its first Secret": _refused(0),
    "update whose journal is refused at its second Secret": _refused(1),
}
"""They only end undone: nothing is begun."""
