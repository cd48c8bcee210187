"""ControllerRevisions: the templates that a DaemonSet or StatefulSet has had, and their order."""

from __future__ import annotations

import itertools

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.index import Index
from container_update.emulator.kubernetes.controllers.workloads.templates import template_hash
from container_update.emulator.kubernetes.ownership import is_deleting, reference_to
from container_update.emulator.kubernetes.registry import Registry

RESOURCE = "controllerrevisions"
REVISION_LABEL = "controller-revision-hash"
"""On a pod: the revision that it was made from."""


class Revisions:
    """The revisions of all owners of one kind.

    :param hash_label: the label under which a revision bears its hash.
    """

    def __init__(self, registry: Registry, index: Index, hash_label: str) -> None:
        self._registry = registry
        self._index = index
        self._hash_label = hash_label

    def all_of(self, owner: Json) -> list[Json]:
        """The owner's revisions, oldest first."""
        found = self._index.controlled(RESOURCE, owner["metadata"]["uid"])
        return sorted(found, key=lambda revision: int(revision["revision"]))

    def latest(self, owner: Json) -> Json:
        """The revision of the owner's template as it is now, made where there is none.

        One that was in force before becomes the latest again: this is how a rollback looks. An
        owner that is being deleted gets nothing stored any more.
        """
        known, data = self.all_of(owner), _data(owner)
        number = int(known[-1]["revision"]) + 1 if known else 1
        same = [revision for revision in known if revision["data"] == data]
        if same and same[-1] is known[-1]:
            return known[-1]
        if same:
            return self._registry.update(
                RESOURCE,
                same[-1]["metadata"]["namespace"],
                same[-1]["metadata"]["name"],
                {**same[-1], "revision": number},
            )
        return self._make(owner, data, number)

    def clean_up(self, owner: Json, in_use: set[str]) -> None:
        """Delete the oldest revisions beyond the history limit that are not among *in_use*."""
        idle = [rev for rev in self.all_of(owner) if rev["metadata"]["name"] not in in_use]
        surplus = len(idle) - owner["spec"].get("revisionHistoryLimit", 10)
        for revision in idle[: max(0, surplus)]:
            metadata = revision["metadata"]
            self._registry.delete(RESOURCE, metadata["namespace"], metadata["name"])

    def hash_of(self, revision: Json) -> str:
        """The hash in the revision's name."""
        value: str = revision["metadata"]["labels"][self._hash_label]
        return value

    def _make(self, owner: Json, data: Json, number: int) -> Json:
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
    """The pod template that the revision holds."""
    template = revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def _data(owner: Json) -> Json:
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
