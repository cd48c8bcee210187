"""Goes on with whatever an instance's journal holds: an update, or a change of the package."""

from __future__ import annotations

from dataclasses import replace

from container_update.cluster.execution.operation import Instance
from container_update.cluster.journal import Record
from container_update.model.cancellation import Stop
from container_update.model.outcome import Outcome
from container_update.operations.change_package import coordination_of, resume_change
from container_update.operations.change_request import ChangeRequest
from container_update.operations.strategies.kubernetes import KubernetesSite
from container_update.operations.strategy import ChangeJob


def resume(instance: Instance, site: KubernetesSite, stop: Stop | None = None) -> Outcome | None:
    """Finish what was cut short; None where there is nothing.

    A change whose coordination scripts have not all been run needs its new package in the place
    where it was: the journal has its path.

    :param site: where the instance runs; its def-files are taken from the journal.
    :raises PackageError: the package is not there; nothing was done.
    :raises UpdateFailedError: it could not be finished and was undone.
    """
    stop = Stop() if stop is None else stop
    record = instance.journal.read()
    if record is None or not record.context:
        return instance.recover(stop=stop)
    job = _job(instance, record, site.vim_type)
    site = replace(
        site,
        def_files=tuple(record.context["defFiles"]),
        one_namespace=record.context["oneNamespace"],
    )
    return resume_change(job, site, stop, instance.progress, coordination_of(job, site, stop))


def _job(instance: Instance, record: Record, vim_type: str) -> ChangeJob:
    return ChangeJob(
        request=ChangeRequest.of(record.context["request"], vim_type),
        old=record.context["old"],
        new=record.context["new"],
        instance_id=record.instance_id,
        options=instance.options,
        leave_failed=instance.leave_failed,
        instance=record.context["instance"],
    )
