"""What the server fills in, kind by kind."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import pod_defaults

_DEFAULT_SHARE = "25%"


def apply(kind: Resource, new: Json) -> None:
    """Fill in *new* in place; nothing happens for a kind without defaults of its own."""
    fill = _DEFAULTS.get(kind.key)
    if fill:
        fill(new)


def label_job(job: Json, name: str, uid: str) -> None:
    """Tie a Job to its pods by the uid, unless it brings a selector of its own (manualSelector)."""
    spec = job["spec"]
    if spec.get("manualSelector"):
        return
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    template = spec["template"]["metadata"]
    template["labels"] = {**template.get("labels", {}), **labels}
    job["metadata"]["labels"] = {**job["metadata"].get("labels", {}), **labels}


def _template(spec: Json) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_defaults.apply(template.setdefault("spec", {}))


def _deployment(new: Json) -> None:
    spec = new.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _template(spec)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", _DEFAULT_SHARE)
        rolling.setdefault("maxSurge", _DEFAULT_SHARE)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _replica_set(new: Json) -> None:
    spec = new.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _template(spec)


def _daemon_set(new: Json) -> None:
    spec = new.setdefault("spec", {})
    _template(spec)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    annotations = new["metadata"].setdefault("annotations", {})
    annotations.setdefault(TEMPLATE_GENERATION, "1")


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An annotation in which the server still counts the changes of a DaemonSet's template."""


def _stateful_set(new: Json) -> None:
    spec = new.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _template(spec)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    for claim in spec.get("volumeClaimTemplates", []):
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {"phase": "Pending"})


def _job(new: Json) -> None:
    spec = new.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("manualSelector", False)
    _job_template(spec)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")


def _job_template(spec: Json) -> None:
    """A Job's restartPolicy has no default: it must be said."""
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod = template.setdefault("spec", {})
    said = "restartPolicy" in pod
    pod_defaults.apply(pod)
    if not said:
        del pod["restartPolicy"]


def _cron_job(new: Json) -> None:
    spec = new.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    job = spec.setdefault("jobTemplate", {})
    job.setdefault("metadata", {})
    _job_template(job.setdefault("spec", {}))
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


def _pod(new: Json) -> None:
    spec = new.setdefault("spec", {})
    pod_defaults.apply(spec)
    spec.setdefault("enableServiceLinks", True)


def _secret(new: Json) -> None:
    """``stringData`` is only ever written: it becomes ``data``."""
    new.setdefault("type", "Opaque")
    plain = new.pop("stringData", {})
    if plain:
        coded = {
            key: base64.b64encode(text.encode()).decode("ascii") for key, text in plain.items()
        }
        new["data"] = {**new.get("data", {}), **coded}


def _service(new: Json) -> None:
    spec = new.setdefault("spec", {})
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = f"10.96.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        for port in spec.get("ports", []):
            port.setdefault("nodePort", 30000 + secrets.randbelow(2768))
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _namespace(new: Json) -> None:
    new.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])


def _autoscaler(new: Json) -> None:
    new.setdefault("spec", {}).setdefault("minReplicas", 1)


_DEFAULTS: Mapping[str, Callable[[Json], None]] = {
    "cronjobs": _cron_job,
    "daemonsets": _daemon_set,
    "deployments": _deployment,
    "horizontalpodautoscalers": _autoscaler,
    "jobs": _job,
    "namespaces": _namespace,
    "pods": _pod,
    "replicasets": _replica_set,
    "secrets": _secret,
    "services": _service,
    "statefulsets": _stateful_set,
}
