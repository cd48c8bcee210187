"""A coordination script that tells a load balancer over SSH which VNFCs to send traffic to.

For VNFs of virtual machines that a load balancer outside of the VNF spreads the traffic to. The
new VNF's part gives the balancer the new VNFCs' addresses; when a change is undone it gives it the
old ones' again. The old VNF's part has nothing to tell.

Put this file into the new package as ``Scripts/configure_balancer.py``, and beside it
``Scripts/known_hosts`` with the balancer's host key (``ssh-keyscan ADDRESS``, compared with the
key that its operator tells). It connects to no host but the one in external_lb_param, and only if
that host has this key. It needs paramiko. In the request:

    "lcm-operation-coordinate-new-vnf": "Scripts/configure_balancer.py",
    "lcm-operation-coordinate-old-vnf": "Scripts/configure_balancer.py",
    "external_lb_param": {"ip_address": "10.10.0.50", "username": "ubuntu", "password": "..."}

What runs on the balancer is ``set-backends VDU ADDRESS...``: a program of its operator's.
"""

from __future__ import annotations

import pickle
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import paramiko

COMMAND = "set-backends"
KNOWN_HOSTS = Path("Scripts", "known_hosts")
SECONDS = 20


def backends(coordination: dict[str, Any]) -> list[str]:
    """Return the addresses of the VNFCs, each at the connection point that the request names."""
    name = coordination["vnfc_param"].get("cp_name")
    found = []
    for vnfc in coordination["vnfcs"]:
        points = vnfc["addresses"]
        addresses = points.get(name) if name else next(iter(points.values()), None)
        if not addresses:
            raise SystemExit(
                f"{vnfc['name']} has no address at connection point {name}: it has "
                f"{', '.join(points) or 'none'}; correct cp_name in vdu_params"
            )
        found.append(addresses[0])
    return found


def tell(balancer: dict[str, Any], vdu_id: str, addresses: Sequence[str], keys: Path) -> str:
    """Run the balancer's program; what it printed."""
    client = paramiko.SSHClient()
    client.load_host_keys(str(keys))
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    try:
        client.connect(
            balancer["ip_address"],
            port=int(balancer.get("port", 22)),
            username=balancer["username"],
            password=balancer["password"],
            timeout=SECONDS,
            allow_agent=False,
            look_for_keys=False,
        )
        _, stdout, _ = client.exec_command(
            shlex.join([COMMAND, vdu_id, *addresses]), timeout=SECONDS
        )
        printed = stdout.read().decode("utf-8", "replace").strip()
        status = stdout.channel.recv_exit_status()
    except (paramiko.SSHException, OSError) as error:
        raise SystemExit(f"load balancer {balancer['ip_address']}: {error}") from error
    finally:
        client.close()
    if status != 0:
        raise SystemExit(f"load balancer: {COMMAND} ended with status {status}: {printed}")
    return printed


def main() -> None:
    """Tell the balancer of the VNFCs that are to get the traffic of this VDU from now on."""
    context = pickle.load(sys.stdin.buffer)  # noqa: S301, from who started this script
    coordination = context["coordination"]
    vdu_id, back = coordination["vdu_id"], coordination["back"]
    if coordination["vnf"] != ("old" if back else "new"):
        print(f"{vdu_id}: nothing to tell the load balancer")
        return
    balancer = (context["request"].get("additionalParams") or {}).get("external_lb_param")
    if not balancer:
        raise SystemExit("additionalParams.external_lb_param: expected the load balancer")
    addresses = backends(coordination)
    printed = tell(balancer, vdu_id, addresses, Path(context["tmp_csar_dir"]) / KNOWN_HOSTS)
    print(f"{vdu_id}: the load balancer sends its traffic to {', '.join(addresses)}. {printed}")


if __name__ == "__main__":
    main()
