"""INSTANTIATE and TERMINATE: create what the package describes, delete what bears the label."""

from __future__ import annotations

from dataclasses import replace

from container_update.instantiate import described_by, instantiate
from container_update.model import Cluster, ObjectKey
from container_update.terminate import terminate
from container_update.vnfm.lcm import drivers, records
from container_update.vnfm.lcm.work import DEF_FILES, Record, Work


def do_instantiate(work: Work) -> Record:
    """Create every object of the def-files and wait until the workloads are Ready."""
    work = _in_its_vim(work)
    chosen = drivers.of_package(work, work.record.vnfd_id, work.request.get("flavourId"))
    work = replace(work, record=chosen.call("instantiate_start", work.record))
    namespace = _namespace(work)
    with work.cluster() as cluster:
        created = instantiate(
            str(work.package(work.record.vnfd_id)),
            cluster,
            def_files=_def_files(work),
            namespace=namespace,
            one_namespace=True,
            instance_id=work.instance_id,
            options=work.core.options,
            created=lambda key: work.steps.tell(str(key), "create", "done"),
        )
        record = records.instantiated(work, created, cluster, namespace)
    return chosen.call("instantiate_end", record)


def undo_instantiate(work: Work) -> Record:
    """Delete what was created so far."""
    work, before = _in_its_vim(work), work.record
    with work.cluster() as cluster:
        folder = str(work.package(before.vnfd_id))
        _delete(work, cluster, folder, _def_files(work), _namespace(work))
    return before


def _in_its_vim(work: Work) -> Work:
    """The same work, in the VIM that the request names."""
    given = work.request.get("vimConnectionInfo")
    return replace(work, record=replace(work.record, vims=given)) if given else work


def do_terminate(work: Work) -> Record:
    """Delete what bears the instance's label, and wait until it is gone."""
    record = work.record
    chosen = drivers.of_package(work, record.vnfd_id, record.flavour_id)
    record = chosen.call("terminate_start", record)
    with work.cluster() as cluster:
        folder = str(work.package(record.vnfd_id))
        _delete(work, cluster, folder, record.def_files, record.namespace)
    record = chosen.call("terminate_end", record)
    body = {name: value for name, value in record.body.items() if name != "instantiatedVnfInfo"}
    return replace(record, instantiated=False, body=body, vims=None)


def _delete(
    work: Work, cluster: Cluster, folder: str, def_files: tuple[str, ...], namespace: str
) -> None:
    options = work.core.options
    described = described_by(folder, def_files, namespace, one_namespace=True, options=options)
    keys: list[ObjectKey] = [manifest.key for manifest in described]
    for key in terminate(keys, cluster, work.instance_id, options):
        work.steps.tell(str(key), "delete", "done")


def _namespace(work: Work) -> str:
    params = work.request.get("additionalParams") or {}
    return str(params.get("namespace") or "default")


def _def_files(work: Work) -> tuple[str, ...]:
    params = work.request.get("additionalParams") or {}
    return tuple(params.get(DEF_FILES) or ())
