"""The pods that the recorded workloads of a v2 instance have now, without any package.

Tacker keeps the manifest of each VDU's workload in the instance (``vdu_reses``), under the name
that it has in the cluster.
"""

from __future__ import annotations

from dataclasses import replace

from container_update.model.cluster import Cluster
from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.operations.vnf_records import VDU_RESES, Records


def with_live_pods(instance: Json, cluster: Cluster) -> Json:
    """Return a VnfInstance whose VNFCs are the live pods of its recorded workloads.

    An instance without recorded workloads stays as it is.

    :raises ClusterError: the API server cannot be read.
    """
    from container_update.cluster.informer import Informer  # noqa: PLC0415 (heavy)
    from container_update.planning.update import collections  # noqa: PLC0415
    from container_update.workloads import ownership  # noqa: PLC0415

    recorded = recorded_workloads(instance)
    if not recorded:
        return instance
    with Informer(cluster) as informer:
        informer.list(collections([manifest.key for manifest in recorded.values()]))
        names = {vdu: manifest.key.name for vdu, manifest in recorded.items()}
        vnfcs = ownership.vnfcs(names, list(recorded.values()), informer.live)
    return Records(vnfcs=vnfcs, named_by_pods=True).applied(instance)


def recorded_workloads(instance: Json) -> dict[str, Manifest]:
    """Return the recorded manifest of each VDU's workload, in the instance's namespace."""
    metadata = instance["instantiatedVnfInfo"].get("metadata") or {}
    namespace = metadata.get("namespace") or "default"
    return {
        vdu: Manifest(
            replace(ObjectKey.of(body), namespace=namespace), body, Source(f"{VDU_RESES}.{vdu}", 1)
        )
        for vdu, body in (metadata.get(VDU_RESES) or {}).items()
    }
