# SPDX-License-Identifier: Apache-2.0
"""Somebody who may write Secrets in the VNF's namespace, and nothing else, forges journals and
histories: nothing but the VNF's own objects is ever written."""

from __future__ import annotations

import base64
import contextlib
import copy
import hashlib
import itertools
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from container_update import (
    CancelToken,
    ContainerUpdateError,
    HealRequest,
    PlanError,
    ScaleRequest,
    StepResult,
    UpdateFailedError,
    UpdateInterruptedError,
    UpdateRequest,
    abort,
    change_package,
    connect,
    history,
    install,
    promote,
    resume,
    rollback,
    terminate,
    undo,
    update,
)
from tests.functional import verbs
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import (
    INSTANCE_LABEL,
    Collection,
    Event,
    Goal,
    Heal,
    Included,
    Json,
    KubernetesCluster,
    ObjectKey,
    Scale,
    go_back,
    keeping,
    name_of,
    pack,
    run,
    unpack,
)

OLD = {
    "cm": config_map(setting="old"),
    "web": workload("Deployment", "web", container=ENV),
    "other": workload("Deployment", "other"),
}
NEW = {**OLD, "cm": config_map(setting="new")}
OTHERS = {**OLD, "other": workload("Deployment", "other", image=IMAGES[1])}
KEY = "only this host knows"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def site(cnf: Cnf, admin: KubernetesCluster, admin_kubeconfig: str) -> Iterator[Cnf]:
    """The CNF, updated without a key by an account that may do everything, as a VNFM's often may;
    and what is none of its business."""
    unsigned = replace(cnf.options, no_journal_key=True)
    cnf.cluster = cnf.admin = connect(admin_kubeconfig, options=unsigned)
    cnf.instantiate(**OLD)
    create_others(cnf)
    with cnf.cluster:
        yield cnf
    admin.delete(ObjectKey("", "Namespace", "", f"{cnf.namespace}-beside"))


def create_others(site: Cnf) -> None:
    beside = f"{site.namespace}-beside"
    site.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": beside}})
    for namespace, name in ((beside, "theirs"), (site.namespace, "neighbour")):
        metadata: Json = {"name": name, "namespace": namespace}
        if name == "neighbour":
            metadata["labels"] = {INSTANCE_LABEL: "another"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        site.admin.create({**body, "data": {"x": "as it was"}})


# --- forging --------------------------------------------------------------------------------------


def interrupt(site: Cnf, cluster: KubernetesCluster | None = None) -> None:
    """Begin an update, and leave it when its ConfigMap is written."""
    cancel = CancelToken()

    def stop(event: Event) -> None:
        if isinstance(event, StepResult):
            cancel.request("by the test", keep_journal=True)

    with pytest.raises(UpdateInterruptedError):
        update(site.request(NEW), cluster or site.cluster, site.options, cancel, stop)


def journal_of(site: Cnf) -> Json:
    name = name_of(site.where["instance_id"])
    body = site.admin.get(ObjectKey("", "Secret", site.namespace, name))
    assert body is not None, "the update was interrupted"
    return body


def forge(site: Cnf, edit: Callable[[Json], object], **more: str) -> None:
    """Edit what the journal holds, as who may write Secrets can.

    :param more: other values of its head.
    """
    head = journal_of(site)
    content = unpack(base64.b64decode(head["data"]["content"]))
    edit(content)
    values = {"content": pack(content)} | {name: v.encode() for name, v in more.items()}
    data = {name: base64.b64encode(value).decode() for name, value in values.items()}
    site.admin.replace({**head, "data": {**head["data"], **data}})


def key(site: Cnf, place: str) -> ObjectKey:
    """Return a key from 'group/kind/namespace/name'."""
    group, kind, namespace, name = place.replace("NS", site.namespace).split("/")
    return ObjectKey(group, kind, namespace, name)


def step(site: Cnf, action: str, place: str, live: Json | None = None) -> Json:
    """Return a step of a journal; *live* is what it says that was there before."""
    group, kind, namespace, name = key(site, place).as_dict().values()
    before = {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": kind,
        "metadata": {"name": name, "uid": "u", "resourceVersion": "1"}
        | ({"namespace": namespace} if namespace else {}),
        "data": {"x": "forged"},
    }
    if group == RBAC:
        del before["data"]
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
        before |= {"roleRef": role, "subjects": []}
    if live is not None:
        before |= {"metadata": live["metadata"]}
    place_of = {"group": group, "kind": kind, "namespace": namespace, "name": name}
    creates = action == "CREATE"
    return {
        "type": "manifest",
        "key": place_of,
        "action": action,
        "reasons": [],
        "images": {},
        "before": None if creates else before,
        "content": None if action == "DELETE" else before,
    }


FORGED = {
    "a ConfigMap of another namespace is written": ("REPLACE", "/ConfigMap/NS-beside/theirs"),
    "a ConfigMap of another namespace is deleted": ("CREATE", "/ConfigMap/NS-beside/theirs"),
    "a ServiceAccount in another namespace": ("DELETE", "/ServiceAccount/kube-system/forged-NS"),
    "a ClusterRoleBinding": ("DELETE", f"{RBAC}/ClusterRoleBinding//forged-NS"),
    "a RoleBinding in its own namespace": ("DELETE", f"{RBAC}/RoleBinding/NS/forged"),
    "what is another instance's": ("REPLACE", "/ConfigMap/NS/neighbour"),
}
"""What a forged step does: its action, and its object."""

NOTHING_LEFT = ("a ClusterRoleBinding", "a RoleBinding in its own namespace")
"""A step that deletes what is not there: who goes on has nothing left to do."""


def written(site: Cnf) -> list[str]:
    """Return what was written that is none of the VNF's business."""
    found = [key(site, place) for _, place in FORGED.values()]
    bodies = {each: site.admin.get(each) for each in found}
    own = {"theirs", "neighbour"}
    return [
        str(each)
        for each, body in bodies.items()
        if (body or {}).get("data") != ({"x": "as it was"} if each.name in own else None)
        or (body is None) is (each.name in own)
    ]


# --- journals -------------------------------------------------------------------------------------


def change(site: Cnf, upgrade_type: str, old: str | None, new: str) -> object:
    request = {"vnfdId": "vnfd-new", "additionalParams": {"upgrade_type": upgrade_type}}
    packages: Any = {"old": old, "new": new}
    return change_package(request, site.cluster, **site.where, options=site.options, **packages)


STRATEGIES = {
    "change: rolling": "RollingUpdate",
    "change: Blue-Green": "BlueGreen",
    "change: canary": "Canary",
}
VERBS: dict[str, Callable[[Cnf], object]] = {
    **{
        name: lambda site, how=how: change(site, how, site.old, site.request(OTHERS).new)  # type: ignore[misc]
        for name, how in STRATEGIES.items()
    },
    "install": lambda site: install(site.old, site.cluster, site.options, **site.where),
    "uninstall": lambda site: terminate(site.old, site.cluster, **site.where, options=site.options),
    "update": lambda site: site.update(OTHERS),
    "undo": lambda site: site.undo(),
    "resume": lambda site: site.resume(),
    "rollback": lambda site: site.rollback(),
    "heal": lambda site: keep_up(site, Heal(HealRequest(site.old, **site.where))),
    "scale": lambda site: keep_up(site, Scale(ScaleRequest(site.old, {"VDU1": 2}, **site.where))),
    "promote": lambda site: promote(site.cluster, site.options, **site.where),
    "abort": lambda site: abort(site.cluster, site.options, **site.where),
    "the rollback of a driver": lambda site: go_back(
        site.old, site.cluster, site.options, None, **site.where
    ),
}
ENDS_OF_A_HOLD = ("promote", "abort")


def test_each_verb_is_one_of_these() -> None:
    names = {verb.name for verb in (*verbs.VERBS, *verbs.ENDS_OF_A_HOLD)}
    assert names <= VERBS.keys() & ENDS.keys() & BY_THE_RECORD.keys() & HOST_ENDS.keys()


def keep_up(site: Cnf, goal: Goal) -> object:
    """Heal or scale; an operation that was interrupted ends first."""
    return run(goal, site.cluster, site.options)


def hold(site: Cnf) -> None:
    """Have the journal wait for a person before all of its steps."""
    key_of_it = {"group": "", "kind": "Hold", "namespace": "", "name": "forged"}
    forged = {"type": "hold", "action": "WAIT", "seconds": None, "key": key_of_it}
    forge(site, lambda record: record["steps"].insert(0, {**forged, "reasons": [], "images": {}}))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_step_about_what_is_not_the_vnfs_is_refused(
    site: Cnf, forged: str, verb: str
) -> None:
    interrupt(site)
    action, place = FORGED[forged]
    live = site.admin.get(key(site, place))
    forge(site, lambda record: record["steps"].append(step(site, action, place, live)))
    if verb in ENDS_OF_A_HOLD:
        hold(site)
    if verb in ("resume", "promote") and forged in NOTHING_LEFT:
        VERBS[verb](site)
    else:
        message = f"Secret {site.namespace}/.*Nothing was written"
        with pytest.raises(PlanError, match=message) as error:
            VERBS[verb](site)
        assert str(key(site, place)) in str(error.value)
    assert written(site) == []


def test_a_forged_step_deletes_no_pods_but_those_of_its_workload(site: Cnf) -> None:
    theirs = site.package({"theirs.yaml": workload("Deployment", "theirs")})
    install(theirs, site.cluster, site.options, namespace=site.namespace, instance_id="another")
    pods = site.pods("Deployment", "theirs")
    interrupt(site)
    forged = {
        "type": "pods",
        "key": site.key("Deployment", "web").as_dict(),
        "action": "REPLACE_PODS",
        "reasons": [],
        "images": {},
        "before": site.get("Deployment", "web"),
        "pods": [[name, pod.uid] for name, pod in pods.items()],
    }
    forge(site, lambda record: record["steps"].append(forged))
    site.resume()
    assert site.pods("Deployment", "theirs") == pods


MASKED: dict[str, Json] = {
    "another kind": {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "forged", "namespace": "NS"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
    },
    "no namespace": {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "forged-NS"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
    },
    "another namespace": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "theirs", "namespace": "NS-beside"},
        "data": {"x": "forged"},
    },
    "another name": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "neighbour", "namespace": "NS"},
        "data": {"x": "forged"},
    },
}
"""What an object of a step says that it is, and its key does not."""


