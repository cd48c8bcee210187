# SPDX-License-Identifier: Apache-2.0
"""A Job of a package is waited for until it is complete or has failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from container_update import StepResult, UpdateFailedError, install, plan_change
from tests.functional.cnf import IMAGES, INSTANCE, Cnf
from tests.functional.manifests import workload
from tests.internals.core import Event, Json, StepState

CRASH = "crash:1"
ONCE = "backoffLimit: 0"


def job(image: str = IMAGES[0], name: str = "j", *, metadata: str = "", more: str = ONCE) -> str:
    return workload("Job", name, image=image, metadata=metadata) + f"  {more}\n"


def create(cnf: Cnf, files: dict[str, str], events: list[Event] | None = None) -> None:
    package = cnf.package({f"{name}.yaml": text for name, text in files.items()})
    cnf.old = package
    install(
        package,
        cnf.admin,
        namespace=cnf.namespace,
        instance_id=INSTANCE,
        options=replace(cnf.options, timeout=60),
        progress=(lambda _: None) if events is None else events.append,
    )


def conditions(body: Json) -> set[str]:
    reported = (body.get("status") or {}).get("conditions") or ()
    return {each["type"] for each in reported if each["status"] == "True"}


def test_an_installation_ends_when_its_job_is_complete(cnf: Cnf) -> None:
    create(cnf, {"j": job(), "w": workload("Deployment")})
    assert "Complete" in conditions(cnf.get("Job", "j"))


def test_a_job_that_fails_undoes_the_installation_with_pod_reason_and_log(cnf: Cnf) -> None:
    with pytest.raises(UpdateFailedError) as raised:
        create(cnf, {"j": job(CRASH), "w": workload("Deployment")})
    failed = f"Job {cnf.namespace}/j failed: BackoffLimitExceeded: "
    assert failed in str(raised.value)
    result = next(r for r in raised.value.outcome.results if r.step.key.kind == "Job")
    assert result.diagnosis is not None
    assert result.diagnosis.pod.name.startswith("j-")
    assert result.diagnosis.reason == "Error"
    assert result.diagnosis.log != ()
    assert cnf.admin.get(cnf.key("Deployment", "w")) is None
    assert cnf.admin.get(cnf.key("Job", "j")) is None


def test_a_job_whose_image_does_not_exist_is_not_waited_for_till_the_end(cnf: Cnf) -> None:
    with pytest.raises(UpdateFailedError, match=r"Job .*/j failed: pod j-.*ImagePull"):
        create(cnf, {"j": job("bad:missing")})


SUSPENDED = f"suspend: true\n  {ONCE}"
LEFT_OUT = 'annotations: {container-update/wait: "false"}'
NOT_WAITED_FOR = {
    "a Job that its annotation leaves out": job(CRASH, metadata=LEFT_OUT),
    "a Job that is suspended": job(CRASH, more=SUSPENDED),
    "a CronJob": workload("CronJob", "j", image=CRASH),
}


@pytest.mark.parametrize("text", NOT_WAITED_FOR.values(), ids=NOT_WAITED_FOR.keys())
def test_not_waited_for_is(cnf: Cnf, text: str) -> None:
    create(cnf, {"j": text, "w": workload("Deployment")})


def test_a_heal_waits_for_the_job_that_it_creates_again(cnf: Cnf) -> None:
    files = {"j": job(), "w": workload("Deployment")}
    create(cnf, files)
    cnf.admin.delete(cnf.key("Job", "j"))
    crashing = cnf.package({"j.yaml": job(CRASH), "w.yaml": files["w"]})
    with pytest.raises(UpdateFailedError, match=r"Job .*/j failed: BackoffLimitExceeded"):
        cnf.heal(crashing, cnf.admin)


def test_a_second_wave_begins_after_the_job_of_the_first_is_complete(cnf: Cnf) -> None:
    events: list[Event] = []
    wave = 'annotations: {container-update/order: "1"}'
    create(cnf, {"j": job(), "w": workload("Deployment", metadata=wave)}, events)
    ended = [e.step.key.kind for e in events if isinstance(e, StepResult)]
    assert ended == ["Job", "Deployment"]
    states = {e.state for e in events if isinstance(e, StepResult)}
    assert states == {StepState.DONE}


@pytest.mark.parametrize(("image", "is_noted"), [(IMAGES[0], False), (IMAGES[1], True)])
def test_a_change_notes_a_job_that_it_does_not_start_again(
    cnf: Cnf, image: str, is_noted: bool
) -> None:
    create(cnf, {"j": job(), "w": workload("Deployment")})
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    new = cnf.package({"j.yaml": job(image), "w.yaml": workload("Deployment", image=IMAGES[1])})
    plan = plan_change(body, cnf.admin, cnf.options, old=cnf.old, new=new, **cnf.where)
    assert any("delete it to have the new one" in n.text for n in plan.notes) is is_noted
