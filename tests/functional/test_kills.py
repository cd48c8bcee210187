# SPDX-License-Identifier: Apache-2.0
"""A process that is killed with SIGKILL at one of its writes: another one finishes or undoes it.

    CONTAINER_UPDATE_KUBECONFIG=... pytest -m 'not complete' tests/functional/test_kills.py

Each verb runs once undisturbed: that shows what it leads to, and how many writes it sends. Then it
is killed at some of them, in a process of its own: the command where there is one, else the
library's function. All of this goes through the API, so that it is the same on a real server.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import signal
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from container_update import (
    Options,
    UpdateRequest,
    change_package,
    connect,
    install,
    promote,
    resume,
    rollback,
    update,
)
from tests import forks
from tests.functional.change_vnfpkg.kubernetes import VDU, VNFD
from tests.functional.cnf import IMAGES, INSTANCE
from tests.functional.conftest import PATIENCE_SECONDS, until
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.promise import JOURNAL, PART, RECORDS, TAKEN_OVER, settled
from tests.functional.real import REAL
from tests.functional.upgrade_types import BLUE_GREEN
from tests.functional.verbs import ENDS_OF_A_HOLD, NEW, NOTHING, VERBS, Verb
from tests.internals.core import Collection, KubernetesCluster, ObjectKey, build, main

OPTIONS = Options(timeout=120, undo_timeout=120, grace_period=5, drain_seconds=0.05)
FAST = ("--grace-period", "5", "--drain-seconds", "0.05")

KILLS = 5
"""How many times each verb is killed: at its first write, at its last one, and in between."""

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {selector: {app: w}, ports: [{port: 80}]}
"""


# --- the VNF --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """The VNF, in a namespace of its own: what a verb of ``verbs.py`` asks of its site."""

    namespace: str
    old: str
    new: str

    @property
    def where(self) -> dict[str, Any]:
        """The arguments that say which instance it is."""
        return {"namespace": self.namespace, "instance_id": INSTANCE}

    @property
    def options(self) -> list[str]:
        """The options of a command that say the same."""
        return ["--namespace", self.namespace, "--instance-id", INSTANCE, *FAST]


def package(folder: Path, setting: str, image: str) -> str:
    """Write a package and return its path."""
    manifests = {
        "cm": config_map(setting=setting),
        "w": workload("Deployment", container=ENV, image=image),
        "s": SERVICE,
    }
    vnfd = VNFD.format(vnfd_id=f"vnfd-{setting}", vdus=VDU.format(vdu="VDU1", name="w"))
    files = {f"Files/{name}.yaml": text for name, text in manifests.items()}
    for name, text in {**files, "Definitions/vnf.vnfd.yaml": vnfd}.items():
        (folder / setting / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / setting / name).write_text(text)
    build.write_metadata(folder / setting)
    return str(folder / setting)


# --- what is there --------------------------------------------------------------------------------

KINDS = {
    "ConfigMap": "",
    "Secret": "",
    "Service": "",
    "Pod": "",
    "Deployment": "apps",
    "EndpointSlice": "discovery.k8s.io",
    "Lease": "coordination.k8s.io",
}
VARYING = (
    "clusterIP",
    "clusterIPs",
    "container-update/config-digest",
    "deployment.kubernetes.io/revision",
    "kubernetes.io/change-cause",
)
"""Fields and annotations that differ from one run to another one."""

RELEASE = "container-update/release"
"""The label whose random value tells new pods from old ones."""

Picture = Mapping[str, Any]
"""The fields of a VNF's objects and its pods by their paths, without what differs from run to
run."""


