# SPDX-License-Identifier: Apache-2.0
"""Default values of each kind."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import pod_defaults, structural

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
"""Holds a deleted claim while a pod uses it."""
PROTECTION = {
    "persistentvolumeclaims": CLAIM_PROTECTION,
    "persistentvolumes": "kubernetes.io/pv-protection",
}
"""The finalizers of new claims and volumes."""
RBAC = "rbac.authorization.k8s.io"
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An annotation in which the server still counts the changes of a DaemonSet's template."""


def apply(kind: Resource, new: Json) -> None:
    """Fill in the defaults of *new* in place, if its kind has any."""
    if kind.custom:
        structural.fill_in(kind, new)
    fill = _DEFAULTS.get(kind.key)
    if fill:
        fill(new)


def label_job(job: Json, name: str, uid: str) -> None:
    """Give a Job a selector and labels with its uid, unless it has ``manualSelector``."""
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


def label_namespace(new: Json) -> None:
    """Give a Namespace the label by which selectors find it."""
    metadata = new["metadata"]
    own = {"kubernetes.io/metadata.name": metadata["name"]}
    metadata["labels"] = metadata.get("labels", {}) | own


def _fill(target: Json, **defaults: Any) -> None:
    for key, value in defaults.items():
        target.setdefault(key, value)


def _template(spec: Json) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_defaults.apply(template.setdefault("spec", {}))


def _update_strategy(spec: Json, field: str, **rolling: Any) -> None:
    strategy = spec.setdefault(field, {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), **rolling)


def _deployment(new: Json) -> None:
    _replica_set(new)
    spec = new["spec"]
    _update_strategy(spec, "strategy", maxUnavailable="25%", maxSurge="25%")
    _fill(spec, revisionHistoryLimit=10, progressDeadlineSeconds=600)


def _replica_set(new: Json) -> None:
    spec = new.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _template(spec)


def _daemon_set(new: Json) -> None:
    spec = new.setdefault("spec", {})
    _template(spec)
    _update_strategy(spec, "updateStrategy", maxUnavailable=1, maxSurge=0)
    spec.setdefault("revisionHistoryLimit", 10)
    annotations = new["metadata"].setdefault("annotations", {})
    annotations.setdefault(TEMPLATE_GENERATION, "1")


def _stateful_set(new: Json) -> None:
    _replica_set(new)
    spec = new["spec"]
    _fill(spec, podManagementPolicy="OrderedReady", serviceName="")
    _update_strategy(spec, "updateStrategy", partition=0)
    spec.setdefault("revisionHistoryLimit", 10)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    _fill(retention, whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates", []):
        _fill(claim, kind="PersistentVolumeClaim", apiVersion="v1")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {"phase": "Pending"})


