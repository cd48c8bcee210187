# SPDX-License-Identifier: Apache-2.0
"""Run the command, and write how many functions it has called, which is processor time as a count,
and which modules it has loaded, as JSON.

    python -m benchmarks.calls FILE apply OLD NEW ...

Two runs of one update differ by less than a hundredth, on whatever machine; seconds do not.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any


def main() -> None:
    """Write the number of calls, those of C functions too, and the names of the modules; exit as
    the command does."""
    file = Path(sys.argv.pop(1))
    number = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    threading.setprofile(count)
    sys.setprofile(count)
    from container_update.__main__ import main as command  # noqa: PLC0415, its import counts

    try:
        command()
    finally:
        sys.setprofile(None)
        file.write_text(json.dumps({"calls": number, "modules": sorted(sys.modules)}))


if __name__ == "__main__":
    main()
