# SPDX-License-Identifier: Apache-2.0
"""One update of a VNF instance at a time, from whichever host: a Lease, renewed while held.

Another's Lease is judged by our own observation, as client-go's leader election does: unchanged for
its duration on our monotonic clock, it is free. The clocks of the hosts may differ by any amount.
A holder that is a process of this host and has ended is free at once.

A freeze of the instance is an annotation of the Lease, which stays for it without a holder: who has
to take the Lease meets it, at no further request.

A Lease keeps others from beginning. It cannot call back a request that its last holder had sent:
see :mod:`container_update.engine.fence`.

Source: API reference, coordination.k8s.io/v1 Lease; package leaderelection of client-go.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from container_update.cluster.retry import RetryingCluster
from container_update.model import context_threads, errors
from container_update.model.cancellation import CancelToken
from container_update.model.objects import Json, ObjectKey
from container_update.model.operation import Freeze, name_of
from container_update.model.options import LONGEST_LEASE
from container_update.model.process_identity import ProcessIdentity
from container_update.model.schema import LINE, Text, complete
from container_update.model.times import time_of

LOG = logging.getLogger(__name__)

PROCESS_ANNOTATION = "container-update/process"
"""On a Lease: which process holds it."""
FROZEN_ANNOTATION = "container-update/frozen"
"""On a Lease: who has frozen the instance, since when, until when, and why."""
NOTES_ANNOTATION = "container-update/notes"
"""On a Lease: what the run that holds it notes of its progress, for those who follow it."""
_SHORT = Text("a line of at most 300 characters", LINE.pattern, 300)
_FREEZE = complete(who=_SHORT, since=_SHORT, until=_SHORT, why=_SHORT)

_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
_LOOKS = 10
"""How often in its duration another's Lease is read while it is observed, and how often at the most
the holder renews its own."""
_PAUSES = 40
"""How often in its duration the holder tries again where it cannot be renewed."""
IN_FORCE_SECONDS = 1.5
"""Until an API server judges by a webhook or policy that was just written, or no longer by one that
was deleted: it watches them, and reads policies anew each second. Source: Kubernetes,
apiserver/pkg/admission/plugin."""
_WRITABLE = 0.9
"""For which part of its duration the holder writes; the rest is for requests on their way."""


def utc_now() -> datetime:
    """Return the time of this host."""
    return datetime.now(timezone.utc)


def lease_key(namespace: str, instance_id: str | None) -> ObjectKey:
    """Return the Lease that keeps a second operation of an instance out."""
    return ObjectKey("coordination.k8s.io", "Lease", namespace, name_of(instance_id))


def idle_lease(namespace: str, instance_id: str | None) -> Json:
    """Return the Lease of an instance that no process holds."""
    metadata = {"name": name_of(instance_id), "namespace": namespace}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {},
    }


@dataclass
class LeaseLock:
    """The lease of a VNF instance, held while in the block; a thread of its own renews it.

    :param operation: the id of the run, for others to see.
    :param host: who holds it, for others to see.
    :param seconds: after how long without renewal another may take it.
    :param cancel: cancelled when the lease is lost.
    :param ends: only an operation under way is ended, which a freeze allows.
    :param now: the time of this host, for people.
    :param clock: seconds that only grow.
    :param notes: returns what the run has to note; it renews the lease sooner where that is new.
    :raises UpdateInProgressError: on entering, another holds it.
    :raises FrozenError: on entering, the instance is frozen.
    :raises PlanError: on entering, another holds it for longer than any run of ours would.
    """

    cluster: RetryingCluster
    namespace: str
    instance_id: str | None
    operation: str
    host: str
    seconds: float
    cancel: CancelToken
    ends: bool = False
    now: Callable[[], datetime] = utc_now
    clock: Callable[[], float] = time.monotonic
    notes: Callable[[], str] = lambda: ""
    _lease: Json = field(default_factory=dict, init=False)
    _sent: float = field(default=-math.inf, init=False)
    """When the last renewal that took effect was sent."""
    _failure_is_logged: bool = field(default=False, init=False)
    """Until a renewal takes effect again."""
    _lost: str = field(default="", init=False)
    _writing: threading.Lock = field(default_factory=threading.Lock, init=False)
    _released: threading.Event = field(default_factory=threading.Event, init=False)
    _renewing: threading.Thread | None = field(default=None, init=False)

    @property
    def key(self) -> ObjectKey:
        """The Lease."""
        return lease_key(self.namespace, self.instance_id)

    @property
    def uid(self) -> str:
        """The UID of the Lease that is held."""
        return str(self._lease["metadata"]["uid"])

    def __enter__(self) -> LeaseLock:
        self._acquire()
        self._renewing = context_threads.daemon(self._keep_renewing, name="lease")
        self._renewing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_renewing()
        try:
            self._release()
        except errors.ClusterError as failure:
            LOG.warning("%s stays until it expires: %s", self.key, failure)

    # --- acquiring ------------------------------------------------------------------------------

    def _acquire(self) -> None:
        sent = self.clock()
        try:
            self._lease = self.cluster.create(self._body())
        except errors.ClusterError as error:
            if error.status != 409:
                raise
            sent = self._acquire_existing(sent)
        self._sent = sent

    def _acquire_existing(self, sent: float) -> float:
        """Take the Lease that is there, where it is free; return when that was requested."""
        lease = self.cluster.get(self.key)
        if lease is not None and Holder.of(lease).identity == self._identity:
            self._lease = lease  # our own creation, whose response was lost
            return sent
        if lease is not None and not self.ends:
            refuse_frozen(frozen_by(lease, self.now()), self.namespace, self.instance_id)
        is_free = lease is not None and self._observe(lease)
        sent = self.clock()
        if lease is not None and is_free:
            self._take_over(lease)
        else:
            self._lease = self.cluster.create(self._body())
        return sent

    def _observe(self, lease: Json) -> bool:
        """Wait until the Lease is free, or refuse; tell whether it is still there."""
        holder = Holder.of(lease)
        if holder.is_gone():
            return True
        refuse_too_long(str(self.key), holder.seconds)
        if holder.seems_alive(self.now()):
            raise errors.UpdateInProgressError(holder.sentence(self.now()))
        duration = holder.seconds or self.seconds
        LOG.warning("%s: waiting for %.0f s whether %s renews it", self.key, duration, holder.run)
        until, awake = self.clock() + duration, threading.Event()
        self.cancel.on_request(awake.set)
        while (left := until - self.clock()) > 0:
            awake.wait(min(left, duration / _LOOKS))
            live = self.cluster.get(self.key)
            if live is None:
                return False
            if self.cancel or live["spec"] != lease["spec"]:
                raise errors.UpdateInProgressError(Holder.of(live).sentence(self.now()))
        return True

    def _take_over(self, lease: Json) -> None:
        LOG.warning("%s: taking over from %s", self.key, Holder.of(lease).run or "no process")
        body = self._body()
        body["metadata"] |= {name: lease["metadata"][name] for name in ("uid", "resourceVersion")}
        body["metadata"]["annotations"] |= _frozen(lease)
        try:
            self._lease = self.cluster.replace(body)
        except errors.ClusterError as error:
            if error.status not in (404, 409):
                raise
            live = self.cluster.get(self.key)
            if live is None or Holder.of(live).identity != self._identity:
                raise errors.UpdateInProgressError(
                    f"{self.key}: another run took over the expired lease first"
                ) from error
            self._lease = live

    @property
    def _identity(self) -> str:
        return f"{self.host}/{self.operation}"

    def _body(self) -> Json:
        moment = self.now().strftime(_TIME)
        process = ProcessIdentity.current()
        annotations = {PROCESS_ANNOTATION: str(process)} if process is not None else {}
        idle = idle_lease(self.namespace, self.instance_id)
        return {
            **idle,
            "metadata": {**idle["metadata"], "annotations": annotations},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": math.ceil(self.seconds),
                "acquireTime": moment,
                "renewTime": moment,
            },
        }

    # --- holding --------------------------------------------------------------------------------

    def check(self) -> None:
        """Return where this run may write; LeaseLostError: another may have the lease soon."""
        if not self._lost and self.clock() >= self._sent + self.seconds * _WRITABLE:
            self._lose(f"{self.key} is lost: it could not be renewed in time")
        if self._lost:
            raise errors.LeaseLostError(f"This run stopped where it was: {self._lost}")

    def confirm(self) -> None:
        """Renew the lease now: no other process has had it, or LeaseLostError."""
        while True:
            self.check()
            if self._renewal_error() is None:
                return
            self._released.wait(self.seconds / _PAUSES)

    def refused_renewal(self) -> errors.ClusterError | None:
        """Renew the lease until what was just written is in force; return the last error where the
        API server answers nothing else for a third of its duration, None where it is renewed then
        or the server does not answer.

        :raises LeaseLostError: another process may have it.
        """
        began = self.clock()
        while True:
            error = self._renewal_error()
            enough = IN_FORCE_SECONDS if error is None else self.seconds / 3
            if self.clock() - began >= enough:
                return error if error is not None and error.status is not None else None
            self.check()
            self._released.wait(self.seconds / _PAUSES)

    def stop_renewing(self) -> None:
        """Leave the lease as it is: it is about to go, and the run with it."""
        self._released.set()
        if self._renewing is not None:
            self._renewing.join(timeout=self.seconds)

    def _keep_renewing(self) -> None:
        while not self._released.wait(self.seconds / _LOOKS):
            if not self._has_news and self.clock() < self._sent + self.seconds / 4:
                continue
            try:
                self._renewal_error()
                self.check()
            except errors.LeaseLostError:
                return
            except Exception:  # a thread that ended would silently lose the lease
                LOG.exception("%s could not be renewed; trying again", self.key)

    @property
    def _annotations(self) -> dict[str, str]:
        """The annotations of the Lease, with what the run notes now."""
        notes = {NOTES_ANNOTATION: text} if (text := self.notes()) else {}
        return {**(self._lease["metadata"].get("annotations") or {}), **notes}

    @property
    def _has_news(self) -> bool:
        return self._annotations != (self._lease["metadata"].get("annotations") or {})

    def _renewal_error(self) -> errors.ClusterError | None:
        """Renew the lease; return why that did not take effect, None where it did."""
        with self._writing:
            sent = self.clock()
            try:
                self._renew()
            except errors.ClusterError as error:
                if error.status in (404, 409):
                    self._lose(f"{self.key} is lost: {error}")
                elif not self._failure_is_logged:
                    LOG.warning("%s could not be renewed yet: %s", self.key, error)
                self._failure_is_logged = True
                return error
            self._sent, self._failure_is_logged = sent, False
            return None

    def _renew(self) -> None:
        cluster = self.cluster.unretried
        for is_last in (False, True):
            spec = {**self._lease["spec"], "renewTime": self.now().strftime(_TIME)}
            metadata = {**self._lease["metadata"], "annotations": self._annotations}
            try:
                self._lease = cluster.replace({**self._lease, "metadata": metadata, "spec": spec})
                return
            except errors.ClusterError as error:
                if error.status != 409 or is_last:
                    raise
                lease = cluster.get(self.key)  # perhaps our own renewal, whose response was lost
                if lease is None or Holder.of(lease).identity != self._identity:
                    raise
                self._lease = lease

    def _lose(self, reason: str) -> None:
        LOG.error("%s", reason)
        self._lost = self._lost or reason
        self.cancel.request(reason, lease_lost=True)

    # --- releasing ------------------------------------------------------------------------------

    def _release(self) -> None:
        """Delete the Lease, and no other's; one of a frozen instance stays without a holder."""
        for is_last in (False, True):
            metadata = self._lease["metadata"]
            try:
                if frozen_by(self._lease, self.now()):
                    metadata = {**metadata, "annotations": _frozen(self._lease)}
                    self.cluster.replace({**self._lease, "metadata": metadata, "spec": {}})
                else:
                    self.cluster.delete(
                        self.key, uid=metadata["uid"], version=metadata["resourceVersion"]
                    )
                return
            except errors.ClusterError as error:
                if is_last or error.transient:
                    raise
                lease = self.cluster.get(self.key)
                if lease is None or Holder.of(lease).identity != self._identity:
                    return  # another's by now
                self._lease = lease


