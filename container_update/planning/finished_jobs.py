# SPDX-License-Identifier: Apache-2.0
"""Jobs that have run and are gone since, as their ``ttlSecondsAfterFinished`` says: no plan creates
one again, unless it would do other work. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable

from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.planning.comparison import meaning
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.registry import kind_of

HAS_RUN = (
    "has run, and its ttlSecondsAfterFinished removed it: not run again, because its work is the "
    "same as before"
)


def gone_jobs(manifests: Iterable[Manifest], live: Container[ObjectKey]) -> frozenset[ObjectKey]:
    """Return those that are not in the cluster and that the server deletes by itself."""
    return frozenset(m.key for m in manifests if m.key not in live and _removes_itself(m))


def _removes_itself(manifest: Manifest) -> bool:
    kind = kind_of(manifest.key)
    return kind is not None and kind.removes_itself(manifest.body)


def has_run(new: Manifest, recorded: Manifest | None) -> bool:
    """Tell whether the work of a gone object is done, as that of the *recorded* one was."""
    kind = kind_of(new.key)
    if recorded is None or kind is None or not _removes_itself(recorded):
        return False
    before, after = (_work(kind, body, new.body) for body in (recorded.body, new.body))
    return meaning.is_same(before, after)


def _work(kind: WorkloadKind, body: Json, manifest: Json) -> Json:
    """Return what a Job does: no labels of its pods, as of the version of a chart."""
    fixed = kind.fixed_part(body, manifest)
    return {**fixed, "template": (fixed["template"] or {}).get("spec")}
