# SPDX-License-Identifier: Apache-2.0
"""No account grants more than it has: Roles, and bindings to Roles.

Source: Kubernetes documentation, "Using RBAC Authorization", "Privilege escalation prevention and
bootstrapping": an account writes a Role if it has all the rights in it, or the verb ``escalate``; a
binding if it has all the rights in the Role, or the verb ``bind``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import api_errors
from container_update.emulator.kubernetes.api.access import (
    ADMINISTRATOR,
    Access,
    RequestAttributes,
)
from container_update.emulator.kubernetes.api.paths import RequestTarget
from container_update.emulator.kubernetes.api_errors import ApiError

_ALL_RIGHTS: Json = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
_ROLES = {"Role": "roles", "ClusterRole": "clusterroles"}


def check(access: Access, user: str, target: RequestTarget, body: Json) -> None:
    """Raise 403 where *user* would grant more than it has, 404 for a Role that does not exist."""
    plural = target.resource.plural
    if user == ADMINISTRATOR or target.subresource:
        return
    group, space = target.resource.group, target.space
    name = target.name or (body.get("metadata") or {}).get("name", "")
    role: Json | None = body
    if plural in _ROLES.values():
        freed = RequestAttributes("escalate", group, plural, space, name)
    elif plural in ("rolebindings", "clusterrolebindings"):
        reference = body.get("roleRef") or {}
        asked = (_ROLES.get(reference.get("kind", ""), ""), reference.get("name", ""))
        role = access.role(reference, space) if all(asked) else {}
        if role is None and asked == _FIRST_ROLE:
            role = _ALL_RIGHTS
        freed = RequestAttributes("bind", group, asked[0], space, asked[1])
    else:
        return
    if _may(access, user, freed):
        return
    if role is None:
        raise api_errors.not_found(group, plural, freed.name)
    if not all(_may(access, user, right) for right in _rights(role, space)):
        why = f'user "{user}" is attempting to grant RBAC permissions not currently held'
        raise api_errors.forbidden(group, plural, name, why, [])


_FIRST_ROLE = ("clusterroles", "cluster-admin")
"""The only Role that every cluster has and that is not stored here."""


def _rights(role: Json, namespace: str) -> Iterator[RequestAttributes]:
    """Yield each single right of a Role."""
    for rule in role.get("rules") or ():
        parts = (rule.get(part) or () for part in ("verbs", "apiGroups", "resources"))
        for (verb, group, resource), name in product(
            product(*parts), rule.get("resourceNames") or ("",)
        ):
            yield RequestAttributes(verb, group, resource, namespace, name)


def _may(access: Access, user: str, right: RequestAttributes) -> bool:
    try:
        access.check(user, right)
    except ApiError:
        return False
    return True
