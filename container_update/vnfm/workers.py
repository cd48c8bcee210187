"""The threads that carry operations out and read packages in: as many as the settings say.

What they have to do is in the database; this only hands it out. Now and then a look at the database
finds what a dead service left behind, and what of the own has no thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError

from container_update.model.cancellation import CancelToken
from container_update.vnfm import operations, packages
from container_update.vnfm.http import logs
from container_update.vnfm.lcm.perform import perform
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import now

LOG = logging.getLogger(__name__)

_FORGOTTEN = timedelta(seconds=60)
"""After how long an operation of this service's own that no thread has is settled."""

_LEAVE_SECONDS = 30.0
"""How long it may take to leave an update as it is, so that a retry can go on with it."""


class Workers:
    """The service's threads."""

    def __init__(self, service: ServiceContext) -> None:
        self._service = service
        self._pool = ThreadPoolExecutor(service.settings.workers, thread_name_prefix="worker")
        self._lock = threading.Lock()
        self._cancels: dict[str, CancelToken] = {}
        """The operations and packages that are queued or at work."""
        self._idle = threading.Condition(self._lock)
        self._watch = threading.Thread(target=self._look_for_ever, name="members", daemon=True)

    def start(self) -> None:
        """Take over what dead services left, and go on looking."""
        self.look()
        self._watch.start()

    @property
    def busy(self) -> int:
        """How many operations and packages are queued or at work."""
        with self._lock:
            return len(self._cancels)

    @property
    def is_alive(self) -> bool:
        """Whether operations are begun and looked after."""
        return self._watch.is_alive() and not self._service.ending.is_set()

    # --- handing out ----------------------------------------------------------------------------

    def operation(self, operation_id: str) -> None:
        """Have an occurrence carried out; it is in the database already."""
        self._submit(operation_id, lambda cancel: perform(self._service, operation_id, cancel))

    def package(self, package_id: str) -> None:
        """Have an uploaded package read in."""
        self._submit(package_id, lambda _: packages.onboard(self._service, package_id))

    def _submit(self, key: str, context: Callable[[CancelToken], None]) -> None:
        with self._lock:
            if key in self._cancels or self._service.ending.is_set():
                return
            cancel = self._cancels[key] = CancelToken()
            future = self._pool.submit(self._run, key, context, cancel)
        future.add_done_callback(lambda done: self._done(key, done))

    def _run(self, key: str, context: Callable[[CancelToken], None], cancel: CancelToken) -> None:
        with logs.about(key):
            context(cancel)

    def _done(self, key: str, future: Future[None]) -> None:
        with self._lock:
            self._cancels.pop(key, None)
            self._idle.notify_all()
        if not future.cancelled() and (error := future.exception()) is not None:
            LOG.error("%s came to no recorded end", key, exc_info=error)

    # --- looking --------------------------------------------------------------------------------

    def look(self) -> None:
        """Settle or begin what dead services left, and what of the own has no thread."""
        self._service.process_lock.keep()
        for operation_id in operations.take_over(self._service):
            self.operation(operation_id)
        for package_id in packages.take_over(self._service):
            self.package(package_id)
        with self._lock:
            at_work = set(self._cancels)
        for operation_id in operations.forgotten(self._service, at_work, now() - _FORGOTTEN):
            self.operation(operation_id)

    def _look_for_ever(self) -> None:
        while not self._service.ending.wait(self._service.settings.lock_seconds):
            try:
                self.look()
            except (SQLAlchemyError, OSError) as error:
                LOG.warning("the database cannot be asked: %s", type(error).__name__)

    # --- the end --------------------------------------------------------------------------------

    def stop(self) -> None:
        """End: what runs may finish, then is told to leave things for a retry; what is only queued
        stays in the database for the next service."""
        self._service.ending.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        if not self._wait(self._service.settings.drain_seconds):
            with self._lock:
                cancels = list(self._cancels.values())
            for cancel in cancels:
                cancel.request("because the service ends", keep_journal=True)
            self._wait(_LEAVE_SECONDS)
        if self._watch.is_alive():
            self._watch.join(timeout=_LEAVE_SECONDS)

    def _wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        with self._idle:
            while self._cancels and (left := deadline - time.monotonic()) > 0:
                self._idle.wait(left)
            return not self._cancels
