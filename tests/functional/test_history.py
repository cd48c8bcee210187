# SPDX-License-Identifier: Apache-2.0
"""What an operation leaves when it has ended: its revision, and the way back."""

from __future__ import annotations

import base64
import getpass
import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from container_update import PlanError, UpdateFailedError, change_package, plan_undo
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.manifests import ENV, config_map, secret, workload
from tests.internals.core import (
    Action,
    Collection,
    HistoryWriter,
    JournalledRun,
    Json,
    ObjectKey,
    Result,
    StepState,
    diff_of_revision,
    keeping,
    operation_secrets,
    read_options,
    record_of,
    text_of,
)

OLD = {
    "cm": config_map(setting="old"),
    "user": workload("Deployment", "user", container=ENV),
    "other": workload("Deployment", "other"),
}
NEW = {**OLD, "cm": config_map(setting="new")}
NEWER = {**NEW, "other": workload("Deployment", "other", image=IMAGES[1])}
BAD = {**NEW, "user": workload("Deployment", "user", container=ENV, image=BAD_IMAGE)}


def kept(cnf: Cnf) -> list[Json]:
    """Return the Secrets of the history."""
    secrets = cnf.admin.list(Collection("", "Secret", cnf.namespace)).items
    return [body for body in secrets if body["type"] == "container-update/revision"]


def setting(cnf: Cnf) -> str:
    return str(cnf.get("ConfigMap", "cm")["data"]["setting"])


def image(cnf: Cnf, name: str) -> str:
    template = cnf.get("Deployment", name)["spec"]["template"]
    return str(template["spec"]["containers"][0]["image"])


