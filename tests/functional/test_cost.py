# SPDX-License-Identifier: Apache-2.0
"""What an update costs in requests, however many objects do not change."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn, TypeVar

import pytest

from container_update import (
    CancelToken,
    ClusterError,
    Options,
    Outcome,
    PackageError,
    StepResult,
    UpdateInterruptedError,
    change_package,
    connect,
    install,
    plan_update,
    resume,
    rollback,
    update,
)
from tests.functional.cnf import IMAGES, INSTANCE, Cnf
from tests.functional.conftest import until
from tests.functional.counted import Counted
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.upgrade_types import ROLLING
from tests.internals.core import ObjectKey, StepState, archive, guide_request, informer, main
from tests.internals.core import update as updating
from tests.internals.service import vdus_of

T = TypeVar("T")

CHANGED = 4
CROWD = 2
LONG_LEASE = 600.0


@pytest.mark.parametrize("bystanders", [0, 30])
def test_requests_grow_with_the_changed_objects_not_with_all_objects(
    cnf: Cnf, kubeconfig: str, bystanders: int
) -> None:
    """4 kinds listed, 3 of them watched; a write for each changed object; the rights checked
    for; the journal read, written in two steps, watched and deleted; the lease acquired, confirmed
    and released; the history listed and written; no more."""
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
    lists, watches, writes, rights, journal, lease = 4, 3, 1 + CHANGED, 1, 5, 3
    history = 2
    assert outcome.requests == lists + watches + writes + rights + journal + lease + history


def test_an_update_of_the_guides_sample_sends_29_requests(cnf: Cnf, kubeconfig: str) -> None:
    sample = guide_request("v1")
    request = replace(sample, namespace=cnf.namespace, instance_id=INSTANCE)
    where = {"namespace": cnf.namespace, "instance_id": INSTANCE}
    options = replace(cnf.options, lease_seconds=LONG_LEASE)  # which needs no renewal meanwhile
    install(sample.old, cnf.admin, options=options, def_files=sample.def_files, **where)
    with connect(kubeconfig, options=options) as counted:
        outcome = update(request, counted, options)
    lists, watches, writes, rights, journal, lease, history = 6, 4, 8, 1, 5, 3, 2
    assert outcome.requests == lists + watches + writes + rights + journal + lease + history


def test_an_update_with_nothing_to_do_only_reads(cnf: Cnf, kubeconfig: str) -> None:
    files = {"cm": config_map(setting="old"), "w": workload("Deployment", container=ENV)}
    cnf.instantiate(**files)
    with connect(kubeconfig, options=cnf.options) as counted:
        cnf.cluster = counted
        outcome = cnf.update(files)
    lists, journal, lease, rights = 4, 1, 1, 1
    assert outcome.requests == lists + journal + lease + rights


def test_packages_are_read_beside_the_cluster(cnf: Cnf, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifests while the journal is, and the VNFD while the objects are."""
    files = {"cm": config_map(setting="old")}
    cnf.instantiate(**files)
    read = {(updating, "_match"): "Secret", (updating.csar.Csar, "vdus"): "ConfigMap"}
    counted = Counted(cnf.cluster)
    for (owner, name), kind in read.items():
        held = partial(_once, lambda kind=kind: counted.lists[kind] > 0, getattr(owner, name))
        monkeypatch.setattr(owner, name, lambda *given, held=held: held(*given))
    outcome = update(cnf.request({"cm": config_map(setting="new")}), counted, cnf.options)
    assert [result.state for result in outcome.results] == [StepState.DONE]


