# SPDX-License-Identifier: Apache-2.0
"""Every verb on Kubernetes and every promise, as data: how each is called, and what it keeps.

All verbs work on the same VNF, a ConfigMap and a Deployment that reads it, and lead it from one of
its states to another one. ``doc/source/developers/promises.rst`` is made of the table in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from container_update import (
    CancelToken,
    HealRequest,
    Outcome,
    ScaleRequest,
    StepResult,
    StepWait,
    UpdateInterruptedError,
    UpdateRequest,
    abort,
    change_package,
    install,
    promote,
    resume,
    rollback,
    terminate,
    undo,
    update,
)
from container_update.emulator.kubernetes import Registry
from container_update.emulator.kubernetes.kubelet.behaviour import Exit
from tests.functional import reference_update
from tests.functional.admission import Policy, json_patch, tried
from tests.functional.change_vnfpkg.kubernetes import VDU, VNFD
from tests.functional.cnf import IMAGES, INSTANCE
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.promise import Checker, Expected, Running, settled
from tests.functional.real import REAL
from tests.functional.reference_update import Lab
from tests.functional.upgrade_types import BLUE_GREEN, CANARY, ROLLING
from tests.internals.core import Collection, Event, Heal, ObjectKey, Scale, build, run

OPTIONS = replace(reference_update.OPTIONS, drain_seconds=0.05)
CRASHING = "crash:1"
"""An image that the kubelets of a real cluster for tests let crash."""
LAST_WORDS = (
    (f"starting {CRASHING}", "fatal: crashed on purpose") if REAL else ("no licence found",)
)
"""What a container writes before it crashes."""
FAST = ("--grace-period", "0.3", "--drain-seconds", "0.05")


# --- the VNF --------------------------------------------------------------------------------------


def state(setting: str, image: str, pods: int = 1) -> Expected:
    """Return what a version of the VNF is while it runs."""
    running = Running(image, {"SETTING": setting}, pods)
    return Expected({("ConfigMap", "cm"): {"setting": setting}}, {("Deployment", "w"): running})


OLD, NEW = state("old", IMAGES[0]), state("new", IMAGES[1])
HALF_NEW = Expected(NEW.config, OLD.workloads)
"""What an update leaves that stops when its first step is done."""
NOTHING = Expected({("ConfigMap", "cm"): None}, {("Deployment", "w"): None})


@dataclass
class Site:
    """The VNF, in a namespace of its own."""

    lab: Lab
    namespace: str = field(init=False)
    _before: Checker | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.namespace = self.lab.deploy({})
        self.old = self._package("old", IMAGES[0])
        self.new = self._package("new", IMAGES[1])

    def _package(self, setting: str, image: str) -> str:
        vnfd = VNFD.format(vnfd_id=f"vnfd-{setting}", vdus=VDU.format(vdu="VDU1", name="w"))
        manifests = {
            "cm": config_map(setting=setting),
            "w": workload("Deployment", container=ENV, image=image),
        }
        folder = self.lab.package({"Definitions/vnf.vnfd.yaml": vnfd, **manifests})
        build.write_metadata(Path(folder))
        return folder

    @property
    def where(self) -> dict[str, Any]:
        """The arguments that say which instance it is."""
        return {"namespace": self.namespace, "instance_id": INSTANCE}

    @property
    def options(self) -> list[str]:
        """The options of a command that say the same."""
        return ["--namespace", self.namespace, "--instance-id", INSTANCE, *FAST]

    @property
    def checker(self) -> Checker:
        """Compares what is there with what was there when it was first asked for."""
        self._before = self._before or Checker(self.lab.server, self.namespace)
        return self._before

    def differences(self, *states: Expected, undone: bool = False) -> list[str]:
        """Return what is not as in one of these states once all has settled, and what is left over.

        :param undone: the objects themselves are to be as they were too.
        """

        def found() -> list[str]:
            compared = (self.checker.differences(each, as_before=undone) for each in states)
            return [*min(compared, key=len), *self.checker.left_over()]

        return settled(found)

    @contextmanager
    def lingering(self) -> Iterator[None]:
        """Have pods that are deleted while the block runs stay until it ends; those of a real
        cluster take long enough by themselves."""
        if REAL:
            yield
            return
        behaviour = self.lab.behaviour
        seconds, behaviour.stop_seconds = behaviour.stop_seconds, 30.0
        try:
            yield
        finally:
            behaviour.stop_seconds = seconds
            self.lab.embedded.call(self._end_pods)

    def _end_pods(self, registry: Registry) -> None:
        for pod in registry.list("pods", self.namespace):
            if pod["metadata"].get("deletionTimestamp"):
                registry.delete("pods", self.namespace, pod["metadata"]["name"], grace_seconds=0)

    @contextmanager
    def broken(self, image: str) -> Iterator[None]:
        """Have containers of an image that start while the block runs write LAST_WORDS and exit."""
        with self._replaced_by_crashing(image) if REAL else self._crashing(image):
            yield

    @contextmanager
    def _crashing(self, image: str) -> Iterator[None]:
        behaviour = self.lab.behaviour
        rule = Exit(image=image, pod="w-*", code=3)
        behaviour.exits.append(rule)
        behaviour.logs[image] = "".join(f"{line}\n" for line in LAST_WORDS)
        try:
            yield
        finally:
            behaviour.exits.remove(rule)
            del behaviour.logs[image]

    @contextmanager
    def _replaced_by_crashing(self, image: str) -> Iterator[None]:
        """Have the API server replace the image of new pods by one that crashes."""
        condition = f"object.spec.containers[0].image == '{image}'"
        spec = {
            "matchConditions": [{"name": "image", "expression": condition}],
            "mutations": [json_patch("replace", "/spec/containers/0/image", CRASHING)],
        }
        policy = Policy("crash", self.namespace, "Pod", spec)
        with policy.in_force(self.lab.admin, lambda: self._image_of_a_new_pod(image) == CRASHING):
            yield
        self._end_crashing_pods()

    def _end_crashing_pods(self) -> None:
        """Delete the pods that have the image for good; their controllers replace them."""
        for pod in self.lab.admin.list(Collection("", "Pod", self.namespace)).items:
            if pod["spec"]["containers"][0]["image"] == CRASHING:
                self.lab.admin.delete(ObjectKey.of(pod, self.namespace))

    def _image_of_a_new_pod(self, image: str) -> str:
        """Return the image that the server would store for this one."""
        pod = tried(self.lab.admin, self.namespace, "Pod", image=image)
        return str(pod["spec"]["containers"][0]["image"])


# --- the verbs ------------------------------------------------------------------------------------

Act = Callable[..., Outcome | None]
"""Does it: with a site, a client of the cluster, and the library's ``cancel`` and ``progress``."""
Arrange = Callable[[Site], object]


