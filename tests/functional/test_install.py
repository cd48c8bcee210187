# SPDX-License-Identifier: Apache-2.0
"""``install`` and ``uninstall``: the beginning and the end of a CNF that no VNFM runs."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import (
    CancelToken,
    ClusterError,
    PlanError,
    StepResult,
    UndoStarted,
    UpdateFailedError,
    UpdateInterruptedError,
    install,
    resume,
    rollback,
    terminate,
    undo,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.conftest import overwrite
from tests.functional.counted import Counted
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import (
    INSTANCE_LABEL,
    Collection,
    Event,
    Included,
    Journal,
    Json,
    NotInstalledError,
    ObjectKey,
    main,
)

FILES = {"cm": config_map(setting="a"), "w": workload("Deployment", container=ENV)}
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {serviceAccountName: nobody-made-it, containers: [{name: c, image: "nginx:1.27"}]}
"""
BAD = workload("Deployment", "bad", image=BAD_IMAGE)


def definition(kind: str, group: str) -> str:
    name = f"{kind.lower()}s"
    return f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {name}.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: {name}, singular: {kind.lower()}, kind: {kind}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""


class Shell:
    """Types the commands, as the administrator of the namespace."""

    def __init__(self, cnf: Cnf, admin_kubeconfig: str) -> None:
        self.cnf = cnf
        self.where = ("-n", cnf.namespace, "--kubeconfig", admin_kubeconfig)

    def package(self, **files: str) -> str:
        return self.cnf.package({f"{name}.yaml": text for name, text in files.items()})

    def run(self, command: str, *arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        return main([command, *self.where, *arguments], out), out.getvalue()


@pytest.fixture
def shell(cnf: Cnf, admin_kubeconfig: str) -> Shell:
    return Shell(cnf, admin_kubeconfig)


def names(cnf: Cnf) -> set[str]:
    """Return the names of its objects; a cluster puts certificates into every namespace."""
    kinds = (("", "ConfigMap"), ("apps", "Deployment"), ("", "PersistentVolumeClaim"))
    bodies = [b for kind in kinds for b in cnf.admin.list(Collection(*kind, cnf.namespace)).items]
    found = {b["metadata"]["name"] for b in bodies}
    return {name for name in found if not name.endswith("ca.crt")}


def uids(cnf: Cnf) -> dict[str, str]:
    claim = ObjectKey("", "PersistentVolumeClaim", cnf.namespace, "data")
    keys = [cnf.key("Deployment", "w"), claim]
    bodies = [cnf.admin.get(key) for key in keys]
    return {body["metadata"]["name"]: body["metadata"]["uid"] for body in bodies if body}


# --- the beginning and the end --------------------------------------------------------------------


@pytest.mark.parametrize("instance", [(), ("--instance-id", INSTANCE)], ids=["no id", "an id"])
def test_what_is_installed_is_ready_and_what_is_uninstalled_is_gone(
    shell: Shell, instance: tuple[str, ...]
) -> None:
    package = shell.package(**FILES)
    status, text = shell.run("install", package, *instance)
    assert status == 0
    assert "Plan: 2 to create.\n" in text
    assert "Installed in" in text
    assert shell.cnf.get("Deployment", "w")["status"]["readyReplicas"] == 1
    status, text = shell.run("uninstall", *instance)
    assert status == 0
    assert "Plan: 2 to delete" in text
    assert "Uninstalled in" in text
    assert names(shell.cnf) == set()
    status, text = shell.run("uninstall", package, *instance)
    assert status == 2
    assert "no object to delete" in text or "no VNF instance is installed" in text


def test_an_instance_without_an_id_gets_the_name_of_its_product_and_keeps_it(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    package = shell.package(**FILES)
    assert shell.run("install", package)[0] == 0
    labels = shell.cnf.get("Deployment", "w")["metadata"]["labels"]
    assert labels[INSTANCE_LABEL] == Path(package).name
    assert shell.run("install", package)[0] == PlanError.exit_status
    assert "already" in capsys.readouterr().err
    assert shell.run("install", package, "--instance-id", Path(package).name)[0] == 2


def test_a_namespace_that_does_not_exist_is_an_error(shell: Shell) -> None:
    assert shell.run("install", shell.package(**FILES), "-n", "nowhere")[0] == 5


# --- nothing that runs is harmed ------------------------------------------------------------------


@pytest.mark.parametrize("more", [{"bad": BAD}, {"db": SET}], ids=["no image", "refused"])
def test_a_second_installation_that_fails_takes_back_what_it_created_and_nothing_else(
    shell: Shell, more: dict[str, str]
) -> None:
    files = {**FILES, "pvc": CLAIM}
    instance = ("--instance-id", INSTANCE, "--grace-period", "0.5")
    assert shell.run("install", shell.package(**files), *instance)[0] == 0
    before = uids(shell.cnf)
    assert shell.run("install", shell.package(**files, **more), *instance)[0] == 7
    assert uids(shell.cnf) == before
    assert names(shell.cnf) == {"cm", "w", "data"}


def test_an_installation_that_fails_says_nothing_of_the_history_of_a_namespace_that_it_took_back(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    own = f"{shell.cnf.namespace}-own"
    namespace = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {own}}}\n"
    bad = workload("Deployment", "bad", image=BAD_IMAGE, metadata=f"namespace: {own}\n")
    package = shell.package(n=namespace, w=bad)
    assert shell.run("install", package, "--grace-period", "0.5")[0] == 7
    assert "history" not in caplog.text


def test_an_installation_again_while_a_rollout_is_stuck_touches_nothing(shell: Shell) -> None:
    package = shell.package(**FILES, pvc=CLAIM)
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 0
    before = uids(shell.cnf)
    body = shell.cnf.get("Deployment", "w")
    body["spec"]["template"]["spec"]["containers"][0]["image"] = BAD_IMAGE
    overwrite(shell.cnf.admin, body)
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 2
    assert uids(shell.cnf) == before


def test_a_product_that_is_installed_is_updated_by_the_command_that_the_error_names(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    package = shell.package(**FILES)
    assert shell.run("install", package)[0] == 0
    assert shell.run("install", package)[0] == 5
    assert f"To update it: container-update apply {package} " in capsys.readouterr().err


def test_what_is_somebody_elses_is_not_touched(shell: Shell) -> None:
    other = shell.package(cm=config_map(setting="of others"))
    status, text = shell.run("install", other)
    assert status == 0
    assert "To go back" not in text, "there is nothing before it"
    assert shell.run("install", shell.package(w=FILES["w"], cm=FILES["cm"]))[0] == 5
    assert shell.cnf.get("ConfigMap", "cm")["data"] == {"setting": "of others"}
    assert names(shell.cnf) == {"cm"}


def test_what_no_label_and_no_record_says_is_the_instances_is_not_uninstalled(
    shell: Shell,
) -> None:
    package = shell.package(cm=FILES["cm"])
    body: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cm", "namespace": shell.cnf.namespace},
    }
    shell.cnf.admin.create(body)
    assert shell.run("uninstall", package)[0] == 2
    assert shell.run("uninstall", package, "--instance-id", INSTANCE)[0] == 2
    assert names(shell.cnf) == {"cm"}


def test_data_and_what_others_may_use_stays_unless_it_is_asked_for(shell: Shell) -> None:
    kept = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: kept, annotations: {{helm.sh/resource-policy: keep}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {shell.cnf.namespace}, annotations: {{helm.sh/resource-policy: keep}}}}
