# SPDX-License-Identifier: Apache-2.0
"""Somebody who may write Secrets in the VNF's namespace forges journals and histories while Tacker
has its v1 and v2 drivers modify, change, heal, terminate and roll back."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from container_update import (
    CancelToken,
    ContainerUpdateError,
    StepResult,
    UpdateInterruptedError,
    update,
)
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional import tacker_host
from tests.functional.cnf import Cnf
from tests.functional.tacker_host import Tacker
from tests.functional.test_driver_rollback import SETTINGS, configured, revisions
from tests.functional.test_hostile_neighbour import (
    FORGED,
    KEY,
    NOTHING_LEFT,
    create_others,
    journal_of,
    key,
    step,
    written,
)
from tests.internals.core import (
    Event,
    Json,
    ObjectKey,
    pack,
    unpack,
    v1_host,
    v1_records,
    v2_process,
    v2_records,
)
from tests.vnfm import vnfs

KEYS = {"without a key": "no_journal_key = true", "with a key": f"journal_key = {KEY}"}


@pytest.fixture(params=KEYS)
def tacker(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tacker]:
    monkeypatch.setattr(v2_process, "_start_log", lambda: None)
    configured(tmp_path, monkeypatch, KEYS[request.param])
    with EmbeddedCluster() as embedded, tacker_host.running(embedded, tmp_path) as tacker:
        tacker.instance["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"].pop()
        for name in ("package_path", "_connection", "_options", "take_back_what_follows"):
            monkeypatch.setattr(v1_host.Tacker, name, getattr(V1(tacker), name.strip("_")))
        create_others(site_of(tacker))
        yield tacker


class V1:
    """What a v1 Tacker, which has the same instance, says to its driver."""

    def __init__(self, tacker: Tacker) -> None:
        self.tacker = tacker

    def package_path(self, vnfd_id: str) -> str:
        (version,) = (name for name, each in self.tacker.vnfd_ids.items() if each == vnfd_id)
        return str(self.tacker.packages[version])

    def connection(self, _: Any) -> Json:
        (vim,) = self.tacker.instance["vimConnectionInfo"].values()
        return cast("Json", vim)

    def options(self) -> Any:
        with v2_records.cluster_of(self.tacker.instance) as (_, options):
            return replace(options, history=0)

    def take_back_what_follows(self) -> None:
        """There is no database."""


def modify_v1(tacker: Tacker, **metadata: str) -> str:
    files = {"lcm-kubernetes-def-files": list(vnfs.DEF_FILES)}
    info = SimpleNamespace(additional_params=files, vnfc_resource_info=[])
    instance = SimpleNamespace(
        id=tacker.instance["id"],
        vnfd_id=tacker.vnfd_ids["2.0"],
        vnf_metadata={"namespace": "default", **metadata},
        instantiated_vnf_info=info,
        save=lambda: None,
    )
    old = str(tacker.packages["1.0"])
    try:
        v1_records.run("modify_information_end", None, instance, old_vnf_package_path=old)
    except ContainerUpdateError as error:
        return str(error)
    return ""


def modify(tacker: Tacker, **metadata: Any) -> str:
    request = {"vnfdId": tacker.vnfd_ids["2.0"], "metadata": metadata}
    new = str(tacker.packages["2.0"])
    return tacker.run("modify_information_end", request, "1.0", new_csar_dir=new)


def roll_back(tacker: Tacker) -> str:
    request = {"vnfdId": tacker.vnfd_ids["2.0"]}
    return tacker.run("modify_information_rollback_start", request, "1.0")


UPGRADE_TYPES = ("RollingUpdate", "Blue-Green", "Canary")
VERBS: dict[str, Callable[[Tacker], str]] = {
    "modify": modify,
    "modify in v1": modify_v1,
    **{f"{t} by modify": lambda tacker, t=t: modify(tacker, upgrade_type=t) for t in UPGRADE_TYPES},  # type: ignore[misc]
    "Blue-Green in v1": lambda tacker: modify_v1(tacker, upgrade_type="Blue-Green"),
    "change": lambda tacker: tacker.start(),
    "heal": lambda tacker: tacker.run("heal_start", {}, "1.0"),
    "instantiate": lambda tacker: tacker.run("instantiate_end", {}, "1.0"),
    "roll back": roll_back,
}


def site_of(tacker: Tacker) -> Cnf:
    where = {"namespace": "default", "instance_id": tacker.instance["id"]}
    site: Any = SimpleNamespace(namespace="default", admin=tacker.cluster, where=where)
    return cast("Cnf", site)


def interrupt(tacker: Tacker) -> None:
    """Begin the modification, and leave it after its first step."""
    cancel = CancelToken()

    def stop(event: Event) -> None:
        if isinstance(event, StepResult):
            cancel.request("by the test", keep_journal=True)

    old, new = (str(tacker.packages[version]) for version in ("1.0", "2.0"))
    with v2_records.cluster_of(tacker.instance) as (cluster, options):
        request = v2_records.request_of(tacker.instance, old, new)
        with pytest.raises(UpdateInterruptedError):
            update(request, cluster, options, cancel, stop)


def edit(site: Cnf, body: Json, part: str, value: Json) -> None:
    """Write other content into a Secret, without a signature."""
    live = site.admin.get(ObjectKey.of(body))
    assert live is not None
    data = {**live["data"], part: base64.b64encode(pack(value)).decode()}
    site.admin.replace({**live, "data": data})


def setting(tacker: Tacker) -> Any:
    live = tacker.cluster.get(SETTINGS)
    assert live is not None
    return live["data"]["level"]


def test_a_forged_journal_has_no_driver_write_what_is_not_the_vnfs(tacker: Tacker) -> None:
    site = site_of(tacker)
    interrupt(tacker)
    head = journal_of(site)
    honest = unpack(base64.b64decode(head["data"]["content"]))
    for what, (action, place) in FORGED.items():
        if what in NOTHING_LEFT:
            continue
        forged = step(site, action, place, tacker.cluster.get(key(site, place)))
        edit(site, head, "content", {**honest, "steps": [*honest["steps"], forged]})
        for name, verb in VERBS.items():
            assert verb(tacker), f"{name} goes on with {action} {place}"
            assert written(site) == [], name
    edit(site, head, "content", honest)
    assert setting(tacker) == "2.0"
    assert roll_back(tacker) == "", "the honest journal is undone"
    assert setting(tacker) == "1.0"


def test_a_forged_revision_has_no_driver_write_what_is_not_the_vnfs(tacker: Tacker) -> None:
    """Neither by its steps, nor by what it says that the instance runs from."""
    site = site_of(tacker)
    assert modify(tacker) == ""
    (body,) = revisions(tacker)
    honest = {
        name: unpack(base64.b64decode(body["data"][name])) for name in ("content", "instance")
    }
    for action, place in FORGED.values():
        if "ConfigMap" not in place:
            continue  # an update writes none
        live = tacker.cluster.get(key(site, place))
        forged = step(site, action, place, live)
        if action == "REPLACE":  # from what is live
            forged["content"] = {**forged["content"], "data": {"x": "as it was"}}
            forged |= {"type": "config", "removed": []}
        content = {**honest["content"], "steps": [*honest["content"]["steps"], forged]}
        first = honest["instance"]["manifests"][0]
        added = [key(site, place).as_dict(), *first[1:3], forged["content"] or forged["before"]]
        manifests = [*honest["instance"]["manifests"], added]
        edit(site, body, "content", content)
        edit(site, body, "instance", {**honest["instance"], "manifests": manifests})
        reason = roll_back(tacker)
        assert written(site) == []
        assert reason, f"it goes on with {action} {place}"
        assert setting(tacker) == "2.0"
    for part, value in honest.items():
        edit(site, body, part, value)
    assert roll_back(tacker) == "", "the honest revision is undone"
    assert setting(tacker) == "1.0"
    assert written(site) == []


@pytest.mark.parametrize("verb", ["terminate", "heal", "modify", "RollingUpdate by modify"])
def test_a_forged_record_has_no_driver_delete_what_is_elsewhere(tacker: Tacker, verb: str) -> None:
    site = site_of(tacker)
    assert modify(tacker) == ""
    (body,) = revisions(tacker)
    record = unpack(base64.b64decode(body["data"]["instance"]))
    for victim in (
        "/ConfigMap/NS-beside/theirs",
        "/ConfigMap/NS/neighbour",
        "/Namespace//NS-beside",
    ):
        named = key(site, victim)
        metadata = {"name": named.name, "namespace": named.namespace}
        what = {"apiVersion": "v1", "kind": named.kind, "metadata": metadata}
        record["manifests"].append([named.as_dict(), *record["manifests"][0][1:3], what])
    edit(site, body, "instance", record)
    if verb == "terminate":
        live = tacker.cluster.get(tacker_host.FRONT)
        assert live is not None  # an unfinished change has renamed it: the driver deletes it
        added = {"container-update/manifest-name": "front"}
        live["metadata"]["annotations"] = {**live["metadata"].get("annotations", {}), **added}
        tacker.cluster.replace(live)
        tacker.run("terminate_start", {"terminationType": "FORCEFUL"}, "2.0")
    else:
        VERBS[verb](tacker)
    assert written(site) == []
    beside = tacker.cluster.get(key(site, "/Namespace//NS-beside"))
    assert beside is not None
    assert "deletionTimestamp" not in beside["metadata"]