@pytest.mark.parametrize("mask", MASKED)
@pytest.mark.parametrize("action", ["CREATE", "REPLACE", "DELETE"])
@pytest.mark.parametrize("kind", ["manifest", "config"])
@pytest.mark.parametrize("verb", ["resume", "rollback", "update"])
def test_a_forged_step_whose_object_is_another_one_writes_nothing(
    site: Cnf, mask: str, action: str, kind: str, verb: str
) -> None:
    interrupt(site)
    own = "cm" if action == "REPLACE" else "forged"
    said = json.loads(json.dumps(MASKED[mask]).replace("NS", site.namespace))
    live = site.get("ConfigMap", "cm") if own == "cm" else None
    said["metadata"] |= (live or {}).get("metadata", {}) | said["metadata"] if live else {}
    forged = {
        "type": kind,
        "key": site.key("ConfigMap", own).as_dict(),
        "action": action,
        "reasons": [],
        "images": {},
        "before": None if action == "CREATE" else said,
        "content": None if action == "DELETE" else said,
        "removed": [],
    }
    if kind == "manifest":
        del forged["removed"]
    forge(site, lambda record: record["steps"].append(forged))
    with contextlib.suppress(ContainerUpdateError):
        VERBS[verb](site)
    assert written(site) == []


@pytest.mark.parametrize("name", ["theirs", "../../NS-beside/deployments/theirs", {"a": 1}])
@pytest.mark.parametrize("verb", ["resume", "update"])
def test_a_forged_step_gives_no_workload_of_others_other_pods(
    site: Cnf, name: object, verb: str
) -> None:
    """The Deployment that takes the place of one that goes gets as many pods."""
    theirs = site.package({"theirs.yaml": workload("Deployment", "theirs")})
    where = site.namespace if name == "theirs" else f"{site.namespace}-beside"
    install(theirs, site.cluster, site.options, namespace=where, instance_id="another")
    key = ObjectKey("apps", "Deployment", where, "theirs")
    interrupt(site)
    other = site.get("Deployment", "other")
    other = site.admin.replace({**other, "spec": {**other["spec"], "replicas": 2}})
    forged = {
        "type": "manifest",
        "key": site.key("Deployment", "other").as_dict(),
        "action": "DELETE",
        "reasons": [],
        "images": {},
        "before": other,
        "content": None,
        "successor": name.replace("NS", site.namespace) if isinstance(name, str) else name,
    }
    forge(site, lambda record: record["steps"].append(forged))
    with contextlib.suppress(ContainerUpdateError):
        VERBS[verb](site)
    after = site.admin.get(key)
    assert after is not None
    assert after["spec"]["replicas"] == 1


