# SPDX-License-Identifier: Apache-2.0
"""The command, also as ``python -m container_update``."""

import sys


def main() -> int:
    """Run the command; an interrupt before it handles signals itself is no traceback."""
    try:
        from container_update.cli.main import main as command  # noqa: PLC0415, takes a while

        return command()
    except KeyboardInterrupt:
        sys.stderr.write("container-update: interrupted\n")
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
