"""What Prometheus is told at ``/metrics``.

Counts of what happened are of this process; what is the case now is asked of the database, so that
each of several services on one database tells the same. Labels have few values: never an id.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Protocol

from fastapi import APIRouter, FastAPI
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from container_update.vnfm.notify.delivery import PENDING
from container_update.vnfm.states import UNSETTLED
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.rows import Instance, Notification, Operation, Package

_PREFIX = "container_update"
_RUNS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
"""Seconds that operations take."""
_UNSETTLED = frozenset(state.value for state in UNSETTLED)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Pool(Protocol):
    """The workers, as far as they are counted."""

    @property
    def busy(self) -> int:
        """Operations and packages that are queued or at work."""


class Metrics:
    """What happened in this process so far."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._states = Counter(
            f"{_PREFIX}_operation_states",
            "States that lifecycle operations entered",
            ("operation", "state"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            f"{_PREFIX}_operation_seconds",
            "Seconds from an operation's start to the state that it ended in",
            ("operation", "state"),
            buckets=_RUNS,
            registry=self.registry,
        )
        self._notified = Counter(
            f"{_PREFIX}_notifications",
            "Attempts to deliver a notification, by what became of them",
            ("result",),
            registry=self.registry,
        )
        self._requests = Histogram(
            f"{_PREFIX}_request_seconds",
            "Seconds that requests to the API took",
            ("method", "route", "status"),
            registry=self.registry,
        )

    def entered(self, operation: str, state: str, seconds: float) -> None:
        """Count an operation that entered a state, with the seconds since its start."""
        self._states.labels(operation, state).inc()
        if state not in _UNSETTLED:
            self._seconds.labels(operation, state).observe(seconds)

    def notified(self, result: str) -> None:
        """Count a notification: 'delivered', 'failed' (it is retried) or 'given_up'."""
        self._notified.labels(result).inc()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(method, route, str(status)).observe(seconds)


class Now(Collector):
    """What is the case while it is asked."""

    def __init__(self, database: Database, workers: Pool, size: int) -> None:
        self._database = database
        self._workers = workers
        self._size = size

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the gauges; without those of the database where it does not answer."""
        busy = self._workers.busy
        running = min(busy, self._size)
        yield _gauge("workers_running", "Workers that have something to do", running)
        yield _gauge(
            "queue_length", "Operations and packages that wait for a worker", busy - running
        )
        try:
            families = list(self._of_database())
        except SQLAlchemyError:
            families = []
        yield _gauge("database_up", "Whether the database answers", int(bool(families)))
        yield from families

    def _of_database(self) -> Iterator[GaugeMetricFamily]:
        counted = (
            ("operations", "Lifecycle operations", (Operation.operation, Operation.state)),
            ("packages", "VNF packages", (Package.onboarding_state, Package.operational_state)),
            ("instances", "VNF instances", (Instance.api, Instance.instantiated)),
        )
        with self._database.reading() as session:
            for name, text, columns in counted:
                labels = [column.key for column in columns]
                family = GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=labels)
                for *values, count in session.execute(
                    select(*columns, func.count()).group_by(*columns)
                ):
                    family.add_metric(
                        [
                            str(value).lower() if isinstance(value, bool) else value
                            for value in values
                        ],
                        count,
                    )
                yield family
            waiting = session.scalar(select(func.count(Notification.id)).where(*PENDING))
        text = "Notifications that are not delivered yet"
        yield _gauge("notifications_waiting", text, waiting or 0)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}_{name}", text, value=value)


def router(metrics: Metrics, now: Now) -> APIRouter:
    """``GET /metrics``."""
    metrics.registry.register(now)
    routes = APIRouter(tags=["Operation of the service"])

    @routes.get("/metrics", response_class=Response)
    def tell() -> Response:
        """Return what happened, and what is the case, for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return routes


def install(app: FastAPI, metrics: Metrics) -> None:
    """Have the requests of *app* counted; outside of all other middlewares."""
    app.add_middleware(Requests, metrics=metrics)


class Requests:
    """Counts requests by their route: paths have ids in them."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "") or "other"
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.answered(method, route, status, time.monotonic() - began)
