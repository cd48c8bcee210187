"""A PostgreSQL of the test's own: Debian's programs, a free loopback port, a data directory of its
own, an unprivileged user. Nothing of it is kept, so it may be quick rather than durable where a
killed *server* is concerned; clients may be killed all the same.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.vnfm.waiting import until

BINARIES = Path("/usr/lib/postgresql")
OPTIONS = ("fsync=off", "synchronous_commit=on", "full_page_writes=off", "max_connections=300")


def find() -> Path | None:
    """Return the folder with Debian's newest PostgreSQL, None if there is none."""
    binaries = sorted(BINARIES.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return binaries[-1].parent if binaries else None


@contextlib.contextmanager
def running(binaries: Path) -> Iterator[str]:
    """Start a server and yield its URL, without a database."""
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        data, port = folder / "data", _free_port()
        initdb = [binaries / "initdb", "-D", data, "-U", "vnfm", "-A", "trust", "-E", "UTF8"]
        subprocess.run(
            [*map(str, initdb), "--locale=C", "--no-sync"],
            user=user, cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
        with _server(binaries, folder, data, port, user):
            yield f"postgresql://vnfm@127.0.0.1:{port}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _server(
    binaries: Path, folder: Path, data: Path, port: int, user: str | None
) -> Iterator[None]:
    options = [part for option in OPTIONS for part in ("-c", option)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(binaries / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder),
             "-h", "127.0.0.1", *options],
            user=user, cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        ready = [str(binaries / "pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-q"]
        until(lambda: subprocess.run(ready, check=False).returncode == 0, "PostgreSQL is ready")
        yield
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()


def _unprivileged() -> str | None:
    """Return PostgreSQL's own user if the tests run as root, which it refuses; else None."""
    return "postgres" if os.geteuid() == 0 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
