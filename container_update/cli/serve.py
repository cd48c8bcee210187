"""``container-update serve``: its arguments, and the service run until it is told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import socket
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options

if TYPE_CHECKING:
    from container_update.vnfm.settings import Settings

DONE = 0
_REQUESTS = 256
"""How many requests may be open at once."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments; everything else is a matter of the configuration file."""
    add = command.add_argument
    add("--config-file", action="append", default=[], metavar="FILE",
        help="with the sections [vnfm] and [container_update] (repeat)")  # fmt: skip
    add("--host", help="the address to listen on (default: 127.0.0.1)")
    add("--port", type=int, help="the port to listen on; 0: a free one (default: 9890)")
    add("--state-dir", metavar="FOLDER", help="packages, keys and, by default, the database")
    add("--database-url", metavar="URL", help="postgresql://USER@HOST/NAME (default: SQLite)")
    add("--demo", action="store_true",
        help="with the embedded cluster and the samples, all of which goes in the end")  # fmt: skip


def run(parsed: argparse.Namespace, out: TextIO) -> int:
    """Serve until SIGTERM or SIGINT; the exit status."""
    try:
        from container_update.cli.demo import service as demo  # noqa: PLC0415, an extra
        from container_update.vnfm.service import Service  # noqa: PLC0415, an extra
    except ImportError as error:
        raise ContainerUpdateError(
            f"the service needs {error.name}: pip install 'container-update[vnfm]'"
        ) from error
    if parsed.demo and (parsed.state_dir or parsed.database_url):
        raise ContainerUpdateError(
            "--demo has a state of its own, which goes when it ends: leave out --state-dir and "
            "--database-url"
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
            out.write(stage.prepare(service.core) + "\n")
        out.write(f"VNFM on {settings.base_url}\n")
        out.flush()
        _serve(service.app, settings, sock)
    if service.workers.busy:  # a thread that cannot be ended must not keep the process
        os._exit(DONE)
    return DONE


def _read(parsed: argparse.Namespace) -> tuple[Settings, Options]:
    """The settings of the files, with what the arguments say laid over them."""
    from oslo_config import cfg  # noqa: PLC0415, slow to load

    from container_update.vnfm.settings import Settings  # noqa: PLC0415, an extra

    conf = cfg.ConfigOpts()
    names = ("host", "port", "state_dir", "database_url")
    given = {name: getattr(parsed, name) for name in names if getattr(parsed, name) is not None}
    try:
        conf(args=[], default_config_files=parsed.config_file)
        return Settings.from_conf(conf, **given), Options.from_conf(conf)
    except (cfg.Error, ValueError) as error:
        raise ContainerUpdateError(f"the configuration is wrong: {error}") from error


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
        sock.listen(_REQUESTS)  # who asks while the service starts is answered, not refused
    except OSError as error:
        sock.close()
        raise ContainerUpdateError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}: choose "
            "another with --host and --port"
        ) from error
    return sock


def _serve(app: Any, settings: Settings, sock: socket.socket) -> None:
    import uvicorn  # noqa: PLC0415, an extra

    from container_update.vnfm.http import logs  # noqa: PLC0415, an extra

    logs.configure()
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_REQUESTS,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _heard)
    uvicorn.Server(config).run(sockets=[sock])


def _heard(*_: object) -> None:
    """uvicorn ends at a signal, then raises it again: what the caller opened is to be closed."""
