"""The VNFM that the v1 driver runs in: Tacker, or another one that the context names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from container_update.model.outcome import Outcome, Vnfc
    from container_update.model.requests import UpdateRequest

ATTRIBUTE = "container_update_host"
"""The attribute of the context for another host than Tacker."""


class Host(Protocol):
    """What the driver needs of the VNFM."""

    def package_path(self, vnfd_id: str) -> str:
        """Return the folder of the package with this VNFD."""

    def update(self, request: UpdateRequest, vnf_instance: Any) -> Outcome:
        """Run the update in the cluster of the instance's VIM, with the operator's options."""

    def vnfc_record(self, vnfc_id: str, vnfc: Vnfc, metadata: Mapping[str, str]) -> Any:
        """Return a new VnfcResourceInfo."""


def host_of(context: Any) -> Host:
    """Return the host that the context names, else Tacker."""
    host: Host = getattr(context, ATTRIBUTE, None) or Tacker(context)
    return host


class Tacker:
    """tacker-conductor, in whose process the driver runs."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def package_path(self, vnfd_id: str) -> str:
        """See Host."""
        from tacker.vnflcm import utils  # noqa: PLC0415 (only there inside Tacker)

        return str(utils.get_vnf_package_path(self._context, vnfd_id))

    def update(self, request: UpdateRequest, vnf_instance: Any) -> Outcome:
        """See Host; the options are those of Tacker's configuration."""
        from oslo_config import cfg  # noqa: PLC0415 (with Tacker's own values in it)
        from tacker.vnflcm import utils  # noqa: PLC0415 (only there inside Tacker)

        from container_update.drivers import vim  # noqa: PLC0415
        from container_update.model.options import Options  # noqa: PLC0415 (not for idle calls)
        from container_update.operations.update import update  # noqa: PLC0415 (heavy)

        access = utils.get_vim(self._context, vnf_instance.vim_connection_info)["access_info"]
        options = Options.from_conf(cfg.CONF)
        cluster = vim.connect(access["auth_url"], access, access.get("ssl_ca_cert"), options)
        with closing(cluster):
            return update(request, cluster, options)

    def vnfc_record(self, vnfc_id: str, vnfc: Vnfc, metadata: Mapping[str, str]) -> Any:
        """See Host."""
        from tacker import objects  # noqa: PLC0415 (only there inside Tacker)

        return objects.VnfcResourceInfo(
            id=vnfc_id,
            vdu_id=vnfc.vdu_id,
            compute_resource=objects.ResourceHandle(
                resource_id=vnfc.pod_name, vim_level_resource_type=vnfc.workload_kind
            ),
            metadata=dict(metadata),
        )