def test_an_update_goes_back_on_its_own_only_on_what_its_packages_describe(site: Cnf) -> None:
    """What bears no label may be anybody's; who asks for just this rollback has looked."""
    interrupt(site)
    metadata = {"name": "unlabelled", "namespace": site.namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "y"}}
    live = site.admin.create(body)
    place = "/ConfigMap/NS/unlabelled"
    forge(site, lambda record: record["steps"].append(step(site, "REPLACE", place, live)))
    with pytest.raises(PlanError, match="unlabelled"):
        site.update(OTHERS)
    assert site.rollback() is not None


def test_the_packages_say_what_the_journal_is_believed(site: Cnf, tmp_path: Path) -> None:
    """An installation into another namespace too, with a ClusterRole, stops after its first step.
    It is finished by who names its package, and by nobody else."""
    package, instance_id = tmp_path / "elsewhere", f"elsewhere-{site.namespace}"
    package.mkdir()
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "rules": []}
    role["metadata"] = {"name": f"role-{site.namespace}"}
    (package / "role.yaml").write_text(json.dumps(role))
    metadata = {"name": "there", "namespace": f"{site.namespace}-beside"}
    there = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    (package / "there.yaml").write_text(json.dumps(there))
    where: dict[str, Any] = {"namespace": site.namespace, "instance_id": instance_id}
    cancel = CancelToken()

    def stop(event: Event) -> None:
        if isinstance(event, StepResult):
            cancel.request("by the test", keep_journal=True)

    with pytest.raises(UpdateInterruptedError):
        install(
            str(package),
            site.admin,
            **where,
            options=site.options,
            cancel=cancel,
            progress=stop,
        )
    with pytest.raises(PlanError, match="No package of this request describes"):
        resume(site.admin, site.options, **where)
    assert resume(site.admin, site.options, **where, packages=[str(package)]) is not None
    assert site.admin.get(key(site, "/ConfigMap/NS-beside/there")) is not None
    site.admin.delete(key(site, f"{RBAC}/ClusterRole//role-NS"))


# --- histories ------------------------------------------------------------------------------------


def forge_revision(site: Cnf, steps: list[Json]) -> None:
    """Write other steps into the first revision."""
    body = site.get("Secret", f"{name_of(INSTANCE)}.v1")
    content = unpack(base64.b64decode(body["data"]["content"]))
    content["steps"] = steps
    data = {**body["data"], "content": base64.b64encode(pack(content)).decode()}
    site.admin.replace({**body, "data": data})


@pytest.mark.parametrize("forged", [name for name in FORGED if "ConfigMap" in FORGED[name][1]])
def test_a_forged_revision_about_what_is_not_the_vnfs_is_refused(site: Cnf, forged: str) -> None:
    """Of an update: it writes configuration only."""
    action, place = FORGED[forged]
    site.update(NEW)
    said = step(site, action, place, site.admin.get(key(site, place)))
    if action == "REPLACE":  # from what is live
        content = {**said["content"], "data": {"x": "as it was"}}
        said = {**said, "type": "config", "removed": [], "content": content}
    forge_revision(site, [said])
    with pytest.raises(PlanError, match=r"No package of this request describes|another instance"):
        site.undo()
    assert written(site) == []


# --- what the packages describe elsewhere ---------------------------------------------------------

EVIL = {
    f"{RBAC}/ClusterRole//role-NS": {
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    },
    "/ConfigMap/NS-beside/described": {"data": {"x": "forged"}},
}
"""What a forged step writes, by an object that both packages describe."""


