"""Delivers what the outbox holds: every notification to its callback, in order, until it is there.

At least once: an attempt is written down before it is made, so that neither a crash nor a second
service on the same database loses one, and a notification may come twice (its ``id`` tells). In
order: a subscription's next notification waits for the one before. Bounded: after
``callback_attempts``, or when it has waited as long as these would have taken, it is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from container_update.model.objects import Json
from container_update.vnfm.notify.callback_test import CallbackError, Callbacks
from container_update.vnfm.settings import Settings
from container_update.vnfm.store.database import Database, now
from container_update.vnfm.store.rows import Notification, Subscription
from container_update.vnfm.store.vault import Vault, VaultError

LOG = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 60.0
LOOK_SECONDS = 1.0
"""How often the outbox is looked at where nobody says that something is in it."""
KEPT = timedelta(days=1)
"""How long it stays written down what became of a notification."""
AT_ONCE = 16
"""How many callbacks are asked at the same time."""

PENDING = (Notification.delivered.is_(None), Notification.given_up.is_(None))
"""The conditions of a notification that is to be delivered still."""


def pause(attempts: int) -> float:
    """Seconds from a failed attempt to the next: 1, 2, 4, ..."""
    return min(2.0 ** (attempts - 1), LONGEST_PAUSE_SECONDS)


@dataclass(frozen=True)
class Letter:
    """A notification, and the attempt to deliver it."""

    id: int
    created: datetime
    attempts: int
    """With this one."""
    body: Json
    uri: str
    sealed: str | None
    """The credentials."""

    def __str__(self) -> str:
        parts = urlsplit(self.uri)  # without its path and query, which may be a secret
        about = self.body.get("operationState") or self.body.get("notificationType")
        return f"notification {self.body.get('id')} ({about}) to {parts.scheme}://{parts.netloc}"


class Notifier:
    """Delivers notifications on a thread of its own.

    :param count: told what became of each attempt: 'delivered', 'failed' or 'given_up'.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        vault: Vault,
        count: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._seconds = settings.callback_seconds
        self._attempts = settings.callback_attempts
        spent = (self._seconds + pause(number) for number in range(1, self._attempts + 1))
        self._patience = timedelta(seconds=sum(spent))
        self._settings, self._database, self._vault = settings, database, vault
        self._count = count
        self._busy: set[str] = set()
        """The subscriptions that something is being delivered to."""
        self._tidied = datetime.min
        self._loop = asyncio.new_event_loop()
        self._something = asyncio.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    # --- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to deliver, with what an earlier process left."""
        self._thread.start()

    def wake(self) -> None:
        """Something may be in the outbox; thread-safe."""
        with contextlib.suppress(RuntimeError):  # it has ended: the next process will look
            self._loop.call_soon_threadsafe(self._something.set)

    def stop(self) -> None:
        """End, once the attempts that are being made have come to theirs."""
        self._stopping = True
        self.wake()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether it delivers."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._deliver_all())
        finally:
            self._loop.close()

    # --- delivering -----------------------------------------------------------------------------

    async def _deliver_all(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        async with Callbacks(self._settings) as callbacks:
            while not self._stopping:
                self._something.clear()
                due, seconds = await asyncio.to_thread(self._look)
                for subscription in due[: AT_ONCE - len(tasks)]:
                    self._busy.add(subscription)
                    task = asyncio.create_task(self._deliver(callbacks, subscription))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._something.wait(), seconds)
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, callbacks: Callbacks, subscription: str) -> None:
        """Deliver a subscription's notifications until none is due."""
        try:
            while not self._stopping:
                letter = await asyncio.to_thread(self._take, subscription)
                if letter is None:
                    return
                problem = await self._send(callbacks, letter)
                await asyncio.to_thread(self._record, letter, problem)
        except SQLAlchemyError as error:
            LOG.error("the outbox cannot be read or written, is tried again: %s", error)
        finally:
            self._busy.discard(subscription)
            self._something.set()

    async def _send(self, callbacks: Callbacks, letter: Letter) -> str:
        """Nothing, or why it was not delivered."""
        try:
            credentials = self._vault.open(letter.sealed) if letter.sealed else None
            status = await callbacks.request("POST", letter.uri, credentials, letter.body)
        except (CallbackError, VaultError) as error:
            return str(error)
        return "" if 200 <= status < 300 else f"answered {status}"

    # --- the outbox -----------------------------------------------------------------------------

    def _look(self) -> tuple[list[str], float]:
        """Return the subscriptions whose first notification is due, and when to look again."""
        try:
            self._tidy()
            first = select(func.min(Notification.id)).where(*PENDING)
            query = select(Notification.subscription_id, Notification.next_attempt).where(
                Notification.id.in_(first.group_by(Notification.subscription_id))
            )
            with self._database.reading() as session:
                waiting = [(name, when) for name, when in session.execute(query)]
        except SQLAlchemyError as error:
            LOG.error("the outbox cannot be read, is tried again: %s", error)
            return [], LOOK_SECONDS
        moment = now()
        due = [name for name, when in waiting if when <= moment and name not in self._busy]
        later = [(when - moment).total_seconds() for _, when in waiting if when > moment]
        return due, min([LOOK_SECONDS, *later])

    def _take(self, subscription: str) -> Letter | None:
        """Return the first notification of a subscription, for an attempt that is written down now.

        None where it is not due (any more): another service has taken it.
        """
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
            found, uri, sealed = row
            attempts = found.attempts + 1
            # twice the time: a token may have to be asked for first
            until = moment + timedelta(seconds=2 * self._seconds + pause(attempts))
            taken = session.execute(
                update(Notification)
                .where(Notification.id == found.id, Notification.attempts == found.attempts)
                .values(attempts=attempts, next_attempt=until)
                .execution_options(synchronize_session=False)
            )
            if taken.rowcount == 0:  # type: ignore[attr-defined]
                return None
            return Letter(found.id, found.created, attempts, dict(found.body), uri, sealed)

    def _record(self, letter: Letter, problem: str) -> None:
        moment = now()
        values: dict[str, object] = {"delivered": moment}
        result = "delivered"
        if problem:
            is_last = letter.attempts >= self._attempts or moment - letter.created > self._patience
            again = moment + timedelta(seconds=pause(letter.attempts))
            result = "given_up" if is_last else "failed"
            values = {"given_up": moment} if is_last else {"next_attempt": again}
            level = logging.ERROR if is_last else logging.WARNING
            outlook = "it is given up" if is_last else "it is tried again"
            LOG.log(level, "%s, attempt %d: %s; %s", letter, letter.attempts, problem, outlook)
        with self._database.writing() as session:
            session.execute(
                update(Notification).where(Notification.id == letter.id).values(**values)
            )
        self._count(result)

    def _tidy(self) -> None:
        """Once in a while, forget what became of notifications long ago."""
        moment = now()
        if moment - self._tidied < timedelta(hours=1):
            return
        self._tidied, end = moment, moment - KEPT
        with self._database.writing() as session:
            session.execute(
                delete(Notification).where(
                    or_(Notification.delivered < end, Notification.given_up < end)
                )
            )
