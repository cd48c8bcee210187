# SPDX-License-Identifier: Apache-2.0
"""``container-update vnfm serve --check-config``: what a start would trip over."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

from container_update.engine.checks.preflight import Check, exit_status
from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.commands import configuration as service_settings

if TYPE_CHECKING:
    from container_update.vnfm.settings import Settings


def run(parsed: argparse.Namespace, out: TextIO, try_address: Callable[[Settings], object]) -> int:
    """Write a line for each check; return the exit status of the first problem, 0 without one.

    :param try_address: raises ContainerUpdateError if the service could not listen.
    """
    if parsed.demo:
        raise ContainerUpdateError("--check-config checks no demo: remove --demo")
    checks = []
    for check in _checks(parsed, try_address):
        checks.append(check)
        text = f"problem  {check.name}: {check.error}" if check.error else (
            f"ok       {check.name}: {check.found}"
        )  # fmt: skip
        out.write(text + "\n")
        out.flush()
    return exit_status(checks)


def _checks(
    parsed: argparse.Namespace, try_address: Callable[[Settings], object]
) -> Iterator[Check]:
    from container_update.vnfm import start_checks  # noqa: PLC0415, an extra

    try:
        settings, _ = service_settings.read(parsed)
    except ContainerUpdateError as error:
        yield Check("settings", error=error)
        return
    files = ", ".join(parsed.config_file) or "no configuration file"
    yield Check("settings", f"{files}, and the arguments: all values are valid")
    for found in service_settings.unknown(parsed.config_file):
        yield Check("settings", error=found)
    yield from start_checks.checks(settings)
    yield _address(settings, try_address)


def _address(settings: Settings, try_address: Callable[[Settings], object]) -> Check:
    from container_update.vnfm import start_checks  # noqa: PLC0415, an extra

    place = f"{settings.host}, port {settings.port}" if settings.port else settings.host
    try:
        try_address(settings)
    except ContainerUpdateError as error:
        if start_checks.is_served(settings):
            text = "taken, and a service on this database runs: stop it before this one starts"
            return Check("address", f"{place}: {text}")
        return Check("address", error=error)
    return Check("address", f"{place}: free" if settings.port else f"{place}: a free port")
