# SPDX-License-Identifier: Apache-2.0
"""What values mean to the API server, however they are spelled: one normal form. Pure.

A server that is asked says itself what it would store. This is what can be known without: a value
that it takes for absent, its defaults, quantities. An object of a kind that it does not build in
has none of these: every value of such an object is what it is.

Source: API reference; Kubernetes documentation, "API Concepts" and "Custom Resources".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Path = tuple[str, ...]
"""The names of the fields that a value is in, and its own; lists add nothing."""

_QUANTITIES = frozenset(
    {
        *("averageValue", "capacity", "divisor", "hard", "limits", "overhead", "podFixed"),
        *("requests", "sizeLimit", "target"),
    }
)
"""Fields that are quantities, or have them in them: a LimitRange's, an autoscaler's."""
MAPS = frozenset(
    {
        *("annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector"),
        *("parameters", "selector", "stringData", "volumeAttributes"),
    }
)
"""Fields whose keys the author chooses: '' is a value there, and no name is a field."""
_OF_SELECTORS = frozenset({"matchExpressions", "matchLabels"})
"""What is a field in a selector that has more than labels."""
_EMPTY_MEANS = frozenset(
    {"emptyDir", "labelSelector", "namespaceSelector", "objectSelector", "podSelector", "status"}
)
"""Fields whose ``{}`` means something else than no value: everything is selected, a subresource is
served."""
_ZEROS = ("", False, 0)
"""What a server leaves out as it stores an object: it means the same as no value."""
_ZERO_MEANS = frozenset(
    {
        *(
            "additionalProperties",
            "default",
            "allowPrivilegeEscalation",
            "automountServiceAccountToken",
        ),
        *("backoffLimitPerIndex", "completions", "fsGroup", "hostUsers", "maxFailedIndexes"),
        *("maxItems", "maxLength", "maxProperties", "maxUnavailable", "maximum", "minAvailable"),
        *("minimum", "mode", "runAsGroup", "runAsNonRoot", "runAsUser", "startingDeadlineSeconds"),
        *("stabilizationWindowSeconds", "tolerationSeconds", "ttlSecondsAfterFinished"),
    }
)
"""Fields that no default fills in and whose false or 0 means something else than no value."""
_FILLED_IN = frozenset(
    {
        *("apiGroup", "clusterIP", "healthCheckNodePort", "imagePullPolicy", "nodeName"),
        *("nodePort", "serviceAccountName", "targetPort", "volumeName"),
    }
)
"""Fields that the cluster chooses the value of where a manifest says '' or 0."""
_PROBES = {
    f"{probe}.{field}": value
    for probe in ("livenessProbe", "readinessProbe", "startupProbe")
    for field, value in (
        ("failureThreshold", "3"), ("periodSeconds", "10"), ("successThreshold", "1"),
        ("timeoutSeconds", "1"),
    )
}  # fmt: skip
"""Where 0 too means the default."""
_DEFAULTS: Mapping[str, Any] = {
    # pods
    **_PROBES,
    "defaultMode": "420",
    "divisor": Decimal(0),
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": "True",
    "fieldRef.apiVersion": "v1",
    "httpGet.path": "/",
    "iscsiInterface": "default",
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Ignore",
    "protocol": "TCP",
    "restartPolicy": "Always",
    "scheme": "HTTP",
    "schedulerName": "default-scheduler",
    "serviceAccountName": "default",
    "serviceAccountToken.expirationSeconds": "3600",
    "terminationGracePeriodSeconds": "30",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "tolerations.operator": "Equal",
    # workloads
    "backoffLimit": "6",
    "completionMode": "NonIndexed",
    "concurrencyPolicy": "Allow",
    "failedJobsHistoryLimit": "1",
    "parallelism": "1",
    "podManagementPolicy": "OrderedReady",
    "progressDeadlineSeconds": "600",
    "replicas": "1",
    "revisionHistoryLimit": "10",
    "strategy.rollingUpdate.maxSurge": "25%",
    "strategy.rollingUpdate.maxUnavailable": "25%",
    "strategy.type": "RollingUpdate",
    "successfulJobsHistoryLimit": "3",
    "updateStrategy.rollingUpdate.maxUnavailable": "1",
    "updateStrategy.type": "RollingUpdate",
    "whenDeleted": "Retain",
    "whenScaled": "Retain",
    # networks and storage
    "allocateLoadBalancerNodePorts": "True",
    "attachRequired": "True",
    "clientIP.timeoutSeconds": "10800",
    "externalTrafficPolicy": "Cluster",
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "internalTrafficPolicy": "Cluster",
    "ipFamilyPolicy": "SingleStack",
    "persistentVolumeReclaimPolicy": "Retain",
    "reclaimPolicy": "Delete",
    "sessionAffinity": "None",
    "spec.type": "ClusterIP",
    "volumeBindingMode": "Immediate",
    "volumeLifecycleModes": ["Persistent"],
    "volumeMode": "Filesystem",
    # everything else
    "conversion.strategy": "None",
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "minReplicas": "1",
    "preemptionPolicy": "PreemptLowerPriority",
    "reinvocationPolicy": "Never",
    "roleRef.apiGroup": "rbac.authorization.k8s.io",
    "rules.scope": "*",
    "service.port": "443",
    "subjects.apiGroup": "rbac.authorization.k8s.io",
    "webhooks.namespaceSelector": {},
    "webhooks.objectSelector": {},
    "webhooks.timeoutSeconds": "10",
}
"""What a server fills in, in its normal form, by the name of the field or the last ones of its
path."""
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?")
_FACTORS = {
    **{
        prefix: Decimal(1000) ** power
        for power, prefix in enumerate(["n", "u", "m", "", *"kMGTPE"], -3)
    },
    **{f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", 1)},
}


def normal(value: Any, path: Path = ()) -> Any:
    """Return what a value means to the server that builds its kind in; None for no value.

    >>> normal({"limits": {"cpu": "1000m"}, "tty": False, "args": [], "protocol": "TCP"})
    {'limits': {'cpu': Decimal('1.000')}}

    :param path: where it is, as far as known.
    """
    if isinstance(value, dict):
        parts = {name: normal(part, (*path, name)) for name, part in value.items()}
        found: Any = _without_derived({n: part for n, part in parts.items() if part is not None})
        is_nothing = not (found or (path and path[-1] in _EMPTY_MEANS))
    elif isinstance(value, list):
        items = [normal(item, path) for item in value]
        named = named_items(items)
        found = items if named is None else {name: items[index] for name, index in named.items()}
        is_nothing = not value
    else:
        found = _normal_scalar(value, path)
        is_nothing = found is None
    return None if is_nothing or found == _default(path) else found


def _normal_scalar(value: Any, path: Path) -> Any:
    if _is_chosen(path):
        return "" if value is None else str(value)
    if value is None:
        return None
    number = _number(value) if not _QUANTITIES.isdisjoint(path) else None
    if number is not None:
        return number
    is_default = value == "" or ".".join(path[-2:]) in _PROBES
    means = path[-1:] and (path[-1] in _ZERO_MEANS or not (is_default or _default(path) is None))
    return None if value in _ZEROS and not means else str(value)


def _default(path: Path) -> Any:
    if _is_chosen(path):
        return None
    names = (".".join(path[-length:]) for length in (3, 2, 1) if len(path) >= length)
    return next((_DEFAULTS[name] for name in names if name in _DEFAULTS), None)


def _is_chosen(path: Path) -> bool:
    """Tell whether the author has chosen the last name of a path."""
    return not MAPS.isdisjoint(path[-2:-1]) and _OF_SELECTORS.isdisjoint(path[-1:])


def _without_derived(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields in their normal form without those that a server makes of the others."""
    limits = fields.get("limits") or {}
    derived = {
        "completions": None if "parallelism" in fields else "1",
        "default": fields.get("max"),
        "imagePullPolicy": _pull_policy(str(fields.get("image", ""))),
        "policyTypes": ["Ingress", *(["Egress"] if "egress" in fields else ())],
        "pullPolicy": _pull_policy(str(fields.get("reference", ""))),
        "listKind": f"{fields.get('kind')}List",
        "serviceAccount": fields.get("serviceAccountName"),
        "singular": str(fields.get("kind")).lower(),
        "targetPort": fields.get("port"),
    }
    kept = {name: value for name, value in fields.items() if value != derived.get(name, ...)}
    if isinstance(limits, dict) and isinstance(requests := kept.pop("requests", None), dict):
        requests = {name: each for name, each in requests.items() if each != limits.get(name)}
        kept |= {"requests": requests} if requests else {}
    return kept