def _frozen(lease: Json) -> dict[str, str]:
    """Return the annotation of a freeze, where the Lease has it."""
    annotations = lease["metadata"].get("annotations") or {}
    return {name: text for name, text in annotations.items() if name == FROZEN_ANNOTATION}


def frozen_by(lease: Json, now: datetime) -> Freeze | None:
    """Return the freeze that is in force; one of another client, which cannot be read, is."""
    for text in _frozen(lease).values():
        try:
            values = json.loads(text)
            if (wrong := _FREEZE.first_violation(values)) is not None:
                raise ValueError(str(wrong))
            freeze = Freeze(**values)
            return None if freeze.is_over(now) else freeze
        except (ValueError, TypeError, RecursionError):
            return Freeze("another client", "a time that is not known")
    return None


def refuse_frozen(freeze: Freeze | None, namespace: str, instance_id: str | None) -> None:
    """Raise FrozenError where there is a freeze."""
    if freeze is not None:
        name = f"VNF instance {instance_id or 'without an id'} in namespace {namespace}"
        raise errors.FrozenError(f"{name} is {freeze}, so no operation of it can begin")


def _time(text: str, lease: Json) -> datetime:
    try:
        return time_of(text)
    except ValueError as error:
        raise errors.ClusterError(
            f"{ObjectKey.of(lease)}: expected a time as spec.renewTime, found another text: is the "
            "URL of the API server right?"
        ) from error


