"""Runs a coordination script in a process of its own: ``LIFELINE SCRIPT [CLASS]`` as arguments.

The class, where one is named, is made with the dict that the process finds pickled on standard
input, and asked to ``coordinate_vnf()``; else the script is run as a program. LIFELINE is a file
descriptor whose other end the parent process holds: when it is gone, so is this process and
whatever it started. Imports nothing of this project: only this file is started.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import runpy
import signal
import sys
import threading
from typing import Any


def main(lifeline: int, path: str, class_name: str | None = None) -> None:
    """Run the script; whatever it raises ends the process with status 1."""
    os.set_inheritable(lifeline, False)
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    sys.path[0] = os.path.dirname(path)  # the script's neighbours, not this file's
    sys.argv = [path]
    if class_name is None:
        runpy.run_path(path, run_name="__main__")
    else:
        _coordinate(path, class_name)


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)  # nothing is ever written: it returns when the other end is gone
    os.killpg(0, signal.SIGKILL)


def _coordinate(path: str, class_name: str) -> None:
    context: dict[str, Any] = pickle.load(sys.stdin.buffer)  # noqa: S301, from the parent process
    spec = importlib.util.spec_from_file_location("coordination_script", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{os.path.basename(path)}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        sys.exit(f"{os.path.basename(path)}: expected a class {class_name}, found none")
    found(context).coordinate_vnf()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
