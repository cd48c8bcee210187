# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document, completed: summaries, what the tags are about, and examples of bodies.

The examples work on the demo, whose packages and default VIM they name: those of v1 are the user
guide's of that API, those of v2 the rolling update's. They leave out what the demo cannot have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from container_update.model.objects import Json
from container_update.vnfm.api.parts import EXTENSION, VERSIONS

_ABOUT = (
    "**Authorize** takes a token. Requests of v2 need the header `Version`, which is filled in. "
    "The examples work on the demo, but for what it does not have: an aspect to scale, a client "
    "to notify."
)
_TAGS: Mapping[str, str] = {
    "VNF packages": "SOL005, clause 9. A package is created, then its content is uploaded.",
    "Subscriptions (packages)": "Clients that are notified of packages.",
    "VNF instances (v2)": "SOL003, clause 5: an answer 202 names the operation in `Location`.",
    "Operation occurrences (v2)": "What an operation does and did; retry, rollback and fail.",
    "Subscriptions (v2)": "Clients that are notified of operations and instances.",
    "VIMs": "Clusters and clouds, as `openstack vim` registers them.",
    "VNF instances (v1)": "The same, in the API that Tacker calls v1.",
    "Operation occurrences (v1)": "The same, in v1.",
    "Subscriptions (v1)": "The same, in v1.",
    "Batches (v2)": "An update of many instances in waves, with a bound on failures.",
    "Batches (v1)": "The same, in v1.",
    EXTENSION: "What is live in the VIM, the plan of a request, and batches.",
    "Versions": "The versions of the interfaces.",
    "Operation of the service": "For probes and Prometheus.",
}

_V1, _V2 = "/vnflcm/v1", "/vnflcm/v2"
_BATCH = {
    "vnfInstanceIds": ["2c1de1f0-3f0a-4f6c-8c5e-0d7b6a1c9e11"],
    "waveSize": 1,
    "maxFailures": 0,
}
_ROLLING = {
    "flavourId": "default",
    "additionalParams": {
        "lcm-kubernetes-def-files": [
            "Files/kubernetes/settings.yaml",
            "Files/kubernetes/worker.yaml",
            "Files/kubernetes/store.yaml",
            "Files/kubernetes/legacy.yaml",
        ],
        "namespace": "default",
    },
}
_GUIDE = {
    "flavourId": "simple",
    "additionalParams": {
        "lcm-kubernetes-def-files": [
            f"Files/kubernetes/{name}.yaml"
            for name in (
                "configmap_1", "deployment", "pod_env", "pod_volume", "replicaset", "secret_1",
                "configmap_3", "pod_env_2", "pod_volume_2", "daemonset", "deployment_2", "secret_3",
            )
        ],
        "namespace": "default",
    },
}  # fmt: skip
_UPDATE = {
    "vnfdId": "b1bb0ce7-ebca-4fa7-95ed-4840d70a8883",
    "metadata": {
        "configmap_secret_paths": [
            "Files/kubernetes/configmap_2.yaml",
            "Files/kubernetes/secret_2.yaml",
        ]
    },
}
_CHANGE = {
    "vnfdId": "7a1d9c02-6a4e-4c1e-9c55-02b2f8b7d0a2",
    "additionalParams": {"upgrade_type": "RollingUpdate"},
}
_UPDATES = {"operation": "MODIFY_INFO", "request": _UPDATE}
_CHANGES = {"operation": "CHANGE_VNFPKG", "request": _CHANGE}
_NEW_VIM = {
    "vim": {
        "name": "my-cluster",
        "type": "kubernetes",
        "auth_url": "https://127.0.0.1:6443",
        "auth_cred": {"bearer_token": "TOKEN"},
        "vim_project": {"name": "default"},
    }
}
_SUBSCRIPTION = {
    "callbackUri": "https://nfvo.example/notifications",
    "filter": {"notificationTypes": ["VnfLcmOperationOccurrenceNotification"]},
}
_PER_API: Mapping[str, Json] = {
    "POST /vnf_instances/{instance_id}/heal": {"cause": "a pod does not answer"},
    "POST /vnf_instances/{instance_id}/scale": {
        "type": "SCALE_OUT",
        "aspectId": "vdu1_aspect",
        "numberOfSteps": 1,
    },
    "POST /vnf_instances/{instance_id}/terminate": {"terminationType": "FORCEFUL"},
    "POST /vnf_lcm_op_occs/{operation_id}/cancel": {"cancelMode": "GRACEFUL"},
}
_OF_PACKAGES = "/vnfpkgm/v1"
_PACKAGES = f"{_OF_PACKAGES}/vnf_packages"

