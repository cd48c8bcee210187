# SPDX-License-Identifier: Apache-2.0
"""The contents of /metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from container_update.vnfm import metrics
from container_update.vnfm.http import error_responses
from container_update.vnfm.metrics import Gauges, Metrics
from container_update.vnfm.store.database import Database, now
from container_update.vnfm.store.rows import Notification, OperationRow, Package, Subscription

ID = "00000000-0000-4000-8000-00000000000{}"


class MonitoredService:
    """A service with metrics."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(f"sqlite:///{folder / 'vnfm.sqlite'}")
        self.database.upgrade()
        self.metrics = Metrics()
        app = FastAPI()
        app.include_router(metrics.router(self.metrics, Gauges(self.database, lambda: 5, 3)))
        app.add_api_route("/things/{thing}", lambda thing: thing)
        error_responses.install(app)
        metrics.install(app, self.metrics)
        self.client = TestClient(app, raise_server_exceptions=False)

    def samples(self) -> dict[tuple[str, ...], float]:
        """Return the values by (name, label value, ...), without the service's prefix."""
        answer = self.client.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        return {
            (sample.name.removeprefix("container_update_"), *sorted(sample.labels.values())): (
                sample.value
            )
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }


@pytest.fixture
def monitored(tmp_path: Path) -> Iterator[MonitoredService]:
    service = MonitoredService(tmp_path)
    yield service
    service.database.close()


def operation(number: int, state: str) -> OperationRow:
    moment = now()
    return OperationRow(
        id=ID.format(number),
        api="v2",
        instance_id=ID.format(number),
        operation="MODIFY_INFO",
        state=state,
        started=moment,
        entered=moment,
        params={},
        sealed="",
    )


def test_gauges_are_read_from_the_database(monitored: MonitoredService) -> None:
    moment = now()
    rows: list[Any] = [operation(number, "COMPLETED") for number in range(3)]
    rows += [operation(3, "FAILED_TEMP")]
    rows.append(
        Package(
            id=ID.format(1),
            created=moment,
            onboarding_state="ONBOARDED",
            operational_state="ENABLED",
            user_data={},
            body={},
        )
    )
    rows.append(
        Subscription(id=ID.format(1), created=moment, api="v2", callback_uri="http://nfvo/")
    )
    with monitored.database.writing() as session:
        session.add_all(rows)
        session.flush()
        for delivered in (None, None, moment):
            session.add(
                Notification(
                    subscription_id=ID.format(1),
                    body={},
                    created=moment,
                    attempts=0,
                    next_attempt=moment,
                    delivered=delivered,
                )
            )
    samples = monitored.samples()
    assert samples["operations", "COMPLETED", "MODIFY_INFO"] == 3
    assert samples["operations", "FAILED_TEMP", "MODIFY_INFO"] == 1
    assert samples["packages", "ENABLED", "ONBOARDED"] == 1
    assert samples["notifications_waiting",] == 2
    assert samples["workers_running",] == 3
    assert samples["queue_length",] == 2
    assert samples["database_up",] == 1


def test_events_are_counted(monitored: MonitoredService) -> None:
    monitored.metrics.count_state("MODIFY_INFO", "PROCESSING", 0.1)
    monitored.metrics.count_state("MODIFY_INFO", "COMPLETED", 7.0)
    for result in ("failed", "delivered", "delivered"):
        monitored.metrics.count_notification(result)
    samples = monitored.samples()
    assert samples["operation_states_total", "MODIFY_INFO", "PROCESSING"] == 1
    assert samples["operation_seconds_sum", "COMPLETED", "MODIFY_INFO"] == 7.0
    assert samples["operation_seconds_bucket", "10.0", "COMPLETED", "MODIFY_INFO"] == 1
    assert samples["operation_seconds_bucket", "5.0", "COMPLETED", "MODIFY_INFO"] == 0
    assert ("operation_seconds_count", "MODIFY_INFO", "PROCESSING") not in samples
    assert samples["notifications_total", "delivered"] == 2
    assert samples["notifications_total", "failed"] == 1


def test_every_result_of_a_notification_is_there_from_the_start(
    monitored: MonitoredService,
) -> None:
    """Prometheus sees an increase only where there was a value before."""
    samples = monitored.samples()
    results = ("delivered", "failed", "given_up")
    assert [samples.get(("notifications_total", result)) for result in results] == [0, 0, 0]


def test_requests_are_counted_by_route_and_not_by_path(monitored: MonitoredService) -> None:
    for path in ("/things/1", "/things/2", "/absent/1", "/absent/2"):
        monitored.client.get(path)
    monitored.client.request("HUNTER2", "/things/1")
    samples = monitored.samples()
    assert samples["request_seconds_count", "/things/{thing}", "200", "GET"] == 2
    assert samples["request_seconds_count", "404", "GET", "other"] == 2
    assert not any("HUNTER2" in labels or "/things/1" in labels for labels in samples)
    assert samples["request_seconds_count", "/things/{thing}", "405", "other"] == 1


def test_an_unreachable_database_is_reported_with_the_other_metrics(
    monitored: MonitoredService, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Database("sqlite:////nonexistent/vnfm.sqlite")
    monkeypatch.setattr(monitored.database, "reading", broken.reading)
    samples = monitored.samples()
    assert samples["database_up",] == 0
    assert samples["workers_running",] == 3
    assert ("notifications_waiting",) not in samples
