# SPDX-License-Identifier: Apache-2.0
"""Run a command from a small process, and write what the operating system says it cost.

    python benchmarks/launcher.py FILE COMMAND [ARGUMENT ...]

The peak of a new process begins with that of the one that starts it, so this one imports little.
"""

import os
import sys
import time


def main() -> None:
    """Write seconds, processor seconds (user), peak KiB and the exit status; exit with it."""
    file, *command = sys.argv[1:]
    began = time.monotonic()
    process = os.spawnvp(os.P_NOWAIT, command[0], command)
    _, status, usage = os.wait4(process, 0)
    seconds = time.monotonic() - began
    code = os.waitstatus_to_exitcode(status)
    cost = (seconds, usage.ru_utime, usage.ru_maxrss, code)
    with open(file, "w", encoding="ascii") as out:
        out.write(" ".join(map(str, cost)))
    sys.exit(code)


if __name__ == "__main__":
    main()
