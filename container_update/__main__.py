# SPDX-License-Identifier: Apache-2.0
"""The command, also as ``python -m container_update``."""

import gc
import sys

_COLLECTED_AFTER = (50_000, 20, 20)
"""Python's threshold of 700 new objects makes it look at all modules several times for each page of
a list, which is half of the processor time for 20,000 pods, and while it loads them."""


def main() -> int:
    """Run the command; an interrupt before it handles signals itself is no traceback."""
    gc.set_threshold(*_COLLECTED_AFTER)
    try:
        from container_update.cli.main import main as command  # noqa: PLC0415, takes a while

        return command()
    except KeyboardInterrupt:
        sys.stderr.write("container-update: interrupted\n")
        return 130
    finally:
        gc.freeze()  # Python's end would look through all that ends with the process anyway


if __name__ == "__main__":
    raise SystemExit(main())
