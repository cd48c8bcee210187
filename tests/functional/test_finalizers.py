# SPDX-License-Identifier: Apache-2.0
"""Objects with finalizers: deleted they stay, can be read and changed, and are gone in the end.

So one that is being deleted is never taken for what was there before, and its name is free only
when its last finalizer is removed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

from container_update import (
    CancelToken,
    Plan,
    Step,
    StepResult,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInterruptedError,
    change_package,
    update,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.conftest import until
from tests.functional.manifests import config_map, secret, workload
from tests.internals.core import Json, ObjectKey, StepState

HOLD = "example.com/hold"
FINALIZERS = f"metadata: {{finalizers: [{HOLD}], "

RECREATED = {
    "an immutable ConfigMap": (
        config_map(immutable=True, setting="old"),
        config_map(immutable=True, setting="new"),
    ),
    "a Secret of another type": (
        secret(setting="old"),
        secret(kind="example.com/other", setting="new"),
    ),
}


def held(text: str) -> str:
    """Return a manifest with a finalizer."""
    return text.replace("metadata: {", FINALIZERS)


def key_of(cnf: Cnf, text: str) -> ObjectKey:
    return cnf.key("Secret", "sec") if "kind: Secret" in text else cnf.key("ConfigMap", "cm")


def live(cnf: Cnf, key: ObjectKey) -> Json:
    body = cnf.admin.get(key)
    assert body is not None, f"{key} is gone"
    return body


def is_deleting(cnf: Cnf, key: ObjectKey) -> bool:
    return "deletionTimestamp" in live(cnf, key)["metadata"]


def release(cnf: Cnf, key: ObjectKey) -> None:
    """Wait until the object is being deleted, then remove its finalizers."""
    until(lambda: is_deleting(cnf, key))
    body = live(cnf, key)
    body["metadata"]["finalizers"] = []
    cnf.admin.replace(body)


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[Future[None]]:
    """Run this in another thread while the block runs; it has to end well."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(act)
        yield future
        future.result()


def value_of(body: Json) -> tuple[str, ...]:
    return tuple(body["data"].values())


@pytest.mark.parametrize("case", RECREATED)
def test_what_is_recreated_is_waited_for_until_its_finalizer_is_removed(
    cnf: Cnf, case: str
) -> None:
    old, new = RECREATED[case]
    cnf.instantiate(cm=held(old))
    key = key_of(cnf, old)
    before = live(cnf, key)
    with meanwhile(lambda: release(cnf, key)):
        cnf.update({"cm": new})
    after = live(cnf, key)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert value_of(after) != value_of(before)
    assert cnf.plan({"cm": new}).is_empty


@pytest.mark.parametrize("case", RECREATED)
def test_what_is_being_deleted_is_not_as_before_and_a_later_rollback_creates_it(
    cnf: Cnf, case: str
) -> None:
    old, new = RECREATED[case]
    cnf.instantiate(cm=held(old))
    key = key_of(cnf, old)
    before = live(cnf, key)
    options = replace(cnf.options, timeout=1, undo_timeout=1)
    with pytest.raises(UndoIncompleteError) as raised:
        cnf.update({"cm": new}, options)
    assert f"{key} is being deleted and waits for its finalizers ({HOLD})" in str(raised.value)
    assert [r.state for r in raised.value.outcome.results] == [StepState.UNDO_FAILED]
    release(cnf, key)
    outcome = cnf.rollback()
    assert outcome is not None
    assert value_of(live(cnf, key)) == value_of(before)
    assert cnf.plan({"cm": held(old)}).is_empty


def test_an_undo_waits_for_what_the_update_deleted_and_creates_it_again(cnf: Cnf) -> None:
    old, new = RECREATED["an immutable ConfigMap"]
    cnf.instantiate(cm=held(old))
    key = key_of(cnf, old)

    def let_go(event: Plan | Step | StepResult) -> None:
        if isinstance(event, StepResult) and event.state is StepState.FAILED:
            release(cnf, key)

    options = replace(cnf.options, timeout=1)
    with pytest.raises(UpdateFailedError, match="not gone in time") as raised:
        update(cnf.request({"cm": new}), cnf.cluster, options, progress=let_go)
    assert "Everything is as before" in str(raised.value)
    assert not is_deleting(cnf, key)
    assert live(cnf, key)["data"] == {"setting": "old"}


def test_an_undo_waits_until_what_was_created_is_gone(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("Deployment"))
    key, ended = cnf.key("ConfigMap", "cm"), threading.Event()
    new = {"w": workload("Deployment", image=BAD_IMAGE), "cm": held(config_map(setting="new"))}

    def release_later() -> None:
        until(lambda: cnf.admin.get(key) is not None)
        until(lambda: is_deleting(cnf, key))
        ended.wait(1.0)  # an update that does not wait ends within this time
        still_waits = not ended.is_set()
        release(cnf, key)
        assert still_waits

    with meanwhile(release_later):
        with pytest.raises(UpdateFailedError, match="Everything is as before"):
            cnf.update(new, config_paths=("Files/cm.yaml",))
        ended.set()
    assert cnf.admin.get(key) is None


def test_a_resumed_update_waits_for_what_the_one_before_deleted(cnf: Cnf) -> None:
    old, new = RECREATED["an immutable ConfigMap"]
    cnf.instantiate(cm=held(old))
    key, cancel = key_of(cnf, old), CancelToken()

    def interrupt() -> None:
        until(lambda: is_deleting(cnf, key))
        cancel.request("by the test", keep_journal=True)

    with meanwhile(interrupt), pytest.raises(UpdateInterruptedError):
        update(cnf.request({"cm": new}), cnf.cluster, cnf.options, cancel)
    assert is_deleting(cnf, key)
    with meanwhile(lambda: release(cnf, key)):
        resumed = cnf.resume()
    assert resumed is not None
    assert live(cnf, key)["data"] == {"setting": "new"}


def test_what_another_deletes_meanwhile_is_not_written(cnf: Cnf) -> None:
    """A replacement of an object that is being deleted would succeed, and be lost."""
    cnf.instantiate(cm=held(config_map(setting="old")))
    key = cnf.key("ConfigMap", "cm")

    def delete(event: Plan | Step | StepResult) -> None:
        if isinstance(event, Plan):
            cnf.admin.delete(key)
        elif isinstance(event, StepResult) and is_deleting(cnf, key):  # its undo ends later
            release(cnf, key)

    with pytest.raises(UpdateFailedError, match="was deleted by another client"):
        update(cnf.request({"cm": config_map(setting="new")}), cnf.cluster, progress=delete)
    assert live(cnf, key)["data"] == {"setting": "old"}
    assert not is_deleting(cnf, key)


def test_an_undo_puts_workloads_back_beside_an_object_that_does_not_go(cnf: Cnf) -> None:
    """What waits for a finalizer takes half of the time, and leaves the rest to the others."""
    cm = held(config_map(key="value"))
    cnf.instantiate(cm=cm, w=workload("Deployment"))
    new = cnf.package({"w.yaml": workload("Deployment", image=IMAGES[1])})
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    options = replace(cnf.options, timeout=2, undo_timeout=8)
    with pytest.raises(UndoIncompleteError) as raised:
        change_package(body, cnf.admin, options, old=cnf.old, new=new, **cnf.where)
    states = {r.step.key.kind: r.state for r in raised.value.outcome.results}
    assert states == {"ConfigMap": StepState.UNDO_FAILED, "Deployment": StepState.UNDONE}
    release(cnf, key_of(cnf, cm))
