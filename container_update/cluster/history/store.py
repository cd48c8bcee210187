"""Where revisions are kept: a Secret for each, in the namespace of the VNF instance.

A Secret, because it holds what the CNF's own Secrets held. The oldest ones are deleted. What goes
wrong here never makes an operation fail that has succeeded.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from container_update.cluster.history import revision as revisions
from container_update.cluster.history.revision import Revision
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.operation import name_of

LOG = logging.getLogger(__name__)

SECRET_TYPE = "container-update/revision"  # noqa: S105, a type
_ATTEMPTS = 3


@dataclass(frozen=True)
class History:
    """The revisions of one VNF instance."""

    cluster: Cluster
    namespace: str
    instance_id: str | None

    def read(self) -> tuple[Revision, ...]:
        """Return all revisions that are kept, the newest first.

        One that cannot be read is left out, with a warning.

        :raises ClusterError: the account may not list Secrets.
        """
        return tuple(
            revision for body in self._bodies() if (revision := _decoded(body)) is not None
        )

    def keep(self, revision: Revision, limit: int) -> int | None:
        """Keep a revision under the next number, and delete those beyond the limit.

        One of an operation that is kept already is not kept again.

        :param limit: how many are kept; 0: none is written.
        :returns: its number; None where it is not kept.
        """
        if limit <= 0:
            return None
        try:
            return self._keep(revision, limit)
        except ClusterError as error:
            LOG.warning("the history of the VNF instance could not be written: %s", error)
            return None

    def clear(self) -> None:
        """Delete all revisions: the VNF instance is no more."""
        for body in self._bodies():
            self.cluster.delete(ObjectKey.of(body), uid=body["metadata"]["uid"])

    def _keep(self, revision: Revision, limit: int) -> int:
        for attempt in range(1, _ATTEMPTS + 1):
            bodies = list(self._bodies())
            for body in bodies[:1]:
                if body["metadata"]["labels"].get("container-update/operation") == (
                    revision.operation
                ):
                    return self._number(body)
            number = self._number(bodies[0]) + 1 if bodies else 1
            try:
                self.cluster.create(self._secret(replace(revision, number=number)))
                break
            except ClusterError as error:
                if error.status != 409 or attempt == _ATTEMPTS:
                    raise
        for body in bodies[limit - 1 :]:
            self.cluster.delete(ObjectKey.of(body), uid=body["metadata"]["uid"])
        return number

    def _bodies(self) -> Iterator[Json]:
        """Yield the Secrets of this instance, the newest revision first."""
        secrets = Collection("", "Secret", self.namespace, fields=f"type={SECRET_TYPE}")
        bodies = [body for body in self.cluster.list(secrets).items if self._number(body)]
        yield from sorted(bodies, key=self._number, reverse=True)

    def _number(self, body: Json) -> int:
        """Return the number in the name of a Secret; 0 where it is of another instance."""
        match = re.fullmatch(rf"{re.escape(self._name)}\.v([0-9]+)", body["metadata"]["name"])
        return int(match[1]) if match else 0

    @property
    def _name(self) -> str:
        return name_of(self.instance_id)

    def _secret(self, revision: Revision) -> Json:
        data = revisions.encode(revision)
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": f"{self._name}.v{revision.number}",
                "namespace": self.namespace,
                "labels": {
                    "container-update/history": "true",
                    "container-update/operation": revision.operation,
                },
            },
            "type": SECRET_TYPE,
            "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
        }


def _decoded(body: Json) -> Revision | None:
    try:
        data = {name: base64.b64decode(value) for name, value in (body.get("data") or {}).items()}
        return revisions.decode(data)
    except ValueError as error:
        LOG.warning("%s %s", ObjectKey.of(body), error)
        return None
