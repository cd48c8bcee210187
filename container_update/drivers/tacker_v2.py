"""The script that Tacker's v2 API runs for an operation: copy it into a package's ``Scripts``.

It only hands over, so that the packages in the field need no new copy when the rest changes.
"""

import sys

if __name__ == "__main__":
    try:
        from container_update.drivers.v2_process import main
    except ImportError as error:
        sys.exit(
            f"{sys.executable} was expected to have the Python package container-update, which runs"
            f" this operation, and cannot import it ({error}). Install it there, where"
            " tacker-conductor runs, or put a bundle in this script's place."
        )
    main()
