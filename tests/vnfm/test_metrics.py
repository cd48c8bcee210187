"""What /metrics, /healthz and /readyz tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from container_update.vnfm import metrics
from container_update.vnfm.http import error_responses, health
from container_update.vnfm.metrics import Gauges, Metrics
from container_update.vnfm.store.database import Database, now
from container_update.vnfm.store.rows import Notification, Operation, Package, Subscription

ID = "00000000-0000-4000-8000-00000000000{}"


class Watched:
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

    def told(self) -> dict[tuple[str, ...], float]:
        """(name, label value, ...) to value, without the service's prefix."""
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
def watched(tmp_path: Path) -> Iterator[Watched]:
    service = Watched(tmp_path)
    yield service
    service.database.close()


def operation(number: int, state: str) -> Operation:
    moment = now()
    return Operation(
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


def test_what_is_the_case_is_asked_of_the_database(watched: Watched) -> None:
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
    with watched.database.writing() as session:
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
    told = watched.told()
    assert told["operations", "COMPLETED", "MODIFY_INFO"] == 3
    assert told["operations", "FAILED_TEMP", "MODIFY_INFO"] == 1
    assert told["packages", "ENABLED", "ONBOARDED"] == 1
    assert told["notifications_waiting",] == 2
    assert told["workers_running",] == 3
    assert told["queue_length",] == 2
    assert told["database_up",] == 1


def test_what_happened_is_counted(watched: Watched) -> None:
    watched.metrics.entered("MODIFY_INFO", "PROCESSING", 0.1)
    watched.metrics.entered("MODIFY_INFO", "COMPLETED", 7.0)
    for result in ("failed", "delivered", "delivered"):
        watched.metrics.notified(result)
    told = watched.told()
    assert told["operation_states_total", "MODIFY_INFO", "PROCESSING"] == 1
    assert told["operation_seconds_sum", "COMPLETED", "MODIFY_INFO"] == 7.0
    assert told["operation_seconds_bucket", "10.0", "COMPLETED", "MODIFY_INFO"] == 1
    assert told["operation_seconds_bucket", "5.0", "COMPLETED", "MODIFY_INFO"] == 0
    assert ("operation_seconds_count", "MODIFY_INFO", "PROCESSING") not in told
    assert told["notifications_total", "delivered"] == 2
    assert told["notifications_total", "failed"] == 1


def test_requests_are_counted_by_route_never_by_path(watched: Watched) -> None:
    for path in ("/things/1", "/things/2", "/absent/1", "/absent/2"):
        watched.client.get(path)
    watched.client.request("HUNTER2", "/things/1")
    told = watched.told()
    assert told["request_seconds_count", "/things/{thing}", "200", "GET"] == 2
    assert told["request_seconds_count", "404", "GET", "other"] == 2
    assert not any("HUNTER2" in labels or "/things/1" in labels for labels in told)
    assert told["request_seconds_count", "/things/{thing}", "405", "other"] == 1


def test_a_database_that_is_away_is_told_and_the_rest_too(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Database("sqlite:////nonexistent/vnfm.sqlite")
    monkeypatch.setattr(watched.database, "reading", broken.reading)
    told = watched.told()
    assert told["database_up",] == 0
    assert told["workers_running",] == 3
    assert ("notifications_waiting",) not in told


# --- health -------------------------------------------------------------------------------------


def probe(**checks: bool) -> TestClient:
    app = FastAPI()
    app.include_router(
        health.router({name: lambda good=good: good for name, good in checks.items()})
    )
    error_responses.install(app)
    return TestClient(app)


def test_a_service_whose_parts_work_is_ready() -> None:
    client = probe(database=True, workers=True)
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_a_part_that_does_not_work_is_named_and_the_process_lives_all_the_same() -> None:
    client = probe(database=False, workers=True, lock=False)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["detail"] == "not ready: database, lock"
    assert client.get("/healthz").status_code == 200


def test_the_database_is_asked(tmp_path: Path) -> None:
    assert health.answers(Database(f"sqlite:///{tmp_path / 'vnfm.sqlite'}"))
    assert not health.answers(Database("sqlite:////nonexistent/vnfm.sqlite"))
