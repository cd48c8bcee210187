"""A coordination script that configures a VNFC over SSH, as Tacker calls one.

It reads only what Tacker gives a script too: the VNFC's login from the request with ``ssh_ip``,
``is_rollback`` and ``inst``. So the same file works in both. In a rolling update of virtual
machines it runs for each VNFC, when it is updated and when it is back at the old package.

Put this file into the new package as ``Scripts/configure_vnfc.py``, and beside it ``known_hosts``
with the VNFCs' host keys (``ssh-keyscan ADDRESS``, compared with those of your image). It gives no
password to a host without such a key. It needs paramiko. In the request:

    "lcm-operation-coordinate-new-vnf": "Scripts/configure_vnfc.py",
    "lcm-operation-coordinate-old-vnf": "Scripts/configure_vnfc.py",
    "vdu_params": [{"vdu_id": "VDU1",
                    "old_vnfc_param": {"cp_name": "CP1", "username": "ubuntu", "password": "..."},
                    "new_vnfc_param": {"cp_name": "CP1", "username": "ubuntu", "password": "..."}}]

``cp_name`` is a port of the VNFC, or a floating IP, by its name in the Heat template. What runs on
the VNFC is ``configure-vnfc INSTANCE after-update``, or ``after-rollback``: a program of its image.
"""

from __future__ import annotations

import pickle
import shlex
import sys
from pathlib import Path
from typing import Any

import paramiko

COMMAND = "configure-vnfc"
KNOWN_HOSTS = Path(__file__).with_name("known_hosts")
SECONDS = 20


def run(vnfc: dict[str, Any], command: str) -> str:
    """Run a command on the VNFC; what it printed."""
    client = paramiko.SSHClient()
    client.load_host_keys(str(KNOWN_HOSTS))
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    try:
        client.connect(
            vnfc["ssh_ip"],
            port=int(vnfc.get("port", 22)),
            username=vnfc["username"],
            password=vnfc["password"],
            timeout=SECONDS,
            allow_agent=False,
            look_for_keys=False,
        )
        _, stdout, _ = client.exec_command(command, timeout=SECONDS)
        printed = stdout.read().decode("utf-8", "replace").strip()
        status = stdout.channel.recv_exit_status()
    except (paramiko.SSHException, OSError) as error:
        raise SystemExit(f"VNFC {vnfc['ssh_ip']}: {error}") from error
    finally:
        client.close()
    if status != 0:
        raise SystemExit(f"VNFC {vnfc['ssh_ip']}: {COMMAND} ended with status {status}: {printed}")
    return printed


def main() -> None:
    """Tell the VNFC which way it went."""
    vnfc = pickle.load(sys.stdin.buffer)  # noqa: S301, from who started this script
    event = "after-rollback" if vnfc["is_rollback"] else "after-update"
    printed = run(vnfc, shlex.join([COMMAND, vnfc["inst"]["id"], event]))
    print(f"VNFC {vnfc['ssh_ip']}, {event}: {printed}")


if __name__ == "__main__":
    main()