@dataclass(frozen=True)
class Found:
    """What is in a namespace at one moment, what the server puts there left out."""

    bodies: Sequence[Any]

    @classmethod
    def at(cls, cluster: KubernetesCluster, namespace: str) -> Found:
        """Ask the API server."""
        kinds = (Collection(group, kind, namespace) for kind, group in KINDS.items())
        bodies = [body for collection in kinds for body in cluster.list(collection).items]
        return cls([each for each in bodies if not each["metadata"]["name"].endswith(".crt")])

    def of(self, *kinds: str) -> list[Any]:
        """Return the objects of some kinds."""
        return [body for body in self.bodies if body["kind"] in kinds]

    @property
    def picture(self) -> Picture:
        """What belongs to the VNF."""
        own = [each for each in self.of("ConfigMap", "Secret", "Service", "Deployment")
               if not each.get("type", "").startswith("container-update/")]  # fmt: skip
        releases = {each["metadata"].get("labels", {}).get(RELEASE) for each in self.of("Pod")}
        found = {f"{each['kind']} {each['metadata']['name']}": _essence(each) for each in own}
        fields = dict(_fields("", {**found, "pods": sorted(map(_pod, self.of("Pod")))}))
        text = json.dumps(fields)
        for release in filter(None, releases):
            text = text.replace(release, "RELEASE")
        picture: Picture = json.loads(text)
        return picture

    def differences(self, expected: Picture) -> list[str]:
        """Return what is not as in a picture."""
        found = self.picture
        return [
            f"{name}: found {found.get(name)}, expected {expected.get(name)}"
            for name in sorted(found.keys() | expected.keys())
            if found.get(name) != expected.get(name)
        ]

    @property
    def is_at_rest(self) -> bool:
        """No run has left anything, and no pod is still ending: a real one takes its time."""
        return not self.left_over and not any(map(_is_deleted, self.of("Pod")))

    @property
    def left_over(self) -> list[str]:
        """What a run has left: its lease, its journal, its marks, and Services without pods."""
        journals = [each for each in self.of("Secret") if each.get("type") == JOURNAL]
        marked = [each for each in self.bodies if _is_marked(each)]
        problems = [f"left: {ObjectKey.of(each)}" for each in self.of("Lease") + journals + marked]
        pods = {pod["metadata"]["uid"] for pod in self.of("Pod")}
        served = {
            endpoint["targetRef"]["uid"]
            for each in self.of("EndpointSlice")
            for endpoint in each.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
        }
        if self.of("Service") and served != pods:
            problems.append(f"Services have the endpoints {served}, expected those of {pods}")
        return problems


def _essence(body: Any) -> Any:
    metadata = {name: body["metadata"].get(name) or {} for name in ("labels", "annotations")}
    essence = {**body, "metadata": metadata}
    essence.pop("status", None)
    return essence


