# SPDX-License-Identifier: Apache-2.0
"""Another try where it may help, and none where it cannot."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from container_update.cluster import retry
from container_update.cluster.retry import RetryingCluster
from container_update.model.errors import ClusterError
from container_update.model.objects import ObjectKey
from tests.unit.fakes import FakeCluster, config_map

KEY = ObjectKey("", "ConfigMap", "ns", "cm")


@pytest.fixture(autouse=True)
def _keep_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "time", retry.time)


class Trouble:
    """Fails the first requests; the time between tries is the sum of the pauses."""

    def __init__(self, *errors: ClusterError) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.errors = list(errors)
        self.cluster = FakeCluster(config_map("cm", {"k": "v"}))
        self.cluster.hooks.append(self.fail)
        retry.time = SimpleNamespace(  # type: ignore[assignment]
            monotonic=lambda: self.now, sleep=self.pause
        )
        self.retrying = RetryingCluster(self.cluster, 60.0)

    def fail(self, *_: object) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def away() -> ClusterError:
    return ClusterError("connection refused", transient=True)


def overloaded(retry_after: float | None = None) -> ClusterError:
    return ClusterError("busy", status=503, retry_after=retry_after, transient=True)


def test_a_request_is_tried_until_it_is_answered_with_growing_pauses() -> None:
    trouble = Trouble(overloaded(), *[away()] * 4)
    assert trouble.retrying.get(KEY) is not None
    assert trouble.cluster.requests == 6
    bounds = [(0.1, 0.2), (0.2, 0.4), (0.4, 0.8), (0.8, 1.6), (1.6, 3.2)]
    assert all(low <= p <= high for p, (low, high) in zip(trouble.pauses, bounds, strict=True))


def test_the_server_is_not_asked_before_it_wants_to_be() -> None:
    trouble = Trouble(overloaded(retry_after=7.0))
    trouble.retrying.get(KEY)
    assert trouble.pauses == [7.0]


def test_a_server_that_stays_away_is_given_up() -> None:
    trouble = Trouble(overloaded(), *[away()] * 1000)
    with pytest.raises(ClusterError, match="refused"):
        trouble.retrying.get(KEY)
    assert 50 < trouble.now <= 60


def test_a_server_that_never_answered_is_not_waited_for() -> None:
    trouble = Trouble(away())
    with pytest.raises(ClusterError, match="refused"):
        trouble.retrying.get(KEY)
    assert trouble.pauses == []


@pytest.mark.parametrize("status", [400, 401, 403, 409, 410, 422])
def test_a_refusal_is_final(status: int) -> None:
    trouble = Trouble(ClusterError("no", status=status))
    with pytest.raises(ClusterError):
        trouble.retrying.get(KEY)
    assert trouble.cluster.requests == 1


CUT = ClusterError("cut", transient=True)


def test_a_guarded_client_learns_together_with_the_first_one_that_there_is_a_server() -> None:
    trouble = Trouble()
    trouble.retrying.with_guard(lambda: None).get(KEY)
    trouble.errors.append(CUT)
    assert trouble.retrying.get(KEY) is not None


def test_a_guarded_client_asks_before_every_attempt_at_a_write_and_at_no_read() -> None:
    trouble, asked = Trouble(), []
    guarded = trouble.retrying.with_guard(lambda: asked.append("may I?"))
    body = guarded.get(KEY)
    assert body is not None
    assert asked == []
    trouble.errors += [CUT, CUT]
    guarded.replace(body)
    assert len(asked) == 3


def test_what_keeps_it_waiting_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """A webhook that does not answer looks as if nothing happened."""
    trouble = Trouble(*[overloaded() for _ in range(1000)])
    for _ in range(2):
        with pytest.raises(ClusterError, match="busy"):
            trouble.retrying.get(KEY)
    (told,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert told.getMessage().startswith("busy; trying again for ")


def test_a_server_that_is_back_soon_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    Trouble(*[overloaded() for _ in range(5)]).retrying.get(KEY)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