@dataclass
class Described:
    """A CNF whose packages describe a ClusterRole and a ConfigMap of another namespace too."""

    site: Cnf
    place: str

    def __post_init__(self) -> None:
        site, rule = self.site, {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
        self.said: Json = {"rules": [rule]} if "ClusterRole" in self.place else {"data": {"x": "y"}}
        self.key = key(site, self.place)
        metadata = {"name": self.key.name, "labels": {INSTANCE_LABEL: INSTANCE}}
        if self.key.namespace:
            metadata["namespace"] = self.key.namespace
        version = f"{self.key.group}/v1" if self.key.group else "v1"
        body = {"apiVersion": version, "kind": self.key.kind, "metadata": metadata, **self.said}
        self.live = site.admin.create(body)
        self.more = {"described.yaml": json.dumps(body)}
        self.old, self.new, self.other = map(self._package, (OLD, NEW, OTHERS))

    def _package(self, files: dict[str, str]) -> str:
        return self.site.package({f"{name}.yaml": text for name, text in files.items()} | self.more)

    def request(self, new: str) -> UpdateRequest:
        return UpdateRequest(old=self.old, new=new, **self.site.where)

    def step(self, part: str) -> Json:
        """Return a step whose *part*, or both, is forged."""
        live = {"apiVersion": "v1", "kind": self.key.kind, **self.live}
        live["apiVersion"] = f"{self.key.group}/v1" if self.key.group else "v1"
        metadata = dict(live["metadata"])
        metadata["annotations"] = {"container-update/manifest-digest": "x"}
        evil = {**live, "metadata": metadata, **EVIL[self.place]}
        return {
            **step(self.site, "REPLACE", self.place),
            "before": evil if part != "content" else live,
            "content": evil if part != "before" else live,
        }

    def is_as_described(self) -> bool:
        body = self.site.admin.get(self.key)
        return body is not None and all(body[name] == value for name, value in self.said.items())


ENDS: dict[str, Callable[[Described], object]] = {
    "the same update": lambda d: update(d.request(d.new), d.site.cluster, d.site.options),
    "another update": lambda d: update(d.request(d.other), d.site.cluster, d.site.options),
    "resume": lambda d: resume(
        d.site.cluster, d.site.options, **d.site.where, packages=[d.old, d.new]
    ),
    "rollback": lambda d: rollback(
        d.site.cluster, d.site.options, **d.site.where, packages=[d.old, d.new]
    ),
    "update": lambda d: update(
        UpdateRequest(old="", new=d.new, **d.site.where), d.site.cluster, d.site.options
    ),
    **{
        name: lambda d, how=how: change(d.site, how, d.old, d.other)  # type: ignore[misc]
        for name, how in STRATEGIES.items()
    },
    "install": lambda d: install(d.old, d.site.cluster, d.site.options, **d.site.where),
    "uninstall": lambda d: terminate(d.old, d.site.cluster, **d.site.where, options=d.site.options),
    "heal": lambda d: keep_up(d.site, Heal(HealRequest(d.old, **d.site.where))),
    "scale": lambda d: keep_up(d.site, Scale(ScaleRequest(d.old, {"VDU1": 2}, **d.site.where))),
    "undo": lambda d: undo(d.site.cluster, d.site.options, **d.site.where, packages=[d.old, d.new]),
    **{name: lambda d, end=VERBS[name]: end(d.site) for name in ENDS_OF_A_HOLD},  # type: ignore[misc]
}


SETTING_AFTER = {
    **dict.fromkeys(("the same update", "update", "resume", "promote"), "new"),
    "uninstall": None,
}
"""Of the ConfigMap that the interrupted update had written, by the verb; 'old' after the others."""


def error_of(do: Callable[[], object]) -> ContainerUpdateError | None:
    try:
        do()
    except ContainerUpdateError as error:
        return error
    return None


def assert_honest_part_is_done(
    described: Described, verb: str, error: ContainerUpdateError | None
) -> None:
    """Check that the verb has done the rest; or, where it has refused all, that its journal is
    undone as soon as the forged steps are out of it."""
    site, forged = described.site, ("forged", described.key.name)
    secret = ObjectKey("", "Secret", site.namespace, name_of(INSTANCE))
    expected = SETTING_AFTER.get(verb, "old") if error is None else "old"

    def without_forged(record: Json) -> None:
        record["steps"] = [each for each in record["steps"] if each["key"]["name"] not in forged]

    if site.admin.get(secret) is not None:
        assert error is not None, "it is done"
        forge(site, without_forged)
        assert site.rollback() is not None
    live = site.admin.get(site.key("ConfigMap", "cm"))
    assert (live and live["data"]["setting"]) == expected
    assert site.admin.get(secret) is None


@pytest.mark.parametrize("place", EVIL)
@pytest.mark.parametrize("part", ["before", "content", "both"])
@pytest.mark.parametrize("verb", ENDS)
def test_a_forged_step_writes_only_what_the_packages_say_elsewhere(
    site: Cnf, place: str, part: str, verb: str
) -> None:
    described, cancel = Described(site, place), CancelToken()

    def stop(event: Event) -> None:
        if isinstance(event, StepResult):
            cancel.request("by the test", keep_journal=True)

    try:
        with pytest.raises(UpdateInterruptedError):
            update(described.request(described.new), site.cluster, site.options, cancel, stop)
        forge(site, lambda record: record["steps"].append(described.step(part)))
        if verb in ENDS_OF_A_HOLD:
            hold(site)
        error = error_of(lambda: ENDS[verb](described))
        is_gone = verb == "uninstall" and site.admin.get(described.key) is None
        assert is_gone or described.is_as_described()
        assert_honest_part_is_done(described, verb, error)
    finally:
        if site.admin.get(described.key):
            site.admin.delete(described.key)


WITHOUT: dict[str, Callable[[Json], object]] = {
    "a key": lambda body: body["data"].pop("theirs"),
    "a label": lambda body: body["metadata"]["labels"].pop("theirs"),
    "another instance's label": lambda body: body["metadata"]["labels"].update(
        {INSTANCE_LABEL: "another"}
    ),
    "an annotation of ours": lambda body: body["metadata"].update(
        annotations={"container-update/on-config-change": "ignore"}
    ),
}
"""What a state of an object says that another client, or no package, says otherwise."""


@pytest.mark.parametrize("kind", ["config", "manifest"])
@pytest.mark.parametrize("what", WITHOUT)
@pytest.mark.parametrize("part", ["before", "content", "both"])
@pytest.mark.parametrize("verb", ["the same update", "another update", "resume", "rollback"])
def test_a_forged_step_leaves_others_their_keys_and_labels_elsewhere(
    site: Cnf, kind: str, what: str, part: str, verb: str
) -> None:
    described, cancel = Described(site, "/ConfigMap/NS-beside/described"), CancelToken()
    live = {"apiVersion": "v1", "kind": "ConfigMap", **described.live}
    live["metadata"] = {**live["metadata"], "labels": {**live["metadata"]["labels"], "theirs": "x"}}
    live = site.admin.replace({**live, "data": {**live["data"], "theirs": "x"}})

    def stop(event: Event) -> None:
        if isinstance(event, StepResult):
            cancel.request("by the test", keep_journal=True)

    try:
        with pytest.raises(UpdateInterruptedError):
            update(described.request(described.new), site.cluster, site.options, cancel, stop)
        forged = copy.deepcopy(live)
        WITHOUT[what](forged)
        dropped = [["labels", "theirs"], ["labels", INSTANCE_LABEL]]
        said = {
            **step(site, "REPLACE", described.place),
            "before": forged if part != "content" else live,
            "content": forged if part != "before" else live,
            "dropped": dropped if what == "a label" else [],
        }
        said |= {"type": "config", "removed": ["theirs"]} if kind == "config" else {}
        forge(site, lambda record: record["steps"].append(said))
        with contextlib.suppress(ContainerUpdateError):
            ENDS[verb](described)
        after = site.admin.get(described.key)
        assert after is not None
        assert after["data"] == live["data"]
        for field in ("labels", "annotations"):
            assert (after["metadata"].get(field) or {}) == (live["metadata"].get(field) or {})
    finally:
        site.admin.delete(described.key)


def test_a_forged_revision_writes_only_what_the_packages_say_elsewhere(site: Cnf) -> None:
    described = Described(site, "/ConfigMap/NS-beside/described")
    packages = [described.old, described.new]
    try:
        update(described.request(described.new), site.cluster, site.options)
        forge_revision(site, [{**described.step("before"), "type": "config", "removed": []}])
        with pytest.raises(PlanError, match="No package of this request describes"):
            undo(site.cluster, site.options, **site.where, packages=packages)
        assert described.is_as_described()
    finally:
        site.admin.delete(described.key)


def test_a_forged_revision_changes_nothing_beside_what_the_packages_describe(site: Cnf) -> None:
    described = Described(site, "/ConfigMap/NS-beside/described")
    packages, place = [described.old, described.new], "/ConfigMap/NS-beside/theirs"
    try:
        update(described.request(described.new), site.cluster, site.options)
        said = step(site, "REPLACE", place, site.admin.get(key(site, place)))
        content = {**said["content"], "data": {"x": "as it was"}}
        forge_revision(site, [{**said, "type": "config", "removed": [], "content": content}])
        with pytest.raises(PlanError, match="No package of this request describes"):
            undo(site.cluster, site.options, **site.where, packages=packages)
        assert written(site) == []
    finally:
        site.admin.delete(described.key)


def second(site: Cnf) -> dict[str, str]:
    return {"namespace": site.namespace, "instance_id": "second"}


def forge_change(site: Cnf, edit: Callable[[list[Any]], object], more: dict[str, str]) -> list[str]:
    """Install and update a second instance, and have its history say that the update was a change
    of the package, which is undone by what the revision before it says of the instance; return its
    packages.

    :param edit: edits what that revision says: key, path, line and manifest of each object.
    """
    old, new = (
        site.package({"own.yaml": config_map("own", setting=text)} | more) for text in ("1", "2")
    )
    install(old, site.cluster, site.options, **second(site))
    update(UpdateRequest(old=old, new=new, **second(site)), site.cluster, site.options)
    first, last = (site.get("Secret", f"{name_of('second')}.v{number}") for number in (1, 2))
    record = unpack(base64.b64decode(first["data"]["instance"]))
    edit(record["manifests"])
    head = json.loads(base64.b64decode(last["data"]["operation"]))
    head["origin"]["kind"] = "RollingUpdate"
    forged = ((first, "instance", pack(record)), (last, "operation", json.dumps(head).encode()))
    for body, part, value in forged:
        data = {**body["data"], part: base64.b64encode(value).decode()}
        site.admin.replace({**body, "data": data})
    return [old, new]


def SECOND(site: Cnf) -> dict[str, str]:  # noqa: N802
    return {"namespace": site.namespace, "instance_id": "second"}


@pytest.mark.parametrize("place", EVIL)
@pytest.mark.parametrize("is_named", [True, False], ids=["with packages", "without"])
def test_a_forged_record_has_undo_write_only_what_the_packages_say_elsewhere(
    site: Cnf, place: str, is_named: bool
) -> None:
    described = Described(site, place)
    site.admin.delete(described.key)
    more = {name: text.replace(INSTANCE, "second") for name, text in described.more.items()}

    def edit(manifests: list[Any]) -> None:
        (body,) = (body for *_, body in manifests if body["metadata"]["name"] != "own")
        body.update(EVIL[place])

    packages = forge_change(site, edit, more)
    try:
        named = packages if is_named else []
        with pytest.raises(PlanError, match="No package of this request describes"):
            undo(site.cluster, site.options, **second(site), packages=named)
        assert described.is_as_described()
    finally:
        site.admin.delete(described.key)


PLANTED = "/ConfigMap/NS-beside/planted"


@pytest.mark.parametrize("how", ["a package describes another object there", "a part that is none"])
def test_a_forged_record_has_undo_create_nothing_elsewhere_that_no_package_describes(
    site: Cnf, how: str
) -> None:
    """Neither of both makes a namespace the VNF's own."""
    planted = key(site, PLANTED)
    metadata = {"name": planted.name, "namespace": planted.namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "forged"}}
    described = json.dumps({**body, "metadata": {**metadata, "name": "described"}})
    more = {"described.yaml": described} if how.startswith("a package") else {}

    def edit(manifests: list[Any]) -> None:
        manifests.append([planted.as_dict(), "forged.yaml", 1, body])

    packages = forge_change(site, edit, more)
    if not more:
        last = site.get("Secret", f"{name_of('second')}.v2")
        head = json.loads(base64.b64decode(last["data"]["operation"]))
        head["parts"][f"content/{planted.namespace}"] = 1
        head["digests"][f"content/{planted.namespace}"] = hashlib.sha256(b"").hexdigest()
        head["end"]["isKept"] = False
        forged = base64.b64encode(json.dumps(head).encode()).decode()
        site.admin.replace({**last, "data": {**last["data"], "operation": forged}})
    with pytest.raises(PlanError, match="No package of this request describes"):
        undo(site.cluster, site.options, **second(site), packages=packages if more else [])
    assert site.admin.get(planted) is None


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_record_about_what_is_not_the_vnfs_is_refused(site: Cnf, forged: str) -> None:
    place = FORGED[forged][1]
    content = step(site, "CREATE", place)["content"]
    content["metadata"] = {
        n: v for n, v in content["metadata"].items() if n in ("name", "namespace")
    }

    def edit(manifests: list[Any]) -> None:
        manifests.append([key(site, place).as_dict(), "forged.yaml", 1, content])

    forge_change(site, edit, {})
    with pytest.raises(ContainerUpdateError):
        undo(site.cluster, site.options, **second(site))
    assert written(site) == []