def _pull_policy(image: str) -> str:
    tag = image.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if "@" in image or tag not in ("", "latest") else "Always"


def is_same(one: Any, other: Any, path: Path = (), *, built_in: bool = True) -> bool:
    """Tell whether two values mean the same to the server, which may build their kind in."""
    if built_in:
        return bool(one == other or normal(one, path) == normal(other, path))
    return has(one, other, built_in=False) and has(other, one, built_in=False)


def respell(new: Any, old: Any, path: Path = ()) -> Any:
    """Return a value with all that means the same as in an old one spelled as it is there.

    >>> respell({"tty": False, "stdin": True, "cpu": "1"}, {"cpu": "1", "stdin": False})
    {'stdin': True, 'cpu': '1'}
    """
    if is_same(new, old, path):
        return old
    if isinstance(new, dict) and isinstance(old, dict):
        mine, before = normal(new, path) or {}, normal(old, path) or {}
        same = {name for name in {**new, **old} if mine.get(name) == before.get(name)}
        parts = {name: new[name] for name in new if name not in same or name in old}
        parts |= {name: old[name] for name in old if name in same}
        return {
            name: part if name in same else respell(part, old.get(name), (*path, name))
            for name, part in parts.items()
        }
    if isinstance(new, list) and isinstance(old, list):
        named = named_items(old)
        if named is not None and named_items(new) is not None:
            before = {name: old[index] for name, index in named.items()}
            return [respell(item, before.get(f"[{item['name']}]"), path) for item in new]
        if len(new) == len(old):
            return [respell(*pair, path) for pair in zip(new, old, strict=True)]
    return new


