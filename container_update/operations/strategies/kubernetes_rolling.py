"""RollingUpdate on Kubernetes: every workload in place, by the cluster's own rolling mechanism.

Source: the specification's "Rolling update process for Kubernetes VIM": Deployment and connection
points stay, VNFCs get new ids.
"""

from __future__ import annotations

from container_update.operations.strategies.kubernetes import KubernetesStrategy
from container_update.planning.rolling import RollingPlanner


class KubernetesRollingUpdate(KubernetesStrategy):
    """See the module."""

    planner = RollingPlanner
    new_vnfc_ids = True
    scripts_per_vdu = frozenset({"new"})  # run after the update: no old VNF is left
