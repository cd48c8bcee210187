"""CHANGE_VNFPKG: Blue-Green or rolling, by the strategies of ``container_update.change_vnfpkg``.

A failure is left as it is: the occurrence is FAILED_TEMP then, and a retry goes on with it, a
rollback undoes it, both by the journal in the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from container_update.certificates import pem
from container_update.change_vnfpkg.change import change_vnfpkg, plan_change
from container_update.change_vnfpkg.kubernetes import KubernetesSite
from container_update.change_vnfpkg.request import ChangeRequest
from container_update.change_vnfpkg.strategy import Order
from container_update.errors import ContainerUpdateError
from container_update.model import Cluster, Json
from container_update.vnfm import instances, packages
from container_update.vnfm.lcm import drivers, records
from container_update.vnfm.lcm.work import Record, Work, merged


def do_change(work: Work) -> Record:
    """Change the package; all of the new one takes effect."""
    before = work.record
    chosen = drivers.of_package(work, before.vnfd_id, before.flavour_id)
    work = replace(work, record=chosen.call("change_current_package_start", before))
    with work.cluster() as cluster:
        changed = change_vnfpkg(_order(work), _site(work, cluster), work.stop, work.steps)
    body = changed.records.applied({**work.record.body, "vnfdId": before.vnfd_id})
    vnfd_id = str(body.pop("vnfdId"))
    body |= {
        name: merged(body.get(name), value)
        for name in ("extensions", "vnfConfigurableProperties")
        if (value := work.request.get(name))
    }
    with work.core.database.reading() as session:
        body |= instances.product_of(packages.of_vnfd(session, vnfd_id))
    info = body["instantiatedVnfInfo"]
    vdus = records.vdus_of(work, str(work.package(vnfd_id)), before.flavour_id)
    info["vnfcInfo"] = _vnfc_info(info)
    info["metadata"] = {
        **(info.get("metadata") or {}),
        "vdu_reses": records.vdu_reses(vdus, changed.outcome.plan.manifests),
    }
    record = replace(work.record, vnfd_id=vnfd_id, body=body)
    return chosen.call("change_current_package_end", record)


def undo_change(work: Work) -> Record:
    """Undo by the journal what the change left in the cluster.

    :raises ContainerUpdateError: the change is complete: only its record is missing.
    """
    record = work.record
    chosen = drivers.of_package(work, record.vnfd_id, record.flavour_id)
    record = chosen.call("change_current_package_rollback_start", record)
    with work.cluster() as cluster:
        undone = work.journalled(cluster, record.namespace).recover(back=True, stop=work.stop)
        if undone is None and plan_change(_order(work), _site(work, cluster)).is_empty:
            raise ContainerUpdateError(
                "the change was complete when the service ended, only its record is missing: "
                "retry writes it, a rollback cannot undo it any more"
            )
        record = records.with_live_pods(work, record, cluster)
    return chosen.call("change_current_package_rollback_end", record)


def _order(work: Work) -> Order:
    record = work.record
    return Order(
        request=ChangeRequest.of(work.request),
        old=str(work.package(record.vnfd_id)),
        new=str(work.package(work.request["vnfdId"])),
        instance_id=work.instance_id,
        options=work.core.options,
        leave_failed=True,
        instance={"id": work.instance_id, "vnfdId": record.vnfd_id, **record.body},
    )


def _site(work: Work, cluster: Cluster) -> KubernetesSite:
    interface = dict(work.connection.get("interfaceInfo") or {})
    if interface.get("ssl_ca_cert"):  # SOL003 has it in one line, programs want it as it was
        interface["ssl_ca_cert"] = pem(interface["ssl_ca_cert"])
    access = {"vim_connection_info": {"vim": {**work.connection, "interfaceInfo": interface}}}
    return KubernetesSite(
        cluster,
        work.record.namespace,
        work.record.def_files,
        access,
        one_namespace=True,
        vim_type=str(work.connection.get("vimType")),
    )


def _vnfc_info(info: Json) -> list[Json]:
    """vnfcInfo for the VNFCs as they are now; what else was recorded of one that stays is kept."""
    before: Mapping[str, Json] = {
        entry.get("vnfcResourceInfoId", ""): entry for entry in info.get("vnfcInfo") or ()
    }
    return [
        before.get(entry["id"])
        or {
            "id": f"{entry['vduId']}-{entry['id']}",
            "vduId": entry["vduId"],
            "vnfcResourceInfoId": entry["id"],
            "vnfcState": "STARTED",
        }
        for entry in info["vnfcResourceInfo"]
    ]