def _in(site: Site, cluster: Any) -> dict[str, Any]:
    return {"cluster": cluster, "options": OPTIONS, **site.where}


def _update(site: Site, cluster: Any, **how: Any) -> Outcome:
    request = UpdateRequest(old=site.old, new=site.new, **site.where)
    return update(request, cluster, OPTIONS, **how)


def _change(
    upgrade_type: str, site: Site, cluster: Any, *, hold: bool = False, **how: Any
) -> Outcome:
    params = {"upgrade_type": upgrade_type, **({"hold": True} if hold else {})}
    request = {"vnfdId": "vnfd-new", "additionalParams": params}
    packages: dict[str, Any] = {"old": site.old, "new": site.new}
    return change_package(request, **_in(site, cluster), **packages, **how)


def _change_command(upgrade_type: str, *arguments: Any) -> Sequence[str]:
    *options, site = arguments
    packages = (site.old, site.new)
    return ["change", *packages, "--upgrade-type", upgrade_type, *options]


def _install(site: Site, cluster: Any, **how: Any) -> Outcome:
    return install(site.new, **_in(site, cluster), **how)


def _uninstall(site: Site, cluster: Any, **how: Any) -> Outcome:
    return terminate(None, **_in(site, cluster), **how)


def _heal(site: Site, cluster: Any, **how: Any) -> Outcome:
    """Heal a VNF that runs from the new package, but is as the old one says."""
    return run(Heal(HealRequest(site.new, **site.where), OPTIONS), cluster, OPTIONS, **how)


