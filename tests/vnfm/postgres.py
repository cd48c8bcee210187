# SPDX-License-Identifier: Apache-2.0
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
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.vnfm.waiting import until

DATABASES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.thorough))
BINARIES = Path("/usr/lib/postgresql")
OPTIONS = ("fsync=off", "synchronous_commit=on", "full_page_writes=off", "max_connections=300")


def find() -> Path | None:
    """Return the folder with Debian's newest PostgreSQL, None if there is none."""
    binaries = sorted(BINARIES.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return binaries[-1].parent if binaries else None


@dataclass
class Server:
    """A server that can be stopped and started again, with the same data at the same port."""

    binaries: Path
    folder: Path
    port: int
    user: str | None
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its URL, without a database."""
        return f"postgresql://vnfm@127.0.0.1:{self.port}"

    def create_database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{self.url}/{name}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = [part for option in OPTIONS for part in ("-c", option)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.binaries / "postgres"), "-D", str(self.folder / "data"),
                 "-p", str(self.port), "-k", str(self.folder), "-h", "127.0.0.1", *options],
                user=self.user, cwd=self.folder, stdout=log, stderr=log,
            )  # fmt: skip
        ready = [str(self.binaries / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-q"]
        until(lambda: subprocess.run(ready, check=False).returncode == 0, "PostgreSQL is ready")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends all connections and then the server, SIGQUIT ends it at once."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def running(binaries: Path) -> Iterator[Server]:
    """Start a server with data of its own."""
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    server = Server(binaries, folder, _free_port(), user)
    try:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        initdb = [binaries / "initdb", "-D", folder / "data", "-U", "vnfm", "-A", "trust"]
        subprocess.run(
            [*map(str, initdb), "-E", "UTF8", "--locale=C", "--no-sync"],
            user=user, cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> str | None:
    """Return PostgreSQL's own user if the tests run as root, which it refuses; else None."""
    return "postgres" if os.geteuid() == 0 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
