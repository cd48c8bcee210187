# SPDX-License-Identifier: Apache-2.0
"""Tacker, in whose conductor the v1 driver runs, as far as the driver needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from container_update.drivers import vim

if TYPE_CHECKING:
    from container_update.drivers.change_by_modify import Modification
    from container_update.model.objects import Json, Manifest
    from container_update.model.options import Options
    from container_update.model.outcome import Outcome, Vnfc
    from container_update.records.vnf_records import Records


class Tacker:
    """tacker-conductor, in whose process the driver runs."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def package_path(self, vnfd_id: str) -> str:
        """Return the folder of the package with this VNFD."""
        from tacker.vnflcm import utils  # noqa: PLC0415 (only there inside Tacker)

        return str(utils.get_vnf_package_path(self._context, vnfd_id))

    def take_back_what_follows(self) -> None:
        """Have the one statement taken back that Tacker runs after a failed modification.

        It writes the VNF's state ERROR in the session of the request and never ends that
        transaction: the row stays locked, so that the next operation of the VNF waits for it in
        vain. Nor would ERROR be true, or let anything but a modification through. Source: Tacker
        16, ``revert_update_lcm`` of its conductor and ``_vnf_update`` of its ``objects.vnf``.
        """
        from sqlalchemy import event  # noqa: PLC0415 (only there inside Tacker)

        def take_back(statement: Any) -> None:
            statement.session.rollback()

        event.listen(self._context.session, "after_bulk_update", take_back)

    def carry_out(self, request: Modification, vnf_instance: Any) -> tuple[Outcome, Records]:
        """Do it in the cluster of the instance's VIM, with the options of Tacker's configuration;
        return its outcome, and what to record."""
        from container_update.drivers import change_by_modify  # noqa: PLC0415 (not for idle calls)

        connection, options = self._connection(vnf_instance), self._options()
        resources = vnf_instance.instantiated_vnf_info.vnfc_resource_info
        instance = {
            "id": vnf_instance.id,
            "vnfdId": vnf_instance.vnfd_id,
            "instantiatedVnfInfo": {"vnfcResourceInfo": [vnfc_entry(each) for each in resources]},
        }
        with closing(vim.connect_to(connection, options)) as cluster:
            return change_by_modify.carry_out(request, cluster, options, connection, instance)

    def _options(self) -> Options:
        from oslo_config import cfg  # noqa: PLC0415 (with Tacker's own values in it)

        from container_update.model.options import Options  # noqa: PLC0415 (not for idle calls)

        # there is no rollback in v1, and no call at whose end a history could go with the VNF
        return replace(Options.from_conf(cfg.CONF).for_vnfm(), history=0)

    def _connection(self, vnf_instance: Any) -> Json:
        """Return the instance's VIM as a VimConnectionInfo of SOL003."""
        from tacker.vnflcm import utils  # noqa: PLC0415 (only there inside Tacker)

        tacker_vim = utils.get_vim(self._context, vnf_instance.vim_connection_info)
        access = dict(tacker_vim["access_info"] or {})
        interface = {"endpoint": access.get("auth_url"), "ssl_ca_cert": access.get("ssl_ca_cert")}
        return {"vimType": "kubernetes", "interfaceInfo": interface, "accessInfo": access}

    def vnfc_record(self, vnfc_id: str, vnfc: Vnfc, metadata: Mapping[str, str]) -> Any:
        """Return a new VnfcResourceInfo."""
        from tacker import objects  # noqa: PLC0415 (only there inside Tacker)

        return objects.VnfcResourceInfo(
            id=vnfc_id,
            vdu_id=vnfc.vdu_id,
            compute_resource=objects.ResourceHandle(
                resource_id=vnfc.pod_name, vim_level_resource_type=vnfc.workload_kind
            ),
            metadata=dict(metadata),
        )

    def record_objects(self, vnf_instance: Any, manifests: Iterable[Manifest]) -> None:
        """Record what the instance's termination has to delete; what is gone may stay in the list,
        it does not mind."""
        from tacker import objects  # noqa: PLC0415 (only there inside Tacker)

        rows = objects.VnfResourceList.get_by_vnf_instance_id(self._context, vnf_instance.id)
        known = {(row.resource_type, row.resource_name) for row in rows}
        for manifest in manifests:
            kind = f"{manifest.body['apiVersion']},{manifest.key.kind}"
            if (kind, manifest.key.name) not in known:
                objects.VnfResource(
                    context=self._context,
                    vnf_instance_id=vnf_instance.id,
                    resource_name=manifest.key.name,
                    resource_type=kind,
                    resource_identifier="",
                    resource_status="",
                    tenant_id=vnf_instance.tenant_id,
                ).create()


def vnfc_entry(record: Any) -> Json:
    """Return a VnfcResourceInfo as the v2 API has it."""
    compute = record.compute_resource
    return {
        "id": record.id,
        "vduId": record.vdu_id,
        "computeResource": {
            "resourceId": compute.resource_id,
            "vimLevelResourceType": compute.vim_level_resource_type,
        },
    }
