"""Coordination scripts for a Kubernetes VIM: the Service sends its traffic to the new pods.

Put this file into the new package and name it in the request to change the VNF package:

    "lcm-operation-coordinate-new-vnf": "Scripts/update_service.py",
    "lcm-operation-coordinate-new-vnf-class": "CoordinateNewVnf",
    "lcm-operation-coordinate-old-vnf": "Scripts/update_service.py",
    "lcm-operation-coordinate-old-vnf-class": "CoordinateOldVnf"

``container-update`` switches the Services by itself where no script does; this one shows how, and
is the place for what a VNF of yours has to be told before and after. It needs the ``kubernetes``
client, which is there wherever ``container-update`` is.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

from kubernetes import client, config

PATIENCE_SECONDS = 60
SERVICE_LABEL = "kubernetes.io/service-name"


class CoordinateVnf:
    """What both scripts need: the dict that they are given, and the cluster."""

    def __init__(self, context: dict[str, Any]) -> None:
        self.vnf = context["coordination"]
        self.api = connect(self.vnf["access"])


class CoordinateNewVnf(CoordinateVnf):
    """The new pods are Ready: let every Service select them."""

    def coordinate_vnf(self) -> None:
        """Set the selectors of the Services that the change concerns."""
        core = client.CoreV1Api(self.api)
        for wanted in self.vnf["services"]:
            name, namespace = wanted["name"], wanted["namespace"]
            service = core.read_namespaced_service(name, namespace)
            service.spec.selector = wanted["selector"]
            core.replace_namespaced_service(name, namespace, service)
            print(f"Service {name} selects {wanted['selector']}")


class CoordinateOldVnf(CoordinateVnf):
    """The traffic was switched: see that none goes to the old pods before they are deleted."""

    def coordinate_vnf(self) -> None:
        """Wait until no Service has an old pod among its endpoints; fail after a minute."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while still := self._served() & set(self.vnf["old_pods"]):
            if time.monotonic() > deadline:
                raise SystemExit(f"still get traffic: {', '.join(sorted(still))}")
            time.sleep(0.5)
        print(f"{len(self.vnf['old_pods'])} old pods of {self.vnf['vdu_id']} get no traffic")

    def _served(self) -> set[str]:
        found: set[str] = set()
        discovery = client.DiscoveryV1Api(self.api)
        for service in self.vnf["services"]:
            slices = discovery.list_namespaced_endpoint_slice(
                service["namespace"], label_selector=f"{SERVICE_LABEL}={service['name']}"
            )
            for body in slices.items:
                for endpoint in body.endpoints or ():
                    if endpoint.conditions.ready and endpoint.target_ref:
                        found.add(endpoint.target_ref.name)
        return found


def connect(access: dict[str, Any]) -> client.ApiClient:
    """Return the cluster: by a kubeconfig, or as the VIM connection of the request describes it."""
    if access.get("kubeconfig"):
        return config.new_client_from_config(access["kubeconfig"], access.get("context"))
    (connection,) = access["vim_connection_info"].values()
    settings = client.Configuration()
    settings.host = connection["interfaceInfo"]["endpoint"]
    settings.api_key["authorization"] = f"Bearer {connection['accessInfo']['bearer_token']}"
    authority = connection["interfaceInfo"].get("ssl_ca_cert")
    if authority:
        handle, settings.ssl_ca_cert = tempfile.mkstemp(suffix=".pem")  # goes with the folder
        with os.fdopen(handle, "w") as file:
            file.write(authority)
    return client.ApiClient(settings)


__all__ = ["CoordinateNewVnf", "CoordinateOldVnf"]
