"""Reviews of the caller's own rights, as ``kubectl auth can-i`` requests them.

Source: API reference, authorization.k8s.io/v1, SelfSubjectAccessReview and SelfSubjectRulesReview.
"""

from __future__ import annotations

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import api_errors
from container_update.emulator.kubernetes.api.access import Access, RequestAttributes
from container_update.emulator.kubernetes.api_errors import ApiError

PREFIX = "/apis/authorization.k8s.io/v1/"


def answer(access: Access, user: str, path: str, body: Json) -> Json:
    """Return the review that was posted to *path* with its status."""
    kinds = {"selfsubjectaccessreviews": _access, "selfsubjectrulesreviews": _rules}
    review = kinds.get(path.removeprefix(PREFIX))
    if review is None:
        raise api_errors.no_such_resource()
    spec = body.get("spec") or {}
    return {**body, "metadata": body.get("metadata") or {}, "status": review(access, user, spec)}


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
