# SPDX-License-Identifier: Apache-2.0
"""What a VNF instance consists of in its VIM right now: VDUs, their workloads, their VNFCs.

It is asked for again and again while somebody looks: few requests, a short time limit, and what the
packages say is read once.
"""

from __future__ import annotations

from contextlib import closing

from container_update.drivers.vim import connect_to
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.vnfm import vim_clients, vims
from container_update.vnfm.lcm.live import instance as live_instance
from container_update.vnfm.lcm.live import pods as live_pods
from container_update.vnfm.lcm.live.instance import LiveInstance
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance


def resources_of(service: ServiceContext, instance: Instance | str) -> Json:
    """Return the live tree of an instance; without VDUs unless it is instantiated.

    :param instance: its row or its id.
    :raises ProblemError: 404: there is none; 422: a package or the VIM's description is wrong;
        502: the VIM does not answer, or refuses.
    """
    with vim_clients.answered(service):
        live = live_instance.read(service, instance)
        if not live.record.instantiated:
            return {"vimType": None, "namespace": None, "vdus": []}
        options = vim_clients.impatient(service.options)
        kind = vims.kind_of(live.connection)
        return (_in_openstack if kind == vims.OPENSTACK else _in_kubernetes)(live, options)


def _in_kubernetes(live: LiveInstance, options: Options) -> Json:
    with closing(connect_to(live.connection, options)) as cluster:
        vdus = live_pods.vdus_of(live, cluster, options)
    return {"vimType": vims.KUBERNETES, "namespace": live.record.namespace, "vdus": vdus}


def _in_openstack(live: LiveInstance, options: Options) -> Json:
    from container_update.vnfm.lcm.live import servers as live_servers  # noqa: PLC0415, an extra

    with vim_clients.heat(live.connection, options) as heat:
        stack, vdus = live_servers.vdus_of(live, heat, options)
    return {"vimType": vims.OPENSTACK, "namespace": None, "stack": stack, "vdus": vdus}
