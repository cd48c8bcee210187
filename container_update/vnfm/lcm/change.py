"""CHANGE_VNFPKG: Blue-Green or rolling, by the strategies of ``container_update.operations``.

A failure is left as it is: the occurrence is FAILED_TEMP then, and a retry goes on with it, a
rollback undoes it, both by the journal in the VIM.
"""

from __future__ import annotations

from dataclasses import replace

from container_update.drivers import v2_memory
from container_update.model.errors import NoWayBackError
from container_update.operations.change_package import change_vnfpkg, coordination_of, plan_change
from container_update.operations.change_request import ChangeRequest
from container_update.operations.strategy import Order
from container_update.vnfm import instances, packages
from container_update.vnfm.lcm import drivers, vim
from container_update.vnfm.lcm.operation_context import Record, Work, merged


def do_change(work: Work) -> Record:
    """Change the package; all of the new one takes effect."""
    before = work.record
    chosen = drivers.of_package(work, before.vnfd_id, before.flavour_id)
    work = replace(work, record=chosen.call("change_current_package_start", before))
    with vim.connected(work) as place:
        site = place.site()
        order = _order(work, site.vim_type)
        scripts = coordination_of(order, site, work.stop)
        try:
            changed = change_vnfpkg(order, site, work.stop, work.steps, scripts)
        finally:
            work.steps.tell_scripts(scripts.reports)
        body = changed.records.applied({**work.record.body, "vnfdId": before.vnfd_id})
        vnfd_id = str(body.pop("vnfdId"))
        given = {
            "extensions": order.request.extensions,
            "vnfConfigurableProperties": order.request.vnf_configurable_properties,
        }
        body |= {name: merged(body.get(name), value) for name, value in given.items() if value}
        with work.core.database.reading() as session:
            body |= instances.product_of(packages.of_vnfd(session, vnfd_id))
        record = place.changed(replace(work.record, vnfd_id=vnfd_id, body=body), changed)
    return chosen.call("change_current_package_end", record)


def undo_change(work: Work) -> Record:
    """Undo by the journal what the change left in the VIM.

    :raises NoWayBackError: what is old is being deleted, or the change is complete and only its
        record is missing: it can only be finished.
    """
    record = work.record
    chosen = drivers.of_package(work, record.vnfd_id, record.flavour_id)
    record = chosen.call("change_current_package_rollback_start", record)
    with vim.connected(work) as place:
        order = _order(work, place.site().vim_type)
        undone = place.undo_change(order)
        was_planned = v2_memory.OURS in work.kept  # else nothing was written
        if undone is None and was_planned and plan_change(order, place.site()).is_empty:
            raise NoWayBackError(
                "the change was complete when the service ended, only its record is missing: it "
                "cannot be undone any more"
            )
        record = place.as_it_is(record)
    return chosen.call("change_current_package_rollback_end", record)


def _order(work: Work, vim_type: str) -> Order:
    record, request = work.record, ChangeRequest.of(work.request, vim_type)
    return Order(
        request=request,
        old=str(work.package(record.vnfd_id)),
        new=str(work.package(request.vnfd_id)),
        instance_id=work.instance_id,
        options=work.core.options,
        leave_failed=True,
        instance={"id": work.instance_id, "vnfdId": record.vnfd_id, **record.body},
    )
