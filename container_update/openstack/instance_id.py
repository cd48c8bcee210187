# SPDX-License-Identifier: Apache-2.0
"""The id of a VNF instance where the caller has none: its stack's."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from container_update.model.cancellation import CancelToken
from container_update.model.errors import PlanError, UpdateInProgressError
from container_update.model.operation import name_of
from container_update.openstack.client import Heat, reference
from container_update.openstack.hold import Clock
from container_update.openstack.journal import StackJournal, UnsignedError
from container_update.openstack.record import StackRecord

LOG = logging.getLogger(__name__)


def instance_id_of(service: Heat, stack: str) -> str | None:
    """Return the id under which the changes of a stack's VNF are journalled.

    It is the stack's id, unless a change of this stack is under way: Blue-Green gives the VNF
    another stack, and the one that it began with may be gone.

    :param stack: the stack, by name, id or ``name/id``.
    :raises PlanError: there is no such stack, and no change of it is under way.
    """
    current = service.stack(stack)
    known_as = reference(current) if current else stack
    for record in _under_way(service):
        if record.concerns(known_as):
            return record.instance_id
    if current is None:
        raise PlanError(f"there is no stack {stack}: name the VNF's stack by its name or id")
    return str(current["id"])


def _under_way(service: Heat) -> Iterator[StackRecord]:
    """Yield the record of every change in the project whose instance has a plain id."""
    prefix = name_of(None)
    names = {str(stack["stack_name"]).partition(".")[0] for stack in service.stacks()}
    for name in sorted(names):
        if name != prefix and not name.startswith(f"{prefix}-"):
            continue
        instance_id = name[len(prefix) + 1 :] or None
        journal = StackJournal(service, instance_id, "", 0.0, Clock(), CancelToken())
        try:
            record = journal.read()
        except (UpdateInProgressError, UnsignedError) as error:
            LOG.info("stack %s is the journal of another program or host: %s", name, error)
            continue
        if record is not None:
            yield record
