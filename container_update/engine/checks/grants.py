# SPDX-License-Identifier: Apache-2.0
"""Roles and bindings that an undo could not put back.

The server lets an account write a role only where it has each right of the role, or the verb
``escalate``, and likewise a binding, or the verb ``bind``. No access review says so. A dry run of
the creation does: the server looks at the rights before it finds the name taken. Source: Kubernetes
documentation, "Using RBAC Authorization", "Privilege escalation prevention and bootstrapping".
"""

from __future__ import annotations

from container_update.engine.writer import try_creation_again
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.errors import ClusterError, NextStep
from container_update.model.objects import ObjectKey
from container_update.model.plan import Plan
from container_update.planning.order import RBAC
from container_update.planning.steps import object_steps
from container_update.planning.steps.new_objects import new_object

_GRANTING = {"Role": "escalate", "ClusterRole": "escalate"}
"""The verb of an account that may grant more than it has; of a binding: bind."""


def refuse_lasting_grants(plan: Plan, cluster: ReadOnlyCluster) -> None:
    """Refuse a plan that takes rights away which this account could not grant again.

    :raises ClusterError: the undo of a step would be refused.
    """
    for step in object_steps(plan):
        if step.key.group != RBAC or step.before is None:
            continue
        try:
            try_creation_again(cluster, new_object(step.before, step.key.namespace, {}))
        except ClusterError as error:  # the operation itself meets any other one
            if error.next_step is NextStep.GRANT_RIGHTS:
                raise _refusal(step.key, error) from error


def _refusal(key: ObjectKey, error: ClusterError) -> ClusterError:
    return ClusterError(
        "the operation could not be undone, because this account may not grant again what it "
        f"takes away: {error}: nothing was written; give the account these rights, or the verb "
        f"{_GRANTING.get(key.kind, 'bind')} for {key}",
        status=error.status,
        reason=error.reason,
        next_step=NextStep.GRANT_RIGHTS,
    )
