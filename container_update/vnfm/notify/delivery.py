# SPDX-License-Identifier: Apache-2.0
"""Delivers the notifications of the outbox: at least once, in order, with a bounded effort.

An attempt is stored before it is made, so neither a crash nor a second service on the same database
loses a notification; it may arrive twice (with the same ``id``). The next notification of a
subscription waits for the one before. After ``callback_attempts``, or the time that these would
take, a notification is given up.

What is due first is delivered first, to a few callbacks at a time. A callback that does not answer
is due again later than those that wait, so it does not keep them waiting for long.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from sqlalchemy import func, select, update
from sqlalchemy.exc import SQLAlchemyError

from container_update.model.objects import Json
from container_update.vnfm.notify.callbacks import CallbackError, Callbacks
from container_update.vnfm.settings import Settings
from container_update.vnfm.store import retention
from container_update.vnfm.store.database import Database, now
from container_update.vnfm.store.rows import Notification, Subscription, compare_and_set
from container_update.vnfm.store.vault import Vault, VaultError

LOG = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 60.0
LOOK_SECONDS = 1.0
"""Maximum time between two looks at the outbox."""
AT_ONCE = 16
"""Maximum number of callbacks that are called at the same time."""
PENDING = (Notification.delivered.is_(None), Notification.given_up.is_(None))
"""The conditions for a notification that is still to be delivered."""


def pause(attempts: int) -> float:
    """Return the seconds from a failed attempt to the next: 1, 2, 4, ..."""
    return min(2.0 ** (attempts - 1), LONGEST_PAUSE_SECONDS)


@dataclass(frozen=True)
class Attempt:
    """An attempt to deliver a notification."""

    notification_id: int
    subscription_id: str
    created: datetime
    number: int
    body: Json
    uri: str
    sealed: str | None
    """The encrypted credentials."""

    def __str__(self) -> str:
        parts = urlsplit(self.uri)  # its path and query may be secret
        about = self.body.get("operationState") or self.body.get("notificationType")
        return f"notification {self.body.get('id')} ({about}) to {parts.scheme}://{parts.netloc}"


class Notifier:
    """Delivers notifications on a thread of its own.

    :param count: called with the result of each attempt: 'delivered', 'failed' or 'given_up'.
    """

    def __init__(
        self, settings: Settings, database: Database, vault: Vault, count: Callable[[str], object]
    ) -> None:
        self._seconds, self._attempts = settings.callback_seconds, settings.callback_attempts
        spent = (self._seconds + pause(number) for number in range(1, self._attempts + 1))
        self._patience = timedelta(seconds=sum(spent))
        self._settings, self._database, self._vault = settings, database, vault
        self._count = count
        self._busy: set[str] = set()
        """The subscriptions with an attempt in progress."""
        self._tidied = datetime.min
        self._loop = asyncio.new_event_loop()
        self._woken = asyncio.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        """Begin to deliver, also what an earlier process left."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the outbox now; this may be called from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended: the next process will look
            self._loop.call_soon_threadsafe(self._woken.set)

    def stop(self) -> None:
        """Stop after the attempts in progress."""
        self._stopping = True
        self.wake()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._deliver_all())
        finally:
            self._loop.close()

    async def _deliver_all(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        async with Callbacks(self._settings) as callbacks:
            while not self._stopping:
                self._woken.clear()
                waiting = await asyncio.to_thread(self._look)
                for subscription in self._due(waiting):
                    self._busy.add(subscription)
                    task = asyncio.create_task(self._deliver(callbacks, subscription))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), _seconds_to_next(waiting))
            await asyncio.gather(*tasks, return_exceptions=True)

    def _due(self, waiting: Iterable[tuple[str, datetime]]) -> list[str]:
        """Return the subscriptions to which a notification is sent now."""
        moment = now()
        due = [name for name, due in waiting if due <= moment and name not in self._busy]
        return due[: AT_ONCE - len(self._busy)]

    async def _deliver(self, callbacks: Callbacks, subscription: str) -> None:
        """Deliver the next notification of a subscription, if it is due."""
        try:
            attempt = await asyncio.to_thread(self._begin, subscription)
            if attempt is not None:
                problem = await self._send(callbacks, attempt)
                await asyncio.to_thread(self._record, attempt, problem)
        except SQLAlchemyError as error:
            LOG.error("the outbox cannot be read or written, is tried again: %s", error)
        finally:
            self._busy.remove(subscription)
            self._woken.set()

    async def _send(self, callbacks: Callbacks, attempt: Attempt) -> str:
        """Return why the notification was not delivered, or an empty text."""
        try:
            credentials = self._vault.open(attempt.sealed) if attempt.sealed else None
            status = await callbacks.request("POST", attempt.uri, credentials, attempt.body)
        except (CallbackError, VaultError) as error:
            return str(error)
        return "" if 200 <= status < 300 else f"answered {status}"

    def _look(self) -> list[tuple[str, datetime]]:
        """Return the subscriptions that have something to deliver and when, the earliest first."""
        try:
            self._tidy()
            first = select(func.min(Notification.id)).where(*PENDING)
            query = (
                select(Notification.subscription_id, Notification.next_attempt)
                .where(Notification.id.in_(first.group_by(Notification.subscription_id)))
                .order_by(Notification.next_attempt)
            )
            with self._database.reading() as session:
                return [(name, due) for name, due in session.execute(query)]
        except SQLAlchemyError as error:
            LOG.error("the outbox cannot be read, is tried again: %s", error)
            return []

    def _begin(self, subscription: str) -> Attempt | None:
        """Store the next attempt for a subscription and return it; None if none is due."""
        moment = now()
        query = (
            select(Notification, Subscription.callback_uri, Subscription.sealed)
            .join(Subscription, Subscription.id == Notification.subscription_id)
            .where(Notification.subscription_id == subscription, *PENDING)
            .order_by(Notification.id)
            .limit(1)
        )
        with self._database.writing() as session:
            row = session.execute(query).one_or_none()
            if row is None or row[0].next_attempt > moment:
                return None
            notification, uri, sealed = row
            number = notification.attempts + 1
            # twice the time: there may be a request for a token first
            until = moment + timedelta(seconds=2 * self._seconds + pause(number))
            if not compare_and_set(
                session,
                Notification,
                Notification.id == notification.id,
                Notification.attempts == notification.attempts,
                attempts=number,
                next_attempt=until,
            ):
                return None
            body = dict(notification.body)
            created = notification.created
            return Attempt(notification.id, subscription, created, number, body, uri, sealed)

    def _record(self, attempt: Attempt, problem: str) -> None:
        moment = now()
        values: dict[str, object] = {"delivered": moment}
        result = "delivered"
        if problem:
            is_last = attempt.number >= self._attempts or moment - attempt.created > self._patience
            again = moment + timedelta(seconds=pause(attempt.number))
            result = "given_up" if is_last else "failed"
            values = {"given_up": moment} if is_last else {"next_attempt": again}
            level = logging.ERROR if is_last else logging.WARNING
            outlook = "it is given up" if is_last else "it is tried again"
            LOG.log(level, "%s, attempt %d: %s; %s", attempt, attempt.number, problem, outlook)
        with self._database.writing() as session:
            is_notification = Notification.id == attempt.notification_id
            session.execute(update(Notification).where(is_notification).values(**values))
        self._count(result)

    def _tidy(self) -> None:
        """Once an hour, delete the old notifications that were delivered or given up."""
        moment = now()
        if moment - self._tidied < timedelta(hours=1):
            return
        self._tidied = moment
        retention.forget_notifications(self._database)


def _seconds_to_next(waiting: Iterable[tuple[str, datetime]]) -> float:
    """Return the time until the outbox is to be looked at again."""
    moment = now()
    return min(
        [LOOK_SECONDS] + [(due - moment).total_seconds() for _, due in waiting if due > moment]
    )
