# SPDX-License-Identifier: Apache-2.0
"""Every verb on Kubernetes keeps every promise: one test a promise, the same scenario a verb."""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from threading import Event as Flag
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import yaml

from container_update import (
    CancelToken,
    ClusterError,
    ContainerUpdateError,
    Plan,
    PlanError,
    ResumeStarted,
    Step,
    StepResult,
    StepWait,
    UndoIncompleteError,
    UndoStarted,
    UpdateFailedError,
    UpdateInProgressError,
    UpdateInterruptedError,
    connect,
    history,
    promote,
    resume,
    rollback,
    status,
    terminate,
    undo,
)
from tests.circles import Circle, in_circles
from tests.functional import role
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.cnf import INSTANCE
from tests.functional.conftest import until
from tests.functional.everything import Contents, contents
from tests.functional.manifests import workload
from tests.functional.promise import Expected, Snapshot
from tests.functional.reference_update import Lab
from tests.functional.test_json_documents import VALIDATOR
from tests.functional.verbs import (
    ENDS_OF_A_HOLD,
    FAST,
    LAST_WORDS,
    OPTIONS,
    PROMISES,
    RECOVERIES,
    VERBS,
    Site,
    Verb,
)
from tests.internals.core import (
    INSTANCE_LABEL,
    Action,
    Event,
    ObjectKey,
    Right,
    attach,
    execute,
    main,
    root_parser,
)

OTHERS = "others:1"
"""The image that another client writes."""

WRITES = ("create", "replace", "delete")


@contextmanager
def arranged(lab: Lab, verb: Verb) -> Iterator[Site]:
    """Yield a VNF for which the verb has something to do."""
    site = Site(lab)
    verb.arrange(site)
    assert site.checker, "what was there is remembered"
    try:
        yield site
    finally:
        lab.remove(site.namespace)


@pytest.fixture
def site(lab: Lab, verb: Verb) -> Iterator[Site]:
    """A VNF for which the verb has something to do."""
    with arranged(lab, verb) as one:
        yield one


