# SPDX-License-Identifier: Apache-2.0
"""Reviews: who a token belongs to, and what a user may do, as ``kubectl auth can-i`` asks.

Source: API reference, authentication.k8s.io/v1 and authorization.k8s.io/v1. They have no name, and
nothing of them is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import api_errors
from container_update.emulator.kubernetes.api.access import Access, RequestAttributes
from container_update.emulator.kubernetes.api_errors import ApiError

Review = Callable[[Access, str, Json], Json]
"""(rights, who asks, spec) to the status."""


def answer(access: Access, user: str, plural: str, body: Json) -> Json:
    """Return the review that was posted, with its status."""
    kind, group = _KINDS[plural]
    spec = body.get("spec") or {}
    if plural in _NEED_ATTRIBUTES and not spec.keys() & _ATTRIBUTES:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        error = api_errors.invalid_value("spec.resourceAttributes", None, why)
        raise api_errors.invalid(group, "", "", [error])
    status = _REVIEWS[plural](access, user, spec)
    head = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": body.get("metadata") or {}}
    return {**body, **head, "status": status}


def _access(access: Access, user: str, spec: Json) -> Json:
    given = spec.get("resourceAttributes") or {}
    subresource = given.get("subresource")
    attributes = RequestAttributes(
        verb=given.get("verb", ""),
        group=given.get("group", ""),
        resource=given.get("resource", "") + (f"/{subresource}" if subresource else ""),
        namespace=given.get("namespace", ""),
        name=given.get("name", ""),
    )
    try:
        access.check(user, attributes)
    except ApiError:
        return {"allowed": False}
    return {"allowed": True}


def _access_of_other(access: Access, _user: str, spec: Json) -> Json:
    return _access(access, spec.get("user", ""), spec)


def _owner(_access: Access, user: str, _spec: Json) -> Json:
    return {"userInfo": {"username": user}}


def _token(access: Access, _user: str, spec: Json) -> Json:
    try:
        return {"authenticated": True, "user": {"username": access.owner(spec.get("token", ""))}}
    except ApiError:
        return {"user": {}, "error": "invalid bearer token"}


def _rules(access: Access, user: str, spec: Json) -> Json:
    if not spec.get("namespace"):
        raise api_errors.bad_request("no namespace on request")
    rules = [
        {
            name: rule[name]
            for name in ("verbs", "apiGroups", "resources", "resourceNames")
            if name in rule
        }
        for rule in access.rules(user, spec["namespace"])
        if rule.get("resources")
    ]
    return {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}


_REVIEWS: Mapping[str, Review] = {
    "localsubjectaccessreviews": _access_of_other,
    "selfsubjectaccessreviews": _access,
    "selfsubjectreviews": _owner,
    "selfsubjectrulesreviews": _rules,
    "subjectaccessreviews": _access_of_other,
    "tokenreviews": _token,
}

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
_KINDS: Mapping[str, tuple[str, str]] = {
    "localsubjectaccessreviews": ("LocalSubjectAccessReview", _AUTHORIZATION),
    "selfsubjectaccessreviews": ("SelfSubjectAccessReview", _AUTHORIZATION),
    "selfsubjectreviews": ("SelfSubjectReview", _AUTHENTICATION),
    "selfsubjectrulesreviews": ("SelfSubjectRulesReview", _AUTHORIZATION),
    "subjectaccessreviews": ("SubjectAccessReview", _AUTHORIZATION),
    "tokenreviews": ("TokenReview", _AUTHENTICATION),
}
_NEED_ATTRIBUTES = frozenset(plural for plural in _KINDS if plural.endswith("accessreviews"))
_ATTRIBUTES = frozenset({"nonResourceAttributes", "resourceAttributes"})
