"""INSTANTIATE and TERMINATE: make what the package describes, and delete it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from container_update.vnfm.lcm import drivers, vim
from container_update.vnfm.lcm.operation_context import Record, Work


def do_instantiate(work: Work) -> Record:
    """Make the VNF and wait until it runs."""
    work = _in_its_vim(work)
    chosen = drivers.of_package(work, work.record.vnfd_id, work.request.get("flavourId"))
    work = replace(work, record=chosen.call("instantiate_start", work.record))
    with vim.connected(work) as place:
        record = place.instantiate()
    return chosen.call("instantiate_end", record)


def undo_instantiate(work: Work) -> Record:
    """Delete what was made so far."""
    with vim.connected(_in_its_vim(work)) as place:
        place.undo_instantiate()
    return work.record


def _in_its_vim(work: Work) -> Work:
    """The same work, in the VIM that the request names, or in the default one: it stays there when
    another becomes the default."""
    vims: Any = work.request.get("vimConnectionInfo")
    if not vims:
        entry = {name: work.connection[name] for name in ("vimId", "vimType")}
        vims = [{"id": "default", **entry}] if work.api == "v1" else {"default": entry}
    return replace(work, record=replace(work.record, vims=vims))


def do_terminate(work: Work) -> Record:
    """Delete the VNF, and wait until it is gone."""
    record = work.record
    chosen = drivers.of_package(work, record.vnfd_id, record.flavour_id)
    record = chosen.call("terminate_start", record)
    with vim.connected(work) as place:
        place.terminate()
    record = chosen.call("terminate_end", record)
    body = {name: value for name, value in record.body.items() if name != "instantiatedVnfInfo"}
    return replace(record, instantiated=False, body=body, vims=None)
