# SPDX-License-Identifier: Apache-2.0
"""The VNF of the specification's own samples for Kubernetes: its manifests and its request.

Source: "Support ChangeCurrentVNFPackage for VNF software modification", the sample files
deployment.yaml and service.yaml and the sample of a request body; the ConfigMap is the one that the
Deployment mounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tests.functional.change_vnfpkg.kubernetes import Shape
from tests.functional.change_vnfpkg.site import Release
from tests.internals.core import Json

NAME, SERVICE = "app-name", "app-svc-name"
FOLDER = "kubernetes"
LISTED = f"Files/{FOLDER}/deployment.yaml"
"""The only def-file that the sample request lists."""

IMAGES = {"original": "nginx:alpine", "new": "nginx:1.28-alpine"}


def deployment(version: str, *, image: str | None = None) -> Json:
    """Return deployment.yaml of a version: the image and the label say which."""
    mount = {"name": "config", "mountPath": "/usr/share/nginx/html"}
    container = {
        "name": NAME,
        "image": image or IMAGES[version],
        "ports": [{"containerPort": 80}],
        "volumeMounts": [mount],
    }
    volume = {"name": "config", "configMap": {"name": "nginx-app-original"}}
    labels = {"app": NAME, "version": f"{version}-version"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "volumes": [volume]},
            },
            "strategy": {"type": "RollingUpdate"},
        },
    }


def service(version: str) -> Json:
    """Return service.yaml of a version."""
    port = {"name": "http", "protocol": "TCP", "port": 8089, "targetPort": 80}
    selector = {"app": NAME, "version": f"{version}-version"}
    spec = {"selector": selector, "ports": [port], "type": "ClusterIP"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}, "spec": spec}


def config_map(version: str) -> Json:
    """Return configmap.yaml of a version."""
    metadata = {"name": "nginx-app-original"}
    data = {"index.html": f"<h1>{version}</h1>"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def files(version: str) -> Mapping[str, Json]:
    """Return the manifests of a version by path below ``Files/``."""
    return {
        f"{FOLDER}/deployment.yaml": deployment(version),
        f"{FOLDER}/service.yaml": service(version),
        f"{FOLDER}/configmap.yaml": config_map(version),
    }


def request(upgrade_type: str, vnfd_id: str) -> dict[str, Any]:
    """Return the sample request with an upgrade type and the id of the new VNFD."""
    access = {"cp_name": "CP1", "username": "ubuntu", "password": "ubuntu"}
    vdu = {"vdu_id": "VDU1", "old_vnfc_param": access, "new_vnfc_param": access}
    balancer = {"ip_address": "10.10.0.50", "username": "ubuntu", "password": "ubuntu"}
    return {
        "vnfdId": vnfd_id,
        "additionalParams": {
            "upgrade_type": upgrade_type,
            "lcm-operation-coordinate-old-vnf": "./coordinate_old_vnf.py",
            "lcm-operation-coordinate-old-vnf-class": "CoordinateOldVnf",
            "lcm-operation-coordinate-new-vnf": "./coordinate_new_vnf.py",
            "lcm-operation-coordinate-new-vnf-class": "CoordinateNewVnf",
            "vdu_params": vdu,
            "external_lb_param": balancer,
            "lcm-kubernetes-def-files": [LISTED],
        },
    }


SCRIPTS = {
    f"coordinate_{which}_vnf.py": f"""\
class Coordinate{which.title()}Vnf:
    def __init__(self, given):
        self.given = given

    def coordinate_vnf(self):
        pass
"""
    for which in ("old", "new")
}
"""The scripts that the sample request names; they have nothing to do."""


@dataclass(frozen=True)
class SpecificationShape(Shape):
    """The files of a package of the contract's site: those of the specification."""

    files_of: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    """Version to files, where they are not :func:`files`."""

    def name(self, vdu: str, version: str) -> str:
        return NAME if vdu == "VDU1" else "other"

    def files(self, release: Release) -> dict[str, str]:
        version = "original" if release.version == "v1" else "new"
        bodies = dict(self.files_of).get(release.version, files(version))
        return {path: yaml.safe_dump(body) for path, body in bodies.items()}
