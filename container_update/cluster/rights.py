# SPDX-License-Identifier: Apache-2.0
"""What the rules that hold for an account allow. Pure.

Source: Kubernetes documentation, "Using RBAC Authorization".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from container_update.model.cluster import Right
from container_update.model.objects import Json


def missing_rights(
    rights: Iterable[Right], rights_in: Callable[[str], Callable[[Right], bool]]
) -> tuple[Right, ...]:
    """Return the rights that are missing; *rights_in* is called once for each namespace."""
    rights = tuple(rights)
    has = {space: rights_in(space) for space in sorted({right.namespace for right in rights})}
    return tuple(right for right in rights if not has[right.namespace](right))


def allows(rules: Iterable[Json], right: Right, plural: str) -> bool:
    """Tell whether one of the rules that hold in a namespace allows it.

    :param rules: ``resourceRules`` of a SelfSubjectRulesReview.
    :param plural: the resource of the right's kind: 'deployments'.
    """
    subresource = right.subresource
    resource = f"{plural}/{subresource}" if subresource else plural
    resources = {"*", resource} | ({f"*/{subresource}"} if subresource else set())
    of_one = right.verb in ("get", "update", "delete") or bool(right.subresource)
    named_later = of_one and not right.name  # an object whose name is not known yet, like a pod
    return any(
        not resources.isdisjoint(rule.get("resources") or ())
        and not {"*", right.verb}.isdisjoint(rule.get("verbs") or ())
        and not {"*", right.group}.isdisjoint(rule.get("apiGroups") or ())
        and (named_later or right.name in (rule.get("resourceNames") or (right.name,)))
        for rule in rules
    )
