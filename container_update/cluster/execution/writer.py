"""Writes single objects and notices a lost response, a conflict or another writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import INSTANCE_LABEL, Json, ObjectKey
from container_update.planning import diff
from container_update.planning.steps import ObjectStep
from container_update.planning.steps.new_objects import new_object

_ATTEMPTS = 5
"""How often a write is tried that conflicts with the writes of others."""


class ChangedByAnotherError(Exception):
    """What a step is to change was changed by somebody else since the plan was made."""


@dataclass(frozen=True)
class ObjectWriter:
    """Writes objects of one cluster for one VNF instance."""

    cluster: Cluster
    instance_id: str | None = None
    resumed: bool = False
    """A run before this one was interrupted: objects may be as the steps want them already."""
    owner: Json | None = None
    """An ownerReference for what has not been there before, until the run has ended."""
    owner_namespace: str = ""
    """Where that owner is: it owns objects of no other namespace."""

    @property
    def labels(self) -> Mapping[str, str]:
        """What every created object is labelled with."""
        return {INSTANCE_LABEL: self.instance_id} if self.instance_id else {}

    def read(self, step: ObjectStep) -> Json | None:
        """Return the object that the plan was made from; in a resumed run, read it again."""
        return self.cluster.get(step.key) if self.resumed else step.before

    def create(self, body: Json, is_own: Callable[[Json], bool]) -> Json:
        """Create an object; one that exists already may be ours, its response having been lost.

        :param is_own: tells whether this run created a live object.
        :raises ChangedByAnotherError: another created one of that name.
        """
        try:
            return self.cluster.create(body)
        except ClusterError as error:
            key = ObjectKey.of(body)
            live = self.cluster.get(key) if error.status == 409 else None
            if error.status != 409 or live is None:
                raise
            if not is_own(live):
                raise ChangedByAnotherError(f"{key} was created by somebody else") from error
            return live

    def create_new(self, body: Json, is_own: Callable[[Json], bool]) -> Json:
        """Create an object that has not been there before the run; otherwise as :meth:`create`."""
        if self.owner is not None and body["metadata"].get("namespace") == self.owner_namespace:
            owners = [*(body["metadata"].get("ownerReferences") or ()), self.owner]
            body = {**body, "metadata": {**body["metadata"], "ownerReferences": owners}}
        return self.create(body, is_own)

    def delete(self, live: Json) -> None:
        """Delete the object with this UID, in the version that was read or in a later one.

        :raises ClusterError: with status 409: another object has its name.
        """
        key, uid = ObjectKey.of(live), live["metadata"]["uid"]
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self.cluster.delete(key, uid=uid, version=live["metadata"]["resourceVersion"])
                return
            except ClusterError as error:
                now = self.cluster.get(key) if error.status == 409 else live
                if now is None:
                    return
                if error.status != 409 or now["metadata"]["uid"] != uid or attempt == _ATTEMPTS:
                    raise
                live = now

    def recreate(self, key: ObjectKey, body: Json) -> None:
        """Delete the object with the UID in *body* and create it with that content."""
        self.delete(body)
        again = new_object(body, key.namespace, {})
        self.create(again, lambda live: diff.content(live) == diff.content(body))

    def apply(self, step: ObjectStep, live: Json | None) -> Json:
        """Replace the live object by what the step wants; see :meth:`_replace`."""
        return self._replace(step.key, live, step.desired, step.is_untouched)

    def restore(self, step: ObjectStep, live: Json) -> Json:
        """Replace the live object by what it was before the step; see :meth:`_replace`."""
        return self._replace(step.key, live, step.restored, step.is_own)

    def _replace(
        self,
        key: ObjectKey,
        live: Json | None,
        edit: Callable[[Json], Json],
        may_write: Callable[[Json], bool],
    ) -> Json:
        """Write an edited object; on a conflict read it again and go on.

        :param may_write: tells that nobody else changed what the step is about.
        :returns: the object as it is in the cluster now.
        :raises ChangedByAnotherError: somebody else did.
        """
        for _ in range(_ATTEMPTS):
            if live is None:
                raise ChangedByAnotherError(f"{key} was deleted by somebody else")
            desired = edit(live)
            if desired == live:
                return live
            if not may_write(live):
                raise ChangedByAnotherError(f"{key} was changed by somebody else since it was read")
            try:
                return self.cluster.replace(desired)
            except ClusterError as error:
                if error.status != 409:
                    raise
            live = self.cluster.get(key)
        raise ChangedByAnotherError(f"{key} is changed again and again by somebody else")
