# SPDX-License-Identifier: Apache-2.0
"""Mgmt Drivers of the v2 API: scripts of the package, each run as a process of its own.

Our own script is not run, what it would do is in :mod:`container_update.vnfm.lcm.tasks`.
Others run as in Tacker: with this interpreter, one pickled dict on standard input and one on
standard output, standard error as the reason of a failure, in a copy of the package, which they may
change. Other than there, time and output are bounded, the service's environment stays with it, and
a script ends with all that it has started.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from container_update.drivers import v2_script
from container_update.drivers.change_by_modify import Modification
from container_update.drivers.v2_memory import KEPT
from container_update.drivers.v2_process import LOG_VARIABLE, NEXT_STEP, has_work
from container_update.drivers.v2_records import CONFIG_VARIABLE, RESTARTED, modification_of
from container_update.engine.scripts.process import Process
from container_update.model.errors import NextStep, PackageError
from container_update.model.objects import Json
from container_update.package.tools.build import driver_file
from container_update.vnfm.lcm.mgmt_drivers.driver_answer import (
    ANSWER_BYTES,
    ScriptError,
    plain_answer,
)
from container_update.vnfm.lcm.mgmt_drivers.drivers import MODIFIED, Drivers, file_of
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord

_BESIDE = "Definitions"
"""The folder of the package that paths in the VNFD are relative to."""

_LOOK_SECONDS = 0.2
_REASON_CHARACTERS = 2000

_TERM_SECONDS = 10.0
"""Time between SIGTERM and SIGKILL."""

_TOO_LONG = f"it wrote more than {ANSWER_BYTES} bytes to standard output, expected a pickled dict"


@dataclass(frozen=True)
class V2Scripts(Drivers):
    """The scripts that a package's VNFD names."""

    @property
    def is_ours(self) -> bool:
        """Whether the package has our script for the end of a modification, byte for byte."""
        script = self.scripts.get(MODIFIED)
        if script is None or not script.file:
            return False
        copy = file_of(MODIFIED, script, self.folder, _BESIDE)
        return copy.read_bytes() == driver_file("v2").read_bytes()

    def work(self, record: VnfRecord) -> Modification | None:
        """Return what our own script would do; see V1Drivers."""
        request, old = self.context.request, self.folder
        new = self.context.package(record.vnfd_id) if request.get("vnfdId") else old
        script = self._input(MODIFIED, record, old, new)
        if not has_work(script):
            return None
        return modification_of(script["vnf_instance"], request, str(old), str(new))

    def call(self, event: str, record: VnfRecord, new: Path | None = None) -> VnfRecord:
        """Run the script of an event, as V1Drivers does; our own one does nothing here that this
        service does not do itself."""
        named, modified = self.scripts.get(event), self.scripts.get(MODIFIED)
        if named is None or (modified and named.file == modified.file and self.is_ours):
            return record
        with contextlib.ExitStack() as stack:
            old_copy = stack.enter_context(_copy(self.folder))
            new_copy = stack.enter_context(_copy(new)) if new is not None else None
            script = file_of(event, named, old_copy, _BESIDE)
            values = self._input(event, record, old_copy, new_copy)
            output = self._run(event, script, values)
        changed = output.get("vnf_instance")
        if not isinstance(changed, dict):
            return record
        try:  # a mistake in a record breaks all that reads it: lists, the page, other drivers
            v2_script.check({**values, "vnf_instance": {**values["vnf_instance"], **changed}})
        except PackageError as error:
            raise ScriptError(f"{event}: the answer of {named.file}: {error}") from error
        body = {name: value for name, value in changed.items() if name not in _OURS}
        restarted = output.get(RESTARTED)
        ids = map(str, restarted) if isinstance(restarted, (list, tuple)) else ()
        return replace(record, body=body, touched=frozenset(ids))

    def _input(self, event: str, record: VnfRecord, old: Path, new: Path | None) -> Json:
        """Return what a script gets: the VnfInstance has the VIM with its credentials."""
        instance = record.vnf_instance(self.context.instance_id)
        instance["vimConnectionInfo"] = {"vim": self.context.connection}
        values = {
            "operation": event,
            "request": self.context.request,
            "vnf_instance": instance,
            "grant_request": None,
            "grant_response": None,
            "tmp_csar_dir": str(old),
            KEPT: self.context.kept,
            NEXT_STEP: None,
        }
        return values if new is None else {**values, "new_csar_dir": str(new)}

    def _run(self, event: str, script: Path, values: Json) -> Json:
        context = self.context
        variables = {
            CONFIG_VARIABLE: str(context.service.settings.folder / "options.conf"),
            LOG_VARIABLE: os.environ.get(LOG_VARIABLE, ""),
        }
        with (
            tempfile.TemporaryDirectory(prefix="script-") as home,
            Process(
                [sys.executable, str(script)],
                values,
                folder=script.parent,
                home=Path(home),
                variables=variables,
                answer_bytes=ANSWER_BYTES,
            ) as process,
        ):
            status, why = _wait(process, context)
        output = {} if process.is_answer_too_long else plain_answer(process.answer())
        if isinstance(kept := output.get(KEPT), dict):
            context.kept.update(kept)
        if status or why:
            reason = why or process.output().strip()[-_REASON_CHARACTERS:] or status
            raise ScriptError(
                f"{event}: {script.name} failed: {reason}",
                next_step=_NEXT_STEPS.get(str(output.get(NEXT_STEP))),
            )
        return output


def _wait(process: Process, context: OperationContext) -> tuple[int | None, str]:
    """Return the script's status, None if it is to be killed, and why it was ended, or ''."""
    seconds, why = context.service.settings.driver_seconds, ""
    deadline = time.monotonic() + seconds
    while (status := process.wait(_LOOK_SECONDS)) is None:
        is_over = time.monotonic() > deadline
        if why and is_over:
            break
        if not why:
            if context.cancel:
                why = f"it was stopped {context.cancel.reason}"
            elif process.is_answer_too_long:
                why = _TOO_LONG
            elif is_over:
                why = f"expected it to end within {seconds:g} s (driver_seconds), ended it"
            if why:
                process.terminate()
                deadline = time.monotonic() + _TERM_SECONDS
    return status, why or (_TOO_LONG if process.is_answer_too_long else "")


_NEXT_STEPS: Mapping[str, NextStep] = {step.value: step for step in NextStep}

_OURS = ("id", "vnfdId", "instantiationState", "vimConnectionInfo", "_links")
"""Attributes of the instance that a script cannot change."""


@contextlib.contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="csar-") as name:
        target = Path(name) / "csar"
        shutil.copytree(folder, target)
        yield target
