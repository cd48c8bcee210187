# SPDX-License-Identifier: Apache-2.0
"""The threads that carry out operations and batches, and onboard packages.

Their work is in the database. A regular look at it finds the work of services that died, and work
of this service that no thread has.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta

from sqlalchemy.exc import SQLAlchemyError

from container_update.model.cancellation import CancelToken
from container_update.vnfm import batches, operations, packages
from container_update.vnfm.http import logs
from container_update.vnfm.lcm.perform import perform
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import BY_REQUEST
from container_update.vnfm.store import retention
from container_update.vnfm.store.database import now

LOG = logging.getLogger(__name__)

_FORGOTTEN = timedelta(seconds=60)
"""Time after which an operation of this service that no thread has is settled."""

_FORGET_EVERY = timedelta(hours=1)

_OUTAGE_PAUSE = 1.0
"""Seconds between two looks while the database is away: others wait for this service's lock."""

CANCEL_SECONDS = 30.0
"""Maximum time to interrupt an update, so that another service can resume it."""


class Workers:
    """The service's threads."""

    def __init__(self, service: ServiceContext) -> None:
        self._service = service
        self._pool, self._downloads = (
            ThreadPoolExecutor(threads, thread_name_prefix=name)
            for name, threads in (
                ("worker", service.settings.workers),
                ("download", service.package_transfers.together),  # a slow host keeps no worker
            )
        )
        self._cancels: dict[str, CancelToken] = {}
        """By the id of each operation, batch and package that is queued or at work."""
        self._next: dict[str, Callable[[], None]] = {}
        """By id, what queues a task that came while a thread was at that id still."""
        self._changed = threading.Condition()
        """The lock of the cancel tokens; notified when one was removed."""
        self._forgot = datetime.min
        """When old operations were deleted."""
        self._woken = threading.Event()
        """Set when there is a reason to look: an operation waits for a time, the service ends."""
        self._watch = threading.Thread(target=self._look_for_ever, name="members", daemon=True)

    def start(self) -> None:
        """Take over the work of services that died, and look for more from now on."""
        self.look()
        self._watch.start()

    @property
    def busy(self) -> int:
        """The number of operations, batches and packages that are queued or at work."""
        with self._changed:
            return len(self._cancels)

    @property
    def is_alive(self) -> bool:
        """Whether operations are begun and watched."""
        return self._watch.is_alive() and not self._service.ending.is_set()

    def operation(self, operation_id: str) -> None:
        """Queue an operation that is in the database."""
        self._submit(operation_id, lambda cancel: self._carry_out(operation_id, cancel))

    def _carry_out(self, operation_id: str, cancel: CancelToken) -> bool:
        waits = perform(self._service, operation_id, cancel)
        for batch_id in batches.under_way(self._service):  # it may have waited for this one
            self._advance(batch_id)
        return waits

    def batch(self, batch_id: str) -> None:
        """Queue a batch that is in the database, so that its next operations begin."""
        self._submit(batch_id, lambda _: self._advance(batch_id))

    def _advance(self, batch_id: str) -> None:
        for operation_id in batches.advance(self._service, batch_id):
            self.operation(operation_id)

    def cancel(self, operation_id: str) -> None:
        """Stop an operation that a client asked to cancel, if a thread of this service is at it."""
        with self._changed:
            at_work = {operation_id} & set(self._cancels)
        self._cancel_wanted(at_work)

    def _cancel_wanted(self, at_work: Collection[str]) -> None:
        for operation_id in operations.find_cancelled(self._service, at_work):
            with self._changed:
                cancel = self._cancels.get(operation_id)
            if cancel is not None:
                cancel.request(BY_REQUEST)

    def package(self, package_id: str) -> None:
        """Queue an uploaded package for onboarding."""
        lasting = self._service.database.lasting
        self._submit(
            package_id, lambda _: lasting(lambda: packages.onboard(self._service, package_id))
        )

    def download(self, package_id: str, source: packages.PackageSource, counted: ExitStack) -> None:
        """Queue a package to be fetched, which is *counted* until that has ended."""
        lasting = self._service.database.lasting

        def fetch(_: CancelToken) -> None:
            with counted:
                is_ready = lasting(lambda: packages.download(self._service, package_id, source))
            if is_ready:
                self.package(package_id)  # once this thread is done with it

        self._submit(package_id, fetch, self._downloads)

    def _submit(
        self,
        key: str,
        task: Callable[[CancelToken], bool | None],
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        """Queue a task; one with the key of a task that a thread is at is queued after that one."""

        def run() -> bool | None:
            with logs.about(key):
                return task(cancel)

        with self._changed:
            if self._service.ending.is_set():
                return
            if key in self._cancels:
                self._next[key] = lambda: self._submit(key, task, pool)
                return
            cancel = self._cancels[key] = CancelToken()
            future = (pool or self._pool).submit(run)
        future.add_done_callback(lambda done: self._on_done(key, done))

    def _on_done(self, key: str, future: Future[bool | None]) -> None:
        with self._changed:
            self._cancels.pop(key, None)
            submit_next = self._next.pop(key, None)
            self._changed.notify_all()
        if submit_next is not None:
            submit_next()
        if future.cancelled():
            return
        if (error := future.exception()) is not None:
            LOG.error("%s failed and its end is not recorded", key, exc_info=error)
        elif future.result():  # it waits for a time
            self._woken.set()

    def look(self) -> None:
        """Settle or begin the work of dead services, and work of this one that no thread has."""
        self._service.process_lock.keep()
        for operation_id in operations.take_over(self._service):
            self.operation(operation_id)
        with self._changed:
            at_work = set(self._cancels)
        for package_id in packages.take_over(self._service, at_work):
            self.package(package_id)
        self._cancel_wanted(at_work)  # the request may have come to another service
        for operation_id in operations.settle_forgotten(self._service, at_work, now() - _FORGOTTEN):
            self.operation(operation_id)
        for batch_id in batches.under_way(self._service):
            self.batch(batch_id)
        if now() - self._forgot > _FORGET_EVERY:
            seconds = self._service.settings.operation_seconds
            retention.forget_operations(self._service.database, seconds)
            self._forgot = now()

    def _look_for_ever(self) -> None:
        pause = interval = self._service.settings.lock_seconds
        while True:
            self._woken.wait(pause)
            self._woken.clear()
            if self._service.ending.is_set():
                return
            try:
                self.look()
                due = operations.next_due(self._service)
                pause = max(0.0, (due - now()).total_seconds()) if due else interval
                pause = min(interval, pause)
            except (SQLAlchemyError, OSError) as error:
                LOG.warning("the database does not answer: %s", type(error).__name__)
                pause = min(interval, _OUTAGE_PAUSE)

    def stop(self) -> None:
        """Stop: wait for running operations, then interrupt them, and hand over those not done.

        Another service goes on with it, or the next one that starts.
        """
        self._service.ending.set()
        self._woken.set()
        for pool in (self._pool, self._downloads):
            pool.shutdown(wait=False, cancel_futures=True)
        if not self._wait(self._service.settings.drain_seconds):
            with self._changed:
                cancels = list(self._cancels.values())
            for cancel in cancels:
                cancel.request("because the service ends", keep_journal=True)
            self._wait(CANCEL_SECONDS)
        if self._watch.is_alive():
            self._watch.join(timeout=CANCEL_SECONDS)
        with self._changed:
            at_work = set(self._cancels)
        try:
            operations.hand_over_all(self._service, at_work)
        except SQLAlchemyError as error:
            LOG.warning("queued operations are not handed over: %s", type(error).__name__)

    def _wait(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._cancels, seconds)