@dataclass(frozen=True)
class Holder:
    """Who holds a Lease."""

    identity: str
    since: str
    renewed: datetime | None
    """By the holder's clock."""
    seconds: float
    process: ProcessIdentity | None = None

    @classmethod
    def of(cls, lease: Json) -> Holder:
        """Return the holder that a Lease names."""
        spec: dict[str, Any] = lease.get("spec") or {}
        annotations = (lease.get("metadata") or {}).get("annotations") or {}
        renewed = spec.get("renewTime")
        return cls(
            identity=str(spec.get("holderIdentity") or ""),
            since=str(spec.get("acquireTime") or renewed or ""),
            renewed=_time(renewed, lease) if renewed else None,
            seconds=float(spec.get("leaseDurationSeconds") or 0),
            process=ProcessIdentity.parse(str(annotations.get(PROCESS_ANNOTATION, ""))),
        )

    @property
    def run(self) -> str:
        """The operation and its host, for people; '' where no process holds the Lease."""
        host, _, operation = self.identity.rpartition("/")
        return f"{operation} on {host}" if self.identity else ""

    def is_gone(self) -> bool:
        """Tell whether certainly no process holds the Lease any more."""
        return not self.identity or (self.process is not None and self.process.is_gone())

    def seems_alive(self, now: datetime) -> bool:
        """Tell whether it was renewed a moment ago, if the clocks of both hosts agree."""
        if self.is_gone() or self.renewed is None:
            return False
        return abs((now - self.renewed).total_seconds()) <= self.seconds

    def sentence(self, now: datetime) -> str:
        """Return who holds it, and when its last heartbeat was."""
        silence = (now - (self.renewed or now)).total_seconds()
        return describe_holder(self.run, silence, self.seconds, f" since {self.since}")


def refuse_too_long(place: str, seconds: float) -> None:
    """Refuse to wait for a holder for longer than any run of ours lasts."""
    if not seconds <= LONGEST_LEASE:  # also what is no number
        raise errors.PlanError(
            f"{place}: expected a lease of at most {LONGEST_LEASE:.0f} s, found {seconds:.0f} s: "
            "it is by no run of this program: see who wrote it, and delete it"
        )


def describe_holder(operation: str, silence: float, seconds: float, since: str = "") -> str:
    """Return the sentence that an operation holds a VNF instance, for both kinds of journal.

    :param silence: seconds since its last heartbeat.
    :param seconds: after how many without one the instance is free.
    """
    return (
        f"operation {operation} holds this VNF instance{since} (last heartbeat "
        f"{max(silence, 0):.0f} s ago; expires after {seconds:.0f} s without one)"
    )
