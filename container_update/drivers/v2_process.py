"""How a v2 script talks with Tacker: a pickled dict in, a pickled dict out, an exit status.

Whatever a library prints must not reach standard output, or Tacker drops the answer without a word;
so the process takes file descriptor 1 for itself before anything else is imported. Operations with
nothing to do end here, without the libraries that an update needs.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

from container_update.drivers.advice import sol003_advice
from container_update.model.errors import ContainerUpdateError, PackageError, with_advice

if TYPE_CHECKING:
    from typing import NoReturn

Script = dict[str, Any]
"""What Tacker sends: operation, request, vnf_instance, tmp_csar_dir, ... as plain dicts."""

NEXT_STEP = "container_update_next_step"
"""A VNFM with this key in its request says by itself what to do next: it finds the value of the
error's NextStep under the key in the answer."""

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

WORK = {
    "modify_information_end": ("container_update.drivers.v2_records", "update_instance"),
    "modify_information_rollback_start": ("container_update.drivers.v2_rollback", "put_back"),
    "modify_information_rollback_end": ("container_update.drivers.v2_rollback", "put_back"),
}
"""The operations that have something to do, and the function that does it; loaded when needed."""


def main() -> NoReturn:
    """Answer the one request on standard input and end the process."""
    answer_to = _take_standard_output()
    output, reason = answer(sys.stdin.buffer)
    with os.fdopen(answer_to, "wb") as stream:
        stream.write(pickle.dumps(output))
    sys.exit(reason or 0)


def answer(stream: BinaryIO) -> tuple[Script, str]:
    """Return the dict for Tacker, and why the operation failed: '' where it did not."""
    output: Script = {}
    script: Script = {}
    try:
        script = _read(stream)
        handle(script, output)
    except ContainerUpdateError as error:
        return output, _told(error, script, output)
    except Exception as error:  # noqa: BLE001 (the process's last resort: Tacker wants a reason)
        return output, reason_of(error)
    return output, ""


def handle(script: Script, output: Script) -> None:
    """Do the operation. *output* gets what Tacker shall keep, also where this raises."""
    operation = script.get("operation")
    if operation not in OPERATIONS:
        raise PackageError(
            f"operation {operation!r}: expected one of {', '.join(sorted(OPERATIONS))}:"
            " correct the interface of the VNFD that names this script"
        )
    if operation in WORK and has_work(script):
        _start_log()
        module, function = WORK[operation]
        getattr(importlib.import_module(module), function)(script, output)


def has_work(script: Script) -> bool:
    """Whether a modify operation concerns a package and a VNF that runs.

    Only a request with a vnfdId changes the package, and an instance that is not instantiated has
    nothing in a cluster.
    """
    concerns_package = bool((script.get("request") or {}).get("vnfdId"))
    return concerns_package and bool(script["vnf_instance"].get("instantiatedVnfInfo"))


def _told(error: ContainerUpdateError, script: Script, output: Script) -> str:
    """One paragraph for the operator: what happened, and what an operator of Tacker does next."""
    reason = " ".join(str(error).split())
    if NEXT_STEP in script:
        output[NEXT_STEP] = error.next_step.value
        return reason
    undoing = "_rollback_" in str(script.get("operation"))
    advice = sol003_advice(error.next_step, undoing=undoing)
    return with_advice(reason, advice)


def reason_of(error: Exception) -> str:
    """One paragraph for the operator, of an error that nobody foresaw.

    Its text might quote a manifest, and with it a Secret: only its kind and place are told.
    """
    place = "an unknown place"
    traceback = error.__traceback__
    while traceback is not None:
        name = os.path.basename(traceback.tb_frame.f_code.co_filename)
        place = f"{name}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return (
        f"{type(error).__name__} in {place} was not expected: this is a defect of container-update"
        " or of a library it uses. Look at what was written to the cluster, and please report the"
        " defect."
    )


def _read(stream: BinaryIO) -> Script:
    """Return the request, or PackageError where standard input holds none."""
    try:
        script = pickle.load(stream)  # noqa: S301 (Tacker's own bytes, from its own process)
    except (EOFError, pickle.UnpicklingError) as error:
        raise PackageError(
            "standard input: expected a pickled dict, found none: this script is run by"
            " tacker-conductor, not by hand"
        ) from error
    if not isinstance(script, dict):
        raise PackageError(
            f"standard input: expected a pickled dict, found a {type(script).__name__}: this script"
            " is run by tacker-conductor, not by hand"
        )
    return script


def _take_standard_output() -> int:
    """Return a descriptor of our own for the answer; whatever is printed goes to standard error."""
    answer_to = os.dup(1)
    os.dup2(2, 1)
    return answer_to


def _start_log() -> None:
    """Log to the file that CONTAINER_UPDATE_LOG names, else nowhere: Tacker takes all of standard
    error for the reason of a failure and throws it away otherwise."""
    import logging  # noqa: PLC0415 (not for idle operations)

    path = os.environ.get(LOG_VARIABLE)
    handler = logging.FileHandler(path) if path else logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(capture=True)
