# SPDX-License-Identifier: Apache-2.0
"""The log of a container, which the kubelet reads for the API server.

Source: API reference, "read log of the specified Pod"; the refusals are those of the kubelet
(``validateContainerLogStatus``).
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api.negotiation import flag
from container_update.emulator.kubernetes.api_errors import bad_request
from container_update.emulator.kubernetes.kubelet.behaviour import Behaviour

_NO_IMAGE = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def read_log(behaviour: Behaviour, pod: Json, query: Mapping[str, str]) -> str:
    """Return what one run of a container wrote.

    :param query: of the request: ``container``, ``previous``, ``tailLines``, ``limitBytes``.
    :raises ApiError: 400 where the pod has no such container, or the container no such log.
    """
    name = _container_name(pod, query)
    run = _run(pod, name, previous=flag(query, "previous"))
    text = behaviour.log_of(str(run["image"]), int(run.get("exitCode", 0)))
    lines = text.splitlines(keepends=True)
    if "tailLines" in query:
        lines = lines[len(lines) - min(len(lines), int(query["tailLines"])) :]
    written = "".join(lines).encode()
    return written[: int(query.get("limitBytes", len(written)))].decode(errors="replace")


def _container_name(pod: Json, query: Mapping[str, str]) -> str:
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    inits = [entry["name"] for entry in spec.get("initContainers") or ()]
    names = [entry["name"] for entry in spec["containers"]]
    name = query.get("container", "")
    if not name and len(names) > 1:
        choice = f"choose one of: [{' '.join(names)}]"
        choice += f" or one of the init containers: [{' '.join(inits)}]" if inits else ""
        raise bad_request(f"a container name must be specified for pod {pod_name}, {choice}")
    if name and name not in inits + names:
        raise bad_request(f"container {name} is not valid for pod {pod_name}")
    return name or names[0]


def _run(pod: Json, name: str, *, previous: bool) -> Json:
    """Return image and exit code of the run whose log is wanted."""
    status = pod.get("status", {})
    groups = ("initContainerStatuses", "containerStatuses")
    entries = [entry for group in groups for entry in status.get(group) or ()]
    entry: Json = next((entry for entry in entries if entry["name"] == name), {})
    state, last = entry.get("state", {}), entry.get("lastState", {}).get("terminated")
    subject = f'container "{name}" in pod "{pod["metadata"]["name"]}"'
    if previous and last is None:
        raise bad_request(f"previous terminated {subject} not found")
    if not previous and ("running" in state or "terminated" in state):
        return {**entry, **state.get("terminated", {})}
    if last is not None:
        return {**entry, **last}
    reason = state.get("waiting", {}).get("reason", "ContainerCreating")
    raise bad_request(f"{subject} is waiting to start: {_NO_IMAGE.get(reason, reason)}")
