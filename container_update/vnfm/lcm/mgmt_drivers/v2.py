"""Mgmt Drivers of the v2 API: scripts of the package, each run as a process of its own.

They run as in Tacker: with this interpreter, one pickled dict on standard input and one on standard
output, standard error as the reason of a failure, in a copy of the package, which they may change.
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

from container_update.drivers.v2_memory import KEPT
from container_update.drivers.v2_process import NEXT_STEP
from container_update.drivers.v2_progress import PROGRESS_VARIABLE
from container_update.drivers.v2_records import CONFIG_VARIABLE, RESTARTED
from container_update.model.errors import ContainerUpdateError, NextStep
from container_update.model.objects import Json
from container_update.vnfm.lcm.mgmt_drivers.drivers import Drivers, file_of
from container_update.vnfm.lcm.operation_context import OperationContext, Record
from container_update.vnfm.lcm.steps import Follower
from container_update.vnfm.service_context import ServiceContext

_LOOK_SECONDS = 0.2
_REASON_CHARACTERS = 2000


class ScriptError(ContainerUpdateError):
    """A script ended with an error."""


def progress_file(service: ServiceContext, operation_id: str) -> Path:
    """Return the file that the scripts of an operation write their progress to."""
    folder = service.settings.folder / "progress"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{operation_id}.jsonl"


@dataclass(frozen=True)
class V2Scripts(Drivers):
    """The scripts that a package's VNFD names."""

    def call(self, event: str, record: Record, new: Path | None = None) -> Record:
        """See Drivers."""
        named = self.scripts.get(event)
        if named is None:
            return record
        with contextlib.ExitStack() as stack:
            old_copy = stack.enter_context(_copy(self.folder))
            new_copy = stack.enter_context(_copy(new)) if new is not None else None
            script = file_of(event, named, old_copy, "Definitions")
            output = self._run(event, script, self._input(event, record, old_copy, new_copy))
        changed = output.get("vnf_instance")
        if not isinstance(changed, dict):
            return record
        body = {name: value for name, value in changed.items() if name not in _OURS}
        return replace(record, body=body, touched=frozenset(output.get(RESTARTED) or ()))

    def _input(self, event: str, record: Record, old: Path, new: Path | None) -> Json:
        """Return what a script gets: the VnfInstance has the VIM with its credentials."""
        instance = {
            "id": self.context.instance_id,
            "vnfdId": record.vnfd_id,
            "instantiationState": record.state,
            **record.body,
            "vimConnectionInfo": {"vim": self.context.connection},
        }
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
        progress = progress_file(context.service, context.operation_id)
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
        stdout, stderr = _communicate(process, pickle.dumps(values), follower, context)
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
    process: subprocess.Popen[bytes], request: bytes, follower: Follower, context: OperationContext
) -> tuple[bytes, bytes]:
    """Store the progress until the script ends; end it when the operation is cancelled."""
    pending: bytes | None = request
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
        """Refuse every class and function."""
        raise ScriptError(
            f"the script's answer holds {module}.{name}: expected dicts, lists, texts and numbers"
        )


def _unpickled(text: bytes) -> Json:
    """Return the script's answer; empty if it is not a pickled dict."""
    try:
        output: Any = _Plain(io.BytesIO(text)).load()
    except (EOFError, pickle.UnpicklingError, IndexError, KeyError, ValueError):
        return {}
    return output if isinstance(output, dict) else {}


_NEXT_STEPS: Mapping[str, NextStep] = {step.value: step for step in NextStep}

_OURS = ("id", "vnfdId", "instantiationState", "vimConnectionInfo", "_links")
"""Attributes of the instance that a script cannot change."""


@contextlib.contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="csar-") as name:
        target = Path(name) / "csar"
        shutil.copytree(folder, target)
        yield target
