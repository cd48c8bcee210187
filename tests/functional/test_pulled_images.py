# SPDX-License-Identifier: Apache-2.0
"""``--pull``: the nodes pull each new image before anything is written."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from container_update import CancelToken, Plan, UpdateInterruptedError, connect, plan_update, update
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from tests.functional import role
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.conftest import OPTIONS
from tests.functional.manifests import config_map, workload
from tests.functional.real import REAL
from tests.functional.test_quotas import set_quota
from tests.internals.core import (
    LABEL,
    Collection,
    UnpulledImagesError,
    image_check,
    main,
    with_images_checked,
)

PULLING = replace(OPTIONS, pull=True)
DENIED = "private:1"
INIT = f"initContainers: [{{name: first, image: '{BAD_IMAGE}'}}]"
MODEL = f"volumes: [{{name: model, image: {{reference: '{BAD_IMAGE}'}}}}]"


@pytest.fixture(scope="module")
def admin_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster with a registry that does not give everything."""
    if REAL:
        yield REAL
        return
    behaviour = Behaviour(denied_images=[DENIED])
    with EmbeddedCluster(behaviour=behaviour) as embedded:
        yield str(embedded.write_kubeconfig(tmp_path_factory.mktemp("pull") / "kubeconfig"))


@pytest.fixture(scope="module")
def admin(admin_kubeconfig: str) -> Iterator[object]:
    with connect(admin_kubeconfig, options=OPTIONS) as connected:
        yield connected


def files(image: str = IMAGES[0], setting: str = "1", pod: str = "") -> dict[str, str]:
    return {"cm": config_map(setting=setting), "w": workload("Deployment", image=image, pod=pod)}


def left(cnf: Cnf) -> list[str]:
    """Return the pods that a check has left."""
    pods = cnf.admin.list(Collection("", "Pod", cnf.namespace, labels=LABEL)).items
    return [pod["metadata"]["name"] for pod in pods]


REFUSED: dict[str, Any] = {
    "an image that no registry has": (
        files(BAD_IMAGE, "2"),
        f"container main: image {BAD_IMAGE}: not found",
    ),
    "one that is not given": pytest.param(
        files(DENIED, "2"),
        f"container main: image {DENIED}: not allowed",
        marks=pytest.mark.skipif(
            bool(REAL),
            reason="kubelets that run nothing ask no registry, which could deny an image",
        ),
    ),
    "that of an init container": (
        files(pod=INIT, setting="2"),
        f"first: image {BAD_IMAGE}: not found",
    ),
    "that of a volume": (files(pod=MODEL, setting="2"), f"model: image {BAD_IMAGE}: not found"),
}


@pytest.mark.parametrize(("new", "said"), REFUSED.values(), ids=REFUSED)
def test_an_image_that_the_nodes_cannot_pull_is_refused_with_nothing_changed(
    new: dict[str, str], said: str, cnf: Cnf
) -> None:
    old = new["w"].replace(BAD_IMAGE, IMAGES[0]).replace(DENIED, IMAGES[0])
    cnf.instantiate(cm=config_map(setting="1"), w=old)
    before = cnf.get("ConfigMap", "cm"), cnf.get("Deployment", "w")
    with pytest.raises(UnpulledImagesError, match=said):
        update(cnf.request(new), cnf.cluster, PULLING)
    now = cnf.get("ConfigMap", "cm"), cnf.get("Deployment", "w")
    assert [each["metadata"]["resourceVersion"] for each in now] == [
        each["metadata"]["resourceVersion"] for each in before
    ]
    assert left(cnf) == []


def test_what_can_be_pulled_is_carried_out_and_what_a_killed_check_left_is_deleted(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    cnf.instantiate(**files())
    with monkeypatch.context() as killed:
        killed.setattr(image_check._Pulling, "_delete", lambda *_: None)
        cnf_plan(cnf)
    assert len(left(cnf)) == 1
    outcome = update(cnf.request(files(IMAGES[1], "2")), cnf.cluster, PULLING)
    assert outcome.plan.notes == ()
    assert {pod.image for pod in cnf.pods("Deployment", "w").values()} == {IMAGES[1]}
    assert left(cnf) == []


def cnf_plan(cnf: Cnf, image: str = IMAGES[1]) -> Plan:
    plan = plan_update(cnf.request(files(image, "2")), cnf.cluster, PULLING)
    return with_images_checked(plan, cnf.cluster, PULLING)


def notes(plan: Plan) -> str:
    return "; ".join(note.text for note in plan.notes)


def test_what_is_not_known_is_noted_and_refuses_nothing(cnf: Cnf) -> None:
    cnf.instantiate(**files())
    quota = set_quota(cnf, pods=0)
    assert f"image {BAD_IMAGE}: not known: create Pod" in notes(cnf_plan(cnf, BAD_IMAGE))
    cnf.admin.delete(quota)
    live = cnf.admin.get(role.key(cnf.namespace))
    assert live is not None
    rules = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb != "create"]}
        if "pods" in rule["resources"]
        else rule
        for rule in live["rules"]
    ]
    cnf.admin.replace({**live, "rules": rules})
    assert "not known: this account may not create Pod" in notes(cnf_plan(cnf, BAD_IMAGE))
    assert left(cnf) == []


def test_a_signal_ends_the_check_and_its_pods(cnf: Cnf) -> None:
    cnf.instantiate(**files())
    cancel = CancelToken()
    cancel.request("by the test")
    with pytest.raises(UpdateInterruptedError):
        update(cnf.request(files(IMAGES[1], "2")), cnf.cluster, PULLING, cancel)
    assert left(cnf) == []


def test_the_commands_say_it(cnf: Cnf, admin_kubeconfig: str) -> None:
    package = cnf.package({f"{name}.yaml": text for name, text in files(BAD_IMAGE).items()})
    where = ("-n", cnf.namespace, "--kubeconfig", admin_kubeconfig, "--instance-id", INSTANCE)
    for more in (["--plan", "--server", "--pull"], ["--pull"]):
        assert main(["install", package, *where, *more], out := io.StringIO()) == 5
        assert f"image {BAD_IMAGE}: not found" in out.getvalue() or "--plan" not in more
    assert cnf.admin.get(cnf.key("ConfigMap", "cm")) is None
