# SPDX-License-Identifier: Apache-2.0
"""The service as a process of its own, as its users start it, and the ``openstack`` client."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests import forks
from tests.vnfm.waiting import until

CONFIGURATION = """
[vnfm]
{vnfm}
lock_seconds = 1
drain_seconds = {drain}
[container_update]
lease_seconds = 3
drain_seconds = 0
{options}
"""


@dataclass
class Served:
    """A service on a port of its own, with the interface that the tests of Tacker use."""

    folder: Path
    database: str
    """Its URL; '' for SQLite in the folder."""
    vnfm: str = "auth = none"
    """Settings of its section [vnfm]."""
    options: str = ""
    """Settings of its section [container_update]."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it has in addition."""
    drain_seconds: int = 5
    """The time for operations to end when it stops."""
    url: str = ""
    process: int = 0
    """Its process id."""
    starts: int = 0

    # --- the interface that tests.tacker.operator.Operator uses -----------------------------------

    def client(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run the ``openstack`` client to its end."""
        return forks.clients().run("openstackclient.shell:main", list(arguments), self.folder)

    # --- the process ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, at its former address if it was started before."""
        self.folder.mkdir(exist_ok=True)
        conf = self.folder / "vnfm.conf"
        values = {"vnfm": self.vnfm, "options": self.options, "drain": self.drain_seconds}
        conf.write_text(CONFIGURATION.format(**values))
        port = self.url.rpartition(":")[2] or "0"
        database = ["--database-url", self.database] if self.database else []
        self.starts += 1
        out, log = (self.folder / f"{name}-{self.starts}" for name in ("out", "log"))
        arguments = ["vnfm", "serve", "--config-file", str(conf), "--port", port,
                     "--state-dir", str(self.folder / "state"), *database]  # fmt: skip
        self.process = forks.services().start(
            "container_update.cli.main:main", arguments, self.folder, out, log, self.environment
        )

        def answers() -> bool:
            assert not forks.services().has_ended(self.process), log.read_text()
            return log.exists() and "startup complete" in log.read_text()

        until(answers, "the service answers")
        (self.url,) = re.findall(r"https?://\S+", out.read_text())

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Terminate it and return its exit status."""
        return self._end(number)

    def _end(self, number: int) -> int:
        os.kill(self.process, number)
        status = forks.services().wait(self.process)
        self.process = 0
        return status

    def log(self) -> str:
        """Return the log of all its processes."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("log-*")))

    def logged(self, text: str) -> int:
        """Return how many lines of the log have a text."""
        return sum(text in line for line in self.log().splitlines())


@contextlib.contextmanager
def served(folder: Path, database: str = "") -> Iterator[Served]:
    """Yield a service that runs until the end of the block."""
    service = Served(folder, database)
    try:
        service.start()
        yield service
    finally:
        if service.process:
            service.kill()