BY_THE_RECORD: dict[str, Callable[[Described], object]] = {
    **ENDS,
    **{
        name: lambda d, how=how: change(d.site, how, None, d.other)  # type: ignore[misc]
        for name, how in STRATEGIES.items()
    },
    "update": lambda d: update(
        UpdateRequest(old="", new=d.other, **d.site.where), d.site.cluster, d.site.options
    ),
    "uninstall": lambda d: terminate(d.new, d.site.admin, **d.site.where, options=d.site.options),
    "uninstall, with what is shared": lambda d: terminate(
        d.new,
        d.site.admin,
        **d.site.where,
        options=d.site.options,
        included=Included(shared=True),
    ),
}
"""What may go by what the record of the instance says that it runs from."""


SETTING_BY_THE_RECORD = {
    **dict.fromkeys(("the same update", "resume", "rollback"), "new"),
    **dict.fromkeys(("another update", "update", *STRATEGIES), "old"),
    **dict.fromkeys(("uninstall", "uninstall, with what is shared")),
}
"""Of a ConfigMap of the VNF, after a verb; the others may refuse the record."""


@pytest.mark.parametrize("verb", BY_THE_RECORD)
@pytest.mark.parametrize("place", EVIL)
def test_a_forged_record_has_no_verb_delete_what_is_elsewhere(
    site: Cnf, place: str, verb: str
) -> None:
    """The package describes something in each of these places, and the record more than that."""
    described = Described(site, place)
    try:
        update(described.request(described.new), site.cluster, site.options)
        name = f"{name_of(INSTANCE)}.v1"
        body = site.get("Secret", name)
        record = unpack(base64.b64decode(body["data"]["instance"]))
        for victim in ("/ConfigMap/NS-beside/theirs", "/Namespace//NS-beside"):
            named = key(site, victim)
            what = {"apiVersion": "v1", "kind": named.kind, "metadata": {"name": named.name}}
            record["manifests"].append([named.as_dict(), *record["manifests"][0][1:3], what])
        data = {**body["data"], "instance": base64.b64encode(pack(record)).decode()}
        site.admin.replace({**body, "data": data})
        error = error_of(lambda: BY_THE_RECORD[verb](described))
        assert written(site) == []
        if verb in SETTING_BY_THE_RECORD:
            assert error is None, "what is honest is done"
            live = site.admin.get(site.key("ConfigMap", "cm"))
            assert (live and live["data"]["setting"]) == SETTING_BY_THE_RECORD[verb]
        beside = site.admin.get(key(site, "/Namespace//NS-beside"))
        assert beside is not None
        assert "deletionTimestamp" not in beside["metadata"]
    finally:
        if site.admin.get(described.key):
            site.admin.delete(described.key)


