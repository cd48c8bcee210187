# SPDX-License-Identifier: Apache-2.0
"""Tacker 16's own Mgmt Driver, called as the conductor calls it, by the Python of the Tacker lab.

    LAB/venv/bin/python benchmarks/tacker_driver.py DESCRIPTION.json

What the conductor keeps in its database is given from the description; the rest is Tacker's.
"""

from __future__ import annotations

import base64
import json
import sys
import types
from typing import Any

import yaml

VNFD = {
    "tosca_definitions_version": "tosca_simple_yaml_1_2",
    "topology_template": {"node_templates": {"node": {"type": "tosca.nodes.Root"}}},
}


def main() -> None:
    """Modify the VNF of the description."""
    with open(sys.argv[1]) as file:
        given = json.load(file)
    sys.path.insert(0, given["driver"])
    from oslo_config import cfg  # noqa: PLC0415, the path is known now
    from tacker.vnfm.infra_drivers.kubernetes import (  # noqa: PLC0415
        kubernetes_driver,  # noqa: F401, registers its options
    )

    cfg.CONF([], project="tacker")
    import container_update_mgmt as driver  # type: ignore  # noqa: PLC0415

    access = access_info(given["kubeconfig"])
    driver.vnflcm_utils.get_vnf_package_path = lambda *_: given["new"]
    driver.vnflcm_utils.get_vnfd_dict = lambda *_: VNFD
    driver.vnflcm_utils.get_vim = lambda *_: {}
    connection = types.SimpleNamespace(access_info=access)
    driver.objects.VimConnectionInfo = types.SimpleNamespace(
        obj_from_primitive=lambda *_: connection
    )
    info = types.SimpleNamespace(
        additional_params={"lcm-kubernetes-def-files": given["def_files"]},
        vnfc_resource_info=[],
        flavour_id="default",
    )
    instance = types.SimpleNamespace(
        id="benchmark",
        vnfd_id="new",
        vim_connection_info=[],
        instantiated_vnf_info=info,
        vnf_metadata={"namespace": given["namespace"]},
        save=lambda: None,
    )
    driver.ContainerUpdateMgmtDriver().modify_information_end(
        None,
        instance,
        old_vnf_package_path=given["old"],
        configmap_secret_paths=given["config_paths"],
    )


def access_info(kubeconfig: str) -> dict[str, Any]:
    """Return the VIM connection of a kubeconfig."""
    with open(kubeconfig) as file:
        content = yaml.safe_load(file)
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return {
        "auth_url": cluster["server"],
        "bearer_token": user["token"],
        "ssl_ca_cert": authority,
        "type": "kubernetes",
    }


if __name__ == "__main__":
    main()
