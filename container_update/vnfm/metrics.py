# SPDX-License-Identifier: Apache-2.0
"""Metrics for Prometheus, at ``/metrics``.

Counters are those of this process; gauges are read from the database, so that all services on one
database report the same. Labels have few values: never an id.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http import HTTPStatus

from fastapi import APIRouter, FastAPI
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from container_update.vnfm.http.connections import ENDLESS
from container_update.vnfm.notify.delivery import PENDING
from container_update.vnfm.states import UNSETTLED
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.rows import Instance, Notification, OperationRow, Package

_PREFIX = "container_update"
_BUCKETS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
"""Seconds that operations take."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The counters of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, namespace=_PREFIX, registry=self.registry)
        histogram = partial(Histogram, namespace=_PREFIX, registry=self.registry)
        of_operation, of_request = ("operation", "state"), ("method", "route", "status")
        self._states = counter(
            "operation_states", "States that lifecycle operations entered", of_operation
        )
        self._seconds = histogram(
            "operation_seconds",
            "Seconds from an operation's start to the state that it ended in",
            of_operation,
            buckets=_BUCKETS,
        )
        self._notified = counter(
            "notifications", "Attempts to deliver a notification, by their result", ("result",)
        )
        for result in ("delivered", "failed", "given_up"):
            # from 0 on: Prometheus's increase() does not see the first value of a series
            self._notified.labels(result)
        self._requests = histogram(
            "request_seconds", "Seconds that requests to the API took", of_request
        )

    def count_state(self, operation: str, state: str, seconds: float) -> None:
        """Count an operation that entered a state, with the seconds since its start."""
        self._states.labels(operation, state).inc()
        if state not in UNSETTLED:
            self._seconds.labels(operation, state).observe(seconds)

    def count_notification(self, result: str) -> None:
        """Count a notification: 'delivered', 'failed' (it is retried) or 'given_up'."""
        self._notified.labels(result).inc()

    def count_answer(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(method, route, str(status)).observe(seconds)


class Gauges(Collector):
    """The gauges, read at each scrape.

    :param busy: returns how many operations and packages are queued or at work.
    """

    def __init__(self, database: Database, busy: Callable[[], int], workers: int) -> None:
        self._database = database
        self._busy = busy
        self._workers = workers

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the gauges, without those of the database while it does not answer."""
        busy = self._busy()
        running = min(busy, self._workers)
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
            ("operations", "Lifecycle operations", (OperationRow.operation, OperationRow.state)),
            ("packages", "VNF packages", (Package.onboarding_state, Package.operational_state)),
            ("instances", "VNF instances", (Instance.api, Instance.instantiated)),
        )
        with self._database.reading() as session:
            for name, text, columns in counted:
                labels = [column.key for column in columns]
                family = GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=labels)
                query = select(*columns, func.count()).group_by(*columns)
                for *values, count in session.execute(query):
                    texts = (str(v).lower() if isinstance(v, bool) else v for v in values)
                    family.add_metric([*texts], count)
                yield family
            waiting = session.scalar(select(func.count(Notification.id)).where(*PENDING))
        text = "Notifications that are not delivered yet"
        yield _gauge("notifications_waiting", text, waiting or 0)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}_{name}", text, value=value)


def router(metrics: Metrics, gauges: Gauges) -> APIRouter:
    """Return the resource ``GET /metrics``."""
    metrics.registry.register(gauges)
    routes = APIRouter(tags=["Operation of the service"])

    @routes.get("/metrics", response_class=Response)
    def tell() -> Response:
        """Return the metrics, for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return routes


def install(app: FastAPI, metrics: Metrics) -> None:
    """Count the requests to *app*; this has to be the outermost middleware."""
    app.add_middleware(_count_requests, metrics=metrics)


def _count_requests(app: ASGIApp, metrics: Metrics) -> ASGIApp:
    """Count requests by their route: paths have ids in them."""

    async def count(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        began, status = time.monotonic(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await app(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "") or "other"
            method = scope["method"] if scope["method"] in _METHODS else "other"
            if route != ENDLESS or status != HTTPStatus.OK:
                metrics.count_answer(method, route, status, time.monotonic() - began)

    return count