def _job(new: Json) -> None:
    spec = new.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    _fill(spec, parallelism=1, backoffLimit=6, manualSelector=False)
    _job_template(spec)
    _fill(spec, completionMode="NonIndexed", suspend=False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")


def _job_template(spec: Json) -> None:
    """Fill in a Job's template, except for ``restartPolicy``: it has no default there."""
    pod = spec.setdefault("template", {}).setdefault("spec", {})
    has_policy = "restartPolicy" in pod
    _template(spec)
    if not has_policy:
        del pod["restartPolicy"]


def _cron_job(new: Json) -> None:
    spec = new.setdefault("spec", {})
    _fill(spec, concurrencyPolicy="Allow", suspend=False)
    job = spec.setdefault("jobTemplate", {})
    job.setdefault("metadata", {})
    _job_template(job.setdefault("spec", {}))
    _fill(spec, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


def _pod(new: Json) -> None:
    spec = new.setdefault("spec", {})
    pod_defaults.apply(spec)
    pod_defaults.request_limits(spec)
    spec.setdefault("enableServiceLinks", True)


def _secret(new: Json) -> None:
    """Fill in a Secret; ``stringData`` becomes ``data``."""
    new.setdefault("type", "Opaque")
    texts = new.pop("stringData", {})
    if texts:
        data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        new["data"] = {**new.get("data", {}), **data}


def _service(new: Json) -> None:
    spec = new.setdefault("spec", {})
    for port in spec.get("ports", []):
        _fill(port, protocol="TCP", targetPort=port.get("port"))
    _fill(spec, type="ClusterIP", sessionAffinity="None")
    if spec["sessionAffinity"] == "ClientIP":
        affinity = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        affinity.setdefault("timeoutSeconds", 10800)
    if not spec.get("selector", {"is": "absent"}):
        del spec["selector"]
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = f"10.96.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    if spec["clusterIP"] == "None" and not spec.get("selector"):
        _fill(spec, ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="RequireDualStack")
    _fill(spec, clusterIPs=[spec["clusterIP"]], ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        for port in spec.get("ports", []):
            port.setdefault("nodePort", 30000 + secrets.randbelow(2768))
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _namespace(new: Json) -> None:
    new.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])


def _claim(new: Json) -> None:
    new.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _definition(new: Json) -> None:
    spec = new.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    _fill(names, singular=kind.lower(), listKind=f"{kind}List")
    spec.setdefault("conversion", {"strategy": "None"})


def _autoscaler(new: Json) -> None:
    spec = new.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    percent: Json = {"type": "Percent", "value": 100, "periodSeconds": 15}
    pods: Json = {"type": "Pods", "value": 4, "periodSeconds": 15}
    for name, more in {"scaleDown": {}, "scaleUp": {"stabilizationWindowSeconds": 0}}.items():
        rules = (spec.get("behavior") or {}).get(name)
        if rules is not None:
            policies = [percent] if name == "scaleDown" else [pods, percent]
            for field, value in {**more, "policies": policies, "selectPolicy": "Max"}.items():
                rules.setdefault(field, value)
    target = {"type": "Utilization", "averageUtilization": 80}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    spec.setdefault("metrics", [cpu])


def _replication_controller(new: Json) -> None:
    _replica_set(new)
    spec = new["spec"]
    labels = spec["template"]["metadata"].get("labels", {})
    if labels:
        spec.setdefault("selector", dict(labels))
        new["metadata"].setdefault("labels", dict(labels))


def _volume(new: Json) -> None:
    spec = new.setdefault("spec", {})
    _fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")


def _storage_class(new: Json) -> None:
    _fill(new, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _storage_driver(new: Json) -> None:
    spec = new.setdefault("spec", {})
    _fill(spec, attachRequired=True, podInfoOnMount=False, requiresRepublish=False)
    _fill(spec, seLinuxMount=False, storageCapacity=False)
    _fill(spec, fsGroupPolicy="ReadWriteOnceWithFSType", volumeLifecycleModes=["Persistent"])


def _endpoints(new: Json) -> None:
    for subset in new.get("subsets", []):
        for port in subset.get("ports", []):
            port.setdefault("protocol", "TCP")


def _priority_class(new: Json) -> None:
    new.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _binding(new: Json) -> None:
    new.get("roleRef", {}).setdefault("apiGroup", RBAC)
    for subject in new.get("subjects", []):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", RBAC)


def _limit_range(new: Json) -> None:
    for limit in new.get("spec", {}).get("limits", []):
        if limit.get("type") == "Container":
            for source, target in (("max", "default"), ("default", "defaultRequest")):
                if source in limit:
                    limit[target] = limit[source] | limit.get(target, {})


def _slice(new: Json) -> None:
    for endpoint in new.get("endpoints", []):
        endpoint.setdefault("conditions", {})
    for port in new.get("ports", []):
        _fill(port, name="", protocol="TCP")


def _event(new: Json) -> None:
    _fill(new, source={}, firstTimestamp=None, lastTimestamp=None, eventTime=None)
    _fill(new, reportingComponent="", reportingInstance="")


def _rules(new: Json) -> None:
    new.setdefault("rules", None)


def _network_policy(new: Json) -> None:
    spec = new.setdefault("spec", {})
    spec.setdefault("policyTypes", ["Ingress", *(["Egress"] if spec.get("egress") else [])])
    for rule in (*spec.get("ingress", []), *spec.get("egress", [])):
        for port in rule.get("ports", []):
            port.setdefault("protocol", "TCP")


def _webhooks(new: Json) -> None:
    for webhook in new.get("webhooks", []):
        _fill(webhook, failurePolicy="Fail", timeoutSeconds=10)
        _matches(webhook, "rules")
        if new.get("kind") == "MutatingWebhookConfiguration":
            webhook.setdefault("reinvocationPolicy", "Never")
        if "service" in webhook.get("clientConfig", {}):
            webhook["clientConfig"]["service"].setdefault("port", 443)


def _matches(matching: Json, rules: str) -> None:
    """Fill in which requests an admission webhook or policy is for."""
    _fill(matching, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for rule in matching.get(rules, []):
        rule.setdefault("scope", "*")


def _admission_policy(new: Json) -> None:
    spec = new.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _matches(spec.setdefault("matchConstraints", {}), "resourceRules")


def _api_service(new: Json) -> None:
    if service := new.get("spec", {}).get("service"):
        service.setdefault("port", 443)


def _ingress_class(new: Json) -> None:
    if parameters := new.get("spec", {}).get("parameters"):
        parameters.setdefault("scope", "Cluster")


def _priority_level(new: Json) -> None:
    if limited := new.get("spec", {}).get("limited"):
        _fill(limited, nominalConcurrencyShares=30, lendablePercent=0)


def _resource_claim(new: Json) -> None:
    for request in new.get("spec", {}).get("devices", {}).get("requests", []):
        if exact := request.get("exactly"):
            exact.setdefault("allocationMode", "ExactCount")
            if exact["allocationMode"] == "ExactCount":
                exact.setdefault("count", 1)


def _resource_claim_template(new: Json) -> None:
    spec = new.setdefault("spec", {})
    spec.setdefault("metadata", {})
    _resource_claim(spec)


_DEFAULTS: Mapping[str, Callable[[Json], None]] = {
    "apiservices": _api_service,
    "clusterrolebindings": _binding,
    "clusterroles": _rules,
    "cronjobs": _cron_job,
    "csidrivers": _storage_driver,
    "customresourcedefinitions": _definition,
    "daemonsets": _daemon_set,
    "deployments": _deployment,
    "endpoints": _endpoints,
    "endpointslices": _slice,
    "events": _event,
    "horizontalpodautoscalers": _autoscaler,
    "ingressclasses": _ingress_class,
    "jobs": _job,
    "limitranges": _limit_range,
    "mutatingadmissionpolicies": _admission_policy,
    "mutatingwebhookconfigurations": _webhooks,
    "namespaces": _namespace,
    "networkpolicies": _network_policy,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "pods": _pod,
    "podtemplates": _template,
    "priorityclasses": _priority_class,
    "prioritylevelconfigurations": _priority_level,
    "replicasets": _replica_set,
    "replicationcontrollers": _replication_controller,
    "resourceclaims": _resource_claim,
    "resourceclaimtemplates": _resource_claim_template,
    "rolebindings": _binding,
    "roles": _rules,
    "secrets": _secret,
    "services": _service,
    "statefulsets": _stateful_set,
    "storageclasses": _storage_class,
    "validatingadmissionpolicies": _admission_policy,
    "validatingwebhookconfigurations": _webhooks,
}