def test_a_forged_record_has_uninstall_delete_no_rbac_that_is_not_the_vnfs(site: Cnf) -> None:
    """A Role of the VNF's own namespace that no package describes, and that has no label."""
    described = Described(site, "/ConfigMap/NS-beside/described")
    theirs, own = key(site, f"{RBAC}/Role/NS/theirs"), site.key("ConfigMap", "unlabelled")
    update(described.request(described.new), site.cluster, site.options)
    body = site.get("Secret", f"{name_of(INSTANCE)}.v1")
    record = unpack(base64.b64decode(body["data"]["instance"]))
    for each, version in ((theirs, f"{RBAC}/v1"), (own, "v1")):
        metadata = {"name": each.name, "namespace": each.namespace}
        what = {"apiVersion": version, "kind": each.kind, "metadata": metadata}
        site.admin.create({**what, "rules": []} if each is theirs else what)
        record["manifests"].append([each.as_dict(), *record["manifests"][0][1:3], what])
    data = {**body["data"], "instance": base64.b64encode(pack(record)).decode()}
    site.admin.replace({**body, "data": data})
    unlabelled = site.admin.get(described.key)
    site.admin.replace({**unlabelled, "metadata": {**unlabelled["metadata"], "labels": {}}})
    BY_THE_RECORD["uninstall"](described)
    assert site.admin.get(theirs) is not None
    assert [site.admin.get(each) for each in (own, described.key)] == [None, None], "it goes on"


# --- holds and gates ------------------------------------------------------------------------------

HOLD = {"type": "hold", "action": "WAIT", "seconds": 1.0}
GATE = {"type": "gate", "action": "CHECK", "query": "up", "at_least": 1, "at_most": None}
PAUSES = {
    "a hold of years": {**HOLD, "seconds": 1e9},
    "a hold of a text": {**HOLD, "seconds": "x"},
    "a hold below nothing": {**HOLD, "seconds": -1},
    "a gate without a pause": {**GATE, "every": 0, "seconds": 60},
    "a gate of years": {**GATE, "every": 10, "seconds": 1e9},
    "a bound that is a text": {**GATE, "every": 10, "seconds": 60, "at_least": "x"},
}


@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_forged_hold_or_gate_has_the_limits_of_a_request(
    site: Cnf, pause: str, verb: str
) -> None:
    interrupt(site)
    named = {"group": "", "kind": "Hold", "namespace": "", "name": "forged"}
    forged = {"key": named, "reasons": [], "images": {}, **PAUSES[pause]}
    forge(site, lambda record: record["steps"].append(forged))
    with pytest.raises(ContainerUpdateError, match=f"Secret {site.namespace}/.* is damaged"):
        VERBS[verb](site)


# --- the key of a host ----------------------------------------------------------------------------


@pytest.fixture
def host(admin_kubeconfig: str, cnf: Cnf) -> Iterator[KubernetesCluster]:
    """A client of a host that has a key."""
    with connect(admin_kubeconfig, options=replace(cnf.options, journal_key=KEY)) as connected:
        yield connected


def test_a_host_with_a_key_ends_what_hosts_with_the_same_key_have_begun(
    site: Cnf, host: KubernetesCluster
) -> None:
    interrupt(site, host)
    assert rollback(host, site.options, **site.where) is not None
    update(site.request(NEW), host, site.options)
    assert undo(host, site.options, **site.where) is not None
    assert site.get("ConfigMap", "cm")["data"] == {"setting": "old"}


def test_a_host_with_a_key_refuses_a_journal_that_is_not_signed(
    site: Cnf, host: KubernetesCluster
) -> None:
    interrupt(site)
    for verb in (rollback, resume):
        with pytest.raises(ContainerUpdateError, match=r"signed with the key .* kubectl delete"):
            verb(host, site.options, **site.where)
    with pytest.raises(ContainerUpdateError, match="signed with the key"):
        update(site.request(OTHERS), host, site.options)
    assert journal_of(site)
    assert site.rollback() is not None, "who has no key ends it as before"


@pytest.mark.parametrize("name", ["phase", "operation", "groups", "content"])
def test_no_value_of_a_signed_journal_can_be_changed(
    site: Cnf, host: KubernetesCluster, name: str
) -> None:
    interrupt(site, host)
    head = journal_of(site)
    data = {**head["data"], name: base64.b64encode(b"undo").decode()}
    site.admin.replace({**head, "data": data})
    with pytest.raises(ContainerUpdateError, match="signed with the key"):
        rollback(host, site.options, **site.where)


HOST_ENDS: dict[str, Callable[[Cnf, KubernetesCluster], object]] = {
    "rollback": lambda site, host: rollback(host, site.options, **site.where),
    "resume": lambda site, host: resume(host, site.options, **site.where),
    "another update": lambda site, host: update(
        site.request({**NEW, "other": OTHERS["other"]}), host, site.options
    ),
    "update": lambda site, host: update(site.request(NEW), host, site.options),
    **{
        name: lambda site, _, how=how: change(site, how, site.old, site.request(NEW).new)  # type: ignore[misc]
        for name, how in STRATEGIES.items()
    },
    **{
        name: lambda site, _, do=VERBS[name]: do(site)  # type: ignore[misc]
        for name in ("install", "uninstall", "heal", "scale", "undo", "promote", "abort")
    },
}
"""The client of the site is that of the host by then."""


