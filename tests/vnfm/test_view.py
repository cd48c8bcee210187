# SPDX-License-Identifier: Apache-2.0
"""What the page reads beside the resources of SOL003: events, past operations, drafts."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import requests
from anyio import CapacityLimiter, to_thread

from container_update import Options, connect, history
from tests.internals.core import ObjectKey
from tests.internals.service import events
from tests.vnfm import many, site
from tests.vnfm.site import SCENES, Site

GUIDE = SCENES["guide-v2"]


@pytest.fixture(scope="module")
def vnfm() -> Iterator[Site]:
    with site.running() as running:
        yield running


class Viewer:
    """A connection to the events, with what they told so far."""

    def __init__(self, answer: requests.Response) -> None:
        self._lines = answer.iter_lines(chunk_size=1, decode_unicode=True)
        self.known: dict[str, dict[str, Any]] = {}
        self.names: list[str] = []

    def until(self, section: str, condition: Any) -> Any:
        """Read events until a value of a section meets a condition; return it."""
        while True:
            for value in self.known.get(section, {}).values():
                if condition(value):
                    return value
            self.read()

    def read(self) -> None:
        """Take one event."""
        name = ""
        for line in self._lines:
            field, _, text = line.partition(": ")
            if field == "event":
                name = text
            elif field == "data":
                self._take(name, json.loads(text))
                return
        pytest.fail("the events ended")

    def _take(self, name: str, data: Any) -> None:
        self.names.append(name)
        if name == "hello":
            self.known["hello"] = {"": data}
            return
        values = self.known.setdefault(name, {})
        for removed in data["removed"]:
            del values[removed]
        values.update({value["id"]: value for value in data["changed"]})


@contextmanager
def watching(vnfm: Site, query: str = "", token: str = "") -> Iterator[Viewer]:
    headers = {"X-Auth-Token": token or vnfm.token}
    url = f"{vnfm.url}/view/events{query}"
    with requests.get(url, headers=headers, stream=True, timeout=60) as answer:
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Viewer(answer)


def test_a_viewer_sees_all_there_is_and_then_only_what_changes(vnfm: Site) -> None:
    with watching(vnfm) as viewer:
        viewer.until("packages", lambda package: package["onboardingState"] == "ONBOARDED")
        assert viewer.known["hello"][""] == {"user": "admin", "mayChange": True}
        packages = len(viewer.known["packages"])
        path = vnfm.create(GUIDE, "seen")
        viewer.until("instances", lambda instance: instance["name"] == "seen")
        assert viewer.names.count("hello") == 1
        vnfm.call("DELETE", path)
        while any(each["name"] == "seen" for each in viewer.known["instances"].values()):
            viewer.read()
        assert len(viewer.known["packages"]) == packages


def test_an_operation_is_seen_with_its_steps_until_its_end(vnfm: Site) -> None:
    path = vnfm.create(GUIDE, "followed")
    with watching(vnfm) as viewer:
        accepted = vnfm.call("POST", f"{path}/instantiate", vnfm.request(GUIDE, "instantiate"))
        id_ = accepted.headers["Location"].rpartition("/")[2]
        ended = viewer.until(
            "operations", lambda each: each["id"] == id_ and each["state"] == "COMPLETED"
        )
        assert ended["requestedBy"] == "admin"
        assert ended["instanceName"] == "followed"
        assert ended["oldPackage"] == "Sample VNF 1.0"
        assert ended["requests"] == []
        viewer.until("instances", lambda each: each["name"] == "followed" and each["vnfcs"])
    vnfm.remove(path)


def test_events_need_a_token(vnfm: Site) -> None:
    answer = requests.get(f"{vnfm.url}/view/events", timeout=30)
    assert answer.status_code == 401


def test_viewers_who_wait_for_a_vim_leave_threads_to_others() -> None:
    answered = threading.Event()
    threads = CapacityLimiter(2)

    def read() -> dict[str, dict[str, str]]:
        answered.wait()
        return {}

    async def view() -> None:
        viewer = events("{}", read, threads)
        assert [await anext(viewer)] == ["event: hello\ndata: {}\n\n"]
        await anext(viewer, None)

    async def serve() -> int:
        default = to_thread.current_default_thread_limiter()
        viewers = [asyncio.create_task(view()) for _ in range(int(default.total_tokens) + 1)]
        try:
            while threads.statistics().tasks_waiting < len(viewers) - threads.total_tokens:
                await asyncio.sleep(0)
            return await to_thread.run_sync(lambda: 1)
        finally:
            for viewer in viewers:
                viewer.cancel()
            answered.set()

    assert asyncio.run(asyncio.wait_for(serve(), timeout=30)) == 1


def test_the_service_stops_while_somebody_watches() -> None:
    with site.running() as running:
        answer = requests.get(
            f"{running.url}/view/events",
            headers={"X-Auth-Token": running.token},
            stream=True,
            timeout=60,
        )
        lines = answer.iter_lines(chunk_size=1)
        assert next(lines) == b"event: hello"
        ended = threading.Event()

        def read() -> None:
            try:
                for _ in lines:
                    pass
            except requests.exceptions.RequestException:
                pass  # it is cut in the middle
            ended.set()

        threading.Thread(target=read, daemon=True).start()
    assert ended.wait(30)


def test_past_operations_keep_names_and_packages_and_can_be_filtered(vnfm: Site) -> None:
    path = vnfm.instantiated(GUIDE, "as-it-was")
    request = {**vnfm.request(GUIDE, "update"), "vnfInstanceName": "as-it-is"}
    assert vnfm.settled(vnfm.call("PATCH", path, request))["operationState"] == "COMPLETED"
    instance = path.rpartition("/")[2]

    def found(**query: str) -> list[tuple[str, str, str, str]]:
        answer = requests.get(
            f"{vnfm.url}/view/operations", query, headers=vnfm.client.headers, timeout=30
        )
        assert answer.status_code == 200, answer.text
        names = ("operation", "instanceName", "oldPackage", "newPackage")
        return [tuple(each[name] for name in names) for each in answer.json()]

    instantiated = ("INSTANTIATE", "as-it-was", "Sample VNF 1.0", "")
    updated = ("MODIFY_INFO", "as-it-was", "Sample VNF 1.0", "Sample VNF 2.0")
    assert found(instance=instance) == [updated, instantiated]
    assert found(text="AS-IT") == [updated, instantiated]
    assert found(text="as_it") == []
    assert found(text="admin", instance=instance, operation="INSTANTIATE") == [instantiated]
    assert found(instance=instance, state="FAILED") == []
    marker = vnfm.call("GET", f"/view/operations?instance={instance}").json()[0]["marker"]
    assert found(instance=instance, before=marker) == [instantiated]
    vnfm.remove(path)


def test_the_reason_of_a_request_is_in_the_history_of_the_service_and_of_the_cluster(
    vnfm: Site, tmp_path: Path
) -> None:
    path, why = vnfm.instantiated(GUIDE, "reasoned"), "CHG-7: more log, 24 h"
    instance, update = path.rpartition("/")[2], vnfm.request(GUIDE, "update")
    for refused in ("two\nlines", "x" * 256):
        url = f"{vnfm.url}{path}?{urlencode({'why': refused})}"
        answer = vnfm.client.patch(url, json=update, timeout=30)
        assert (answer.status_code, answer.json()["detail"][:22]) == (400, "why: expected one line")
    accepted = vnfm.call("PATCH", f"{path}?{urlencode({'why': why})}", update)
    assert vnfm.settled(accepted)["operationState"] == "COMPLETED"
    heal = {"cause": "a node was lost"}
    vnfm.settled(vnfm.call("POST", f"{path}/heal", heal))
    query = f"/view/operations?instance={instance}"
    told = {each["operation"]: each["why"] for each in vnfm.call("GET", query).json()}
    assert told == {"HEAL": heal["cause"], "MODIFY_INFO": why, "INSTANTIATE": ""}
    found = vnfm.call("GET", f"/view/operations?{urlencode({'text': 'chg-7'})}").json()
    assert [each["instanceId"] for each in found] == [instance]
    kubeconfig = vnfm.stage.cluster.write_kubeconfig(tmp_path / "kubeconfig")
    with connect(str(kubeconfig), options=Options(no_journal_key=True)) as cluster:
        revisions = history(cluster, namespace=GUIDE.name, instance_id=instance)
    assert [each.origin.why for each in revisions] == [why, ""]  # the heal had nothing to do
    vnfm.remove(path)


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_drafts_are_requests_that_succeed(vnfm: Site, scene: site.Scene) -> None:
    path = vnfm.create(scene, "drafted")
    api, instance = path.split("/")[2], path.rpartition("/")[2]
    drafts = f"/view/drafts/{api}/{instance}"
    body = vnfm.call("GET", f"{drafts}?operation=INSTANTIATE").json()
    accepted = vnfm.call("POST", f"{path}/instantiate", body)
    assert vnfm.settled(accepted)["operationState"] == "COMPLETED"
    vnfd_id = vnfm.request(scene, scene.verb)["vnfdId"]
    operation = "MODIFY_INFO" if scene.is_guide else "CHANGE_VNFPKG"
    body = vnfm.call("GET", f"{drafts}?operation={operation}&vnfd_id={vnfd_id}").json()
    method, below = ("PATCH", "") if scene.is_guide else ("POST", "/change_vnfpkg")
    ended = vnfm.settled(vnfm.call(method, f"{path}{below}", body))
    assert ended["operationState"] == "COMPLETED", ended
    vnfm.remove(path)


def test_a_draft_of_an_unknown_package_is_refused(vnfm: Site) -> None:
    path = vnfm.create(GUIDE, "refused")
    instance = path.rpartition("/")[2]
    for query, why in [
        ("operation=MODIFY_INFO&vnfd_id=none", "no onboarded package"),
        ("operation=TERMINATE", "there are no drafts"),
    ]:
        answer = vnfm.client.get(f"{vnfm.url}/view/drafts/v2/{instance}?{query}", timeout=30)
        assert answer.status_code == 422
        assert why in answer.json()["detail"]
    vnfm.call("DELETE", path)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Site]:
    with site.running() as running:
        many.store(running.service)
        yield running


def seen(vnfm: Site, **query: str) -> tuple[Any, list[str]]:
    """Return the table that a viewer sees, and the names in it, in their order."""
    with watching(vnfm, f"?{urlencode(query)}") as viewer:
        table = viewer.until("table", lambda _: True)
        viewer.until("instances", lambda _: True)
        return table, [viewer.known["instances"][id_]["name"] for id_ in table["ids"]]


def test_the_table_has_those_first_that_wait_for_a_person_then_all_by_name(fleet: Site) -> None:
    table, names = seen(fleet)
    assert names[:4] == ["upf-7", "upf-120", "upf-0", "upf-1"]
    assert len(names) == 50
    assert table["found"] == table["all"] == many.INSTANCES
    not_yet = many.INSTANCES // many.NOT_YET
    assert table["counts"] == {
        "decision": 2,
        "trouble": 0,
        "at-work": 0,
        "instantiated": many.INSTANCES - not_yet - 1,
        "not-instantiated": not_yet - 1,
    }
    pages = [seen(fleet, page=str(number))[1] for number in (1, 2, 3, 4)]
    assert len({name for page in pages for name in page}) == many.INSTANCES
    assert pages[3][-1] == "upf-199"
    assert seen(fleet, page="99")[1] == pages[3]


def test_the_table_is_searched_by_words_state_and_package(fleet: Site) -> None:
    assert seen(fleet, text="SITE-39 upf")[1] == [f"upf-{39 + 40 * n}" for n in range(5)]
    assert seen(fleet, condition="decision")[1] == ["upf-7", "upf-120"]
    table, _ = seen(fleet, text="upf-12")
    assert sum(package["count"] for package in table["packages"]) == table["found"] == 11
    chosen = table["packages"][0]
    of_it, _ = seen(fleet, text="upf-12", vnfd_id=chosen["vnfdId"])
    assert of_it["found"] == chosen["count"]
    assert of_it["packages"] == table["packages"]
    answer = fleet.client.get(f"{fleet.url}/view/events?page=x", timeout=30)
    assert answer.status_code == 422


def test_a_viewer_gets_the_steps_of_the_instance_that_is_open_only(vnfm: Site) -> None:
    path = vnfm.instantiated(GUIDE, "failed")
    bad = vnfm.stage.cluster.behaviour.bad_images
    bad.append("cirros*")
    accepted = vnfm.call("PATCH", path, vnfm.request(GUIDE, "update"))
    assert vnfm.settled(accepted)["operationState"] == "FAILED_TEMP"
    bad.remove("cirros*")
    with watching(vnfm) as viewer:
        far = viewer.until("progress", lambda _: True)
        assert far["total"] > 0
        assert far.keys() == {"id", "done", "total", "step"}
        assert viewer.known.get("steps", {}) == {}
    with watching(vnfm, f"?instance={path.rpartition('/')[2]}&text=nobody") as viewer:
        assert len(viewer.until("steps", lambda _: True)["steps"]) == far["total"]
        assert viewer.until("instances", lambda _: True)["name"] == "failed"
    operation = accepted.headers["Location"]
    vnfm.settled(vnfm.call("POST", f"{operation}/rollback"))
    vnfm.remove(path)


def test_an_instance_whose_pods_fail_without_an_operation_is_first(
    vnfm: Site, tmp_path: Path
) -> None:
    well, path = vnfm.create(GUIDE, "a-well"), vnfm.instantiated(GUIDE, "sick")
    id_ = path.rpartition("/")[2]
    cluster = vnfm.stage.cluster
    cluster.behaviour.bad_images.append("nginx*")
    resources = vnfm.call("GET", f"{path}/resources").json()
    (pod, *_) = resources["vdus"][0]["workloads"][0]["vnfcs"]
    with connect(str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))) as client:
        client.delete(ObjectKey("", "Pod", GUIDE.name, pod["name"]))
    with watching(vnfm) as viewer:
        sick = viewer.until("instances", lambda each: each["trouble"])
        assert (sick["name"], sick["id"]) == ("sick", id_)
        assert pod["name"].rpartition("-")[0].rpartition("-")[0] in sick["trouble"]
        table = viewer.until("table", lambda each: each["counts"]["trouble"])
        assert table["ids"][0] == id_
        cluster.behaviour.bad_images.remove("nginx*")
        viewer.until("table", lambda each: not each["counts"]["trouble"])
        with connect(str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))) as client:
            client.delete(ObjectKey("apps", "Deployment", GUIDE.name, "deployment2-vdu6"))
        sick = viewer.until("instances", lambda each: each["trouble"])
        assert sick["trouble"] == f"Deployment {GUIDE.name}/deployment2-vdu6: missing"
    vnfm.call("DELETE", well)
    vnfm.remove(path)


def test_a_pod_tells_events_and_log_without_values_of_secrets(vnfm: Site, tmp_path: Path) -> None:
    path = vnfm.instantiated(GUIDE, "looked-into")
    cluster = vnfm.stage.cluster
    with connect(str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))) as client:
        secret = client.get(ObjectKey("", "Secret", GUIDE.name, "secret-data"))
    assert secret is not None
    value = b64decode(secret["data"]["password"]).decode()
    cluster.behaviour.logs["nginx*"] = f"password is {value}\nready\n"
    resources = vnfm.call("GET", f"{path}/resources").json()
    (pod, *_) = resources["vdus"][0]["workloads"][0]["vnfcs"]
    pods = f"{vnfm.url}/view/pods/v2/{path.rpartition('/')[2]}"
    told = vnfm.call("GET", f"{pods}/{pod['name']}").json()
    assert any("Started" in event["text"] for event in told["events"])
    assert told["logs"] == [{"container": "nginx", "lines": ["password is ***", "ready"]}]
    for unknown in ("none", "kube-apiserver"):
        answer = vnfm.client.get(f"{pods}/{unknown}", timeout=30)
        assert answer.status_code == 404
        assert "has no pod" in answer.json()["detail"]
    cluster.behaviour.logs.clear()
    vnfm.remove(path)
