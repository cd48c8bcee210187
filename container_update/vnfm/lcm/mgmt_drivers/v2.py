"""Mgmt Drivers of the v2 API: scripts of the package, each run as a process of its own.

As Tacker runs them: this interpreter, one pickled dict on standard input and one on standard
output, standard error as the reason of a failure. A copy of the package is theirs to change.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from container_update.drivers.v2_process import NEXT_STEP
from container_update.drivers.v2_progress import PROGRESS_VARIABLE
from container_update.drivers.v2_records import CONFIG_VARIABLE
from container_update.model.errors import ContainerUpdateError, NextStep, PackageError
from container_update.model.objects import Json
from container_update.package.vnfd import InterfaceScript
from container_update.vnfm.lcm.operation_context import OperationContext, Record
from container_update.vnfm.lcm.steps import Follower
from container_update.vnfm.service_context import ServiceContext

KEPT = "user_script_err_handling_data"
_LOOK_SECONDS = 0.2
_REASON_CHARACTERS = 2000


class ScriptError(ContainerUpdateError):
    """A script ended with an error."""


def told_to(service: ServiceContext, operation_id: str) -> Path:
    """Return the file that the scripts of an operation tell their progress to."""
    folder = service.settings.folder / "progress"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{operation_id}.jsonl"


@dataclass(frozen=True)
class V2Scripts:
    """The scripts that a package's VNFD names."""

    context: OperationContext
    folder: Path
    scripts: Mapping[str, InterfaceScript]

    def call(self, event: str, record: Record, new: Path | None = None) -> Record:
        """See Drivers."""
        named = self.scripts.get(event)
        if named is None:
            return record
        if not named.file:
            raise PackageError(
                f"the VNFD maps {event} to {named.implementation}: expected an artifact of this "
                "name with the script's file, and found none"
            )
        with contextlib.ExitStack() as stack:
            old_copy = stack.enter_context(_copy(self.folder))
            new_copy = stack.enter_context(_copy(new)) if new is not None else None
            script = (old_copy / "Definitions" / named.file).resolve()
            if not script.is_relative_to(old_copy.resolve()) or not script.is_file():
                raise PackageError(f"{named.file}: the VNFD maps {event} to it: no such file")
            output = self._run(event, script, self._input(event, record, old_copy, new_copy))
        return _read_back(output, record)

    def _input(self, event: str, record: Record, old: Path, new: Path | None) -> Json:
        given = {
            "operation": event,
            "request": self.context.request,
            "vnf_instance": self._instance(record),
            "grant_request": None,
            "grant_response": None,
            "tmp_csar_dir": str(old),
            KEPT: self.context.kept,
            NEXT_STEP: None,
        }
        return given if new is None else {**given, "new_csar_dir": str(new)}

    def _instance(self, record: Record) -> Json:
        """Return the VnfInstance as a script has to know it: with the VIM and its credentials."""
        state = "INSTANTIATED" if record.instantiated else "NOT_INSTANTIATED"
        return {
            "id": self.context.instance_id,
            "vnfdId": record.vnfd_id,
            "instantiationState": state,
            **record.body,
            "vimConnectionInfo": {"vim": self.context.connection},
        }

    def _run(self, event: str, script: Path, given: Json) -> Json:
        context = self.context
        progress = told_to(context.service, context.operation_id)
        follower = Follower(progress, context.steps)
        environment = {
            **os.environ,
            PROGRESS_VARIABLE: str(progress),
            CONFIG_VARIABLE: str(context.service.settings.folder / "options.conf"),
        }
        process = subprocess.Popen(  # noqa: S603 (a script of a package, as SOL001 has it)
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=script.parent,
            start_new_session=True,
        )
        stdout, stderr = _communicate(process, pickle.dumps(given), follower, context)
        follower.catch_up()
        progress.unlink(missing_ok=True)
        output = _unpickled(stdout)
        context.kept.update(output.get(KEPT) or {})
        if process.returncode:
            reason = stderr.decode(errors="replace").strip()[-_REASON_CHARACTERS:]
            raise ScriptError(
                f"{event}: {script.name} failed: {reason or process.returncode}",
                next_step=_NEXT_STEPS.get(str(output.get(NEXT_STEP))),
            )
        return output


def _communicate(
    process: subprocess.Popen[bytes], given: bytes, follower: Follower, context: OperationContext
) -> tuple[bytes, bytes]:
    """To the script's end, telling how far it is; it is ended where the operation is to stop."""
    pending: bytes | None = given
    while True:
        try:
            return process.communicate(pending, timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            pending = None
            follower.catch_up()
            if context.cancel:
                process.terminate()


class _Plain(pickle.Unpickler):
    """Reads plain values only. A script may run any code, but in a process of its own."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Every class and function is refused."""
        raise ScriptError(
            f"the script's answer holds {module}.{name}: expected dicts, lists, texts and numbers"
        )


def _unpickled(text: bytes) -> Json:
    """Return what the script answered; nothing where it answered otherwise than as it should."""
    try:
        output: Any = _Plain(io.BytesIO(text)).load()
    except (EOFError, pickle.UnpicklingError, IndexError, KeyError, ValueError):
        return {}
    return output if isinstance(output, dict) else {}


_NEXT_STEPS: Mapping[str, NextStep] = {step.value: step for step in NextStep}

_OURS = ("id", "vnfdId", "instantiationState", "vimConnectionInfo", "_links")
"""Of the instance, what a script cannot change."""


def _read_back(output: Json, record: Record) -> Record:
    changed = output.get("vnf_instance")
    if not isinstance(changed, dict):
        return record
    body = {name: value for name, value in changed.items() if name not in _OURS}
    return replace(record, body=body)


@contextlib.contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="csar-") as name:
        target = Path(name) / "csar"
        shutil.copytree(folder, target)
        yield target
