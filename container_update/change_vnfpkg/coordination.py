"""Runs the package's coordination scripts: a process each, with a time limit, inheriting nothing.

A script is somebody else's code. It gets a folder of its own with a copy of the package, an
environment of a few harmless variables, and on standard input a pickled dict, as Tacker's v2 API
gives it. It is started by our interpreter, without a shell, in a process group that ends with it.
Exit status 0 is success; what it prints is shown in the report, passwords struck out.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from container_update import archive, csar
from container_update.change_vnfpkg import coordination_runner
from container_update.change_vnfpkg.request import ScriptName, VduParams, secrets_in
from container_update.change_vnfpkg.strategy import Order, Strategy, Target
from container_update.errors import ContainerUpdateError
from container_update.stopping import Stop

NEW, OLD = "new", "old"

_ENVIRONMENT = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ")
"""All that a script inherits of our environment."""

_BIGGEST_COPY = 16 * 1024 * 1024
"""Bytes of a file of the package that a script gets a copy of; container images are bigger."""

_KEPT_OUTPUT = 8 * 1024
_POLL = 0.05
_STRUCK_OUT = "***"


class CoordinationError(ContainerUpdateError):
    """A coordination script failed, or ran for too long."""


@dataclass(frozen=True)
class ScriptReport:
    """What became of one run of a script."""

    which: str
    """'new' or 'old': the VNF that was coordinated."""
    vdu_id: str
    script: str
    status: int | None
    """The exit status, None where it was ended."""
    seconds: float
    output: str
    """The end of what it printed."""

    def __str__(self) -> str:
        how = "was ended" if self.status is None else f"status {self.status}"
        head = f"  {self.script} ({self.which} VNF, {self.vdu_id}): {how} ({self.seconds:.1f} s)"
        return "\n".join([head, *(f"      | {line}" for line in self.output.splitlines())])

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "vnf": self.which,
            "vduId": self.vdu_id,
            "script": self.script,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "output": self.output,
        }


@dataclass
class Coordination:
    """The scripts of one order.

    :param access: how a script reaches the VIM, for its dict.
    """

    order: Order
    access: Mapping[str, Any]
    stop: Stop
    reports: list[ScriptReport] = field(default_factory=list)

    def run(self, which: str, strategy: Strategy) -> None:
        """Run a script for every VDU that changes, unless a run before this one did.

        :raises CoordinationError: one failed, or was stopped; the ones after it are not run.
        """
        script = self._script(which)
        if script is None:
            return
        for target in strategy.targets():
            milestone = quote(f"{which}:{target.vdu_id}", safe=":")
            if strategy.has_passed(milestone):
                continue
            if not self.stop:
                self.run_for(which, target)
            if self.stop:
                what = f"coordination script {script.path} for the {which} VNF, {target.vdu_id}"
                raise CoordinationError(f"{what}: stopped, {self.stop.reason}")
            strategy.pass_milestone(milestone)

    def run_for(self, which: str, target: Target) -> None:
        """Run a script for one VDU, or one VNFC of it.

        :raises CoordinationError: it failed, or ran for too long.
        """
        script = self._script(which)
        if script is None:
            return
        try:
            report = self._in_a_folder_of_its_own(script, which, target)
        except OSError as error:
            what = f"coordination script {script.path} cannot be run: {error}"
            raise CoordinationError(what) from error
        self.reports.append(report)
        if report.status == 0 or self.stop:
            return
        limit = self.order.options.coordination_seconds
        how = (
            f"expected it to end within {limit:g} s, ended it"
            if report.status is None
            else f"ended with status {report.status}"
        )
        last = report.output.strip().rpartition("\n")[2]
        raise CoordinationError(
            f"coordination script {script.path} for the {which} VNF, {target.vdu_id}: {how}"
            + (f": {last}" if last else "")
        )

    def _in_a_folder_of_its_own(
        self, script: ScriptName, which: str, target: Target
    ) -> ScriptReport:
        with tempfile.TemporaryDirectory(prefix="container-update-script-") as name:
            folder = Path(name)
            self._check_hash(script)
            _copy_package(self.order.new, folder / "package")
            context = self._context(which, target, folder / "package")
            return self._process(script, which, target, folder, context)

    def _check_hash(self, script: ScriptName) -> None:
        """PackageError where the script is not what the package's metadata lists."""
        settings = csar.Settings.of(self.order.options)
        with csar.open_package(self.order.new, settings=settings) as package:
            package.read(script.path)

    def _script(self, which: str) -> ScriptName | None:
        request = self.order.request
        return request.coordinate_new if which == NEW else request.coordinate_old

    def _context(self, which: str, target: Target, package: Path) -> dict[str, Any]:
        """The dict: its first five entries are Tacker's, the last one is ours."""
        request = self.order.request
        chosen = [vdu for vdu in request.vdu_params if vdu.vdu_id == target.vdu_id]
        vdu = chosen[0] if chosen else VduParams(target.vdu_id)
        return {
            "request": dict(request.body),
            "vnf_instance": dict(self.order.instance),
            "grant_request": {},
            "grant_response": {},
            "tmp_csar_dir": str(package),
            "coordination": {
                "vnf": which,
                "instance_id": self.order.instance_id,
                "vdu_id": target.vdu_id,
                "vnfc_param": dict(vdu.new_vnfc if which == NEW else vdu.old_vnfc),
                "old_resource": target.old_resource,
                "new_resource": target.new_resource,
                **target.details,
                "access": dict(self.access),
            },
        }

    # --- the process ----------------------------------------------------------------------------

    def _process(
        self,
        script: ScriptName,
        which: str,
        target: Target,
        folder: Path,
        context: Mapping[str, Any],
    ) -> ScriptReport:
        path = str(folder / "package" / script.path)
        command = [sys.executable, path]
        if script.class_name is not None:
            command = [sys.executable, coordination_runner.__file__, path, script.class_name]
        began = time.monotonic()
        with tempfile.TemporaryFile() as stdin:
            stdin.write(pickle.dumps(context))
            stdin.seek(0)
            process = subprocess.Popen(  # noqa: S603, the script is what the operator asked for
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder / "package",
                env=_environment(folder),
                start_new_session=True,
            )
            output = _Output(process.stdout)
            status = self._wait(process, began + self.order.options.coordination_seconds)
            _end_group(process)
        return ScriptReport(
            which=which,
            vdu_id=target.vdu_id,
            script=script.path,
            status=status,
            seconds=time.monotonic() - began,
            output=self._without_secrets(output.text()),
        )

    def _wait(self, process: subprocess.Popen[bytes], deadline: float) -> int | None:
        while time.monotonic() < deadline and not self.stop:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL)
        return None

    def _without_secrets(self, text: str) -> str:
        hidden = {
            *secrets_in(self.order.request.body),
            *secrets_in(self.access),
            *secrets_in(self.order.instance),
        }
        for secret in sorted(hidden, key=len, reverse=True):
            text = text.replace(secret, _STRUCK_OUT)
        return text