rules: []
"""
    package = shell.package(**FILES, pvc=CLAIM, kept=kept)
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 0
    status, text = shell.run("uninstall", "--instance-id", INSTANCE)
    assert status == 0
    assert "stays: it holds data" in text
    assert re.search(r"\nStays: 1 object. To delete: .* --delete-data\n$", text)
    assert names(shell.cnf) == {"data", "kept"}
    more = ("--instance-id", INSTANCE, "--delete-data")
    status, text = shell.run("uninstall", package, *more, "--plan")
    assert status == 3
    assert "this also deletes its volume" in text
    assert shell.run("uninstall", package, *more)[0] == 0
    assert names(shell.cnf) == {"kept"}


def test_a_second_instance_shares_a_definition_that_is_the_same(shell: Shell) -> None:
    group = f"{shell.cnf.namespace}.example.org"
    thing = f"apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: NAME}}\n"
    files = {"z": definition("Thing", group)}
    one = shell.package(a=thing.replace("NAME", "one"), **files)
    two = shell.package(a=thing.replace("NAME", "two"), **files)
    assert shell.run("install", one, "--instance-id", "one")[0] == 0
    status, text = shell.run("install", two, "--instance-id", "two")
    assert status == 0
    assert "shared, not changed" in text
    status, text = shell.run("uninstall", "--instance-id", "one")
    assert status == 0
    assert "it is cluster-scoped, others may use it" in text
    rest = re.search(r"Stays: 1 object. To delete: container-update (uninstall .*)\n", text)
    assert rest is not None
    assert rest[1].endswith("--instance-id one --delete-shared")
    assert shell.cnf.admin.get(ObjectKey(group, "Thing", shell.cnf.namespace, "two")) is not None
    status, text = shell.run("uninstall", "--instance-id", "two")
    assert status == 0
    status, text = shell.run("uninstall", one, "--instance-id", "one", "--delete-shared")
    assert status == 0
    assert "this also deletes every Thing: 0" in text


def test_twelve_definitions_of_one_group_are_installed_with_an_object_of_each(shell: Shell) -> None:
    """In one file, as Contour has them: the server begins to serve the group several times."""
    group, kinds = (
        f"{shell.cnf.namespace}.example.net",
        [f"Thing{letter}" for letter in "abcdefghijkl"],
    )
    thing = f"apiVersion: {group}/v1\nkind: KIND\nmetadata: {{name: one}}\n"
    texts = (f"{definition(kind, group)}---\n{thing.replace('KIND', kind)}" for kind in kinds)
    package = shell.package(all="---\n".join(texts))
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 0
    for kind in kinds:
        assert shell.cnf.admin.get(ObjectKey(group, kind, shell.cnf.namespace, "one")) is not None
    assert shell.run("uninstall", "--instance-id", INSTANCE, "--delete-shared")[0] == 0


def test_a_kind_that_was_defined_a_moment_ago_is_waited_for(shell: Shell) -> None:
    group = f"new.{shell.cnf.namespace}.example.org"
    thing = f"apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: one}}\n"
    package = shell.package(a=thing)
    shell.cnf.admin.create(yaml.safe_load(definition("Thing", group)))
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 0
    assert shell.run("uninstall", "--instance-id", INSTANCE)[0] == 0


def test_a_kind_that_is_served_no_more_keeps_nothing_from_being_uninstalled(shell: Shell) -> None:
    group = f"gone.{shell.cnf.namespace}.example.org"
    thing = f"apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: one}}\n"
    package = shell.package(a=thing, z=definition("Thing", group), w=workload("Deployment"))
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 0
    crd = ("apiextensions.k8s.io", "CustomResourceDefinition", "", f"things.{group}")
    shell.cnf.admin.delete(ObjectKey(*crd))
    assert shell.run("uninstall", package, "--instance-id", INSTANCE)[0] == 0
    assert names(shell.cnf) == set()


# --- the promises of an update --------------------------------------------------------------------


def interrupted(cnf: Cnf, act: Callable[..., object], after: str) -> None:
    """Leave an operation after the first result of a step of this kind."""
    cancel = CancelToken()

    def stop(event: Event) -> None:
        if isinstance(event, StepResult) and event.step.key.kind == after:
            cancel.request("by the test", keep_journal=True)

    with pytest.raises(UpdateInterruptedError, match=r"^The (un)?installation was stopped by the"):
        act(cancel=cancel, progress=stop, options=cnf.options)


def where(cnf: Cnf) -> dict[str, str]:
    return {"namespace": cnf.namespace, "instance_id": INSTANCE}


def test_an_installation_that_was_interrupted_is_finished_by_another_one(cnf: Cnf) -> None:
    package = cnf.package({f"{name}.yaml": text for name, text in FILES.items()})
    interrupted(cnf, lambda **how: install(package, cnf.admin, **where(cnf), **how), "ConfigMap")
    assert names(cnf) == {"cm"}
    install(package, cnf.admin, **where(cnf), options=cnf.options)
    assert names(cnf) == {"cm", "w"}


def test_an_uninstallation_that_was_interrupted_is_finished_by_another_one(cnf: Cnf) -> None:
    package = cnf.package({f"{name}.yaml": text for name, text in FILES.items()})
    install(package, cnf.admin, **where(cnf), options=cnf.options)
    interrupted(cnf, lambda **how: terminate(None, cnf.admin, **where(cnf), **how), "Deployment")
    assert names(cnf) == {"cm"}
    terminate(None, cnf.admin, **where(cnf), options=cnf.options)
    assert names(cnf) == set()


def test_an_uninstallation_that_was_interrupted_is_finished_in_other_namespaces_of_its_package(
    cnf: Cnf,
) -> None:
    other = f"{cnf.namespace}-other"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
    cnf.admin.create(namespace)
    elsewhere = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: there, namespace: {other}}}\n"
    files = {f"{name}.yaml": text for name, text in {**FILES, "there": elsewhere}.items()}
    package = cnf.package(files)
    install(package, cnf.admin, **where(cnf), options=cnf.options)
    uninstall = partial(terminate, package, cnf.admin, **where(cnf))
    interrupted(cnf, uninstall, "Deployment")
    uninstall(options=cnf.options)
    assert cnf.admin.get(ObjectKey("", "ConfigMap", other, "there")) is None
    cnf.admin.delete(ObjectKey.of(namespace))


def test_an_undo_goes_on_where_a_workload_cannot_be_read(cnf: Cnf) -> None:
    """Whether it is gone decides only about the order."""
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: last}\n"
    package = cnf.package({"w.yaml": FILES["w"], "cm.yaml": FILES["cm"], "account.yaml": account})
    install(package, cnf.admin, **where(cnf), options=cnf.options)
    refusing = Refusing(cnf.admin, "last", 403)

    def lose_one_read(event: Event) -> None:
        if isinstance(event, UndoStarted):
            refusing.reads_lost = 1

    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        terminate(None, refusing, **where(cnf), options=cnf.options, progress=lose_one_read)
    assert refusing.reads_lost == 0
    assert names(cnf) == {"cm", "w"}
    assert cnf.get("Deployment", "w")["status"]["readyReplicas"] == 1


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("way", ["again", "resume", "rollback"])
def test_an_uninstallation_whose_history_may_be_gone_is_not_undone(
    cnf: Cnf, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after it deleted the history and before it removed the journal."""
    package = cnf.package({f"{name}.yaml": text for name, text in FILES.items()})
    install(package, cnf.admin, **where(cnf), options=cnf.options)

    def die(*_: object) -> None:
        raise Killed

    quick = replace(cnf.options, lease_seconds=3)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "remove", die)
        with pytest.raises(Killed):
            terminate(None, cnf.admin, **where(cnf), options=quick)
    if way == "again":
        terminate(None, cnf.admin, **where(cnf), options=cnf.options)
    else:
        {"resume": resume, "rollback": rollback}[way](cnf.admin, cnf.options, **where(cnf))
    assert names(cnf) == set()
    assert cnf.history() == ()
    assert cnf.rollback() is None


