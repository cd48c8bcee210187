"""Whether registered VIMs answer: they are asked whenever they are shown."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from container_update.model import context_threads
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Json, ObjectKey
from container_update.vnfm import vims
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Vim

LOG = logging.getLogger(__name__)

ACTIVE, ERROR = "ACTIVE", "ERROR"
_SECONDS = 3.0
"""Maximum time for an answer."""
_AT_ONCE = 8


def statuses(service: ServiceContext, registered: Sequence[Vim]) -> Mapping[str, str]:
    """Return ACTIVE for each VIM that answers with its credentials, else ERROR, by its id."""
    connections = {vim.id: vims.registered(service, vim) for vim in registered}
    with context_threads.pool(_AT_ONCE) as pool:
        found = pool.map(lambda connection: _status(service, connection), connections.values())
        return dict(zip(connections, found, strict=True))


def _status(service: ServiceContext, connection: Json) -> str:
    quick = replace(service.options, request_timeout=_SECONDS, retry_seconds=0)
    try:
        vims.require(vims.kind_of(connection))
        if vims.kind_of(connection) == vims.OPENSTACK:
            from container_update.vnfm.lcm.openstack import heat_of  # noqa: PLC0415, an extra

            with heat_of(connection, quick) as heat:
                heat.stacks()
        else:
            with closing(vims.cluster(quick, connection)) as cluster:
                cluster.get(ObjectKey("", "Namespace", "", "default"))
    except ContainerUpdateError as error:
        if getattr(error, "status", None) != 403:  # it answers, and not every account may do this
            LOG.info("VIM %s: %s", connection["vimId"], error)
            return ERROR
    return ACTIVE
