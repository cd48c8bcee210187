# SPDX-License-Identifier: Apache-2.0
"""ControllerRevisions: the past and present templates of a DaemonSet or StatefulSet."""

from __future__ import annotations

import itertools

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.index import Index
from container_update.emulator.kubernetes.controllers.workloads.templates import template_hash
from container_update.emulator.kubernetes.objects import is_deleting, key_of, reference_to
from container_update.emulator.kubernetes.registry import Registry

RESOURCE = "controllerrevisions"
REVISION_LABEL = "controller-revision-hash"
"""On a pod: the revision that it was made from."""


class Revisions:
    """The revisions of all owners of one kind.

    :param hash_label: the label of a revision with its hash.
    """

    def __init__(self, registry: Registry, index: Index, hash_label: str) -> None:
        self._registry = registry
        self._index = index
        self._hash_label = hash_label

    def all_of(self, owner: Json) -> list[Json]:
        """Return the owner's revisions, oldest first."""
        revisions = self._index.controlled_objects(RESOURCE, owner["metadata"]["uid"])
        return sorted(revisions, key=lambda revision: int(revision["revision"]))

    def latest(self, owner: Json) -> Json:
        """Return the revision of the owner's present template, and create it if it is missing.

        An older revision of the same template becomes the latest again (a rollback). For a deleted
        owner nothing is stored.
        """
        known, data = self.all_of(owner), _data(owner)
        number = int(known[-1]["revision"]) + 1 if known else 1
        same = [revision for revision in known if revision["data"] == data]
        if same and same[-1] is known[-1]:
            return known[-1]
        if same:
            body = {**same[-1], "revision": number}
            return self._registry.update(RESOURCE, *key_of(body), body)
        return self._create(owner, data, number)

    def clean_up(self, owner: Json, in_use: set[str]) -> None:
        """Delete the oldest revisions beyond the history limit that are not among *in_use*."""
        idle = [rev for rev in self.all_of(owner) if rev["metadata"]["name"] not in in_use]
        surplus = len(idle) - owner["spec"].get("revisionHistoryLimit", 10)
        for revision in idle[: max(0, surplus)]:
            self._registry.delete(RESOURCE, *key_of(revision))

    def hash_of(self, revision: Json) -> str:
        """Return the hash in the revision's name."""
        return str(revision["metadata"]["labels"][self._hash_label])

    def _create(self, owner: Json, data: Json, number: int) -> Json:
        metadata, template = owner["metadata"], owner["spec"]["template"]
        for collisions in itertools.count():
            digest = template_hash(template, collisions)
            name = f"{metadata['name']}-{digest}"
            if self._registry.get(RESOURCE, metadata["namespace"], name) is None:
                break
        labels = {**(template["metadata"].get("labels") or {}), self._hash_label: digest}
        body = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "labels": labels,
                "ownerReferences": [reference_to(owner)],
            },
            "data": data,
            "revision": number,
        }
        if is_deleting(owner):
            return body
        return self._registry.create(RESOURCE, metadata["namespace"], body)


def template_of(revision: Json) -> Json:
    """Return the revision's pod template."""
    template = revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def _data(owner: Json) -> Json:
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