def _scale(site: Site, cluster: Any, **how: Any) -> Outcome:
    return run(
        Scale(ScaleRequest(site.old, {"VDU1": 2}, **site.where), OPTIONS), cluster, OPTIONS, **how
    )


def _undo(site: Site, cluster: Any, **how: Any) -> Outcome | None:
    return undo(**_in(site, cluster), **how)


def _resume(site: Site, cluster: Any, **how: Any) -> Outcome | None:
    return resume(**_in(site, cluster), **how)


def _rollback(site: Site, cluster: Any, **how: Any) -> Outcome | None:
    return rollback(**_in(site, cluster), **how)


def installed(site: Site) -> None:
    """Install the old package."""
    install(site.old, **_in(site, site.lab.cluster))


def updated(site: Site) -> None:
    """Install the old package and update to the new one."""
    installed(site)
    _update(site, site.lab.cluster)


def interrupted(at: type[Event], left: Expected, site: Site) -> None:
    """Install the old package and begin an update that is left at the first event of this kind.

    :param left: what is there when the controllers have done what they were asked for until then.
    """
    installed(site)
    assert site.checker, "what was there is remembered"
    cancel = CancelToken()

    def stop(event: Event) -> None:
        if isinstance(event, at):
            cancel.request("by the test", keep_journal=True)

    with site.lingering(), pytest.raises(UpdateInterruptedError):
        _update(site, site.lab.cluster, cancel=cancel, progress=stop)
    assert settled(lambda: site.checker.differences(left, as_before=False)) == []


def held(site: Site) -> None:
    """Install the old package and begin a Blue-Green change that waits for a person."""
    installed(site)
    assert site.checker, "what was there is remembered"
    assert _change(BLUE_GREEN, site, site.lab.cluster, hold=True).held


def _promote(site: Site, cluster: Any, **how: Any) -> Outcome | None:
    return promote(**_in(site, cluster), **how)


def _abort(site: Site, cluster: Any, **how: Any) -> Outcome | None:
    return abort(**_in(site, cluster), **how)


@dataclass(frozen=True)
class Verb:
    """A verb, and where it leads the VNF."""

    name: str
    act: Act
    arrange: Arrange = installed
    """Brings the VNF to where the verb has something to do."""
    old: Expected = OLD
    """What is there before, and after it was undone."""
    new: Expected = NEW
    resumed: tuple[Expected, ...] = ()
    """What a resume may lead to besides, while it has not turned an operation back yet."""
    image: str = IMAGES[1]
    """What the pods run that it starts."""
    command: Callable[[Site], Sequence[str]] | None = None
    """The command, without what says which instance it is."""
    plan: Callable[[Site], Sequence[str]] | None = None
    """The command that plans it."""
    right: tuple[str, str] = ("deployments", "update")
    """(resource, verb): a right that is needed at its end, or to undo it."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Promise to the reason why it is not kept, or makes no sense."""

    def keeps(self, promise: str) -> bool:
        """Return whether it keeps a promise."""
        return promise not in self.reasons


PROMISES: Mapping[str, str] = {
    "lease": "While it runs, another operation of the instance is refused, and changes nothing.",
    "journal": "Killed after any of its writes, it is finished by ``resume`` or undone by "
    "``rollback``: the VNF is then wholly new or wholly old, and nothing of the run is left.",
    "undo": "Stopped near its end, it puts everything back: the VNF is wholly old.",
    "late writes": "A request of a host that is gone, which arrives when another one has gone on, "
    "changes nothing.",
    "writes of others": "What another client changes meanwhile is not written over: it stays, and "
    "where it is in the way the operation is undone and the message names the object.",
    "rights": "A right that it lacks at its end, or to be undone, is reported before its first "
    "write.",
    "saved plan": "Its plan is tried on the server by a dry run, saved, and carried out later as "
    "it is, or refused if something has changed since.",
    "plan": "Its plan writes nothing: all objects are as before, and no request was a write, dry "
    "runs left out.",
    "fails early": "If its pods crash it fails without waiting for the time limit, and names pod, "
    "container, reason and the end of the log. Everything is as before; what could not be put back "
    "is left for a ``rollback``.",
    "history": "It is kept in the history, and ``undo`` undoes it.",
    "progress": "It reports its plan, each step and each result; ``watch`` follows it from another "
    "process; cancelled, it is undone.",
    "JSON": "Its command writes one JSON document and has the exit status of what became of it.",
    "records": "What it returns for the records of a VNFM is exactly the live pods of each VDU.",
}
"""The columns: name to sentence."""

