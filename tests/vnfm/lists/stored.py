# SPDX-License-Identifier: Apache-2.0
"""Operations, instances and packages in a service's tables, and requests for their lists."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from container_update import Options
from tests.internals.service import Instance, OperationRow, Package, Service, Settings, State
from tests.vnfm.client import Client

LIST = "/vnflcm/v2/vnf_lcm_op_occs"
BEGIN = datetime(2026, 1, 1, 10, 0, 0, 123_456)
KINDS = ("INSTANTIATE", "SCALE", "HEAL")
TIMED_VNFD = "2026-01-01T00:00:00Z"
"""An id that is a time as well, which filters compare as such."""


def lister(folder: Path, database: str, **more: Any) -> Service:
    """Return a service with long pages.

    :param database: its URL; '' for SQLite in the folder.
    :param more: settings.
    """
    state_dir = str(folder / "state")
    settings = Settings(
        state_dir=state_dir, database_url=database, auth="none", page_size=1000, **more
    )
    return Service(settings, Options())


def identity(number: int) -> str:
    return str(uuid.UUID(int=number))


def store_operations(service: Service, count: int, **values: Any) -> None:
    """Store ended operations, two of them at each time, in another order than that of their ids."""
    rows = [
        {
            "id": identity(count - number), "api": "v2", "instance_id": identity(number % 3),
            "operation": KINDS[number % 3], "state": ENDED[number % 3],
            "started": BEGIN + timedelta(milliseconds=number // 2 * 500, microseconds=number // 2),
            "entered": BEGIN + timedelta(hours=number), "sealed": "",
            "params": {"number": number, "note": f"note {number}"}, **values,
        }
        for number in range(count)
    ]  # fmt: skip
    with service.context.database.writing() as session:
        session.execute(insert(OperationRow), rows)


ENDED = (State.COMPLETED.value, State.FAILED.value, State.ROLLED_BACK.value)


def store_instances(service: Service) -> None:
    with service.context.database.writing() as session:
        for number, (vnfd_id, state) in enumerate(
            [("a", "ONBOARDED"), (TIMED_VNFD, "ONBOARDED"), (None, "ERROR"), (None, "CREATED")]
        ):
            body = {"vnfdId": vnfd_id} if vnfd_id else {}
            session.add(
                Package(
                    id=identity(number), created=BEGIN, onboarding_state=state, vnfd_id=vnfd_id,
                    operational_state="ENABLED" if vnfd_id else "DISABLED", user_data={}, body=body,
                )
            )  # fmt: skip
        session.flush()
        for number, (vnfd_id, instantiated) in enumerate(
            itertools.product(("a", TIMED_VNFD), (True, False))
        ):
            session.add(
                Instance(
                    id=identity(number), created=BEGIN, api="v2", vnfd_id=vnfd_id,
                    instantiated=instantiated, body={},
                )
            )  # fmt: skip


def ask(client: Client, path: str) -> Any:
    answer = client.http.request("GET", path, headers={"Version": "2.0.0"})
    assert answer.status_code == 200, answer.text
    return answer


def pages(client: Client, path: str) -> Iterator[list[str]]:
    """Yield the ids of one page after the other."""
    while path:
        answer = ask(client, path)
        yield [each["id"] for each in answer.json()]
        path = answer.links.get("next", {}).get("url", "")
