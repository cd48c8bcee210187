"""``container-update serve``: run the service until a signal arrives."""

from __future__ import annotations

import argparse
import os
import signal
import socket
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from container_update.cli import extras
from container_update.cli.terminal.output import DONE
from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options

if TYPE_CHECKING:
    from container_update.vnfm.settings import Settings

_BACKLOG = 256
"""Number of connections that wait to be accepted."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command; other settings are in the configuration file."""
    add = command.add_argument
    add("--config-file", action="append", default=[], metavar="FILE",
        help="a file with the sections [vnfm] and [container_update] (repeatable)")  # fmt: skip
    add("--host", metavar="ADDRESS", help="the address to listen on (default: 127.0.0.1)")
    add("--port", type=int, metavar="N",
        help="the port to listen on; 0: any free port (default: 9890)")  # fmt: skip
    add("--state-dir", metavar="FOLDER", help="the folder for packages, keys and SQLite")
    add("--database-url", metavar="URL", help="postgresql://USER@HOST/NAME (default: SQLite)")
    add("--demo", action="store_true",
        help="run with the embedded cluster and the samples; keep nothing")  # fmt: skip


def run(parsed: argparse.Namespace, out: TextIO) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status."""
    with extras.needed_by("serve", "vnfm"):
        from container_update.cli.demo import service as demo  # noqa: PLC0415
        from container_update.vnfm.service import Service  # noqa: PLC0415
    if parsed.demo and (parsed.state_dir or parsed.database_url):
        raise ContainerUpdateError(
            "--demo stores its state in a temporary folder: remove --state-dir and --database-url"
        )
    settings, options = _read(parsed)
    with ExitStack() as stack:
        sock = stack.enter_context(_listening(settings))
        if not settings.port:
            settings = replace(settings, port=sock.getsockname()[1])
        stage = stack.enter_context(demo.stage()) if parsed.demo else None
        if stage:
            settings = replace(settings, state_dir=stage.state_dir, database_url="")
            options = replace(options, drain_seconds=1.0)
        service = Service(settings, options)
        if stage:
            out.write(stage.prepare(service.context) + "\n")
        out.write(f"VNFM on {settings.base_url}\n")
        out.flush()
        _serve(service.app, settings, sock)
    if service.workers.busy:  # a thread that cannot be ended must not keep the process
        os._exit(DONE)
    return DONE


def _read(parsed: argparse.Namespace) -> tuple[Settings, Options]:
    """Return the settings of the configuration files, overridden by the arguments."""
    from oslo_config import cfg  # noqa: PLC0415, slow to load

    from container_update.vnfm.settings import Settings  # noqa: PLC0415, an extra

    conf = cfg.ConfigOpts()
    names = ("host", "port", "state_dir", "database_url")
    values = {name: getattr(parsed, name) for name in names if getattr(parsed, name) is not None}
    try:
        conf(args=[], default_config_files=parsed.config_file)
        return Settings.from_conf(conf, **values), Options.from_conf(conf)
    except (cfg.Error, ValueError) as error:
        raise ContainerUpdateError(f"invalid configuration: {error}") from error


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = socket.socket(family)
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

    from container_update.vnfm.http import connections, logs  # noqa: PLC0415, an extra

    logs.configure()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ignore)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, _terminate)
    uvicorn.Server(connections.server_config(app, settings)).run(sockets=[sock])


def _terminate(*_: object) -> None:
    """End as at SIGTERM: the terminal was closed."""
    os.kill(os.getpid(), signal.SIGTERM)


def _ignore(*_: object) -> None:
    """Ignore a signal: uvicorn ends, then raises it again, and the caller must still clean up."""