class _Output:
    """The end of what a process prints, read while it runs so that it is never kept waiting."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None, "the process was started with a pipe"
        self._stream = stream
        self._kept = b""
        self._cut = False
        self._reader = threading.Thread(target=self._read, name="script output", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._stream as stream:
            while chunk := stream.read1(_KEPT_OUTPUT):  # type: ignore[attr-defined]
                self._cut |= len(self._kept) + len(chunk) > _KEPT_OUTPUT
                self._kept = (self._kept + chunk)[-_KEPT_OUTPUT:]

    def text(self) -> str:
        """What was kept, without what a terminal would take for an order."""
        self._reader.join(timeout=5)
        text = self._kept.decode("utf-8", "replace")
        shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
        return ("[...]\n" if self._cut else "") + shown


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what the script left running, and the script itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**kept, "HOME": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def _copy_package(source: str, target: Path) -> None:
    files = archive.open_archive(source, archive.Limits())
    try:
        for name in files.names():
            if files.size(name) <= _BIGGEST_COPY:
                copy = target / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                with files.open(name) as content, copy.open("wb") as file:
                    shutil.copyfileobj(content, file)
    finally:
        files.close()


def notes(order: Order, called: frozenset[str]) -> Iterator[str]:
    """What the operator should know about the scripts before they run."""
    for which, script in ((NEW, order.request.coordinate_new), (OLD, order.request.coordinate_old)):
        if script is None:
            continue
        name = " ".join(filter(None, (script.path, script.class_name)))
        if which in called:
            yield f"{name} is run to coordinate the {which} VNF"
        else:
            kind = order.request.upgrade_type.value
            yield f"{name} is not run: a {kind} does not call the script of the {which} VNF"
