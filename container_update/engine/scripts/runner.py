# SPDX-License-Identifier: Apache-2.0
"""Run a coordination script in a process of its own: ``SCRIPT [CLASS]`` as arguments.

With a class, the process creates an instance of it from the dict that is pickled on standard input,
and calls its ``coordinate_vnf()``; else it runs the script as a program. Imports nothing of this
project: only this file is started.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import runpy
import sys
from typing import Any


def main(path: str, class_name: str | None = None) -> None:
    """Run the script; an exception ends the process with status 1."""
    sys.path[0] = os.path.dirname(path)  # the script's neighbours, not this file's
    sys.argv = [path]
    if class_name is None:
        runpy.run_path(path, run_name="__main__")
    else:
        _coordinate(path, class_name)


def _coordinate(path: str, class_name: str) -> None:
    context: dict[str, Any] = pickle.load(sys.stdin.buffer)  # noqa: S301, from the parent process
    spec = importlib.util.spec_from_file_location("coordination_script", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{os.path.basename(path)}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    script_class = getattr(module, class_name, None)
    if not isinstance(script_class, type):
        sys.exit(f"{os.path.basename(path)}: expected a class {class_name}, found none")
    script_class(context).coordinate_vnf()


if __name__ == "__main__":
    main(*sys.argv[1:])