def has(live: Any, said: Any, path: Path = (), *, built_in: bool = True) -> bool:
    """Tell whether a live value has all that a manifest says; what else it has does not count."""
    if live is None and built_in:
        return normal(said, path) is None or _is_left_open(said, path)
    if isinstance(said, dict) and (said or not built_in):
        return isinstance(live, dict) and all(
            has(live.get(name), value, (*path, name), built_in=built_in)
            for name, value in said.items()
        )
    if isinstance(said, list) and said:
        return isinstance(live, list) and _has_items(live, said, path, built_in)
    if said is None or (built_in and (said in ({}, []) or _is_left_open(said, path))):
        return True
    return bool(normal(said, path) == normal(live, path) if built_in else said == live)


def _is_left_open(said: Any, path: Path) -> bool:
    """Tell whether the cluster chooses a value."""
    return said in _ZEROS and not _FILLED_IN.isdisjoint(path[-1:])


def _has_items(live: list[Any], said: list[Any], path: Path, built_in: bool) -> bool:
    named, live_named = named_items(said), named_items(live)
    if named is not None and live_named is not None:
        return all(
            name in live_named and has(live[live_named[name]], said[index], path, built_in=built_in)
            for name, index in named.items()
        )
    return len(said) == len(live) and all(
        has(each, item, path, built_in=built_in) for each, item in zip(live, said, strict=True)
    )


def named_items(items: list[Any]) -> Mapping[str, int] | None:
    """Return the indexes of named things by ``[name]``; None where one has no name of its own."""
    if not all(isinstance(item, dict) and "name" in item for item in items):
        return None
    named = {f"[{item['name']}]": index for index, item in enumerate(items)}
    return named if len(named) == len(items) else None


def is_less(one: object, other: object) -> bool:
    """Tell whether a quantity is less than another one; False where one is none."""
    less, more = _number(one), _number(other)
    return less is not None and more is not None and less < more


def _number(value: object) -> Decimal | None:
    """Return what a quantity comes to (API reference, Quantity); None for another text."""
    match = _QUANTITY.fullmatch(str(value))
    try:
        return None if match is None else Decimal(match[1]) * _FACTORS[match[2] or ""]
    except ArithmeticError:
        return None
