"""Runs one class of a coordination script, in a process of its own: ``SCRIPT CLASS`` as arguments.

The class is made with the dict that the process finds pickled on standard input, and asked to
``coordinate_vnf()``. Imports nothing of this project: only this file is started.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from typing import Any


def main(path: str, class_name: str) -> None:
    """Make the class and let it coordinate; whatever it raises ends the process with status 1."""
    context: dict[str, Any] = pickle.load(sys.stdin.buffer)  # noqa: S301, from the parent process
    sys.path[0] = os.path.dirname(path)  # the script's neighbours, not this file's
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
    main(sys.argv[1], sys.argv[2])
