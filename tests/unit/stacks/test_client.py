"""The client of Heat, without a Heat."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from container_update.stacks.client import Heat


class Adapter:
    """Stands for keystoneauth's adapter."""

    def __init__(self, endpoint: str | None, endpoint_override: str | None = None) -> None:
        self.endpoint, self.endpoint_override = endpoint, endpoint_override
        self.questions = 0
        self.addresses: list[str | None] = []

    def get_endpoint(self) -> str | None:
        """Look the address up."""
        self.questions += 1
        return self.endpoint

    def request(self, *_: Any, **__: Any) -> requests.Response:
        """Answer that there are no stacks."""
        self.addresses.append(self.endpoint_override)
        answer = requests.Response()
        answer.status_code, answer._content = 200, b'{"stacks": []}'
        return answer


@pytest.mark.parametrize(
    ("adapter", "questions", "address"),
    [
        pytest.param(Adapter("http://h/v1/p"), 1, "http://h/v1/p", id="of the catalogue"),
        pytest.param(Adapter("http://h/v1/a%20b"), 1, "http://h/v1/a%%20b", id="with an escape"),
        pytest.param(Adapter("http://h", "http://own"), 0, "http://own", id="of clouds.yaml"),
        pytest.param(Adapter(None), 2, None, id="none: the adapter says so"),
    ],
)
def test_the_address_of_heat_is_looked_up_once(
    adapter: Any, questions: int, address: str | None
) -> None:
    heat = Heat(adapter, adapter, adapter, retry_seconds=0)
    assert [heat.stacks(), heat.stacks()] == [[], []]
    assert (adapter.questions, adapter.addresses) == (questions, [address] * 2)