def test_an_uninstallation_whose_history_cannot_be_deleted_yet_has_not_ended(cnf: Cnf) -> None:
    package = cnf.package({f"{name}.yaml": text for name, text in FILES.items()})
    install(package, cnf.admin, **where(cnf), options=cnf.options)
    options = replace(cnf.options, retry_seconds=0.1)
    terminate(None, Refusing(cnf.admin, ".v1", 503), **where(cnf), options=options)
    assert len(cnf.history()) == 1
    resume(cnf.admin, cnf.options, **where(cnf))
    assert cnf.history() == ()


class Refusing:
    """A cluster that does not delete objects whose names end like this."""

    def __init__(self, cluster: Any, name: str, status: int) -> None:
        self._cluster, self._name, self._status = cluster, name, status
        self.reads_lost = 0
        """How many more reads of a Deployment fail."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def get(self, key: ObjectKey) -> Json | None:
        if key.kind == "Deployment" and self.reads_lost:
            self.reads_lost -= 1
            raise ClusterError("not now", status=410)
        found: Json | None = self._cluster.get(key)
        return found

    def delete(self, key: ObjectKey, **more: Any) -> None:
        if key.name.endswith(self._name):
            raise ClusterError("not now", status=self._status, transient=self._status == 503)
        self._cluster.delete(key, **more)


def test_an_uninstallation_that_cannot_be_completed_has_lost_no_data(cnf: Cnf) -> None:
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: last}\n"
    package = cnf.package(
        {"w.yaml": workload("Deployment"), "claim.yaml": CLAIM, "account.yaml": account}
    )
    install(package, cnf.admin, **where(cnf), options=cnf.options)
    before = uids(cnf)["data"]
    refusing, everything = Refusing(cnf.admin, "last", 403), Included(data=True)
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        terminate(None, refusing, **where(cnf), included=everything, options=cnf.options)
    assert uids(cnf)["data"] == before
    terminate(None, cnf.admin, **where(cnf), included=everything, options=cnf.options)
    assert uids(cnf) == {}


def test_the_history_begins_with_the_installation_and_ends_with_the_instance(cnf: Cnf) -> None:
    package = cnf.package({f"{name}.yaml": text for name, text in FILES.items()})
    outcome = install(package, cnf.admin, **where(cnf), options=cnf.options)
    assert outcome.revision == 1
    assert [each.origin.kind for each in cnf.history()] == ["install"]
    assert undo(cnf.admin, cnf.options, **where(cnf)) is None
    with pytest.raises(PlanError, match="uninstall"):
        undo(cnf.admin, cnf.options, revision=1, **where(cnf))
    terminate(None, cnf.admin, **where(cnf), options=cnf.options)
    assert cnf.history() == ()


# --- without the old package ----------------------------------------------------------------------


def test_the_record_stands_for_the_old_package(shell: Shell) -> None:
    assert shell.run("install", shell.package(**FILES))[0] == 0
    new = shell.package(cm=config_map(setting="b"), w=FILES["w"])
    status, text = shell.run("plan", new)
    assert status == 3
    assert "uses" in text
    status, text = shell.run("apply", new)
    assert status == 0
    assert "1 configuration object written, 1 workload restarted" in text
    assert shell.run("plan", new)[0] == 2
    assert shell.run("undo")[0] == 0
    assert shell.cnf.get("ConfigMap", "cm")["data"] == {"setting": "a"}
    assert shell.run("plan", new)[0] == 3, "the record went back too"
    whole = shell.package(w=workload("Deployment", image=IMAGES[1]), cm2=config_map("cm2", a="b"))
    for kind in ("Blue-Green", "RollingUpdate"):
        assert shell.run("change", whole, "--upgrade-type", kind)[0] in (0, 2)
    assert names(shell.cnf) - {"cm2"} != {"w", "cm"}
    assert shell.run("uninstall")[0] == 0
    assert names(shell.cnf) == set()


def test_what_is_in_a_new_file_is_said_not_to_take_effect_without_the_old_package_too(
    shell: Shell,
) -> None:
    old = shell.package(**FILES)
    assert shell.run("install", old)[0] == 0
    new = shell.package(**FILES, more=config_map("more", a="b"))
    for packages in ((old, new), (new,)):
        status, text = shell.run("plan", *packages)
        assert status == 2
        assert f"ConfigMap {shell.cnf.namespace}/more: is new in Files/more.yaml:" in text
        assert "all that the new package changes" not in text
    assert "is new in" not in shell.run("plan", new, "--def-file", "Files/w.yaml")[1]


def test_what_was_made_from_neither_package_has_a_reason_to_change(shell: Shell) -> None:
    assert shell.run("install", shell.package(**FILES))[0] == 0
    other = workload("Deployment", container=f"{ENV}\nworkingDir: /there")
    new = shell.package(cm=FILES["cm"], w=other)
    status, text = shell.run("change", new, new, "--upgrade-type", "RollingUpdate", "--plan")
    assert status == 3
    assert "because spec.template.spec.containers[main].workingDir: none -> " in text


@pytest.mark.parametrize("upgrade_type", ["Blue-Green", "RollingUpdate"])
def test_a_change_says_which_image_somebody_else_gave_a_workload_that_stays(
    shell: Shell, upgrade_type: str
) -> None:
    package = shell.package(**FILES)
    assert shell.run("install", package)[0] == 0
    body = shell.cnf.get("Deployment", "w")
    body["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGES[1]
    overwrite(shell.cnf.admin, body)
    status, text = shell.run("change", package, package, "--upgrade-type", upgrade_type, "--plan")
    assert status == 2
    assert "no changes; the notes say what differs and stays" in text
    assert f"has image {IMAGES[1]}, both packages say {IMAGES[0]}: left alone" in text


@pytest.mark.parametrize("upgrade_type", ["Blue-Green", "RollingUpdate"])
def test_a_change_brings_what_an_update_before_it_left_out(shell: Shell, upgrade_type: str) -> None:
    """As a VNFM asks for it: with the old package, of which an update wrote the image alone."""
    first = shell.package(**FILES)
    assert shell.run("install", first)[0] == 0
    changed = workload("Deployment", container=f"{ENV}\nworkingDir: /there", image=IMAGES[1])
    second = shell.package(cm=FILES["cm"], w=changed)
    assert shell.run("apply", first, second)[0] == 0
    assert "workingDir" not in str(shell.cnf.get("Deployment", "w")["spec"])
    third = shell.package(cm=config_map(setting="a", other="b"), w=changed)
    assert shell.run("change", second, third, "--upgrade-type", upgrade_type)[0] == 0
    assert "'workingDir': '/there'" in str(shell.cnf.get("Deployment", "w")["spec"])


def test_who_is_refused_an_undo_of_the_history_alone_is_told_how_to_name_the_packages(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    role = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {shell.cnf.namespace}}}
rules: [{{apiGroups: [""], resources: [pods], verbs: [get]}}]
"""
    old = shell.package(**FILES, role=role)
    new = shell.package(**FILES, role=role.replace("[get]", "[list]"))
    assert shell.run("install", old)[0] == 0
    status, text = shell.run("change", new, "--upgrade-type", "RollingUpdate")
    assert (status, text.splitlines()[-1][:43]) == (
        0,
        "To go back: container-update undo 2 --kubec",
    )
    capsys.readouterr()
    assert shell.run("undo", "--no-journal-key")[0] == PlanError.exit_status
    told = "If it is yours, run the same command again and name both packages, --package OLD"
    assert told in capsys.readouterr().err
    assert shell.run("undo", "--no-journal-key", "--package", old, "--package", new)[0] == 0
    assert shell.run("uninstall", "--no-journal-key", "--delete-shared")[0] == 0