def promise(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each verb that keeps these promises."""
    assert set(names) <= PROMISES.keys()
    keep = [verb for verb in VERBS if all(map(verb.keeps, names))]
    return pytest.mark.parametrize("verb", keep, ids=[verb.name for verb in keep])


def where(site: Site) -> dict[str, Any]:
    return {"cluster": site.lab.cluster, "options": OPTIONS, **site.where}


# --- one at a time --------------------------------------------------------------------------------


@promise("lease")
def test_meanwhile_no_other_operation_of_the_instance_begins(verb: Verb, site: Site) -> None:
    refused: list[ContainerUpdateError] = []

    def uninstall(event: Event) -> None:
        if isinstance(event, StepResult) and not refused:
            try:
                terminate(None, **where(site))
            except ContainerUpdateError as error:
                refused.append(error)

    verb.act(site, site.lab.cluster, progress=uninstall)
    assert [type(error) for error in refused] == [UpdateInProgressError]
    assert site.differences(verb.new) == []


# --- interrupted anywhere -------------------------------------------------------------------------

NUMBERS = {
    Circle.DEFAULT: (4, 5),
    Circle.THOROUGH: (1, 3, 4, 5, 6, 7, 9, 10, 12, 15),
}
"""After which of its writes a run is killed: a sample, the fault matrix has every one. The two of
the default circle follow the first objects: one run is rolled back, one is resumed. ``test_kills``
kills processes."""


def killed(site: Site, verb: Verb, number: int, *, is_late: bool = False) -> Dying | None:
    """Return the client of a run that was killed after this many writes; None where it has fewer.

    :param is_late: the last one is still on its way.
    """
    dying = Dying(site.lab.cluster, number, WRITES, is_late=is_late)
    with suppress(ContainerUpdateError, Died):
        verb.act(site, dying)
    site.lab.free_leases(site.namespace)
    return dying if dying.is_dead else None


def recovered(site: Site, verb: Verb, number: int) -> list[Expected]:
    """Resume or roll back what was killed, by turns; return the states that the VNF may be in."""
    if number % 2:
        states = [verb.new, *verb.resumed]
        outcome = resume(**where(site))
        if outcome is not None and outcome.held:  # what was to end the wait had not been kept
            promote(**where(site))
        return states if outcome else [*states, verb.old]
    return [verb.old] if rollback(**where(site)) else [verb.old, verb.new]


JOURNALLED = [*(verb for verb in VERBS if verb.keeps("journal")), *ENDS_OF_A_HOLD]


@pytest.mark.parametrize("verb", JOURNALLED, ids=[verb.name for verb in JOURNALLED])
@in_circles(Circle.DEFAULT, Circle.THOROUGH)
def test_killed_after_any_write_it_is_finished_or_undone(
    verb: Verb, circle: Circle, lab: Lab
) -> None:
    for number in NUMBERS[circle]:
        with arranged(lab, verb) as site:
            if killed(site, verb, number) is None:
                break
            states = recovered(site, verb, number)
            assert site.differences(*states) == [], f"killed after write {number}"


STOPPED_AT = {
    Circle.DEFAULT: (4,),
    Circle.THOROUGH: range(1, 40),
}
"""At which of its events a run is stopped; no verb has as many. The first circle has one that
follows a write."""


@pytest.mark.parametrize(
    "verb", [*VERBS, *RECOVERIES], ids=[verb.name for verb in (*VERBS, *RECOVERIES)]
)
@in_circles(Circle.DEFAULT, Circle.THOROUGH)
def test_stopped_at_any_event_it_is_undone_or_left_for_another_run(
    verb: Verb, circle: Circle, lab: Lab
) -> None:
    """The way back of a run that goes on with another one begins where that one began."""
    ways = (False, True)
    if circle is Circle.DEFAULT:  # by turns
        ways = ways[(*VERBS, *RECOVERIES).index(verb) % 2 :][:1]
    for leaves in ways:
        for number in STOPPED_AT[circle]:
            with arranged(lab, verb) as site:
                if not stopped_at(site, verb, number, leaves=leaves):
                    break


REACHED_BY: dict[type[Event], str] = {
    Plan: "update",
    Step: "change: rolling",
    StepWait: "update",
    StepResult: "uninstall",
    UndoStarted: "another operation",
    ResumeStarted: "resume",
}
"""A verb that has each event of a run."""


def test_each_event_of_a_run_is_one_at_which_it_is_stopped() -> None:
    assert REACHED_BY.keys() == set(get_args(Event))


@pytest.mark.parametrize("kind", REACHED_BY, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("leaves", [False, True])
def test_stopped_at_each_kind_of_event_it_is_undone_or_left_for_another_run(
    kind: type[Event], leaves: bool, lab: Lab
) -> None:
    (verb,) = (each for each in (*VERBS, *RECOVERIES) if each.name == REACHED_BY[kind])
    with arranged(lab, verb) as site:
        assert stopped_at(site, verb, 1, leaves=leaves, kind=kind)


def stopped_at(
    site: Site, verb: Verb, number: int, *, leaves: bool, kind: type[object] = object
) -> bool:
    """Stop a run at one of its events, and check what it leaves; return whether it has so many.

    :param kind: the events that count.
    """
    cancel, events = CancelToken(), itertools.count(1)

    def stop(event: Event) -> None:
        if isinstance(event, kind) and next(events) == number:
            cancel.request("by the test", keep_journal=leaves)

    try:
        verb.act(site, site.lab.cluster, cancel=cancel, progress=stop)
    except UpdateInterruptedError as error:
        check_end(site, verb, number, str(error), leaves=leaves)
    else:
        check_end(site, verb, number, "", leaves=leaves)
    return bool(cancel)


def check_end(site: Site, verb: Verb, number: int, told: str, *, leaves: bool) -> None:
    """Check what a run leaves that was stopped at one of its events.

    :param told: why it ended before its end; '': it did not.
    """
    place = f"stopped at event {number}: {told}"
    is_left = status(**where(site)).record is not None
    assert is_left is (told != "" and "Everything is as before" not in told), place
    states = [verb.new]
    if told:
        states = recovered(site, verb, number) if leaves else [verb.old]
    assert site.differences(*states) == [], place


COMMANDS = [verb for verb in (*VERBS, *ENDS_OF_A_HOLD) if verb.command]
LEAVE_IT = ("resume", "rollback", "promote", "abort")
"""Commands that end an operation: a signal leaves it for another one."""


def test_each_command_that_a_signal_stops_is_one_of_these() -> None:
    """A new one needs a row in ``verbs.py``."""
    packages: Any = SimpleNamespace(old="old", new="new")
    (commands,) = (
        action.choices.items()
        for action in root_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    stopped = {
        name for name, each in commands if "--leave-on-signal" in each._option_string_actions
    }
    assert stopped == {verb.command(packages)[0] for verb in COMMANDS if verb.command}


class Signalling(io.StringIO):
    """The output of a command that gets SIGTERM at one of the events in it, and goes on only when
    it has noticed that."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.stderr, self._number, self._events = io.StringIO(), number, itertools.count(1)
        self.is_signalled = False

    def write(self, text: str) -> int:
        """See the class."""
        is_event = json.loads(text)["kind"] == "Event"
        if is_event and next(self._events) == self._number:
            self.is_signalled = True
            os.kill(os.getpid(), signal.SIGTERM)
            until(lambda: "a second signal" in self.stderr.getvalue())
        return super().write(text)


@pytest.mark.parametrize("verb", COMMANDS, ids=[verb.name for verb in COMMANDS])
@in_circles(Circle.DEFAULT, Circle.THOROUGH)
def test_a_command_that_gets_a_signal_at_any_event_undoes_it_or_leaves_it(
    verb: Verb, circle: Circle, lab: Lab
) -> None:
    ways = (True,) if verb.name in LEAVE_IT else (False, True)
    if circle is Circle.DEFAULT:  # by turns
        ways = ways[COMMANDS.index(verb) % len(ways) :][:1]
    for leaves in ways:
        for number in STOPPED_AT[circle]:
            with arranged(lab, verb) as site:
                if not signalled_at(site, verb, number, leaves=leaves):
                    break


def signalled_at(site: Site, verb: Verb, number: int, *, leaves: bool) -> bool:
    """Signal a command at one of its events, and check what it leaves; return whether it has so
    many."""
    assert verb.command is not None
    words = [*verb.command(site), *site.options, "--progress", "json"]
    words += ["--leave-on-signal"] if leaves and verb.name not in LEAVE_IT else []
    out = Signalling(number)
    with redirect_stderr(out.stderr):
        exit_status = main([*words, "--kubeconfig", site.lab.kubeconfig], out)
    told = "" if exit_status == 0 else out.getvalue().splitlines()[-1]
    assert exit_status in {0, UpdateInterruptedError.exit_status}, told
    check_end(site, verb, number, told, leaves=leaves)
    return out.is_signalled


@promise("undo")
def test_stopped_near_its_end_it_puts_everything_back(verb: Verb, site: Site) -> None:
    cancel, left = CancelToken(), set[Any]()

    def stop(event: Event) -> None:
        if isinstance(event, (Plan, ResumeStarted)):
            left.update(step.place for step in event.steps)
        if isinstance(event, StepResult):
            left.discard(event.step.place)
        if isinstance(event, (Step, StepResult)) and len(left) <= 1:
            cancel.request("by the test")

    with pytest.raises(UpdateInterruptedError, match="Everything is as before"):
        verb.act(site, site.lab.cluster, cancel=cancel, progress=stop)
    assert site.differences(verb.old, undone=True) == []


# --- others who write -----------------------------------------------------------------------------


@promise("late writes")
@pytest.mark.parametrize("number", [3, 4, 5, 6])
def test_a_late_request_changes_nothing(verb: Verb, number: int, site: Site) -> None:
    dying = killed(site, verb, number, is_late=True)
    assert dying is not None
    states = recovered(site, verb, number)
    with suppress(ClusterError):
        dying.late()
    assert site.differences(*states) == []


@promise("writes of others")
def test_what_others_change_meanwhile_is_not_written_over(verb: Verb, site: Site) -> None:
    places: list[Any] = []
    changed: list[ObjectKey] = []

    def meddle(event: Event) -> None:
        if isinstance(event, (Plan, ResumeStarted, UndoStarted)):
            removed = {s.key for s in event.steps if s.action is Action.DELETE}
            places.extend(s.place for s in event.steps if s.key not in removed)
        is_last = isinstance(event, UndoStarted) or (
            isinstance(event, Step) and event.place == places[-1]
        )
        if is_last and not changed:
            changed.append(places[-1][0])
            change_as_another(site, changed[0])

    message = ""
    try:
        verb.act(site, site.lab.cluster, progress=meddle)
    except UpdateFailedError as error:
        message = str(error)
    assert not message or str(changed[0]) in message
    assert is_of_another(site, changed[0])


def change_as_another(site: Site, key: ObjectKey) -> None:
    """Have another client change the image of a Deployment, or create it."""
    cluster = site.lab.admin

    def change() -> bool:
        live = cluster.get(key)
        body: Any = live or yaml.safe_load(workload("Deployment"))
        body["metadata"] |= {"namespace": key.namespace, "name": key.name}
        body["spec"]["template"]["spec"]["containers"][0]["image"] = OTHERS
        try:
            (cluster.replace if live else cluster.create)(body)
        except ClusterError as error:
            if error.status != 409:  # a controller has written its status in between
                raise
            return False
        return True

    until(change)


def is_of_another(site: Site, key: ObjectKey) -> bool:
    """Tell whether the change of that client is still there."""
    body = site.lab.cluster.get(key)
    return bool(body and body["spec"]["template"]["spec"]["containers"][0]["image"] == OTHERS)


# --- before anything is written -------------------------------------------------------------------


def requests(site: Site) -> list[str]:
    """Return the requests for its namespace that would change something, dry runs left out."""
    return [
        f"{each.method} {each.path}"
        for each in site.lab.server.requests
        if f"/namespaces/{site.namespace}/" in each.path
        and each.method not in ("GET", "HEAD")
        and "dryRun=All" not in each.query
        and not each.path.endswith("/token")
    ]


KINDS = {
    "": ("configmaps", "secrets", "pods", "pods/eviction", "pods/log", "events", "namespaces"),
    "apps": ("deployments", "replicasets", "statefulsets", "daemonsets"),
    "batch": ("jobs", "cronjobs"),
    "coordination.k8s.io": ("leases",),
    "rbac.authorization.k8s.io": ("roles",),
    "discovery.k8s.io": ("endpointslices",),
}
VERBS_OF_A_ROLE = ("get", "list", "watch", "create", "update", "delete")


def account_without(site: Site, resource: str, verb: str, path: Path) -> str:
    """Return a kubeconfig of an account that lacks one right."""
    rules = [
        {"apiGroups": [group], "resources": [each], "verbs": sorted(rights)}
        for group, resources in KINDS.items()
        for each in resources
        for rights in [{*VERBS_OF_A_ROLE} - ({verb} if each == resource else set())]
    ]
    for body in role.objects(site.namespace):
        site.lab.cluster.create({**body, "rules": rules} if "rules" in body else body)
    return role.write_kubeconfig(site.lab.kubeconfig, site.namespace, path)


@promise("rights")
def test_a_right_that_it_lacks_is_reported_before_its_first_write(
    verb: Verb, site: Site, tmp_path: Path
) -> None:
    resource, right = verb.right
    kubeconfig = account_without(site, resource, right, tmp_path / "kubeconfig")
    before = requests(site)
    with connect(kubeconfig, options=OPTIONS) as cluster:
        # an API server hears of a new Role a moment after it was created
        until(lambda: not cluster.missing_rights([Right(site.namespace, "", "Secret", "create")]))
        with pytest.raises(ClusterError, match=f"may not .*{right} Deployment"):
            verb.act(site, cluster)
    assert requests(site) == before
    verb.act(site, site.lab.cluster)
    assert site.differences(verb.new) == []


def typed(site: Site, *arguments: str) -> tuple[int, str]:
    """Run a command; return its exit status and what it writes."""
    out = io.StringIO()
    return main([*arguments, "--kubeconfig", site.lab.kubeconfig], out), out.getvalue()


@promise("saved plan")
@pytest.mark.parametrize("is_stale", [False, True], ids=["as it was", "changed since"])
def test_its_plan_is_tried_saved_and_carried_out_or_refused(
    verb: Verb, is_stale: bool, site: Site, tmp_path: Path
) -> None:
    file = str(tmp_path / "plan.json")
    assert verb.plan is not None
    status, text = typed(site, *verb.plan(site), *site.options, "--server", "--out", file)
    assert status == 3
    deletes_only = verb.name == "uninstall"  # of which nothing is tried
    said = r"accepts all \d writes \(dry"
    said = "was not asked: there is no dry run of deletions" if deletes_only else said
    assert re.search(f"The API server {said}", text)
    assert site.differences(verb.old, undone=True) == []
    if is_stale:
        make_stale(site)
        assert typed(site, "apply", file, *FAST)[0] == PlanError.exit_status
    else:
        assert typed(site, "apply", file, *FAST)[0] == 0
        assert site.differences(verb.new) == []


@promise("plan")
@pytest.mark.parametrize("more", [(), ("--server",)], ids=["alone", "with the server"])
def test_its_plan_writes_nothing(verb: Verb, more: tuple[str, ...], site: Site) -> None:
    assert verb.plan is not None
    known, sent = at_rest(site), requests(site)
    assert typed(site, *verb.plan(site), *site.options, *more)[0] == 3
    assert requests(site) == sent
    assert contents(site.lab.kubeconfig, site.namespace) == known


LOOKS = (
    ("status",), ("status", "--watch"), ("list",), ("history",), ("history", "--last", "--diff"),
    ("undo", "--plan"), ("doctor",),
)  # fmt: skip
"""Commands that only look, and take no package."""


@pytest.mark.parametrize("verb", [each for each in VERBS if each.name == "update"], ids=["update"])
def test_what_only_looks_writes_nothing(verb: Verb, site: Site) -> None:
    verb.act(site, site.lab.cluster)
    known, sent = at_rest(site), requests(site)
    for words in LOOKS:
        status, text = typed(site, *words, *site.options[: len(site.options) - len(FAST)])
        assert status in (0, 2, 3), (words, text)
    assert requests(site) == sent
    assert contents(site.lab.kubeconfig, site.namespace) == known


def at_rest(site: Site) -> Contents:
    """Wait until the objects stay as they are; return them."""
    seen: list[Contents] = [{}]

    def is_at_rest() -> bool:
        seen.append(contents(site.lab.kubeconfig, site.namespace))
        ending = [body for body in seen[-1].values() if "deletionTimestamp" in body["metadata"]]
        return seen[-2] == seen[-1] and not ending

    until(is_at_rest)
    return seen[-1]


def make_stale(site: Site) -> None:
    """Change the ConfigMap, or create it."""
    key = ObjectKey("", "ConfigMap", site.namespace, "cm")
    live = site.lab.cluster.get(key)
    if live is not None:
        site.lab.cluster.replace({**live, "data": {"setting": "of others"}})
        return
    metadata = {"name": key.name, "namespace": key.namespace, "labels": {INSTANCE_LABEL: INSTANCE}}
    site.lab.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


# --- what comes of it -----------------------------------------------------------------------------


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an undo bear the trouble of the pods that it starts for a moment only."""
    monkeypatch.setattr(execute, "UNDO_GRACE", 1.0)


@pytest.mark.usefixtures("short_patience")
@promise("fails early")
def test_pods_that_crash_are_named_before_the_time_is_up(verb: Verb, site: Site) -> None:
    with site.broken(verb.image), pytest.raises(UpdateFailedError) as raised:
        verb.act(site, site.lab.cluster)
    (diagnosis,) = [each.diagnosis for each in raised.value.outcome.results if each.diagnosis]
    assert diagnosis.pod.name.startswith("w-")
    assert diagnosis.container == "main"
    assert diagnosis.reason == "CrashLoopBackOff"
    assert diagnosis.log == LAST_WORDS
    assert diagnosis.pod.name in str(raised.value)
    if isinstance(raised.value, UndoIncompleteError):
        rollback(**where(site))
    assert site.differences(verb.old, undone=True) == []


@promise("history")
def test_it_is_in_the_history_and_undo_undoes_it(verb: Verb, site: Site) -> None:
    verb.act(site, site.lab.cluster)
    newest, *_ = history(**where(site))
    assert newest.result.value == "done"
    undo(**where(site), revision=newest.number)
    assert site.differences(verb.old) == []


@promise("progress")
def test_it_is_reported_step_by_step_and_followed_from_outside(verb: Verb, site: Site) -> None:
    events: list[Event] = []
    reached, released = Flag(), Flag()

    def hold(event: Event) -> None:
        events.append(event)
        if isinstance(event, StepResult):
            reached.set()
            assert released.wait(20)

    def release(event: Event) -> None:
        released.set()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(verb.act, site, site.lab.cluster, progress=hold)
        assert reached.wait(20)
        watched = attach(**where(site))
        assert watched is not None
        watched.pace = 0.02
        followed = watched.follow(release)
        outcome = running.result()
    assert outcome is not None
    places = {result.step.place for result in outcome.results}
    assert {e.step.place for e in events if isinstance(e, StepResult)} == places
    assert {result.step.place for result in followed.results} == places
    assert {r.state for r in followed.results} == {r.state for r in outcome.results}


@promise("progress")
def test_cancelled_it_is_undone(verb: Verb, site: Site) -> None:
    cancel = CancelToken()

    def stop(event: Event) -> None:
        if isinstance(event, (Step, UndoStarted)):
            cancel.request("by the test")

    with suppress(UpdateInterruptedError):
        verb.act(site, site.lab.cluster, cancel=cancel, progress=stop)
    assert cancel
    assert site.differences(verb.old) == []


@promise("JSON")
def test_it_is_a_document_and_its_exit_status_says_what_became_of_it(
    verb: Verb, site: Site
) -> None:
    assert verb.command is not None
    command = (*verb.command(site), *site.options, "-o", "json")
    status, text = typed(site, *command)
    document = json.loads(text)
    assert (status, document["kind"]) == (0, "Outcome")
    assert VALIDATOR.is_valid(document)
    status, text = typed(site, *command)
    assert status == 2
    assert VALIDATOR.is_valid(json.loads(text))


@pytest.mark.usefixtures("short_patience")
@promise("JSON", "fails early")
def test_a_failure_is_a_document_too(verb: Verb, site: Site) -> None:
    assert verb.command is not None
    with site.broken(verb.image):
        status, text = typed(site, *verb.command(site), *site.options, "-o", "json")
    document = json.loads(text)
    failed = UndoIncompleteError if verb.name == "rollback" else UpdateFailedError
    assert (status, document["kind"]) == (failed.exit_status, "Error")
    assert VALIDATOR.is_valid(document)


@promise("records")
def test_it_returns_the_live_pods_of_each_vdu(verb: Verb, site: Site) -> None:
    outcome = verb.act(site, site.lab.cluster)
    assert outcome is not None
    pods = Snapshot.at(site.lab.server, site.namespace).pods_of("Deployment", "w")
    live = [pod["metadata"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    expected = sorted(("VDU1", metadata["name"]) for metadata in live)
    assert sorted((vnfc.vdu_id, vnfc.pod_name) for vnfc in outcome.vnfcs) == expected
