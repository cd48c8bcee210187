"""What an update costs in requests, however many objects do not change."""

from __future__ import annotations

import pytest

from container_update.cluster.client import connect
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.manifests import ENV, config_map, workload

CHANGED = 4


@pytest.mark.parametrize("bystanders", [0, 30])
def test_requests_grow_with_the_changed_objects_not_with_all_objects(
    cnf: Cnf, kubeconfig: str, bystanders: int
) -> None:
    """4 kinds listed, 3 of them watched; a write for each changed object; the rights checked
    for; the journal read, looked for parts, written in two steps, watched and deleted; the lease
    acquired, confirmed and released; the history listed and written; an Event for each restart;
    no more."""
    files = {"cm": config_map(setting="old")}
    new = {"cm": config_map(setting="new")}
    for number in range(CHANGED):
        files[f"d{number}"] = workload("Deployment", f"d{number}", container=ENV)
        new[f"d{number}"] = workload("Deployment", f"d{number}", container=ENV, image=IMAGES[1])
    for number in range(bystanders):
        files[f"b{number}"] = workload("Deployment", f"b{number}")
        new[f"b{number}"] = files[f"b{number}"]
    cnf.instantiate(**files)
    with connect(kubeconfig, options=cnf.options) as counted:
        cnf.cluster = counted
        outcome = cnf.update(new)
    lists, watches, writes, rights, journal, lease = 4, 3, 1 + CHANGED, 1, 6, 3
    history, events = 2, CHANGED
    assert (
        outcome.requests == lists + watches + writes + rights + journal + lease + history + events
    )


def test_an_update_with_nothing_to_do_only_reads(cnf: Cnf, kubeconfig: str) -> None:
    files = {"cm": config_map(setting="old"), "w": workload("Deployment", container=ENV)}
    cnf.instantiate(**files)
    with connect(kubeconfig, options=cnf.options) as counted:
        cnf.cluster = counted
        outcome = cnf.update(files)
    lists, journal, lease = 4, 1, 1
    assert outcome.requests == lists + journal + lease