def test_what_is_not_installed_is_not_updated_but_installed_where_that_is_asked_for(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    package = shell.package(**FILES)
    assert shell.run("apply", package, "--instance-id", INSTANCE)[0] == PlanError.exit_status
    error = capsys.readouterr().err
    assert f"has no record of VNF instance {INSTANCE}: " in error
    assert f" To install it: container-update install {package} --kubeconfig " in error
    assert shell.run("apply", package, "--instance-id", INSTANCE, "--install")[0] == 0
    assert names(shell.cnf) == {"cm", "w"}
    assert shell.run("apply", package, "--install")[0] == 2


def test_a_kind_that_the_server_does_not_serve_is_told_with_what_to_do(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}"
    assert shell.run("install", shell.package(w=widget))[0] == ClusterError.exit_status
    told = "does not serve the kind Widget of group example.com: install its CustomResource"
    assert told in capsys.readouterr().err


def test_an_instance_whose_installation_was_undone_makes_no_command_ask_which_is_meant(
    shell: Shell,
) -> None:
    package = shell.package(**FILES)
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 0
    other = shell.package(bad=BAD.replace("name: bad", "name: other"))
    bad = ("--instance-id", "other", "--grace-period", "0.1")
    assert shell.run("install", other, *bad)[0] == UpdateFailedError.exit_status
    assert shell.run("plan", package)[0] == 2
    assert shell.run("history", "--instance-id", "other")[0] == 0


ADDRESSED = (
    *("status", "history", "undo", "uninstall", "freeze", "unfreeze"),
    *("resume", "rollback", "promote", "abort"),
)
"""The verbs that may name an instance without a package."""


def test_an_instance_that_is_not_there_is_named_with_those_that_are(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    package = shell.package(**FILES)
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 0
    assert shell.run("plan", package, "--instance-id", "ufp")[0] == PlanError.exit_status
    told = f", only of {INSTANCE}: "
    assert told in capsys.readouterr().err
    namespace = shell.cnf.namespace
    for verb in ADDRESSED:
        for name, found in (INSTANCE[:-1], "the nearest name is"), ("ufp", "it has"):
            assert shell.run(verb, "--instance-id", name) == (PlanError.exit_status, "")
            told = f"VNF instance {name} is not known in namespace {namespace}: {found} {INSTANCE}."
            assert told in capsys.readouterr().err
    assert shell.run("uninstall", "--instance-id", INSTANCE)[0] == 0
    assert shell.run("uninstall", "--instance-id", INSTANCE)[0] == 2, "it was there"
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 0
    bad = ("--instance-id", "ufp", "--grace-period", "0.1")
    status, text = shell.run("install", shell.package(bad=BAD), *bad)
    assert status == UpdateFailedError.exit_status
    assert re.search(r"undone: Deployment .*: create .*: deleted\n", text)
    assert shell.run("plan", package, "--instance-id", "ufp")[0] == PlanError.exit_status
    told = f"its first operation in namespace {shell.cnf.namespace} was undone, or"
    assert told in capsys.readouterr().err


def test_what_was_uninstalled_is_not_updated_in_part(cnf: Cnf) -> None:
    """Its configuration would be created, and its workloads be left alone."""
    cnf.instantiate(**FILES)
    terminate(None, cnf.admin, **where(cnf), options=cnf.options)
    with pytest.raises(NotInstalledError, match=r"^none of the 2 objects of"):
        cnf.update({**FILES, "cm": config_map(setting="b")})
    assert names(cnf) == set()


def test_a_change_in_a_namespace_without_the_vnf_does_not_install_it(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    packages = shell.package(**FILES), shell.package(**FILES, d=config_map("d", setting="a"))
    status, _ = shell.run("change", *packages, "--upgrade-type", "RollingUpdate")
    assert status == PlanError.exit_status
    assert "not even" in capsys.readouterr().err
    nothing = f"no VNF instance is installed in namespace {shell.cnf.namespace}, and only objects"
    assert nothing in shell.run("uninstall")[1]
    assert names(shell.cnf) == set()


def test_the_status_is_how_the_workloads_are(shell: Shell) -> None:
    assert shell.run("install", shell.package(**FILES), "--instance-id", INSTANCE)[0] == 0
    status, text = shell.run("status")
    assert status == 2
    assert f"Deployment {shell.cnf.namespace}/w  1/1    1" in text
    body = shell.cnf.get("Deployment", "w")
    body["spec"]["template"]["spec"]["containers"][0]["image"] = BAD_IMAGE
    overwrite(shell.cnf.admin, body)
    documents = (json.loads(shell.run("status", "-o", "json")[1]) for _ in range(200))
    assert any("ImagePull" in each["workloads"][0]["trouble"] for each in documents)


def test_the_status_says_of_the_last_operation_that_it_was_undone_and_why(shell: Shell) -> None:
    assert shell.run("install", shell.package(**FILES))[0] == 0
    bad = {**FILES, "w": workload("Deployment", container=ENV, image=BAD_IMAGE)}
    arguments = ("--grace-period", "500ms", "--progress", "none")
    assert shell.run("apply", shell.package(**bad), *arguments)[0] == 7
    lines = shell.run("status")[1].splitlines()
    assert lines[0] == "No operation is under way."
    assert lines[1].startswith("The last operation (update, ")
    assert f"was undone: Deployment {shell.cnf.namespace}/w failed: " in lines[1]
    assert lines[2].startswith("What it did: container-update history 2 --kubeconfig ")
    document = json.loads(shell.run("status", "-o", "json")[1])
    assert document["lastOperation"]["revision"] == 2
    good = {**FILES, "cm": config_map(setting="b")}
    assert shell.run("apply", shell.package(**good))[0] == 0
    assert "last operation" not in shell.run("status")[1]


def test_an_installation_names_the_option_that_creates_its_namespace(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    package = shell.package(**FILES)
    for verb, advice in ("install", " To have it created: --create-namespace."), ("uninstall", ""):
        assert shell.run(verb, package, "-n", "no-such")[0] == PlanError.exit_status
        told = "namespace no-such does not exist: create it, or name another."
        assert f"{told}{advice}\n" in capsys.readouterr().err


@pytest.mark.parametrize("instance", ["one", INSTANCE])
def test_objects_of_others_are_not_kept(cnf: Cnf, instance: str) -> None:
    others = {f"other{number}": workload("Deployment", f"other{number}") for number in range(3)}
    how = {"namespace": cnf.namespace, "options": cnf.options.for_vnfm()}
    install(cnf.package({"others.yaml": "---\n".join(others.values())}), cnf.admin, **how)
    package = cnf.package({f"{name}.yaml": text for name, text in FILES.items()})
    installing, terminating = Counted(cnf.admin), Counted(cnf.admin)
    install(package, installing, instance_id=instance, **how)
    assert not {name for name in installing.names if name.startswith("other")}
    pods = len(cnf.pods("Deployment", "w"))
    deleted = terminate(package, terminating, instance_id=instance, **how)
    assert {result.step.key.name for result in deleted.results} == {"cm", "w"}
    assert not {name for name in terminating.names if name.startswith("other")}
    assert terminating.kept["Deployment"] == 1
    assert terminating.kept["Pod"] <= pods, "a fast cluster has ended some before they are listed"
    assert all(cnf.pods("Deployment", name) for name in others)
