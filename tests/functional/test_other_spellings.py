# SPDX-License-Identifier: Apache-2.0
"""An object that a package only spells otherwise than the server stores it is unchanged, whatever
its kind and whatever operation compares it.

Empty lists and mappings, null, false, 0, '' where the server leaves them out; defaults; quantities;
numbers of ports as texts.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import yaml

from container_update import (
    Outcome,
    UpdateRequest,
    install,
    plan_change,
    plan_update,
    terminate,
)
from tests.functional.cnf import IMAGES, INSTANCE, Cnf
from tests.functional.conftest import OPTIONS, new_namespace
from tests.functional.upgrade_types import UPGRADE_TYPES
from tests.internals.core import Included, Json, KubernetesCluster, object_steps

UNIQUE = uuid.uuid4().hex[:8]
"""In the names of objects that have no namespace."""
ONE = f"one-{UNIQUE}"


def body(kind: str, version: str = "v1", name: str = "one", **fields: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def with_fields(one: Json, **fields: Any) -> Json:
    """Return a manifest with other or more fields, and its metadata with empty ones."""
    empty = {"annotations": {}, "creationTimestamp": None, "finalizers": [], "ownerReferences": []}
    metadata = {"labels": None, **one["metadata"], **empty}
    return {**copy.deepcopy(one), **fields, "metadata": metadata}


# --- pods -----------------------------------------------------------------------------------------

POD = {
    "terminationGracePeriodSeconds": 1,
    "containers": [
        {
            "name": "main",
            "image": IMAGES[0],
            "ports": [{"containerPort": 80}],
            "env": [{"name": "E"}],
            "resources": {
                "requests": {"cpu": "0.01", "memory": "16Mi"},
                "limits": {"memory": "1Gi"},
            },
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "readinessProbe": {"httpGet": {"port": 80}},
            "livenessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 20},
            "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
            "securityContext": {"capabilities": {"drop": ["ALL"]}},
        }
    ],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "one"}},
        }
    ],
    "tolerations": [{"key": "a", "value": "b"}],
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {
                        "topologyKey": "zone",
                        "labelSelector": {"matchLabels": {"app": "one"}},
                    },
                }
            ]
        }
    },
    "volumes": [
        {"name": "v", "emptyDir": {}},
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"configMap": {"name": "one", "optional": True}},
                    {"serviceAccountToken": {"path": "token"}},
                    {
                        "downwardAPI": {
                            "items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]
                        }
                    },
                ]
            },
        },
    ],
}
OTHER_POD = {
    "terminationGracePeriodSeconds": 1,
    "containers": [
        {
            "name": "main",
            "image": IMAGES[0],
            "command": [],
            "args": None,
            "workingDir": "",
            "ports": [{"containerPort": 80, "protocol": "", "hostPort": 0, "name": ""}],
            "env": [{"name": "E", "value": ""}],
            "envFrom": [],
            "resources": {
                "requests": {"cpu": "10m", "memory": "16384Ki"},
                "limits": {"memory": "1024Mi"},
                "claims": [],
            },
            "volumeMounts": [
                {
                    "name": "v",
                    "mountPath": "/v",
                    "readOnly": False,
                    "subPath": "",
                    "subPathExpr": "",
                }
            ],
            "volumeDevices": [],
            "readinessProbe": {
                "httpGet": {
                    "port": 80,
                    "path": "/",
                    "scheme": "HTTP",
                    "host": "",
                    "httpHeaders": [],
                },
                "initialDelaySeconds": 0,
                "periodSeconds": 0,
                "timeoutSeconds": 0,
                "successThreshold": 0,
                "failureThreshold": 0,
                "terminationGracePeriodSeconds": None,
            },
            "livenessProbe": {
                "tcpSocket": {"port": 80, "host": ""},
                "initialDelaySeconds": 0,
                "periodSeconds": 20,
                "timeoutSeconds": 1,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
            "startupProbe": None,
            "lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}}},
            "securityContext": {"capabilities": {"drop": ["ALL"], "add": []}, "privileged": None},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "restartPolicy": None,
            "imagePullPolicy": "",
            "stdin": False,
            "tty": False,
        }
    ],
    "initContainers": [],
    "imagePullSecrets": [],
    "nodeSelector": {},
    "tolerations": [{"key": "a", "value": "b", "operator": "Equal", "effect": ""}],
    "affinity": {
        "nodeAffinity": None,
        "podAffinity": {},
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {
                        "topologyKey": "zone",
                        "namespaces": [],
                        "labelSelector": {"matchLabels": {"app": "one"}, "matchExpressions": []},
                    },
                }
            ],
        },
    },
    "hostAliases": [],
    "hostNetwork": False,
    "hostPID": False,
    "hostname": "",
    "nodeName": "",
    "priorityClassName": "",
    "serviceAccountName": "",
    "securityContext": {},
    "readinessGates": [],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "minDomains": None,
            "labelSelector": {"matchLabels": {"app": "one"}, "matchExpressions": []},
            "matchLabelKeys": [],
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Ignore",
        }
    ],
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "hostUsers": None,
    "enableServiceLinks": True,
    "shareProcessNamespace": False,
    "hostIPC": False,
    "subdomain": "",
    "volumes": [
        {"name": "v", "emptyDir": {"medium": "", "sizeLimit": None}},
        {
            "name": "all",
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {"configMap": {"name": "one", "optional": True, "items": []}},
                    {
                        "serviceAccountToken": {
                            "path": "token",
                            "audience": "",
                            "expirationSeconds": 3600,
                        }
                    },
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "path": "l",
                                    "fieldRef": {
                                        "apiVersion": "v1",
                                        "fieldPath": "metadata.labels",
                                    },
                                }
                            ]
                        }
                    },
                ],
            },
        },
    ],
}
LABELS = {"app": "one"}
SELECTOR = {"matchLabels": LABELS}
OTHER_SELECTOR = {**SELECTOR, "matchExpressions": None}


def template(pod: Json, **more: Any) -> Json:
    return {"metadata": {"labels": LABELS}, "spec": {**pod, **more}}


def other_template(**more: Any) -> Json:
    empty = {"annotations": None, "creationTimestamp": None}
    return {"metadata": {"labels": LABELS, **empty}, "spec": {**OTHER_POD, **more}}


def workload(kind: str, other: Json, **spec: Any) -> tuple[Json, Json]:
    """Return a workload in both spellings."""
    one = body(kind, "apps/v1", spec={**spec, "selector": SELECTOR, "template": template(POD)})
    said = {**spec, **other, "selector": OTHER_SELECTOR, "template": other_template()}
    return one, with_fields(one, spec=said)


def batch(kind: str) -> tuple[Json, Json]:
    """Return a Job or a CronJob that runs its Jobs next year, in both spellings."""
    never = {"restartPolicy": "Never"}
    job: Json = {"template": template(POD, **never), "suspend": True}
    other: Json = {**job, "template": other_template(**never), "selector": None}
    if kind == "Job":  # what a CronJob starts gets these later
        other |= {"backoffLimit": 6, "completions": 1, "parallelism": 1}
    if kind == "CronJob":
        times = {"schedule": "0 0 1 1 *"}
        more = {"suspend": False, "timeZone": None, "failedJobsHistoryLimit": 1}
        job = {**times, "jobTemplate": {"spec": job}}
        other = {**times, **more, "jobTemplate": {"metadata": {}, "spec": other}}
    one = body(kind, "batch/v1", spec=job)
    return one, with_fields(one, spec=other)


def kind_of(
    kind: str, version: str, one: Json, other: Json, name: str = "one"
) -> tuple[Json, Json]:
    """Return an object of another kind in both spellings.

    :param other: what is spelled otherwise; of the spec where it has one.
    """
    first = body(kind, version, name, **one)
    if "spec" not in one:
        return first, with_fields(first, **other)
    return first, with_fields(first, spec={**one["spec"], **other.get("spec", other)})


RBAC = "rbac.authorization.k8s.io"
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
SUBJECT = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
OTHER_RULE = {**RULE, "resourceNames": [], "nonResourceURLs": None}
OTHER_SUBJECT = {**SUBJECT, "apiGroup": ""}
TEAM = {"kind": "Group", "name": "one"}
ROLE = {"apiGroup": RBAC, "kind": "Role", "name": "view"}
BACKEND = {"service": {"name": "one", "port": {"number": 80}}}
PATH = {"path": "/", "pathType": "Prefix", "backend": BACKEND}
OTHER_PATH = {**PATH, "backend": {"service": {"name": "one", "port": {"number": 80, "name": ""}}}}
LIMITED = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}
HOOK = {
    "name": "one.example.org",
    "clientConfig": {"service": {"name": "one", "namespace": "default"}},
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "failurePolicy": "Ignore",
    "rules": [
        {"apiGroups": ["none.example.org"], "apiVersions": ["v1"], "operations": ["CREATE"],
         "resources": ["nones"]}
    ],
}  # fmt: skip
OTHER_HOOK = {
    **HOOK,
    "clientConfig": {
        "service": {"name": "one", "namespace": "default", "port": 443}, "caBundle": None,
    },
    "namespaceSelector": {},
    "objectSelector": {"matchLabels": {}, "matchExpressions": []},
    "matchPolicy": "Equivalent",
    "matchConditions": [],
    "timeoutSeconds": 10,
    "rules": [{**HOOK["rules"][0], "scope": "*"}],  # type: ignore[index]
}  # fmt: skip
GROUP = f"g{UNIQUE}.example.org"
SCHEMA: Json = {"type": "object", "properties": {"spec": {"type": "object"}}}
OTHER_SCHEMA: Json = {
    **SCHEMA,
    "description": "",
    "required": [],
    "properties": {"spec": {"type": "object", "nullable": False, "enum": [], "title": ""}},
}
NAMES = {"plural": "ones", "singular": "one", "kind": "One"}
VERSION = {"name": "v1", "served": True, "storage": True}
TIMES = {"type": "Resource", "resource": {"name": "cpu"}}
PORT = {"port": 80, "targetPort": 80}
CLAIM = {"accessModes": ["ReadWriteOnce"]}


OBJECTS: dict[str, tuple[Json, Json]] = {
    "Deployment": workload(
        "Deployment",
        {"paused": False, "minReadySeconds": 0, "revisionHistoryLimit": 10,
         "strategy": {"type": "RollingUpdate",
                      "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}},
    ),
    "StatefulSet": workload(
        "StatefulSet",
        {"podManagementPolicy": "OrderedReady", "volumeClaimTemplates": [], "minReadySeconds": 0,
         "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
        serviceName="one",
    ),
    "DaemonSet": workload(
        "DaemonSet",
        {"minReadySeconds": 0, "updateStrategy": {
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}, "type": "RollingUpdate"}},
    ),
    "ReplicaSet": workload("ReplicaSet", {"minReadySeconds": 0}),
    "Job": batch("Job"),
    "CronJob": batch("CronJob"),
    "Pod": (body("Pod", spec=POD), with_fields(body("Pod", spec=POD), spec=OTHER_POD)),
    "Service": kind_of(
        "Service", "v1",
        {"spec": {"selector": LABELS, "ports": [{"port": 80}]}},
        {"ports": [{"port": 80, "targetPort": 80, "protocol": "TCP", "nodePort": 0, "name": ""}],
         "type": "ClusterIP", "clusterIP": "", "externalIPs": [], "sessionAffinity": "None",
         "externalName": "", "loadBalancerSourceRanges": None, "publishNotReadyAddresses": False,
         "healthCheckNodePort": 0, "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"],
         "internalTrafficPolicy": "Cluster", "clusterIPs": []},
    ),
    "Service with node ports": kind_of(
        "Service", "v1",
        {"spec": {"type": "NodePort", "selector": LABELS, "ports": [{"port": 80}],
                  "sessionAffinity": "ClientIP"}},
        {"externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": None,
         "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}, "ipFamilies": None},
        name="node-ports",
    ),
    "Service elsewhere": kind_of(
        "Service", "v1",
        {"spec": {"type": "ExternalName", "externalName": "one.example.org"}},
        {"ports": [], "selector": {}, "sessionAffinity": "None", "clusterIP": ""},
        name="elsewhere",
    ),
    "Service without an address": kind_of(
        "Service", "v1",
        {"spec": {"selector": LABELS, "clusterIP": "None", "ports": [{"port": 80}]}},
        {"ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}], "type": "ClusterIP"},
        name="headless",
    ),
    "Ingress": kind_of(
        "Ingress", "networking.k8s.io/v1",
        {"spec": {"rules": [{"http": {"paths": [PATH]}}]}},
        {"rules": [{"host": "", "http": {"paths": [OTHER_PATH]}}], "tls": [],
         "defaultBackend": None},
    ),
    "NetworkPolicy": kind_of(
        "NetworkPolicy", "networking.k8s.io/v1",
        {"spec": {"podSelector": SELECTOR, "ingress": [{"ports": [{"port": 80}]}]}},
        {"podSelector": OTHER_SELECTOR, "egress": [], "policyTypes": ["Ingress"],
         "ingress": [{"from": [], "ports": [{"port": 80, "protocol": "TCP"}]}]},
    ),
    "NetworkPolicy both ways": kind_of(
        "NetworkPolicy", "networking.k8s.io/v1",
        {"spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}]}},
        {"podSelector": {"matchLabels": {}, "matchExpressions": []}, "ingress": [],
         "policyTypes": ["Ingress", "Egress"],
         "egress": [{"ports": [], "to": [{"ipBlock": {"cidr": "192.0.2.0/24", "except": []}}]}]},
        name="both-ways",
    ),
    "HorizontalPodAutoscaler of version 1": kind_of(
        "HorizontalPodAutoscaler", "autoscaling/v1",
        {"spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
            "maxReplicas": 3, "targetCPUUtilizationPercentage": 80}},
        {"minReplicas": 1}, name="version-1",
    ),
    "HorizontalPodAutoscaler with a behavior": kind_of(
        "HorizontalPodAutoscaler", "autoscaling/v2",
        {"spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none2"},
            "maxReplicas": 3, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}},
        {"metrics": [], "behavior": {"scaleDown": {
            "stabilizationWindowSeconds": 60, "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}}},
        name="behaving",
    ),
    "ConfigMap": kind_of(
        "ConfigMap", "v1", {"data": {"a": "1"}}, {"binaryData": {}, "immutable": False}
    ),
    "Secret": (
        body("Secret", data={"a": "MQ=="}),
        with_fields(body("Secret"), stringData={"a": "1"}, type="Opaque", data=None),
    ),
    "PersistentVolumeClaim": kind_of(
        "PersistentVolumeClaim", "v1",
        {"spec": {**CLAIM, "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}},
        {"resources": {"requests": {"storage": "1024Mi"}, "limits": {}}, "volumeMode": "Filesystem",
         "selector": None, "volumeName": "", "dataSource": None},
    ),
    "PodDisruptionBudget": kind_of(
        "PodDisruptionBudget", "policy/v1",
        {"spec": {"minAvailable": 0, "selector": SELECTOR}},
        {"selector": OTHER_SELECTOR, "maxUnavailable": None},
    ),
    "HorizontalPodAutoscaler": kind_of(
        "HorizontalPodAutoscaler", "autoscaling/v2",
        {"spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
            "maxReplicas": 3,
            "metrics": [{**TIMES, "resource": {
                "name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}}}],
        }},
        {"minReplicas": 1, "behavior": None, "metrics": [{**TIMES, "resource": {
            "name": "cpu", "target": {"type": "AverageValue", "averageValue": "1000m"}}}]},
    ),
    "Role": kind_of("Role", f"{RBAC}/v1", {"rules": [RULE]}, {}),
    "RoleBinding": kind_of(
        "RoleBinding", f"{RBAC}/v1",
        {"roleRef": ROLE, "subjects": [SUBJECT, {**TEAM, "apiGroup": RBAC}]}, {}
    ),
    "ServiceAccount": kind_of(
        "ServiceAccount", "v1", {}, {"secrets": [], "imagePullSecrets": None}
    ),
    "LimitRange": kind_of(
        "LimitRange", "v1",
        {"spec": {"limits": [{"type": "Container", "max": {"memory": "2Gi", "cpu": "2"}}]}},
        {"limits": [{"type": "Container", "max": {"memory": "2048Mi", "cpu": "2000m"}, "min": {},
                     "default": {"memory": "2048Mi", "cpu": 2}}]},
    ),
    "ResourceQuota": kind_of(
        "ResourceQuota", "v1",
        {"spec": {"hard": {"pods": "100", "requests.cpu": "50"}}},
        {"hard": {"pods": 100, "requests.cpu": "50000m"}, "scopes": [], "scopeSelector": None},
    ),
    "EndpointSlice": kind_of(
        "EndpointSlice", "discovery.k8s.io/v1",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}],
         "ports": [{"port": 80}]},
        {},
    ),
    "Endpoints": kind_of(
        "Endpoints", "v1",
        {"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]}, {},
        name="by-hand",
    ),
    "Lease": kind_of(
        "Lease", "coordination.k8s.io/v1", {"spec": {}}, {"holderIdentity": None}
    ),
    "ControllerRevision": kind_of(
        "ControllerRevision", "apps/v1", {"revision": 1, "data": {"a": 0}}, {}
    ),
    "PodTemplate": (
        body("PodTemplate", template=template(POD)),
        with_fields(body("PodTemplate"), template=other_template()),
    ),
    # without a namespace
    "PersistentVolume": kind_of(
        "PersistentVolume", "v1",
        {"spec": {**CLAIM, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/none"},
                  "storageClassName": f"none-{UNIQUE}", "persistentVolumeReclaimPolicy": "Retain"}},
        {"capacity": {"storage": "1024Mi"}, "hostPath": {"path": "/none", "type": ""},
         "volumeMode": "Filesystem", "mountOptions": [], "nodeAffinity": None, "claimRef": None},
        name=ONE,
    ),
    "StorageClass": kind_of(
        "StorageClass", "storage.k8s.io/v1", {"provisioner": "none.example.org"},
        {"parameters": {}, "mountOptions": [], "reclaimPolicy": "Delete", "allowedTopologies": [],
         "volumeBindingMode": "Immediate", "allowVolumeExpansion": None},
        name=ONE,
    ),
    "PriorityClass": kind_of(
        "PriorityClass", "scheduling.k8s.io/v1", {"value": 7},
        {"globalDefault": False, "description": "", "preemptionPolicy": "PreemptLowerPriority"},
        name=ONE,
    ),
    "RuntimeClass": kind_of(
        "RuntimeClass", "node.k8s.io/v1",
        {"handler": "runc", "overhead": {"podFixed": {"cpu": "1", "memory": "1Gi"}}},
        {}, name=ONE,
    ),
    "ClusterRole": kind_of("ClusterRole", f"{RBAC}/v1", {"rules": [RULE]}, {}, name=ONE),
    "ClusterRoleBinding": kind_of(
        "ClusterRoleBinding", f"{RBAC}/v1",
        {"roleRef": {**ROLE, "kind": "ClusterRole"}, "subjects": [SUBJECT, TEAM]}, {}, name=ONE,
    ),
    "IngressClass": kind_of(
        "IngressClass", "networking.k8s.io/v1", {"spec": {"controller": "none.example.org/x"}},
        {"parameters": None}, name=ONE,
    ),
    "CSIDriver": kind_of(
        "CSIDriver", "storage.k8s.io/v1", {"spec": {"attachRequired": False}},
        {"podInfoOnMount": False, "volumeLifecycleModes": ["Persistent"], "tokenRequests": [],
         "storageCapacity": False, "fsGroupPolicy": "ReadWriteOnceWithFSType"},
        name=f"{ONE}.example.org",
    ),
    "CustomResourceDefinition": kind_of(
        "CustomResourceDefinition", "apiextensions.k8s.io/v1",
        {"spec": {"group": GROUP, "scope": "Namespaced", "names": NAMES, "versions": [
            {**VERSION, "schema": {"openAPIV3Schema": SCHEMA}, "subresources": {"status": {}}}]}},
        {"preserveUnknownFields": False, "conversion": {"strategy": "None"},
         "names": {**NAMES, "listKind": "OneList", "shortNames": [], "categories": None},
         "versions": [{**VERSION, "schema": {"openAPIV3Schema": OTHER_SCHEMA}, "deprecated": False,
                       "additionalPrinterColumns": [], "subresources": {"status": {}}}]},
        name=f"ones.{GROUP}",
    ),
    "ValidatingWebhookConfiguration": kind_of(
        "ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", {"webhooks": [HOOK]},
        {}, name=ONE,
    ),
    "MutatingWebhookConfiguration": kind_of(
        "MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", {"webhooks": [HOOK]},
        {}, name=ONE,
    ),
    "PriorityLevelConfiguration": kind_of(
        "PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io/v1",
        {"spec": {"type": "Limited", "limited": LIMITED}},
        {"limited": {**LIMITED, "lendablePercent": 0}, "exempt": None}, name=ONE,
    ),
    "Namespace": kind_of("Namespace", "v1", {}, {"spec": {"finalizers": []}}, name=ONE),
}  # fmt: skip


def respell(kind: str, **fields: Any) -> None:
    one, other = OBJECTS[kind]
    OBJECTS[kind] = one, {**other, **fields}


for each in ("Role", "ClusterRole"):
    respell(each, rules=[OTHER_RULE])
for each in ("RoleBinding", "ClusterRoleBinding"):
    respell(each, subjects=[OTHER_SUBJECT, TEAM])
respell("ClusterRole", aggregationRule=None)
respell("ValidatingWebhookConfiguration", webhooks=[OTHER_HOOK])
respell("MutatingWebhookConfiguration", webhooks=[{**OTHER_HOOK, "reinvocationPolicy": "Never"}])
respell(
    "RuntimeClass", overhead={"podFixed": {"cpu": "1000m", "memory": "1024Mi"}}, scheduling=None
)
respell(
    "EndpointSlice",
    endpoints=[{"addresses": ["192.0.2.1"], "conditions": {}, "deprecatedTopology": {}}],
    ports=[{"port": 80, "protocol": "TCP", "name": ""}],
)
respell(
    "Endpoints",
    subsets=[
        {
            "addresses": [{"ip": "192.0.2.1", "hostname": ""}],
            "notReadyAddresses": [],
            "ports": [{"port": 80, "protocol": "TCP", "name": ""}],
        }
    ],
)


# --- what is compared -----------------------------------------------------------------------------


class World:
    """All of these objects as an installation has written them."""

    def __init__(self, cnf: Cnf) -> None:
        self.cnf, self.admin = cnf, cnf.admin
        self.one, self.other = (self.package(at) for at in (0, 1))
        self.where = {"namespace": cnf.namespace, "instance_id": INSTANCE}
        self.installed = self.install(self.one).plan

    def package(self, spelling: int, kinds: Iterable[str] = OBJECTS) -> str:
        texts = {kind: yaml.safe_dump(OBJECTS[kind][spelling]) for kind in kinds}
        return self.cnf.package({f"{kind.replace(' ', '-')}.yaml": texts[kind] for kind in texts})

    def exported(self) -> str:
        """Return a package with all of them as ``kubectl get -o yaml`` shows them."""
        keys = {(each.key.kind, each.key.name): each.key for each in object_steps(self.installed)}
        files = {}
        for kind, (one, _) in OBJECTS.items():
            live = self.admin.get(keys[one["kind"], one["metadata"]["name"]])
            files[f"{kind.replace(' ', '-')}.yaml"] = yaml.safe_dump(live)
        return self.cnf.package(files)

    def install(self, package: str, instance_id: str = INSTANCE) -> Outcome:
        where = {**self.where, "instance_id": instance_id}
        return install(package, self.admin, options=OPTIONS, **where)


WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod")


@pytest.fixture(scope="module")
def world(admin: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with new_namespace(admin) as name:
        cnf = Cnf(admin, admin, name, tmp_path_factory.mktemp("spellings"), OPTIONS)
        world = World(cnf)
        yield world
        terminate(
            world.one,
            admin,
            options=OPTIONS,
            included=Included(data=True, shared=True),
            **world.where,
        )


@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
def test_a_change_of_the_package_changes_none(world: World, upgrade_type: str) -> None:
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": upgrade_type}}
    packages = {"old": world.one, "new": world.other}
    plan = plan_change(body, world.admin, OPTIONS, **packages, **world.where)
    wrong = [f"{each.key}: {list(map(str, each.reasons))}" for each in object_steps(plan)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
def test_a_change_to_what_was_exported_changes_none(world: World, upgrade_type: str) -> None:
    """``kubectl get -o yaml``, put back as manifests: with defaults, addresses, owners of fields,
    status, our own label and annotation, and what admission has added to a Pod."""
    packages = {"old": world.one, "new": world.exported()}
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": upgrade_type}}
    plan = plan_change(body, world.admin, OPTIONS, **packages, **world.where)
    wrong = [f"{each.key}: {list(map(str, each.reasons))}" for each in object_steps(plan)]
    assert not wrong, "\n".join(wrong)
    told = [str(n) for n in plan.notes if "differs" in n.text or "cannot change" in n.text]
    assert not told, "\n".join(told)


def test_a_change_to_the_same_notes_no_drift(world: World) -> None:
    """Written in the other spelling, too: both packages say what the server has."""
    with new_namespace(world.admin) as name:
        kinds = [
            kind for kind, (one, _) in OBJECTS.items() if UNIQUE not in one["metadata"]["name"]
        ]
        package, where = world.package(1, kinds), {"namespace": name, "instance_id": "other"}
        install(package, world.admin, options=OPTIONS, **where)
        body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
        plan = plan_change(body, world.admin, OPTIONS, old=package, new=package, **where)
        assert plan.is_empty
        drifts = [f"{note.key}: {note.text}" for note in plan.notes if "drift" in note.text]
        assert not drifts, "\n".join(drifts)


def test_an_update_says_of_none_that_it_does_not_take_effect(world: World) -> None:
    for new in (world.other, world.exported()):
        request = UpdateRequest(old=world.one, new=new, **world.where)
        plan = plan_update(request, world.admin, OPTIONS)
        assert plan.is_empty
        said = (*plan.notes, *plan.ignored)
        assert not said, "\n".join(map(str, said))


def test_another_instance_shares_those_that_have_no_namespace(world: World) -> None:
    kinds = [kind for kind, (one, _) in OBJECTS.items() if UNIQUE in one["metadata"]["name"]]
    outcome = world.install(world.package(1, kinds), "another")
    notes = [note for note in outcome.plan.notes if "shared, not changed" in note.text]
    assert len(notes) == len(kinds)
    assert not outcome.results


def test_an_installation_finds_none_that_differs(world: World) -> None:
    outcome = world.install(world.other)
    assert outcome.results == ()
    wrong = [str(note) for note in outcome.plan.notes if "differs" in note.text]
    assert not wrong, "\n".join(wrong)


def test_a_heal_mends_none(world: World) -> None:
    kinds = [kind for kind, (one, _) in OBJECTS.items() if kind not in WORKLOADS]
    outcome = world.cnf.heal(world.package(1, kinds), world.admin)
    wrong = [str(each.key) for each in object_steps(outcome.plan)]
    assert not wrong, "\n".join(wrong)