@pytest.mark.parametrize("end", HOST_ENDS)
def test_a_signed_journal_that_is_put_back_after_its_operation_undoes_nothing(
    site: Cnf, host: KubernetesCluster, end: str
) -> None:
    site.cluster = host
    interrupt(site, host)
    copy = journal_of(site)
    resume(host, site.options, **site.where)
    site.admin.create(again(copy))
    with contextlib.suppress(ContainerUpdateError):
        HOST_ENDS[end](site, host)
    live = site.admin.get(site.key("ConfigMap", "cm"))
    if end in ("uninstall", "undo", "heal"):  # and what it does itself is done once
        assert live is None or live["data"] == {"setting": "old"}
    else:
        assert live is not None
        assert live["data"] == {"setting": "new"}
    assert end in ENDS_OF_A_HOLD or site.admin.get(ObjectKey.of(copy)) is None


@pytest.mark.parametrize("end", ENDS_OF_A_HOLD)
def test_a_change_that_waits_and_is_put_back_after_its_end_is_ended_once(
    site: Cnf, host: KubernetesCluster, end: str
) -> None:
    new = site.request({**OLD, "web": workload("Deployment", "web", image=IMAGES[1])}).new
    request = {
        "vnfdId": "new",
        "additionalParams": {"upgrade_type": "BlueGreen", "hold": True},
    }
    packages: Any = {"old": site.old, "new": new}
    site.cluster = host
    assert change_package(request, host, **site.where, options=site.options, **packages).held
    copy = journal_of(site)
    promote(host, site.options, **site.where)
    before = {name: site.pods("Deployment", name) for name in ("web", "other")}
    site.admin.create(again(copy))
    with contextlib.suppress(ContainerUpdateError):
        VERBS[end](site)
    assert {name: site.pods("Deployment", name) for name in ("web", "other")} == before


def again(copy: Json) -> Json:
    """Return what creates a Secret again."""
    metadata = {n: copy["metadata"][n] for n in ("name", "namespace", "labels", "annotations")}
    return {**copy, "metadata": metadata}


@pytest.mark.parametrize("end", ["rollback", "resume", "another update"])
@pytest.mark.parametrize("history", [0, 2])
def test_a_signed_journal_that_is_put_back_when_no_history_knows_it_any_more_is_refused(
    site: Cnf, host: KubernetesCluster, end: str, history: int
) -> None:
    options = replace(site.options, history=history)
    interrupt(site, host)
    copy = journal_of(site)
    resume(host, options, **site.where)
    if history:
        update(site.request({**NEW, "other": OTHERS["other"]}), host, options)
        undo(host, options, **site.where)
    site.admin.create(again(copy))
    with pytest.raises(ContainerUpdateError, match=r"found a copy, .* --no-journal-key .* kubectl"):
        HOST_ENDS[end](site, host)
    assert site.get("ConfigMap", "cm")["data"] == {"setting": "new"}


def test_a_signed_journal_that_never_came_into_force_is_refused(
    site: Cnf, host: KubernetesCluster
) -> None:
    """A run that is killed while it writes it leaves it to its lease, which owns it."""
    interrupt(site, host)
    head = journal_of(site)
    data = {name: value for name, value in head["data"].items() if name != "uid"}
    site.admin.replace(keeping.sign({**head, "data": data}, KEY))
    with pytest.raises(ContainerUpdateError, match="found a copy"):
        rollback(host, site.options, **site.where)


def test_the_newest_revision_has_to_be_signed(site: Cnf, host: KubernetesCluster) -> None:
    site.update(NEW)
    with pytest.raises(PlanError, match=r"found one that no key has signed.*\(kubectl delete"):
        undo(host, site.options, **site.where)
    update(replace(site.request(OTHERS)), host, site.options)  # which names both packages
    assert undo(host, site.options, **site.where) is not None, "the older one is left out"


def plant(site: Cnf, like: Json, name: str, data: dict[str, str]) -> Json:
    """Create a Secret of a history that no key has signed."""
    metadata = {"name": name, "namespace": site.namespace, "labels": like["metadata"]["labels"]}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": like["type"]}
    return site.admin.create({**body, "data": data})


def of_the_key(site: Cnf) -> set[str]:
    """Return the names of the Secrets that are signed with the key."""
    bodies = site.admin.list(Collection("", "Secret", site.namespace)).items
    return {body["metadata"]["name"] for body in bodies if keeping.is_trusted(body, KEY)}


@pytest.mark.parametrize("parts", ["none", "as many as there may be"])
def test_revisions_that_no_key_has_signed_take_the_place_of_no_signed_one(
    site: Cnf, host: KubernetesCluster, parts: str
) -> None:
    update(site.request(NEW), host, site.options)
    signed = site.get("Secret", f"{name_of(INSTANCE)}.v1")
    head = json.loads(base64.b64decode(signed["data"]["operation"]))
    head["parts"] = {} if parts == "none" else {"content": keeping.MAX_PARTS}
    data = {"operation": base64.b64encode(json.dumps(head).encode()).decode()}
    for number in range(100, 110 if parts == "none" else 102):
        plant(site, signed, f"{name_of(INSTANCE)}.v{number}", data)
    update(site.request(OTHERS), host, site.options)
    number = max(int(name.rpartition(".v")[2]) for name in of_the_key(site))
    assert of_the_key(site) == {signed["metadata"]["name"], f"{name_of(INSTANCE)}.v{number}"}


def test_a_revision_that_no_key_has_signed_is_not_what_the_instance_runs_from(
    site: Cnf, host: KubernetesCluster
) -> None:
    """The one that says so stays, whatever the number of those that were undone since."""
    update(site.request(NEW), host, site.options)
    signed = site.get("Secret", f"{name_of(INSTANCE)}.v1")
    data = {name: value for name, value in signed["data"].items() if name != "hmac"}
    plant(site, signed, f"{name_of(INSTANCE)}.v2", data)
    bad = {**OTHERS, "other": workload("Deployment", "other", image=BAD_IMAGE)}
    options = replace(site.options, history=1, grace_period=0.5)
    with pytest.raises(UpdateFailedError):
        update(site.request(bad), host, options)
    assert signed["metadata"]["name"] in of_the_key(site)