def test_a_finished_update_is_in_the_history(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    assert cnf.history() == ()
    outcome = cnf.update(NEW)
    (revision,) = cnf.history()
    assert (revision.number, revision.result) == (outcome.revision, Result.DONE) == (1, Result.DONE)
    assert revision.origin.user == getpass.getuser()
    assert [package.source for package in revision.origin.packages] == [
        package.source for package in outcome.plan.packages
    ]
    assert [step.key for step in revision.steps] == [step.key for step in outcome.plan.steps]
    assert revision.can_be_undone


def test_an_update_with_nothing_to_do_is_not_in_the_history(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    assert cnf.update(OLD).revision is None
    assert cnf.history() == ()


def test_a_failed_update_is_in_the_history_with_its_cause_and_cannot_be_undone(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    with pytest.raises(UpdateFailedError):
        cnf.update(BAD, replace(cnf.options, grace_period=0.5))
    (revision,) = cnf.history()
    assert revision.result is Result.UNDONE
    assert "ImagePull" in revision.cause
    assert not revision.can_be_undone
    assert cnf.undo() is None
    with pytest.raises(PlanError, match="revision 1: no finished operation has this number"):
        cnf.undo(1)


def test_an_undo_goes_back_and_restarts_only_what_uses_what_changes(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    others = cnf.pods("Deployment", "other")
    cnf.update(NEW)
    users = cnf.pods("Deployment", "user")
    outcome = cnf.undo()
    assert outcome is not None
    assert {result.state for result in outcome.results} == {StepState.DONE}
    assert [step.key.name for step in outcome.plan.steps] == ["cm", "user"]
    assert setting(cnf) == "old"
    assert cnf.pods("Deployment", "user").keys().isdisjoint(users)
    assert cnf.pods("Deployment", "other") == others
    undone, update = cnf.history()
    assert (undone.origin.title, update.origin.title) == ("undo of 1", "update")
    assert undone.origin.packages == update.origin.packages[::-1]


def test_an_undo_can_be_undone_and_another_one_goes_further_back(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    cnf.update(NEW)
    cnf.update(NEWER)
    cnf.undo()
    assert (setting(cnf), image(cnf, "other")) == ("new", IMAGES[0])
    cnf.undo()
    assert (setting(cnf), image(cnf, "other")) == ("old", IMAGES[0])
    assert cnf.undo() is None
    cnf.undo(4)
    assert (setting(cnf), image(cnf, "other")) == ("new", IMAGES[0])


def test_an_older_update_is_undone_with_all_that_came_after_it(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    cnf.update(NEW)
    cnf.update(NEWER)
    cnf.undo(1)
    assert (setting(cnf), image(cnf, "other")) == ("old", IMAGES[0])
    assert cnf.history()[0].origin.undoes == 1


def test_an_undo_that_fails_is_itself_put_back(cnf: Cnf) -> None:
    cnf.instantiate(**{**OLD, "user": workload("Deployment", "user", container=ENV)})
    cnf.update({**NEW, "user": workload("Deployment", "user", container=ENV, image=IMAGES[1])})
    (revision,) = cnf.history()
    wrong = cnf.get("Secret", "container-update-" + cnf.where["instance_id"] + ".v1")
    content = json.loads(gzip.decompress(base64.b64decode(wrong["data"]["content"])))
    text = json.dumps(content).replace(IMAGES[0], BAD_IMAGE)  # the registry lost the old image
    wrong["data"]["content"] = base64.b64encode(gzip.compress(text.encode())).decode()
    cnf.admin.replace(keeping.sign(wrong, cnf.admin.journal_key))
    with pytest.raises(UpdateFailedError):
        cnf.undo(options=replace(cnf.options, grace_period=0.5))
    assert (setting(cnf), image(cnf, "user")) == ("new", IMAGES[1])
    assert cnf.history()[0].result is Result.UNDONE
    assert revision.can_be_undone


def test_what_an_update_created_is_deleted_by_its_undo(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    cnf.update({**OLD, "cm": OLD["cm"] + "---\n" + config_map("extra", a="b")})
    assert cnf.get("ConfigMap", "extra")["data"] == {"a": "b"}
    outcome = cnf.undo()
    assert outcome is not None
    assert [(s.key.name, s.action) for s in outcome.plan.steps] == [("extra", Action.DELETE)]
    assert cnf.admin.get(cnf.key("ConfigMap", "extra")) is None
    cnf.undo(2)
    assert cnf.get("ConfigMap", "extra")["data"] == {"a": "b"}


def test_what_was_changed_by_hand_since_is_named_before_an_undo(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    cnf.update(NEW)
    edited = cnf.get("ConfigMap", "cm")
    edited["data"]["setting"] = "by hand"
    cnf.admin.replace(edited)
    plan = plan_undo(cnf.cluster, cnf.options, **cnf.where)
    assert plan is not None
    assert [note.key.name for note in plan.notes] == ["cm"]
    assert setting(cnf) == "by hand"


def test_the_oldest_revisions_are_deleted(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    options = replace(cnf.options, history=2)
    for files in (NEW, OLD, NEW):
        cnf.update(files, options)
    assert [revision.number for revision in cnf.history()] == [3, 2]
    assert len(kept(cnf)) == 2


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda body: body["metadata"].pop("labels"), id="no labels"),
        pytest.param(lambda body: body["metadata"].update(labels={}), id="other labels"),
        pytest.param(lambda body: body.pop("data"), id="no data"),
        pytest.param(lambda body: body["data"].update(operation="W10="), id="another operation"),
        pytest.param(lambda body: body["data"].update(content="W10="), id="another content"),
    ],
)
def test_a_revision_that_somebody_has_changed_fails_no_update(
    cnf: Cnf, change: Callable[[Json], object]
) -> None:
    cnf.instantiate(**OLD)
    cnf.update(NEW)
    (body,) = kept(cnf)
    change(body)
    cnf.admin.replace(body)
    assert cnf.update(NEWER).revision == 2
    assert cnf.resume() is None, "there is no journal"
    assert cnf.history()[0].number == 2


def test_a_history_that_cannot_be_kept_fails_no_update(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    cnf.instantiate(**OLD)
    monkeypatch.setattr(HistoryWriter, "_keep", lambda *_: {}["labels"])
    outcome = cnf.update(NEW)
    assert (outcome.revision, setting(cnf)) == (None, "new")
    assert cnf.resume() is None, "there is no journal"


def test_no_history_is_written_where_none_is_wanted(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    assert cnf.update(NEW, replace(cnf.options, history=0)).revision is None
    assert kept(cnf) == []


def test_of_a_secret_only_what_was_there_before_is_kept(cnf: Cnf) -> None:
    files = {"sec": secret(password="previous-Zq7", same="unchanged-Zq7")}
    cnf.instantiate(**files)
    cnf.update({"sec": secret(password="replacement-Zq7", same="unchanged-Zq7")})
    (body,) = kept(cnf)
    content = gzip.decompress(base64.b64decode(body["data"]["content"])).decode()
    head = base64.b64decode(body["data"]["operation"]).decode()
    forms = [form for word in ("previous", "replacement") for form in (word, b64(word))]
    assert [form for form in forms if form in head] == []
    assert [form for form in forms if form in content] == [b64("previous")]
    cnf.undo()
    data = cnf.get("Secret", "sec")["data"]
    assert base64.b64decode(data["password"]) == b"previous-Zq7"


LARGE = {name: random.Random(name).randbytes(400_000).hex() for name in ("old", "new", "newer")}
"""Content of which one value is nearly all that a ConfigMap may hold, and hardly gets smaller."""


def large(setting: str, characters: int | None = None) -> dict[str, str]:
    names = ("cm", "cm1", "cm2")
    objects = {name: config_map(name, setting=LARGE[setting][:characters]) for name in names}
    return {**objects, "user": workload("Deployment", "user", container=ENV)}


def parts(cnf: Cnf) -> list[str]:
    """Return the names of the Secrets of what is too large for one."""
    secrets = cnf.admin.list(Collection("", "Secret", cnf.namespace)).items
    return [s["metadata"]["name"] for s in secrets if s["type"] == "container-update/revision-part"]


@pytest.mark.thorough
def test_very_large_configmaps_go_back_and_need_no_old_package(cnf: Cnf) -> None:
    cnf.instantiate(**large("old"))
    cnf.update(large("new"))
    record = record_of(cnf.cluster, cnf.namespace, INSTANCE, cnf.options)
    assert record.is_whole
    cnf.undo()
    assert cnf.get("ConfigMap", "cm2")["data"]["setting"] == LARGE["old"]


@pytest.fixture
def elsewhere(cnf: Cnf) -> Iterator[str]:
    """Another namespace, in which the one who updates has the same rights."""
    name = f"{cnf.namespace}-other"
    cnf.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    cnf.admin.delete(ObjectKey("", "Namespace", "", name))


def test_an_update_of_another_namespace_is_undone_and_what_was_there_is_kept_there(
    cnf: Cnf, elsewhere: str
) -> None:
    """What is kept there says that who wrote the history may write there."""
    cnf.cluster = cnf.admin

    def files(password: str) -> dict[str, str]:
        there = {
            "sec": secret(password=password),
            "there": config_map("there", setting=password),
        }
        for name, text in there.items():
            there[name] = text.replace("name: ", f"namespace: {elsewhere}, name: ", 1)
        return {**OLD, **there}

    cnf.instantiate(**files("previous"))
    cnf.update(files("replacement"))
    (head,) = kept(cnf)
    content = gzip.decompress(base64.b64decode(head["data"]["content"])).decode()
    assert b64("previous") not in content
    cnf.undo()
    key = ObjectKey("", "Secret", elsewhere, "sec")
    live = cnf.admin.get(key)
    assert live is not None
    assert base64.b64decode(live["data"]["password"]) == b"previous"
    live = cnf.admin.get(ObjectKey("", "ConfigMap", elsewhere, "there"))
    assert live is not None
    assert live["data"] == {"setting": "previous"}
    HistoryWriter(cnf.cluster, cnf.namespace, INSTANCE).clear()
    left = cnf.admin.list(Collection("", "Secret", elsewhere)).items
    assert [each for each in left if each["type"].startswith("container-update/")] == []


@pytest.mark.thorough
def test_what_is_too_large_for_the_history_deletes_older_revisions(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    cnf.instantiate(**large("old"))
    cnf.update(large("new"))
    number = len(parts(cnf))
    monkeypatch.setattr(keeping, "MAX_PARTS", 2 * number)
    cnf.update(large("newer"))
    cnf.update(large("old"))
    assert [revision.number for revision in cnf.history()] == [3, 2]
    assert len(parts(cnf)) == 2 * number
    HistoryWriter(cnf.cluster, cnf.namespace, INSTANCE).clear()
    assert parts(cnf) == []


def b64(text: str) -> str:
    """Return the middle of a text in base64, which does not depend on what follows it."""
    return base64.b64encode(text.encode()).decode()[:8]


class Killed(BaseException):
    """Stands for the end of the process."""


def update_and_die(
    cnf: Cnf,
    monkeypatch: pytest.MonkeyPatch,
    first: Callable[..., object] = lambda *_: None,
    files: Mapping[str, str] = NEW,
) -> None:
    """Begin an update whose process ends when all its steps are done.

    :param first: what it still does of writing its revision.
    """

    def die(*arguments: object) -> None:
        first(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(JournalledRun, "_keep_history", die)
        with pytest.raises(Killed):
            cnf.update(files, replace(cnf.options, lease_seconds=3))


def test_a_run_that_ends_twice_is_once_in_the_history(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after it wrote the revision and before it removed the journal."""
    cnf.instantiate(**OLD)
    update_and_die(cnf, monkeypatch, JournalledRun._keep_history)
    resumed = cnf.resume()
    assert resumed is not None
    assert [revision.number for revision in cnf.history()] == [1] == [resumed.revision]


def test_parts_that_a_killed_run_has_not_written_are_written_by_the_next(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "PART_BYTES", 1000)
    cnf.instantiate(**large("old", 5000))
    keep_history = JournalledRun._keep_history

    def keep_without_parts(*arguments: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(operation_secrets, "write_parts", lambda *_: None)
            keep_history(*arguments)

    update_and_die(cnf, monkeypatch, keep_without_parts, large("new", 5000))
    assert [revision.is_kept for revision in cnf.history()] == [False]
    assert parts(cnf) == []
    cnf.resume()
    assert [revision.is_kept for revision in cnf.history()] == [True]
    assert len(parts(cnf)) > 1


def test_a_run_that_is_undone_after_it_was_kept_as_done_is_kept_as_undone(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after it wrote the revision and before it removed the journal, then rolled back."""
    cnf.instantiate(**OLD)
    update_and_die(cnf, monkeypatch, JournalledRun._keep_history)
    cnf.rollback()
    (revision,) = cnf.history()
    assert (revision.number, revision.result) == (1, Result.UNDONE)
    assert "was interrupted" in revision.cause
    assert not revision.instance


@pytest.mark.parametrize("way", ["resume", "update"])
def test_who_finishes_an_interrupted_update_learns_its_packages_and_its_revision(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    cnf.instantiate(**OLD)
    update_and_die(cnf, monkeypatch)
    outcome = cnf.resume() if way == "resume" else cnf.update(NEW)
    assert outcome is not None
    (revision,) = cnf.history()
    assert outcome.revision == revision.number == 1
    digests = [package.sha256 for package in outcome.plan.packages]
    assert digests == [package.sha256 for package in revision.origin.packages] != []


def test_a_change_of_the_package_is_in_the_history_and_says_how_to_change_back(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    request = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    new = cnf.package({f"{name}.yaml": text for name, text in NEWER.items()})
    change_package(request, cnf.cluster, cnf.options, old=cnf.old, new=new, **cnf.where)
    (revision,) = cnf.history()
    assert revision.origin.kind == "RollingUpdate"
    shown = text_of(diff_of_revision(revision))
    assert f"container main: image {IMAGES[0]} -> {IMAGES[1]}" in shown
    assert "+new" in shown
    with pytest.raises(
        PlanError, match=r"this program did not install it.*change the package back"
    ):
        cnf.undo()


def test_a_workload_shows_why_it_was_changed(cnf: Cnf) -> None:
    """What ``kubectl rollout history`` shows."""
    cnf.instantiate(**OLD)
    cnf.update(NEW)
    live = cnf.get("Deployment", "user")
    cause = live["metadata"]["annotations"]["kubernetes.io/change-cause"]
    assert cause.endswith(": ConfigMap cm")
    sets = cnf.admin.list(Collection("apps", "ReplicaSet", cnf.namespace)).items
    causes = [(body["metadata"].get("annotations") or {}).get("kubernetes.io/change-cause")
              for body in sets if body["metadata"]["name"].startswith("user-")]  # fmt: skip
    assert cause in causes
    assert events(cnf, "user") == [], "an Event costs a request"


def test_an_undo_puts_the_cause_of_the_last_change_back_and_is_an_event(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    with pytest.raises(UpdateFailedError):
        cnf.update(BAD, replace(cnf.options, grace_period=0.5))
    annotations = cnf.get("Deployment", "user")["metadata"].get("annotations") or {}
    assert "kubernetes.io/change-cause" not in annotations
    undone = next(each for each in events(cnf, "user") if each["reason"] == "UpdateUndone")
    assert undone["type"] == "Warning"
    assert "ImagePull" in undone["message"]


def events(cnf: Cnf, name: str) -> list[Json]:
    """Return our Events about a Deployment."""
    about = f"involvedObject.name={name},involvedObject.kind=Deployment"
    listed = cnf.admin.list(Collection("", "Event", cnf.namespace, fields=about)).items
    return [body for body in listed if body["source"].get("component") == "container-update"]


def test_of_a_vnf_that_a_vnfm_has_on_record_the_last_two_operations_are_kept(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    for package in (NEW, OLD, NEW):
        cnf.update(package, cnf.options.for_vnfm())
    names = sorted(secret["metadata"]["name"].rpartition(".")[2] for secret in kept(cnf))
    assert names == ["v2", "v3"]
    assert read_options(None).history == 2
    assert replace(cnf.options, history=0).for_vnfm().history == 0, "as the operator says"