def _fields(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a value by their paths."""
    named = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in named:
        if name in VARYING:
            continue
        if isinstance(each, dict | list) and each:
            yield from _fields(f"{prefix}.{name}", each)
        else:
            yield f"{prefix}.{name}", each


def _is_deleted(body: Any) -> bool:
    return "deletionTimestamp" in body["metadata"]


def _pod(body: Any) -> tuple[Any, ...]:
    status = body["status"]
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    image = body["spec"]["containers"][0]["image"]
    return image, conditions.get("Ready"), _is_deleted(body)


def _is_marked(body: Any) -> bool:
    metadata = body["metadata"]
    owners = {each["kind"] for each in metadata.get("ownerReferences") or ()}
    of_the_history = body.get("type") in (JOURNAL, PART)
    has_mark = TAKEN_OVER in (metadata.get("labels") or ()) or bool(owners & set(RECORDS))
    return has_mark and not of_the_history


# --- the processes --------------------------------------------------------------------------------


@dataclass
class Wire:
    """The writes of a process in the order in which they are sent; dry runs, reviews of rights and
    renewals of the lease are none."""

    last: int = 0
    """The number of the write at which the process is killed, or earlier if that one releases the
    lease: a write that meets a conflict is sent twice. 0: at none."""
    is_late: bool = False
    """It is killed when the request is sent, not when the answer is there."""
    sent: list[str] = field(default_factory=list)

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Note the writes of the block."""
        put, get = HTTPConnection.putrequest, HTTPConnection.getresponse
        current, lock = threading.local(), threading.Lock()

        def putrequest(connection: Any, method: str, url: str, *more: Any, **named: Any) -> None:
            with lock:
                self.sent += [f"{method} {url}"] * _is_write(method, url)
                is_there = _is_write(method, url) and len(self.sent) == self.last
            current.is_last = is_there or (self.last > 0 and _is_release(method, url))
            put(connection, method, url, *more, **named)

        def getresponse(connection: Any) -> Any:
            if current.is_last and self.is_late:
                os.kill(os.getpid(), signal.SIGKILL)
            response = get(connection)
            if current.is_last:
                os.kill(os.getpid(), signal.SIGKILL)
            return response

        with (
            mock.patch.object(HTTPConnection, "putrequest", putrequest),
            mock.patch.object(HTTPConnection, "getresponse", getresponse),
        ):
            yield


def _is_write(method: str, url: str) -> bool:
    is_renewal = method == "PUT" and "/leases/" in url
    return method != "GET" and not is_renewal and not re.search("dryRun=All|/selfsubject", url)


def _is_release(method: str, url: str) -> bool:
    return method == "DELETE" and "/leases/" in url


def _live(kubeconfig: str, name: str, place: Place, wire: Wire) -> None:
    """Be the process that is killed."""
    logging.getLogger().addHandler(logging.NullHandler())
    with wire.observed():
        perform(kubeconfig, BY_NAME[name], place)


def perform(kubeconfig: str, verb: Verb, place: Any) -> None:
    """Run the command of a verb, or the library's function where it has none."""
    if verb.command is None:
        with connect(kubeconfig, options=OPTIONS) as cluster:
            verb.act(place, cluster)
        return
    words = [*verb.command(place), *place.options, "--kubeconfig", kubeconfig]
    shown = StringIO()
    assert main(words, shown) == 0, shown.getvalue()


# --- the verbs ------------------------------------------------------------------------------------


ALL = (*VERBS, *ENDS_OF_A_HOLD)
BY_NAME = {verb.name: verb for verb in ALL}

INTERRUPTED, HELD = ("resume", "rollback"), ("promote", "abort")
"""The verbs that end an update which was killed, and a change which waits for a person."""
GOES_ON = {"rollback": "update", "abort": "promote"}
"""Killed before it has turned back, it is resumed as if this verb had been given."""


@dataclass(frozen=True)
class Course:
    """A run that nothing has disturbed."""

    new: Picture
    """What is there afterwards."""
    sent: Sequence[str]
    """Its writes."""


@dataclass
class Ground:
    """A cluster, with a namespace for each run."""

    kubeconfig: str
    cluster: KubernetesCluster
    folder: Path
    _courses: dict[str, Course] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.old = package(self.folder, "old", IMAGES[0])
        self.new = package(self.folder, "new", IMAGES[1])

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Yield a place in a new namespace."""
        name = f"cu-{uuid.uuid4().hex[:10]}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.cluster.create(body)
        account = ObjectKey("", "ServiceAccount", name, "default")
        until(lambda: self.cluster.get(account) is not None)
        try:
            yield Place(name, self.old, self.new)
        finally:
            self.cluster.delete(ObjectKey("", "Namespace", "", name))

    def arrange(self, verb: Verb, place: Place) -> Picture:
        """Bring the VNF to where a verb has something to do.

        :returns: what is there if the verb is undone.
        """
        if verb.old is not NOTHING:
            install(self.old, self.cluster, options=OPTIONS, **place.where)
        if verb.old is NEW:
            self._update(place)
        until(lambda: not Found.at(self.cluster, place.namespace).left_over)
        before = Found.at(self.cluster, place.namespace).picture
        if verb.name in INTERRUPTED:
            sent = self.course(BY_NAME["update"]).sent
            (number,) = (n for n, each in enumerate(sent, 1) if "PUT" in each and "/w" in each)
            assert self.killed(BY_NAME["update"], place, Wire(number)) == -signal.SIGKILL
        if verb.name in HELD:
            params = {"upgrade_type": BLUE_GREEN, "hold": True}
            request = {"vnfdId": "vnfd-new", "additionalParams": params}
            packages: dict[str, Any] = {"old": self.old, "new": self.new}
            change_package(
                request, cluster=self.cluster, options=OPTIONS, **packages, **place.where
            )
        return before

    def _update(self, place: Place) -> None:
        update(UpdateRequest(old=self.old, new=self.new, **place.where), self.cluster, OPTIONS)

    def course(self, verb: Verb) -> Course:
        """Return what a verb does when nothing disturbs it; it runs once."""
        if verb.name not in self._courses:
            with self.place() as place:
                self.arrange(verb, place)
                wire = Wire()
                with wire.observed():
                    perform(self.kubeconfig, verb, place)
                until(lambda: Found.at(self.cluster, place.namespace).is_at_rest)
                picture = Found.at(self.cluster, place.namespace).picture
                self._courses[verb.name] = Course(picture, wire.sent)
        return self._courses[verb.name]

    def killed(self, verb: Verb, place: Place, wire: Wire) -> int | None:
        """Run a verb in a process that is killed; return its exit status."""
        arguments = (self.kubeconfig, verb.name, place, wire)
        process = forks.context().Process(target=_live, args=arguments)
        process.start()
        process.join(120)
        status: int | None = process.exitcode
        return status

    def resumed(self, verb: Verb, place: Place, before: Picture) -> list[Picture]:
        """Resume what was killed; return the states that the VNF may be in then."""
        names = [verb.name, *filter(None, [GOES_ON.get(verb.name)])]
        states = [self.course(BY_NAME[name]).new for name in names]
        outcome = resume(self.cluster, OPTIONS, **place.where)
        if outcome is None:
            return [*states, before]
        if outcome.held is not None:
            promote(self.cluster, OPTIONS, **place.where)
        return states

    def rolled_back(self, verb: Verb, place: Place, before: Picture) -> list[Picture]:
        """Undo what was killed; return the states that the VNF may be in then."""
        outcome = rollback(self.cluster, OPTIONS, **place.where)
        return [before] if outcome else [before, self.course(verb).new]


@pytest.fixture(scope="module")
def ground(
    admin_kubeconfig: str, admin: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory
) -> Ground:
    return Ground(admin_kubeconfig, admin, tmp_path_factory.mktemp("packages"))


# --- the kills ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kill:
    """A verb is killed, and what it has begun is ended."""

    verb: Verb
    part: int
    """At which of its writes: of so many that are spread over all of them."""
    number: int
    """Of all kills: by turns one comes before the answer or after it, and one is resumed or rolled
    back."""

    def wire(self, writes: int) -> Wire:
        """Return where a run of so many writes is killed."""
        return Wire(1 + self.part * (writes - 1) // (KILLS - 1), is_late=self.number // 2 % 2 > 0)

    @property
    def is_resumed(self) -> bool:
        return self.number % 2 == 0

    def __str__(self) -> str:
        when = "with write" if self.wire(KILLS).is_late else "after write"
        end = "resumed" if self.is_resumed else "rolled back"
        return f"{self.verb.name}, {when} {self.part + 1} of {KILLS}, {end}"


EACH = [
    Kill(verb, part, number)
    for number, (verb, part) in enumerate(itertools.product(ALL, range(KILLS)))
]
"""The first circle has one of each verb, in the middle of its writes; on the embedded cluster,
where ``test_promises`` kills each verb too, one of each fourth verb."""


def is_first(kill: Kill) -> bool:
    """Tell whether a kill is in the first circle."""
    return kill.part == KILLS // 2 and (bool(REAL) or ALL.index(kill.verb) % 4 == 0)


@pytest.mark.parametrize(
    "kill",
    [pytest.param(kill, marks=() if is_first(kill) else pytest.mark.thorough) for kill in EACH],
    ids=str,
)
def test_what_was_killed_is_wholly_new_or_wholly_old_after_a_resume_or_a_rollback(
    kill: Kill, ground: Ground
) -> None:
    course = ground.course(kill.verb)
    with ground.place() as place:
        before = ground.arrange(kill.verb, place)
        wire = kill.wire(len(course.sent))
        assert ground.killed(kill.verb, place, wire) == -signal.SIGKILL
        end = ground.resumed if kill.is_resumed else ground.rolled_back
        states = end(kill.verb, place, before)

        def problems() -> list[str]:
            found = Found.at(ground.cluster, place.namespace)
            return [*min(map(found.differences, states), key=len), *found.left_over]

        assert settled(problems, PATIENCE_SECONDS) == []
