# SPDX-License-Identifier: Apache-2.0
"""The process of a v2 script: a pickled dict from Tacker, a pickled dict back, an exit status.

What a library prints must not reach standard output, or Tacker drops the answer silently; so the
process reserves file descriptor 1 before anything else is imported. Operations with nothing to do
end here, without the libraries that an update needs.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import traceback
from typing import Any, BinaryIO, NoReturn

from container_update.drivers.advice import sol003_advice
from container_update.model.errors import ContainerUpdateError, PackageError, with_advice

Script = dict[str, Any]
"""What Tacker sends: operation, request, vnf_instance, tmp_csar_dir, ... as plain dicts."""

NEXT_STEP = "container_update_next_step"
"""A VNFM with this key in its request gets the value of the error's NextStep under the key in the
answer, and itself says what to do next."""

LOG_VARIABLE = "CONTAINER_UPDATE_LOG"
"""An environment variable of the conductor: the file that the script logs to."""

OPERATIONS = frozenset(
    f"{operation}_{point}"
    for operation in (
        "instantiate",
        "scale",
        "terminate",
        "heal",
        "modify_information",
        "change_external_connectivity",
        "change_current_package",
    )
    for point in ("start", "end", "rollback_start", "rollback_end")
)
"""Every operation that a VNFD can map to a script."""

_ROLL_BACK = ("container_update.drivers.way_back", "put_back")
_HOST_CHANGES = "container_update.drivers.v2_host_changes"
WORK = {
    "instantiate_end": (_HOST_CHANGES, "create_others"),
    "modify_information_end": ("container_update.drivers.v2_records", "update_instance"),
    "modify_information_rollback_start": _ROLL_BACK,
    "modify_information_rollback_end": _ROLL_BACK,
    "change_current_package_start": (_HOST_CHANGES, "check_change"),
    "change_current_package_end": (_HOST_CHANGES, "complete_records"),
    "heal_start": (_HOST_CHANGES, "heal_vnf"),
    "heal_end": (_HOST_CHANGES, "heal_vnf"),
    "terminate_start": (_HOST_CHANGES, "delete_others"),
}
"""The operations that have something to do, and the function that does it; loaded when needed."""


def main() -> NoReturn:
    """Answer the one request on standard input and end the process."""
    answer_to = os.dup(1)
    os.dup2(2, 1)  # its output goes to standard error
    output, reason = answer(sys.stdin.buffer)
    with os.fdopen(answer_to, "wb") as stream:
        stream.write(pickle.dumps(output))
    sys.stderr.write(reason)  # without the end of a line, which Tacker would show as an escape
    sys.exit(1 if reason else 0)


def answer(stream: BinaryIO) -> tuple[Script, str]:
    """Return the dict for Tacker, and why the operation failed: '' if it did not."""
    output: Script = {}
    script: Script = {}
    try:
        script = _read(stream)
        handle(script, output)
    except ContainerUpdateError as error:
        return output, _reason_of_failure(error, script, output)
    except Exception as error:  # noqa: BLE001 (Tacker needs a reason in any case)
        return output, _reason_of_defect(error)
    return output, ""


def handle(script: Script, output: Script) -> None:
    """Do the operation; *output* gets what Tacker keeps, also if it fails."""
    operation = str(script.get("operation"))
    if operation not in OPERATIONS:
        raise PackageError(
            f"operation {script.get('operation')!r:.80}: expected one of "
            f"{', '.join(sorted(OPERATIONS))}:"
            " correct the interface of the VNFD that names this script"
        )
    if operation in WORK and has_work(script):
        _start_log()
        module, function = WORK[operation]
        getattr(importlib.import_module(module), function)(script, output)


def has_work(script: Script) -> bool:
    """Return whether the operation concerns containers that run: a modify operation does if it
    names a package, or files of the present one. A VNF of servers has none.

    :raises PackageError: a field that is read is not what it should be.
    """
    from container_update.drivers import (  # noqa: PLC0415 (not for idle operations)
        v2_memory,
        v2_script,
        vim,
    )

    kept = script.get(v2_memory.KEPT)
    if isinstance(kept, dict):  # at a retry and a rollback Tacker has a class of its own for it
        script[v2_memory.KEPT] = dict(kept)
    v2_script.check(script)
    instance = script["vnf_instance"]
    if not instance.get("instantiatedVnfInfo"):
        return False
    in_cluster = not vim.is_of_servers(instance.get("vimConnectionInfo") or {})
    if not script["operation"].startswith("modify_information"):
        return in_cluster
    from container_update.model.requests import (  # noqa: PLC0415 (not for idle operations)
        CONFIG_PATHS,
        UPGRADE_TYPE,
    )

    request = script["request"]
    metadata = request.get("metadata") or {}
    names_package = request.get("vnfdId") and in_cluster
    return bool(names_package or metadata.get(CONFIG_PATHS) or metadata.get(UPGRADE_TYPE))


def _reason_of_failure(error: ContainerUpdateError, script: Script, output: Script) -> str:
    """Return a paragraph for the operator: what happened, and what to do next in Tacker."""
    reason = " ".join(str(error).split())
    if NEXT_STEP in script:
        output[NEXT_STEP] = error.next_step.value
        return reason
    operation = str(script.get("operation"))
    undoable = not operation.startswith("heal")  # Tacker has no rollback of a heal
    advice = sol003_advice(error.next_step, undoing="_rollback_" in operation, undoable=undoable)
    # it has to read well as a bytes literal, of which Tacker 16 makes its message
    return with_advice(reason, advice).replace('\\"', '"').replace('"', "'")


def _reason_of_defect(error: Exception) -> str:
    """Return the class and the place of an unexpected error: its text might quote a Secret."""
    place = "an unknown place"
    for frame, line in traceback.walk_tb(error.__traceback__):
        place = f"{os.path.basename(frame.f_code.co_filename)}, line {line}"
    return (
        f"{type(error).__name__} in {place} was not expected: this is a defect of container-update"
        " or of a library it uses. Look at what was written to the cluster, and please report the"
        " defect."
    )


def _read(stream: BinaryIO) -> Script:
    """Return the request; PackageError where standard input holds none."""
    try:
        script = pickle.load(stream)  # noqa: S301 (Tacker's own bytes, from its own process)
        kind = f"a {type(script).__name__}"
    except Exception:  # noqa: BLE001 (damaged bytes may ask for anything that fails)
        script, kind = None, "none"
    if not isinstance(script, dict):
        raise PackageError(
            f"standard input: expected a pickled dict, found {kind}: this script is run by"
            " tacker-conductor, not by hand"
        )
    return script


def _start_log() -> None:
    """Log to a file or nowhere: Tacker records all of standard error as the reason of a failure."""
    import logging  # noqa: PLC0415 (not for idle operations)

    path = os.environ.get(LOG_VARIABLE)
    handler = logging.FileHandler(path) if path else logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(capture=True)
