# SPDX-License-Identifier: Apache-2.0
"""``container-update vnfm serve``: run the service until a signal arrives."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TextIO

from container_update.cli import extras
from container_update.cli.terminal.output import DONE
from container_update.engine.checks.preflight import Check, exit_status
from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.commands import service_settings
from container_update.vnfm.settings import Settings

LOG = logging.getLogger(__name__)

_BACKLOG = 256
"""Number of connections that wait to be accepted."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command; other settings are in the configuration file."""
    service_settings.add_arguments(command)
    add = command.add_argument
    add("--host", metavar="ADDRESS", help="the address to listen on (default: 127.0.0.1)")
    add("--port", type=int, metavar="N",
        help="the port to listen on; 0: any free port (default: 9890)")  # fmt: skip
    add("--check-config", action="store_true",
        help="check the settings and all that a start needs; start and change nothing")  # fmt: skip
    add("--demo", action="store_true",
        help="run with the embedded cluster and the samples; keep nothing")  # fmt: skip
    add("--open", action="store_true",
        help="open the page in the browser; with --demo it is signed in")  # fmt: skip


def run(parsed: argparse.Namespace, out: TextIO) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status."""
    with extras.needed_by("serve", "emulator,vnfm" if parsed.demo else "vnfm"):
        from container_update.vnfm.commands import demo  # noqa: PLC0415
        from container_update.vnfm.service import Service  # noqa: PLC0415
    if parsed.demo and (parsed.state_dir or parsed.database_url):
        raise ContainerUpdateError(
            "--demo stores its state in a temporary folder: remove --state-dir and --database-url"
        )
    if parsed.check_config:
        return _check_config(parsed, out)
    settings, options = service_settings.read(parsed)
    service_settings.start_log(parsed)
    with ExitStack() as stack:
        sock = stack.enter_context(_listening(settings))
        if not settings.port:
            settings = replace(settings, port=sock.getsockname()[1])
        stage = stack.enter_context(demo.stage()) if parsed.demo else None
        if stage:
            settings = replace(settings, state_dir=stage.state_dir, database_url="")
            settings = replace(settings, auth="token_file", token_file="")
            options = replace(options, drain_seconds=1.0)
        service = Service(settings, options)
        if stage:
            out.write(stage.prepare(service.context) + "\n")
        address = settings.base_url
        out.write(f"VNFM on {address}\n")
        if stage:
            address = service.link.issue(address, stage.token(settings))
            out.write(f"# the page; this link signs in once, within 15 minutes\n{address}\n")
        out.flush()
        if parsed.open:  # in a thread: a browser for terminals ends only when its user leaves
            threading.Thread(target=_open, args=(address,), daemon=True).start()
        _serve(service.app, settings, sock)
    if service.workers.busy:  # a thread that cannot be ended must not keep the process
        os._exit(DONE)
    return DONE


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only where the protocol is named; otherwise the body of an
    # answer waits for the client's acknowledgement of its headers, which some delay by 40 ms
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
        sock.listen(_BACKLOG)  # a request during the start waits for its answer
    except OSError as error:
        sock.close()
        raise ContainerUpdateError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}: choose "
            "another address or port with --host and --port"
        ) from error
    return sock


def _serve(app: Any, settings: Settings, sock: socket.socket) -> None:
    import uvicorn  # noqa: PLC0415, an extra

    from container_update.vnfm.http import connections  # noqa: PLC0415, an extra

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ignore)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, _terminate)
    uvicorn.Server(connections.server_config(app, settings)).run(sockets=[sock])


def _open(address: str) -> None:
    if not webbrowser.open(address):
        LOG.warning("no browser could be started: open the last line of the output in one")


def _terminate(*_: object) -> None:
    """End as at SIGTERM: the terminal was closed."""
    os.kill(os.getpid(), signal.SIGTERM)


def _ignore(*_: object) -> None:
    """Ignore a signal: uvicorn ends, then raises it again, and the caller must still clean up."""


# --- --check-config: what a start would trip over -----------------------------------------------


def _check_config(parsed: argparse.Namespace, out: TextIO) -> int:
    """Write a line for each check; return the exit status of the first problem, 0 without one."""
    if parsed.demo:
        raise ContainerUpdateError("--check-config checks no demo: remove --demo")
    checks = []
    for check in _checks(parsed):
        checks.append(check)
        text = f"problem  {check.name}: {check.error}" if check.error else (
            f"ok       {check.name}: {check.found}"
        )  # fmt: skip
        out.write(text + "\n")
        out.flush()
    return exit_status(checks)


def _checks(parsed: argparse.Namespace) -> Iterator[Check]:
    from container_update.vnfm import start_checks  # noqa: PLC0415, an extra

    try:
        settings, _ = service_settings.read(parsed)
    except ContainerUpdateError as error:
        yield Check("settings", error=error)
        return
    files = ", ".join(parsed.config_file) or "no configuration file"
    yield Check("settings", f"{files}, and the arguments: all values are valid")
    for unknown in service_settings.unknown(parsed.config_file):
        yield Check("settings", error=unknown)
    yield from start_checks.checks(settings)
    yield _address(settings)


def _address(settings: Settings) -> Check:
    from container_update.vnfm import start_checks  # noqa: PLC0415, an extra

    place = f"{settings.host}, port {settings.port}" if settings.port else settings.host
    try:
        _listening(settings).close()
    except ContainerUpdateError as error:
        if start_checks.is_served(settings):
            text = "taken, and a service on this database runs: stop it before this one starts"
            return Check("address", f"{place}: {text}")
        return Check("address", error=error)
    return Check("address", f"{place}: free" if settings.port else f"{place}: a free port")