def test_summaries_that_no_key_has_signed_take_the_place_of_no_signed_one(
    site: Cnf, host: KubernetesCluster
) -> None:
    package = site.package({"own.yaml": config_map("own", setting="1")})
    lives = [{**second(site), "instance_id": name} for name in ("first", "second")]
    install(package, host, site.options, **lives[0])
    terminate(package, host, options=site.options, **lives[0])
    summary = site.get("Secret", f"{name_of('first')}.uninstalled")
    created, ages = summary["metadata"]["creationTimestamp"], itertools.count()
    younger = 0
    while younger < 10:
        name = f"{name_of(f'forged-{next(ages)}')}.uninstalled"
        younger += plant(site, summary, name, {})["metadata"]["creationTimestamp"] > created
    install(package, host, site.options, **lives[1])
    terminate(package, host, options=site.options, **lives[1])
    assert of_the_key(site) == {f"{name_of(each['instance_id'])}.uninstalled" for each in lives}


def test_a_revision_that_is_put_back_after_the_uninstallation_is_older_than_the_next_installation(
    site: Cnf, host: KubernetesCluster
) -> None:
    """A signature has no time; what the instance runs from now is not what it ran from then."""
    texts = ("old", "new")
    old, new = (site.package({"own.yaml": config_map("own", setting=text)}) for text in texts)
    install(old, host, site.options, **second(site))
    update(UpdateRequest(old=old, new=new, **second(site)), host, site.options)
    copy = site.get("Secret", f"{name_of('second')}.v2")
    for lives in (1, 2):
        terminate(new, host, options=site.options, **second(site))
        install(new, host, site.options, **second(site))
        newest, *_ = history(host, site.options, **second(site))
        assert newest.number == 2 + 2 * lives
    site.admin.create(again(copy))
    assert undo(host, site.options, **second(site)) is None
    assert site.get("ConfigMap", "own")["data"] == {"setting": "new"}


class Operator:
    """A person with a home of their own, who types commands."""

    def __init__(self, site: Cnf, kubeconfig: str, home: Path) -> None:
        self.key = home / "container-update" / "journal.key"
        self.environment = {**os.environ, "XDG_CONFIG_HOME": str(home)}
        self.where = ["--kubeconfig", kubeconfig, "-n", site.namespace, "--instance-id", INSTANCE]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "container_update", *words, *self.where]
        return subprocess.run(
            program, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )


def test_each_operator_has_a_key_and_ends_with_a_copy_of_it_what_another_has_begun(
    site: Cnf, admin_kubeconfig: str, tmp_path: Path
) -> None:
    first, second = (Operator(site, admin_kubeconfig, tmp_path / n) for n in ("first", "second"))
    for each in (first, second):
        assert "Deployment" in each.run("status").stdout
    assert [stat.S_IMODE(path.stat().st_mode) for path in (first.key, first.key.parent)] == [
        *(0o600, 0o700)
    ]
    key = first.key.read_text().strip()
    with connect(admin_kubeconfig, options=replace(site.options, journal_key=key)) as theirs:
        interrupt(site, theirs)
    mine, found = (keeping.public_name(each.key.read_text().strip()) for each in (second, first))
    refused = second.run("rollback", "--yes")
    assert refused.returncode == 1
    for text in (mine, found, "--journal-key FILE", "--no-journal-key", "journal.key"):
        assert text in refused.stderr
    assert key not in refused.stderr + str(journal_of(site))
    assert keeping.signer(journal_of(site)) == found
    copy = tmp_path / "copy"
    copy.write_text(first.key.read_text())
    copy.chmod(0o600)
    assert second.run("rollback", "--yes", "--journal-key", str(copy)).returncode == 0
    assert site.get("ConfigMap", "cm")["data"] == {"setting": "old"}


def test_without_a_key_the_journal_of_any_host_is_ended(
    site: Cnf, admin_kubeconfig: str, tmp_path: Path
) -> None:
    operator = Operator(site, admin_kubeconfig, tmp_path / "home")
    interrupt(site)
    refused = operator.run("rollback", "--yes")
    assert "found one that no key has signed" in refused.stderr
    assert "--no-journal-key" in refused.stderr
    assert operator.run("rollback", "--yes", "--no-journal-key").returncode == 0
    assert site.get("ConfigMap", "cm")["data"] == {"setting": "old"}


def test_the_key_is_in_a_file_that_nobody_else_reads(
    site: Cnf, admin_kubeconfig: str, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    command = ["status", "--kubeconfig", admin_kubeconfig, "-n", site.namespace]
    command += ["--instance-id", INSTANCE, "--journal-key", str(path)]

    def run() -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "container_update", *command]
        return subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)

    path.chmod(0o644)
    refused = run()
    assert refused.returncode == 64
    assert f"chmod 600 {path}" in refused.stderr
    path.chmod(0o600)
    interrupt(site)
    refused = run()
    assert "signed with the key" in refused.stderr
    assert KEY not in refused.stdout + refused.stderr


# --- between any two requests ---------------------------------------------------------------------

MUTATIONS: dict[str, Callable[[Json], object]] = {
    "no steps": lambda record: record.pop("steps"),
    "steps of another type": lambda record: record.update(steps={"a": 1}),
    "a deep value": lambda record: record.update(context=json.loads("[" * 900 + "]" * 900)),
    "no key": lambda record: record["steps"][0].pop("key"),
    "null as a key": lambda record: record["steps"][0].update(key=None),
    "an unknown action": lambda record: record["steps"][0].update(action="EXPLODE"),
    "pods of nobody": lambda record: record.update(podsBefore=[[1, 2, 3]]),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutated_journal_is_an_error_of_ours(site: Cnf, mutation: str) -> None:
    interrupt(site)
    forge(site, MUTATIONS[mutation])
    for verb in VERBS.values():
        with contextlib.suppress(ContainerUpdateError):
            verb(site)
    assert written(site) == []
    listed = site.admin.list(Collection("", "ConfigMap", f"{site.namespace}-beside")).items
    published = {"kube-root-ca.crt", "openshift-service-ca.crt"}  # by controllers, everywhere
    assert {each["metadata"]["name"] for each in listed} - published == {"theirs"}
