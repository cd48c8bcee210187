"""A coordination script that looks whether an updated VNFC answers before the next one's turn.

For a rolling update of virtual machines: it connects to a TCP port of the VNFC at its connection
point. Put this file into the new package and name it in the request; without a port it only tells
which VNFC it was called for:

    "lcm-operation-coordinate-new-vnf": "Scripts/check_vnfc.py",
    "vdu_params": [{"vdu_id": "VDU1", "new_vnfc_param": {"cp_name": "CP1", "port": 80,
                    "username": "ubuntu", "password": "..."}}]
"""

from __future__ import annotations

import pickle
import socket
import sys
import time

SECONDS = 120


def wait_for(address: str, port: int, seconds: float = SECONDS) -> None:
    """Wait until somebody listens there."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((address, port), timeout=5).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"{address} port {port}: {error}") from error
            time.sleep(1)
        else:
            return


def main() -> None:
    """Check every VNFC that the script is called for."""
    context = pickle.load(sys.stdin.buffer)  # noqa: S301, from who started this script
    coordination = context["coordination"]
    params = coordination["vnfc_param"]
    for vnfc in coordination["vnfcs"]:
        addresses = vnfc["addresses"].get(params.get("cp_name")) or ()
        if addresses and params.get("port"):
            wait_for(addresses[0], int(params["port"]))
        print(f"{coordination['vdu_id']} {vnfc['name']} at {', '.join(addresses) or 'no address'}")


if __name__ == "__main__":
    main()