def test_nothing_is_resumed_where_the_new_vnfd_is_wrong(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    cnf.instantiate(cm=config_map(setting="old"), w=workload("Deployment", container=ENV))
    new = {"cm": config_map(setting="new"), "w": workload("Deployment", container=ENV)}
    cancel = CancelToken()
    with pytest.raises(UpdateInterruptedError):
        update(cnf.request(new), cnf.cluster, cnf.options, cancel, partial(_interrupt, cancel))

    def vdus(*_: object) -> NoReturn:
        raise PackageError("this VNFD is wrong")

    monkeypatch.setattr(updating.csar.Csar, "vdus", vdus)
    counted = Counted(cnf.cluster)
    with pytest.raises(PackageError, match="this VNFD is wrong"):
        update(cnf.request(new), counted, cnf.options)
    assert set(counted.lists) == {"Secret"}
    monkeypatch.undo()
    assert cnf.resume() is not None


@pytest.mark.parametrize("run", [update, plan_update])
def test_a_wrong_vnfd_is_reported_before_a_cluster_that_cannot_be_read(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch, run: Callable[..., object]
) -> None:
    cnf.instantiate(cm=config_map(setting="old"))
    request = cnf.request({"cm": config_map(setting="new")})

    def vdus(*_: object) -> NoReturn:
        raise PackageError("this VNFD is wrong")

    def refuse(*_: object) -> NoReturn:
        raise ClusterError("list ConfigMaps: refused", status=403)

    monkeypatch.setattr(updating.csar.Csar, "vdus", vdus)
    monkeypatch.setattr(cnf.cluster, "list", refuse)
    with pytest.raises(PackageError, match="this VNFD is wrong"):
        run(request, cnf.cluster, cnf.options)


def _once(condition: Callable[[], bool], function: Callable[..., T], *arguments: Any) -> T:
    """Call a function once a condition is true."""
    until(condition)
    return function(*arguments)


@pytest.mark.parametrize("names_a_pod", [False, True])
def test_objects_of_others_are_not_kept_and_their_pods_not_sent_where_labels_can_say_so(
    cnf: Cnf, names_a_pod: bool
) -> None:
    files = {"w": workload("Deployment", container=ENV), "cm": config_map(setting="old")}
    new = {**files, "w": workload("Deployment", container=ENV, image=IMAGES[1])}
    if names_a_pod:
        files["p"] = new["p"] = workload("Pod", "p")
    cnf.instantiate(**files)
    own = dict.fromkeys(("Deployment", "ReplicaSet", "ConfigMap"), 1)
    own["Pod"] = len(cnf.pods("Deployment", "w")) + names_a_pod
    others = {f"other{number}": workload("Deployment", f"other{number}") for number in range(3)}
    cnf.instantiate(**others)
    counted = Counted(cnf.cluster)
    cnf.old = cnf.package({f"{name}.yaml": text for name, text in files.items()})
    update(cnf.request(new), counted, cnf.options)
    assert {kind: counted.kept[kind] for kind in own} == own
    assert (counted.sent["Pod"] > own["Pod"]) is names_a_pod
    assert cnf.pods("Deployment", "w").keys()


def test_a_crowd_of_pods_of_others_is_not_read_to_its_end(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are named and those of the workloads are listed instead, and restart as always."""
    monkeypatch.setattr(informer, "_MOST_DROPPED", CROWD)
    files = {"w": workload("Deployment", container=ENV), "p": workload("Pod", "p", container=ENV)}
    files["cm"] = config_map(setting="old")
    cnf.instantiate(**files)
    others = {f"other{number}": workload("Pod", f"other{number}") for number in range(5 * CROWD)}
    cnf.instantiate(**others)
    counted = Counted(cnf.cluster)
    cnf.old = cnf.package({f"{name}.yaml": text for name, text in files.items()})
    new = cnf.request({**files, "cm": config_map(setting="new")})
    outcome = update(new, counted, replace(cnf.options, page_size=CROWD))
    assert {key.name for key in outcome.restarted} == {"w", "p"}
    own = 1 + len(cnf.pods("Deployment", "w"))
    assert counted.kept["Pod"] == own
    assert counted.sent["Pod"] <= CROWD + 1 + 2 * own


def test_the_live_pods_of_an_instance_are_read_without_those_of_others(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(informer, "_MOST_DROPPED", CROWD)
    others = {f"other{number}": workload("Deployment", f"other{number}") for number in range(3)}
    folder = cnf.package({f"{name}.yaml": text for name, text in others.items()})
    install(folder, cnf.admin, namespace=cnf.namespace, options=cnf.options)
    cnf.instantiate(w=workload("Deployment"))
    kinds = [ObjectKey("apps", "Deployment", cnf.namespace, "w"), ObjectKey("", "Pod", "", "w")]
    live: Any = SimpleNamespace(
        id=INSTANCE,
        record=SimpleNamespace(namespace=cnf.namespace, def_files=()),
        is_settled=True,
        vdus=lambda _: (("VDU1", "w"),),
        workloads=lambda _: [SimpleNamespace(key=key) for key in kinds],
    )
    counted: Any = Counted(cnf.cluster)
    ((vdu,), pods) = vdus_of(live, counted, cnf.options), cnf.pods("Deployment", "w")
    assert {vnfc["name"] for vnfc in vdu["workloads"][0]["vnfcs"]} == pods.keys()
    assert counted.kept == {"Deployment": 1, "ReplicaSet": 1, "Pod": len(pods)}
    assert counted.sent["Deployment"] == 1
    assert counted.sent["Pod"] <= CROWD + 1 + len(pods)


@pytest.mark.parametrize("end", [resume, rollback])
def test_who_ends_an_interrupted_update_does_not_keep_objects_of_others(
    cnf: Cnf, end: Callable[..., Outcome | None]
) -> None:
    files = {"w": workload("Deployment", container=ENV), "cm": config_map(setting="old")}
    cnf.instantiate(**files)
    cnf.instantiate(
        **{f"other{number}": workload("Deployment", f"other{number}") for number in "ab"}
    )
    cancel = CancelToken()
    cnf.old = cnf.package({f"{name}.yaml": text for name, text in files.items()})
    request = cnf.request({**files, "cm": config_map(setting="new")})
    with pytest.raises(UpdateInterruptedError):
        update(request, cnf.cluster, cnf.options, cancel, partial(_interrupt, cancel))
    counted = Counted(cnf.cluster)
    outcome = end(counted, cnf.options, **cnf.where)
    assert outcome is not None
    assert {result.state for result in outcome.results} <= {StepState.DONE, StepState.UNDONE}
    own = len(cnf.pods("Deployment", "w"))
    assert (counted.kept["Deployment"], counted.kept["ReplicaSet"]) == (1, 1)
    assert counted.kept["Pod"] == counted.sent["Pod"] == own


def _interrupt(cancel: CancelToken, event: object) -> None:
    if isinstance(event, StepResult):
        cancel.request("by a test", keep_journal=True)


@pytest.mark.parametrize(
    "verb", ["update", "Blue-Green", "RollingUpdate", "its command", "its command, planned"]
)
def test_each_package_is_opened_once(
    cnf: Cnf, admin_kubeconfig: str, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    cnf.instantiate(cm=config_map(setting="old"), w=workload("Deployment", container=ENV))
    request = cnf.request(
        {"cm": config_map(setting="new"), "w": workload("Deployment", container=ENV)}
    )
    opened: list[str] = []
    whole = archive.open_archive

    def counted(source: str, options: Options) -> archive.Archive:
        opened.append(source)
        return whole(source, options)

    monkeypatch.setattr(archive, "open_archive", counted)
    if verb == "update":
        update(request, cnf.cluster, cnf.options)
    elif verb.startswith("its command"):
        place = ["--kubeconfig", admin_kubeconfig, "-n", cnf.namespace, "--instance-id", INSTANCE]
        packages = [request.old, request.new, "--upgrade-type", ROLLING]
        planned = ["--plan"] if "planned" in verb else []
        out = io.StringIO()
        assert main(["change", *packages, *place, *planned], out) == (3 if planned else 0)
    else:
        change = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": verb}}
        packages = {"old": request.old, "new": request.new}
        change_package(change, cnf.admin, cnf.options, **packages, **cnf.where)
    assert sorted(opened) == sorted((request.old, request.new))
