"""Run the package's coordination scripts: when, for which VDU, with what, and for how long.

A script is third-party code: it gets a folder of its own with a copy of the package, and the dict
of :mod:`.script_input`. Exit status 0 is success; its output is shown in the report, without
passwords.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from container_update.model.cancellation import CancelToken
from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options
from container_update.operations.change_request import ScriptName, secrets_in
from container_update.operations.scripts.located import NEW, OLD, package_with_script
from container_update.operations.scripts.process import Script
from container_update.operations.scripts.report import Listener, ScriptReport, ScriptRun
from container_update.operations.scripts.script_input import script_input
from container_update.operations.strategies.strategy import ChangeJob, Strategy, VduChange
from container_update.package import archive, csar

LOG = logging.getLogger(__name__)

_BIGGEST_COPY = 16 * 1024 * 1024
"""The most bytes of a file that is copied for a script; container images are bigger."""

_POLL = 0.05
_HIDDEN = "***"


class CoordinationError(ContainerUpdateError):
    """A coordination script failed, or ran for too long."""


@dataclass
class Coordination:
    """The scripts of one job.

    :param access: how a script reaches the VIM, for its dict.
    """

    job: ChangeJob
    access: Mapping[str, Any]
    cancel: CancelToken
    listen: Listener = lambda _: None
    """An exception of it is logged, and the script runs all the same."""
    reports: list[ScriptReport] = field(default_factory=list)

    @property
    def roles(self) -> frozenset[str]:
        """The VNFs, 'new' and 'old', for which the request has a script."""
        return frozenset(which for which in (NEW, OLD) if self.job.request.script(which))

    def run(self, which: str, strategy: Strategy) -> None:
        """Run a script for every VDU that changes, unless an interrupted run did so already.

        :raises CoordinationError: one failed, or was stopped; the ones after it are not run.
        """
        script = self.job.request.script(which)
        if script is None or which not in strategy.scripts_per_vdu:
            return
        for vdu in strategy.vdus():
            milestone = quote(f"{which}:{vdu.vdu_id}", safe=":")
            if strategy.has_passed(milestone):
                continue
            if not self.cancel:
                self.run_for(which, vdu)
            if self.cancel:
                what = f"coordination script {script.path} for the {which} VNF, {vdu.vdu_id}"
                raise CoordinationError(f"{what}: stopped {self.cancel.reason}")
            strategy.pass_milestone(milestone)

    def run_for(self, which: str, vdu: VduChange) -> None:
        """Run a script for one VDU, or one VNFC of it.

        :raises CoordinationError: it failed, or ran for too long.
        """
        script = self.job.request.script(which)
        if script is None:
            return
        report = self._reported(script, which, vdu)
        if report.status == 0 or self.cancel:
            return
        limit = self.job.options.coordination_seconds
        how = (
            f"expected it to end within {limit:g} s, ended it"
            if report.status is None
            else f"ended with status {report.status}"
        )
        last = report.output.strip().rpartition("\n")[2]
        message = f"coordination script {script.path} for the {which} VNF, {vdu.vdu_id}: {how}"
        raise CoordinationError(f"{message}: {last}" if last else message)

    def _reported(self, script: ScriptName, which: str, vdu: VduChange) -> ScriptReport:
        """Run a script; report that it begins, and that it has ended, however it does."""
        run = ScriptRun(which, vdu.vdu_id, script.path)
        self._tell(run)
        try:
            report = self._run_in_copy(script, which, vdu)
        except (ContainerUpdateError, OSError) as error:
            self._tell(ScriptReport(which, vdu.vdu_id, script.path, None, 0.0, str(error)))
            if isinstance(error, ContainerUpdateError):
                raise
            what = f"coordination script {script.path} cannot be run: {error}"
            raise CoordinationError(what) from error
        self.reports.append(report)
        self._tell(report)
        return report

    def _tell(self, run: ScriptRun) -> None:
        try:
            self.listen(run)
        except Exception:
            LOG.exception("%s: it cannot be reported; the operation goes on", run.title)

    def _run_in_copy(self, script: ScriptName, which: str, vdu: VduChange) -> ScriptReport:
        """Run a script in a copy of the package that has it.

        :raises PackageError: the script is not the one that the package's metadata lists.
        """
        with tempfile.TemporaryDirectory(prefix="container-update-script-") as name:
            copy = Path(name) / "package"
            _copy_package(self._package_of(which), copy, self.job.options)
            started = time.monotonic()
            values = script_input(self.job, which, vdu, copy, self.access)
            with Script(script, copy, values) as process:
                status = self._wait(process, started + self.job.options.coordination_seconds)
            return ScriptReport(
                which=which,
                vdu_id=vdu.vdu_id,
                script=script.path,
                status=status,
                seconds=time.monotonic() - started,
                output=self._without_secrets(process.output()),
            )

    def _package_of(self, which: str) -> str:
        """Return the package that has a script, whose hash is right."""
        job = self.job
        sources = {NEW: job.new, **({OLD: job.old} if job.old else {})}
        with ExitStack() as stack:
            opened = {
                name: stack.enter_context(csar.open_package(source, options=job.options))
                for name, source in sources.items()
            }
            package = package_with_script(job.request, which, opened)
            assert package is not None, "it is asked for where the request has a script"
            return package.source

    def _wait(self, process: Script, deadline: float) -> int | None:
        while time.monotonic() < deadline and not self.cancel:
            if (status := process.wait(_POLL)) is not None:
                return status
        return None

    def _without_secrets(self, text: str) -> str:
        secrets = set(secrets_in([self.job.request.body, self.access, self.job.instance]))
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text


def _copy_package(source: str, target: Path, options: Options) -> None:
    with closing(archive.open_archive(source, options)) as files:
        for name in files.names():
            if files.size(name) <= _BIGGEST_COPY:
                copy = target / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                with files.open(name) as content, copy.open("wb") as file:
                    shutil.copyfileobj(content, file)


def notes(job: ChangeJob, used: frozenset[str]) -> Iterator[str]:
    """Yield what the operator should know about the scripts before they run."""
    for which, script in ((NEW, job.request.coordinate_new), (OLD, job.request.coordinate_old)):
        if script is None:
            continue
        name = " ".join(filter(None, (script.path, script.class_name)))
        if which in used:
            yield f"{name} is run to coordinate the {which} VNF"
        else:
            kind = job.request.upgrade_type
            yield f"{name} is not run: a {kind} does not call the script of the {which} VNF"
