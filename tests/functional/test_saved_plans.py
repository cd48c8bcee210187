# SPDX-License-Identifier: Apache-2.0
"""A plan that is tried on the server, saved, approved by somebody, and carried out later."""

from __future__ import annotations

import copy
import io
import json
import stat
from collections.abc import Callable, Iterator
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from container_update import (
    ChangePackageRequest,
    InstallRequest,
    PlanError,
    TerminateRequest,
    UndoRequest,
    UpdateRequest,
    apply_plan,
    plan_of,
    save_plan,
)
from tests.functional.cnf import IMAGES, INSTANCE, Cnf
from tests.functional.conftest import overwrite, until
from tests.functional.manifests import ENV, config_map, secret, workload
from tests.functional.upgrade_types import ROLLING
from tests.internals.core import main

OLD = {
    "cm": config_map(setting="old"),
    "sec": secret(password="previous-Zq7"),
    "w": workload("Deployment", container=ENV),
}
NEW = {
    "cm": config_map(setting="new"),
    "sec": secret(password="replacement-Zq7"),
    "w": workload("Deployment", container=ENV, image=IMAGES[1]),
}


class Plans:
    """One CNF, and the file of its plan.

    :param verb: the command that plans, which gets both packages.
    """

    def __init__(
        self, cnf: Cnf, kubeconfig: str, folder: Path, verb: tuple[str, ...] = ("plan",)
    ) -> None:
        self.verb = verb
        self.cnf = cnf
        self.kubeconfig = kubeconfig
        self.file = folder / "plan.json"
        self.new = cnf.package({f"{name}.yaml": text for name, text in NEW.items()})

    def run(self, *arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        return main([*arguments, "--kubeconfig", self.kubeconfig], out), out.getvalue()

    def plan(self, *more: str) -> tuple[int, str]:
        where = ("-n", self.cnf.namespace, "--instance-id", INSTANCE)
        command, *options = self.verb
        return self.run(command, self.cnf.old, self.new, *options, *where, *more)

    def save(self) -> None:
        assert self.plan("--out", str(self.file))[0] == 3

    def apply(self, *more: str) -> tuple[int, str]:
        return self.run("apply", str(self.file), *more)


@pytest.fixture
def plans(cnf: Cnf, kubeconfig: str, tmp_path: Path) -> Plans:
    cnf.instantiate(**OLD)
    return Plans(cnf, kubeconfig, tmp_path)


CHANGE = ("change", "--upgrade-type", ROLLING, "--plan")


@pytest.fixture
def changes(cnf: Cnf, admin_kubeconfig: str, tmp_path: Path) -> Plans:
    """The same, by a change of the package."""
    cnf.instantiate(**OLD)
    return Plans(cnf, admin_kubeconfig, tmp_path, CHANGE)


def setting(cnf: Cnf) -> str:
    return str(cnf.get("ConfigMap", "cm")["data"]["setting"])


def test_a_saved_plan_is_carried_out_as_it_is_and_once(plans: Plans) -> None:
    plans.save()
    assert setting(plans.cnf) == "old"
    status, text = plans.apply()
    assert (status, setting(plans.cnf)) == (0, "new")
    assert "Updated in" in text
    assert plans.apply()[0] == 2


def test_a_saved_plan_has_no_value_of_a_secret(plans: Plans) -> None:
    plans.save()
    text = plans.file.read_text()
    assert "Zq7" not in text
    assert [step["object"]["name"] for step in json.loads(text)["plan"]["steps"]] == [
        "cm",
        "sec",
        "w",
    ]


def edit_configuration(plans: Plans) -> str:
    live = plans.cnf.get("ConfigMap", "cm")
    live["data"]["setting"] = "by hand"
    plans.cnf.admin.replace(live)
    return f"ConfigMap {plans.cnf.namespace}/cm changed since"


def annotate_workload(plans: Plans) -> str:
    live = plans.cnf.get("Deployment", "w")
    live["metadata"].setdefault("annotations", {})["touched"] = "yes"
    overwrite(plans.cnf.admin, live)
    return f"Deployment {plans.cnf.namespace}/w changed since"


def change_package(plans: Plans) -> str:
    (Path(plans.new) / "Files/cm.yaml").write_text(config_map(setting="newer"))
    return "the new package"


def change_cluster(plans: Plans) -> str:
    saved = json.loads(plans.file.read_text())
    plans.file.write_text(json.dumps({**saved, "server": "https://other.example:6443"}))
    return "it was made for the cluster https://other.example:6443"


@pytest.mark.parametrize(
    "change", [edit_configuration, annotate_workload, change_package, change_cluster]
)
def test_a_saved_plan_is_refused_once_something_is_not_as_it_was(
    plans: Plans, capsys: pytest.CaptureFixture[str], change: Callable[[Plans], str]
) -> None:
    plans.save()
    what = change(plans)
    before = setting(plans.cnf)
    status, _ = plans.apply()
    assert (status, setting(plans.cnf)) == (5, before)
    assert what in (errors := capsys.readouterr().err)
    assert "Make the plan again" in errors


def test_what_a_controller_writes_into_the_status_is_no_change(plans: Plans) -> None:
    plans.save()
    cnf = plans.cnf
    before = cnf.get("Deployment", "w")["metadata"]["resourceVersion"]
    (pod,) = cnf.pods("Deployment", "w")
    cnf.admin.delete(cnf.key("Pod", pod))

    def is_replaced() -> bool:
        live = cnf.get("Deployment", "w")
        return live["metadata"]["resourceVersion"] != before and bool(
            live["status"].get("readyReplicas")
        )

    until(is_replaced)
    assert plans.apply()[0] == 0


def test_another_namespace_than_the_saved_one_is_wrong_usage(
    plans: Plans, capsys: pytest.CaptureFixture[str]
) -> None:
    plans.save()
    assert plans.apply("-n", "another")[0] == 64
    assert "--namespace" in capsys.readouterr().err


def test_a_file_that_is_no_plan_is_neither_read_as_one_nor_written_over(plans: Plans) -> None:
    plans.file.write_text('{"precious": true}')
    assert plans.apply()[0] == 4
    assert plans.plan("--out", str(plans.file))[0] == 64
    assert plans.file.read_text() == '{"precious": true}'


def test_a_plan_is_its_owners_alone_and_not_written_through_a_link(plans: Plans) -> None:
    plans.save()
    plans.file.chmod(0o644)
    plans.save()
    assert stat.S_IMODE(plans.file.stat().st_mode) == 0o600
    other = plans.file.rename(plans.file.with_suffix(".other"))
    plans.file.symlink_to(other)
    before = other.read_text()
    assert plans.plan("--out", str(plans.file))[0] == 64
    assert other.read_text() == before


def _fields(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name)
            yield from _fields(inner, *path, name)


@pytest.mark.thorough
@pytest.mark.parametrize("verb", ["plans", "changes"])
def test_a_damaged_plan_is_refused_and_never_carried_out(
    verb: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without each of its values, and with each of another type."""
    plans: Plans = request.getfixturevalue(verb)
    plans.save()
    whole = json.loads(plans.file.read_text())
    places = [path for path in _fields(whole) if path[0] in {"request", "plan", "server"}]
    places = [path for path in places if path[-1] not in {"apiVersion", "kind"}]
    assert len(places) > 15
    for *inner, name in places:
        for wrong in (None, 5, [[]], {"a": 1}, ...):
            body = copy.deepcopy(whole)
            place = reduce(getitem, inner, body)
            if wrong is ...:
                older = {"server", "oneNamespace"}
                older |= {"configPaths", "verb"} if verb == "plans" else set()
                if inner == ["request"] and name in older:  # plans that are older have none
                    continue
                del place[name]
            elif place[name] == wrong:
                continue
            else:
                place[name] = wrong
            plans.file.write_text(json.dumps(body))
            status, _ = plans.apply()
            error = capsys.readouterr().err
            assert status in {2, 4, 5, 64}, (inner, name, wrong, error)
            assert "defect" not in error, (inner, name, wrong, error)
            assert setting(plans.cnf) == "old", (inner, name, wrong)


def test_a_plan_without_its_packages_is_refused(plans: Plans) -> None:
    plans.save()
    body = json.loads(plans.file.read_text())
    body["plan"]["packages"] = []
    plans.file.write_text(json.dumps(body))
    assert plans.apply()[0] != 0
    assert setting(plans.cnf) == "old"


SCRIPT = "Scripts/check.py"


def with_script(plans: Plans, text: str = "print('ok')") -> str:
    """Put a coordination script into the new package; return its path."""
    script = Path(plans.new) / SCRIPT
    script.parent.mkdir(exist_ok=True)
    script.write_text(text)
    return SCRIPT


def test_the_scripts_of_a_change_are_named_in_its_plan_and_run_as_they_were(
    changes: Plans, capsys: pytest.CaptureFixture[str]
) -> None:
    script = with_script(changes)
    saved = ("--coordinate-new", script, "--out", str(changes.file))
    status, text = changes.plan(*saved)
    assert status == 3
    assert f"Script {script} (new VNF, " in text
    with_script(changes, "print('another one')")
    assert changes.apply()[0] == 5
    assert "the new package" in capsys.readouterr().err
    with_script(changes)
    status, text = changes.apply()
    assert (status, setting(changes.cnf)) == (0, "new")
    assert f"{script} (new VNF, w): status 0" in text


def test_a_change_whose_request_has_a_password_is_not_saved(
    changes: Plans, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.json"
    vdu = {"vdu_id": "w", "new_vnfc": {"username": "operator", "password": "previous-Zq7"}}
    request.write_text(json.dumps({"additionalParams": {"vdu_params": [vdu]}}))
    assert changes.plan("--request", str(request), "--out", str(changes.file))[0] == 64
    assert "Zq7" not in capsys.readouterr().err
    assert not changes.file.exists()


def test_the_plan_of_a_stack_is_neither_saved_nor_tried(
    changes: Plans, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (("--out", str(changes.file)), ("--server",)):
        packages = (changes.cnf.old, changes.new)
        where = ("--upgrade-type", ROLLING, "--plan", "--stack", "web")
        with pytest.raises(SystemExit, match="64"):
            changes.run("heat", "change", *packages, *where, *option)
        assert f"there is no option {option[0]}" in capsys.readouterr().err


def test_a_saved_update_that_was_tried_is_tried_again(growing: Plans) -> None:
    assert growing.plan("--server", "--out", str(growing.file))[0] == 3
    metadata = {"name": "full", "namespace": growing.cnf.namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    growing.cnf.admin.create({**quota, "spec": {"hard": {"secrets": "0"}}})
    assert growing.apply()[0] == 6
    assert setting(growing.cnf) == "old"


@pytest.fixture
def growing(plans: Plans) -> Plans:
    """The new package has a Secret more."""
    more = {**NEW, "sec": NEW["sec"] + "---\n" + secret("more", a="b")}
    plans.new = plans.cnf.package({f"{name}.yaml": text for name, text in more.items()})
    return plans


def test_a_plan_that_the_server_would_refuse_is_refused(
    growing: Plans, capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = {"name": "full", "namespace": growing.cnf.namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    growing.cnf.admin.create({**quota, "spec": {"hard": {"secrets": "0"}}})
    status, text = growing.plan("--server")
    assert status == 6
    assert "Plan: " in text
    assert "would refuse 1 of 4 writes: create Secret" in capsys.readouterr().err


# --- in the library -----------------------------------------------------------------------------

BODY = {"additionalParams": {"upgrade_type": ROLLING}}
LIFE: dict[str, tuple[Callable[[str, str, dict[str, str]], Any], str | None]] = {
    "install": (lambda old, _, where: InstallRequest(old, **where), "old"),
    "update": (lambda _, new, where: UpdateRequest("", new, **where), "new"),
    "undo": (lambda _, __, where: UndoRequest(**where), "old"),
    "change": (lambda old, new, where: ChangePackageRequest(BODY, old, new, **where), "new"),
    "terminate": (lambda _, __, where: TerminateRequest(**where), None),
}


@pytest.mark.parametrize("who", ["the library", "the command"])
def test_the_plan_of_every_operation_is_saved_and_carried_out_by(
    who: str, cnf: Cnf, admin_kubeconfig: str, tmp_path: Path
) -> None:
    old, new = (cnf.package({f"{n}.yaml": t for n, t in each.items()}) for each in (OLD, NEW))
    where = {"namespace": cnf.namespace, "instance_id": INSTANCE}
    file = tmp_path / "approved.plan"
    for verb, (request_of, after) in LIFE.items():
        request, before = request_of(old, new, where), found(cnf)
        save_plan(plan_of(request, cnf.admin), request, cnf.admin, file)
        assert (found(cnf), "Zq7" in file.read_text()) == (before, False), verb
        if who == "the library":
            assert apply_plan(file, cnf.admin).results, verb
        else:
            words = ["apply", str(file), "--kubeconfig", admin_kubeconfig]
            assert main(words, io.StringIO()) == 0, verb
        assert found(cnf) == after, verb


def test_a_saved_request_keeps_the_one_namespace_of_all_objects(cnf: Cnf, tmp_path: Path) -> None:
    elsewhere = config_map(setting="old").replace("name: cm", "name: cm, namespace: elsewhere")
    package = cnf.package({"cm.yaml": elsewhere})
    request = InstallRequest(package, namespace=cnf.namespace, one_namespace=True)
    plan, file = plan_of(request, cnf.admin), tmp_path / "approved.plan"
    save_plan(plan, request, cnf.admin, file)
    assert apply_plan(file, cnf.admin).results
    assert found(cnf) == "old"


def found(cnf: Cnf) -> str | None:
    """Return the setting that is live; None where there is no CNF."""
    live = cnf.admin.get(cnf.key("ConfigMap", "cm"))
    return str(live["data"]["setting"]) if live else None


def test_a_change_that_another_one_overtook_is_refused_by_the_library(changes: Plans) -> None:
    changes.save()
    edit_configuration(changes)
    with pytest.raises(PlanError, match="cannot be carried out any more"):
        apply_plan(changes.file, changes.cnf.admin)
    assert setting(changes.cnf) == "by hand"


def test_the_library_writes_the_records_of_a_saved_change(changes: Plans, tmp_path: Path) -> None:
    instance, records = tmp_path / "instance.json", tmp_path / "records.json"
    instance.write_text(json.dumps({"id": INSTANCE, "vnfdId": "v1"}))
    saved = ("--instance", str(instance), "--records", str(records), "--out", str(changes.file))
    assert changes.plan(*saved)[0] == 3
    assert apply_plan(changes.file, changes.cnf.admin).results
    assert json.loads(records.read_text())["id"] == INSTANCE


def test_a_package_that_is_read_once_is_not_saved(
    cnf: Cnf, admin_kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan"
    words = ["install", "-", "--plan", "--out", str(file), "-n", cnf.namespace]
    assert main([*words, "--kubeconfig", admin_kubeconfig], io.StringIO()) == 64
    assert "standard input" in capsys.readouterr().err
    assert not file.exists()
