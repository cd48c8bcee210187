# SPDX-License-Identifier: Apache-2.0
"""A package that ends its reader becomes ERROR, and the service goes on: also across its death."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_update import Options
from tests import hostile
from tests import packages as files
from tests.internals.core import DEFAULTS, csar, process
from tests.internals.service import Package, Service, Settings, content, packages
from tests.vnfm import vnfs
from tests.vnfm.client import Json
from tests.vnfm.served import Served
from tests.vnfm.test_load import client_of
from tests.vnfm.waiting import until

PATIENCE = 10
"""The seconds that an answer may take."""
SECONDS = 4
"""Of processor time for a VNFD: enough to look at the service meanwhile."""


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A package whose VNFD has a regular expression without an end."""
    vnfd = files.with_vnfd({"df.yaml": hostile.REGULAR_EXPRESSION})
    return Path(files.write_zip(tmp_path / "endless.zip", vnfd))


# --- a service of its own, which is killed and terminated ---------------------------------------


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    """A service as a process of its own."""
    served = Served(tmp_path / "service", "", options=f"vnfd_seconds = {SECONDS}")
    try:
        served.start()
        yield served
    finally:
        if served.process:
            served.kill()


def attempts(service: Served, number: int) -> None:
    """Wait until so many attempts at the only package have begun."""
    path = service.folder / "state" / "vnfm.sqlite"

    def begun() -> bool:
        with closing(sqlite3.connect(path)) as database:
            return database.execute("SELECT attempts FROM packages").fetchone()[0] >= number

    until(begun, f"attempt {number} at the package")


def test_the_service_answers_while_a_hostile_package_is_read(
    service: Served, endless: Path
) -> None:
    client = client_of(service, "v2", PATIENCE)
    package = client.upload(endless)
    attempts(service, 1)
    answered = 0

    def settled() -> Json | None:
        nonlocal answered
        client.call("GET", "/healthz")
        body: Json = client.call("GET", f"/vnfpkgm/v1/vnf_packages/{package}")
        answered += body["onboardingState"] == "PROCESSING"
        return body if body["onboardingState"] == "ERROR" else None

    body = until(settled, "the package is refused", seconds=180)
    assert body is not None
    assert answered > 0
    failure = body["onboardingFailureDetails"]
    assert failure["status"] == 422
    assert "read 2 times, and ended its reader each time" in failure["detail"]
    assert "option vnfd_seconds" in failure["detail"]


@pytest.mark.parametrize("ways", [("kill", "kill"), ("stop", "stop")])
def test_a_service_that_ends_while_it_reads_comes_up_again_and_gives_the_package_up(
    service: Served, endless: Path, ways: tuple[str, str]
) -> None:
    package = client_of(service, "v2", PATIENCE).upload(endless)
    for number, way in enumerate(ways, 1):
        attempts(service, number)
        status = getattr(service, way)()
        assert status in (0, None)
        service.start()
    client = client_of(service, "v2", PATIENCE)
    client.call("GET", "/healthz")
    body = client.read_in(package)
    assert body["onboardingState"] == "ERROR"
    assert "ended its reader each time" in body["onboardingFailureDetails"]["detail"]


# --- the count of the attempts ------------------------------------------------------------------


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Any]:
    """The context of a service that has a good package in PROCESSING."""
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none")
    service = Service(settings, replace(DEFAULTS, vnfd_seconds=0.3))
    yield service.context
    service.context.process_lock.leave()
    service.context.database.close()


def uploaded(context: Any, zipped: Path, attempts: int = 0) -> str:
    """Upload a package so that it is ready for onboarding."""
    with context.database.writing() as session:
        package_id = packages.create(session, {}).id
    content.begin_upload(context, package_id).write_bytes(zipped.read_bytes())
    content.end_upload(context, package_id)
    with context.database.writing() as session:
        session.get(Package, package_id).attempts = attempts
    return package_id


def row(context: Any, package_id: str) -> Package:
    """The package in the database."""
    with context.database.reading() as session:
        found = session.get(Package, package_id)
        assert found is not None
        return found


def test_a_package_that_ended_two_services_is_not_read_again(
    context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = vnfs.package(tmp_path, "1.0", vnfs.ours("v2"))[0]
    package_id = uploaded(context, good, attempts=2)
    monkeypatch.setattr(csar, "open_package", None)
    content.onboard(context, package_id)
    found = row(context, package_id)
    assert found.onboarding_state == "ERROR"
    assert "the service ended meanwhile" in found.body["onboardingFailureDetails"]["detail"]


def test_an_attempt_is_counted_before_it_begins_and_is_forgotten_with_new_content(
    context: Any, tmp_path: Path, endless: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package_id = uploaded(context, endless)
    counted: list[int] = []
    run = process._output

    def look(path: str, request: bytes, options: Options) -> bytes:
        counted.append(row(context, package_id).attempts)
        return run(path, request, options)

    monkeypatch.setattr(process, "_output", look)
    content.onboard(context, package_id)
    assert counted == [1, 2]
    assert row(context, package_id).onboarding_state == "ERROR"

    good = vnfs.package(tmp_path, "1.0", vnfs.ours("v2"))[0]
    content.begin_upload(context, package_id).write_bytes(good.read_bytes())
    content.end_upload(context, package_id)
    content.onboard(context, package_id)
    assert row(context, package_id).onboarding_state == "ONBOARDED"


def test_a_service_that_ends_leaves_the_second_attempt_to_the_next_one(
    context: Any, endless: Path
) -> None:
    package_id = uploaded(context, endless)
    context.ending.set()
    content.onboard(context, package_id)
    found = row(context, package_id)
    assert (found.onboarding_state, found.attempts) == ("PROCESSING", 1)