EXAMPLES: Mapping[str, Json] = {
    f"POST {_PACKAGES}": {"userDefinedData": {"site": "north"}},
    f"PATCH {_PACKAGES}/{{package_id}}": {"operationalState": "DISABLED"},
    f"POST {_PACKAGES}/{{package_id}}/package_content/upload_from_uri": {
        "addressInformation": "https://packages.example/vnf.zip"
    },
    f"POST {_OF_PACKAGES}/subscriptions": {
        **_SUBSCRIPTION,
        "filter": {"notificationTypes": ["VnfPackageOnboardingNotification"]},
    },
    "POST /v1.0/vims": _NEW_VIM,
    "POST /v1.0/vims.json": _NEW_VIM,
    "PUT /v1.0/vims/{vim_id}": {"vim": {"description": "The cluster of the lab"}},
    f"POST {_V1}/vnf_instances": {
        "vnfdId": "b1bb0ce7-ebca-4fa7-95ed-4840d70a7774",
        "vnfInstanceName": "example",
    },
    f"POST {_V1}/vnf_instances/{{instance_id}}/instantiate": _GUIDE,
    f"POST {_V1}/vnf_instances/{{instance_id}}/plan": _UPDATES,
    f"PATCH {_V1}/vnf_instances/{{instance_id}}": _UPDATE,
    f"POST {_V1}/batches": {**_UPDATES, **_BATCH},
    f"POST {_V1}/subscriptions": _SUBSCRIPTION,
    f"POST {_V2}/vnf_instances": {
        "vnfdId": "7a1d9c02-6a4e-4c1e-9c55-02b2f8b7d0a1",
        "vnfInstanceName": "example",
    },
    f"POST {_V2}/vnf_instances/{{instance_id}}/instantiate": _ROLLING,
    f"PATCH {_V2}/vnf_instances/{{instance_id}}": {"vnfInstanceName": "renamed"},
    f"POST {_V2}/vnf_instances/{{instance_id}}/plan": _CHANGES,
    f"POST {_V2}/vnf_instances/{{instance_id}}/change_vnfpkg": _CHANGE,
    f"POST {_V2}/batches": {**_CHANGES, **_BATCH},
    f"POST {_V2}/subscriptions": {**_SUBSCRIPTION, "verbosity": "SHORT"},
    **{
        request.replace(" ", f" {root}"): body
        for root in (_V1, _V2)
        for request, body in _PER_API.items()
    },
}
"""The bodies of requests, by method and path."""


def complete(app: FastAPI) -> None:
    """Let *app* show the completed document."""
    make = app.openapi

    def openapi() -> Json:
        if not app.openapi_schema:
            _complete(make())
        return make()

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(document: Json) -> None:
    document["info"]["description"] = _ABOUT
    document["tags"] = [{"name": name, "description": text} for name, text in _TAGS.items()]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _complete_operation(operation, f"{method.upper()} {path}")


def _complete_operation(operation: Json, request: str) -> None:
    sentence = operation["description"].partition(". ")[0]
    operation["summary"] = sentence.removesuffix(".").replace("``", "")
    for parameter in operation.get("parameters", ()):
        if parameter["name"] == "Version" and f" {_V2}/" in request:
            parameter["example"] = VERSIONS["v2"]
    body: Any = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body and request in EXAMPLES:
        body["example"] = EXAMPLES[request]