_SERVICE = (
    "There is no command for it: a VNFM heals and scales, the service has them (:doc:`/vnfm`)."
)
_ENDS = "It has no plan of its own: it ends the one in the journal."
_RECOVERY = {"saved plan": _ENDS, "plan": _ENDS}


_UPKEEP = {
    "saved plan": _SERVICE,
    "plan": _SERVICE,
    "history": "The history has what leads to another package. Healing and scaling are in the "
    "records of the VNFM.",
    "JSON": _SERVICE,
}


VERBS = (
    Verb(
        "update",
        _update,
        command=lambda site: ["apply", site.old, site.new],
        plan=lambda site: ["plan", site.old, site.new],
    ),
    Verb(
        "change: rolling",
        partial(_change, ROLLING),
        command=partial(_change_command, ROLLING),
        plan=partial(_change_command, ROLLING, "--plan"),
    ),
    Verb(
        "change: Blue-Green",
        partial(_change, BLUE_GREEN),
        command=partial(_change_command, BLUE_GREEN),
        plan=partial(_change_command, BLUE_GREEN, "--plan"),
        right=("deployments", "delete"),
    ),
    Verb(
        "change: canary",
        partial(_change, CANARY),
        command=partial(_change_command, CANARY),
        plan=partial(_change_command, CANARY, "--plan"),
        right=("deployments", "delete"),
    ),
    Verb(
        "install",
        _install,
        arrange=lambda _: None,
        old=NOTHING,
        command=lambda site: ["install", site.new],
        plan=lambda site: ["install", site.new, "--plan"],
        right=("deployments", "delete"),
        reasons={
            "history": "It is the first revision. It is undone by ``uninstall``: ``undo`` goes "
            "back from one package to another one.",
        },
    ),
    Verb(
        "uninstall",
        _uninstall,
        new=NOTHING,
        command=lambda _: ["uninstall"],
        plan=lambda _: ["uninstall", "--plan"],
        right=("deployments", "create"),
        reasons={
            "writes of others": "It writes nothing: what is the instance's is deleted as it is.",
            "fails early": "It starts no pods.",
            "history": "The history ends with the instance: a summary of it stays, for ``history "
            "--uninstalled``.",
        },
    ),
    Verb("heal", _heal, reasons=_UPKEEP),
    Verb("scale", _scale, new=state("old", IMAGES[0], 2), image=IMAGES[0], reasons=_UPKEEP),
    Verb(
        "undo",
        _undo,
        arrange=updated,
        old=NEW,
        new=OLD,
        image=IMAGES[0],
        command=lambda _: ["undo"],
        plan=lambda _: ["undo", "--plan"],
    ),
    Verb(
        "resume",
        _resume,
        partial(interrupted, StepResult, HALF_NEW),
        command=lambda _: ["resume"],
        reasons=_RECOVERY,
    ),
    Verb(
        "rollback",
        _rollback,
        partial(interrupted, StepWait, NEW),
        new=OLD,
        resumed=(NEW,),
        image=IMAGES[0],
        command=lambda _: ["rollback"],
        reasons={
            **_RECOVERY,
            "undo": "It is the undo, and goes on until everything is put back.",
            "history": "What it ends is kept in the history, as undone: nothing of it is left to "
            "undo.",
        },
    ),
)

ENDS_OF_A_HOLD = (
    Verb("promote", _promote, held, command=lambda _: ["promote"]),
    Verb("abort", _abort, held, new=OLD, resumed=(NEW,), command=lambda _: ["abort"]),
)
"""Verbs that end a change that waits for a person."""

RECOVERIES = (
    *ENDS_OF_A_HOLD,
    Verb("the same update", _update, partial(interrupted, StepResult, HALF_NEW)),
    Verb(
        "another operation",
        partial(_change, ROLLING),
        partial(interrupted, StepResult, HALF_NEW),
        resumed=(OLD,),
    ),
)
"""Verbs that end an operation, by themselves or before their own begins."""
