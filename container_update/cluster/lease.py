"""One update of a VNF instance at a time, from whichever host: a Lease, renewed while held.

Source: API reference, coordination.k8s.io/v1 Lease.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from container_update.model import context_threads
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError, UpdateInProgressError
from container_update.model.objects import Json, ObjectKey
from container_update.model.operation import name_of

LOG = logging.getLogger(__name__)

_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


def utc_now() -> datetime:
    """Return the time of this host."""
    return datetime.now(timezone.utc)


@dataclass
class LeaseLock:
    """The lease of a VNF instance, held while in the block; a thread of its own renews it.

    :param operation: the id of the run, for others to see.
    :param host: who holds it, for others to see.
    :param seconds: after how long without renewal another may take it.
    :param on_loss: called once, with the reason, when it is lost.
    :raises UpdateInProgressError: on entering, another holds it.
    """

    cluster: Cluster
    namespace: str
    instance_id: str | None
    operation: str
    host: str
    seconds: float
    on_loss: Callable[[str], None]
    now: Callable[[], datetime] = utc_now
    _lease: Json = field(default_factory=dict, init=False)
    _released: threading.Event = field(default_factory=threading.Event, init=False)
    _renewing: threading.Thread | None = field(default=None, init=False)

    @property
    def key(self) -> ObjectKey:
        """The Lease."""
        return ObjectKey("coordination.k8s.io", "Lease", self.namespace, name_of(self.instance_id))

    def __enter__(self) -> LeaseLock:
        self._acquire()
        self._renewing = context_threads.daemon(self._keep_renewing, name="lease")
        self._renewing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        if self._renewing is not None:
            self._renewing.join(timeout=self.seconds)
        for is_last in (False, True):
            try:
                self.cluster.delete(self.key, uid=self._lease["metadata"]["uid"])
                return
            except ClusterError as failure:
                if is_last and failure.status != 409:  # 409: it is another's by now
                    LOG.warning("%s stays until it expires: %s", self.key, failure)

    def _acquire(self) -> None:
        try:
            self._lease = self.cluster.create(self._body())
        except ClusterError as error:
            if error.status != 409:
                raise
            self._take_over()

    def _take_over(self) -> None:
        lease = self.cluster.get(self.key)
        if lease is None:
            self._lease = self.cluster.create(self._body())
            return
        holder = Holder.of(lease)
        if holder.identity == self._identity:  # our own creation, whose response was lost
            self._lease = lease
            return
        if not holder.is_expired(self.now()):
            raise UpdateInProgressError(holder.sentence(self.now()))
        LOG.warning("taking over from %s, which expired", holder.identity)
        body = self._body()
        body["metadata"] |= {name: lease["metadata"][name] for name in ("uid", "resourceVersion")}
        try:
            self._lease = self.cluster.replace(body)
        except ClusterError as error:
            lease = self.cluster.get(self.key) if error.status == 409 else None
            if lease is None:
                raise
            if Holder.of(lease).identity != self._identity:
                raise UpdateInProgressError(
                    f"{self.key}: another run took over the expired lease first"
                ) from error
            self._lease = lease

    @property
    def _identity(self) -> str:
        return f"{self.host}/{self.operation}"

    def _body(self) -> Json:
        moment = self.now().strftime(_TIME)
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.key.name, "namespace": self.namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": int(self.seconds),
                "acquireTime": moment,
                "renewTime": moment,
            },
        }

    def _keep_renewing(self) -> None:
        good_until = self.now() + timedelta(seconds=self.seconds)
        while not self._released.wait(self.seconds / 4):
            began = self.now()
            try:
                self._renew()
                good_until = began + timedelta(seconds=self.seconds)
            except ClusterError as error:
                if error.status in (404, 409) or self.now() >= good_until:
                    LOG.error("%s is lost: %s", self.key, error)
                    self.on_loss(f"{self.key} is lost: {error}")
                    return

    def _renew(self) -> None:
        spec = {**self._lease["spec"], "renewTime": self.now().strftime(_TIME)}
        try:
            self._lease = self.cluster.replace({**self._lease, "spec": spec})
        except ClusterError as error:
            if error.status != 409:
                raise
            lease = self.cluster.get(self.key)  # our own renewal, whose response was lost
            if lease is None or Holder.of(lease).identity != self._identity:
                raise
            self._lease = lease


@dataclass(frozen=True)
class Holder:
    """Who holds a Lease."""

    identity: str
    since: str
    renewed: datetime | None
    seconds: float

    @classmethod
    def of(cls, lease: Json) -> Holder:
        """Return the holder that a Lease names."""
        spec: dict[str, Any] = lease.get("spec") or {}
        renewed = spec.get("renewTime")
        return cls(
            identity=str(spec.get("holderIdentity") or ""),
            since=str(spec.get("acquireTime") or renewed or ""),
            renewed=datetime.fromisoformat(renewed.replace("Z", "+00:00")) if renewed else None,
            seconds=float(spec.get("leaseDurationSeconds") or 0),
        )

    def is_expired(self, now: datetime) -> bool:
        """Tell whether its last heartbeat is older than the lease's duration."""
        if not self.identity or self.renewed is None:
            return True
        return now > self.renewed + timedelta(seconds=self.seconds)

    def sentence(self, now: datetime) -> str:
        """Return who holds it, and when its last heartbeat was."""
        host, _, operation = self.identity.rpartition("/")
        silence = (now - (self.renewed or now)).total_seconds()
        return held(f"{operation} on {host}", silence, self.seconds, f" since {self.since}")


def held(operation: str, silence: float, seconds: float, since: str = "") -> str:
    """Return the sentence that an operation holds a VNF instance, for both kinds of journal.

    :param silence: seconds since its last heartbeat.
    :param seconds: after how many without one the instance is free.
    """
    return (
        f"operation {operation} holds this VNF instance{since} (last heartbeat "
        f"{max(silence, 0):.0f} s ago; expires after {seconds:.0f} s without one)"
    )
