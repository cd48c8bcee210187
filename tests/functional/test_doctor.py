# SPDX-License-Identifier: Apache-2.0
"""``doctor``: one line for each check, and the exit status of the first problem."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from container_update import install
from tests.functional.cnf import INSTANCE, Cnf
from tests.functional.manifests import config_map
from tests.internals.core import ObjectKey, guide_request, main

GUIDE = guide_request("v1")
PACKAGES = (GUIDE.old, GUIDE.new, *(word for f in GUIDE.def_files for word in ("--def-file", f)))


class Doctor:
    """Runs the command for one CNF, as the account that updates."""

    def __init__(self, cnf: Cnf, kubeconfig: str) -> None:
        self.cnf = cnf
        self.common = ("-n", cnf.namespace, "--kubeconfig", kubeconfig, "--instance-id", INSTANCE)

    def run(self, *words: str) -> tuple[int, str]:
        out = io.StringIO()
        return main(["doctor", *self.common, *words], out), out.getvalue()

    def problems(self, *words: str) -> tuple[int, list[str]]:
        """The exit status, and the names of the checks that found something."""
        status, text = self.run("-o", "json", *words)
        return status, [c["check"] for c in json.loads(text)["checks"] if not c["ok"]]


@pytest.fixture
def doctor(cnf: Cnf, kubeconfig: str) -> Doctor:
    return Doctor(cnf, kubeconfig)


@pytest.fixture
def _guide(cnf: Cnf) -> None:
    """The VNF of the user guide, whose packages have all that Tacker needs."""
    how = {"def_files": GUIDE.def_files, "instance_id": INSTANCE, "namespace": cnf.namespace}
    install(GUIDE.old, cnf.admin, **how)


@pytest.mark.usefixtures("_guide")
def test_each_check_has_a_line_and_nothing_is_written(doctor: Doctor) -> None:
    before = doctor.cnf.get("ConfigMap", "cm-data")
    status, text = doctor.run(*PACKAGES)
    starts = [line.split(":")[0].split() for line in text.splitlines()]
    names = ("package", "package", "kubeconfig", "server", "namespace", "update", "rights")
    assert starts == [["ok", name] for name in (*names, "operation")]
    assert status == 0
    assert "7 objects would be written, 5 of them to restart pods" in text
    assert doctor.cnf.get("ConfigMap", "cm-data") == before


def test_without_packages_the_cluster_is_checked(doctor: Doctor) -> None:
    status, text = doctor.run()
    assert status == 0
    assert "package" not in text
    assert "ok       rights: all 7" in text


@pytest.mark.usefixtures("_guide")
def test_a_right_that_is_missing_is_a_problem(doctor: Doctor) -> None:
    cnf = doctor.cnf
    role = cnf.admin.get(
        ObjectKey("rbac.authorization.k8s.io", "Role", cnf.namespace, "container-update")
    )
    assert role is not None
    for rule in role["rules"]:
        if "deployments" in rule["resources"]:
            rule["verbs"] = [verb for verb in rule["verbs"] if verb != "update"]
    cnf.admin.replace(role)
    assert doctor.problems(*PACKAGES) == (6, ["rights"])
    assert doctor.problems() == (0, [])


def test_an_interrupted_operation_is_a_problem_with_the_commands_that_end_it(
    doctor: Doctor,
) -> None:
    _interrupt(doctor.cnf)
    status, text = doctor.run()
    assert status == 9
    line = text.splitlines()[-1]
    assert line.startswith("problem  operation: ")
    assert "container-update resume --kubeconfig" in line
    assert f"--namespace {doctor.cnf.namespace}" in line


@pytest.mark.usefixtures("_guide")
def test_without_an_id_the_only_instance_of_the_namespace_is_looked_at(doctor: Doctor) -> None:
    _interrupt(doctor.cnf)
    doctor.common = doctor.common[:-2]
    status, text = doctor.run()
    assert status == 9
    assert f"--instance-id {INSTANCE}" in text.splitlines()[-1]


@pytest.mark.usefixtures("_guide")
def test_of_several_instances_one_has_to_be_named(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(config_map("another", a="1"))
    how = {"namespace": doctor.cnf.namespace, "instance_id": "another"}
    install(str(tmp_path / "map.yaml"), doctor.cnf.admin, **how)
    doctor.common = doctor.common[:-2]
    assert doctor.problems() == (5, ["instance"])
    assert doctor.problems("--instance-id", "another") == (0, [])


def _interrupt(cnf: Cnf) -> None:
    """Leave the lease of an operation that has ended without releasing it."""
    name = f"container-update-{INSTANCE}"
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    spec = {"holderIdentity": "host-1/1", "leaseDurationSeconds": 1}
    spec |= dict.fromkeys(("acquireTime", "renewTime"), "2020-01-01T00:00:00.000000Z")
    metadata = {"name": name, "namespace": cnf.namespace}
    cnf.admin.create({**body, "metadata": metadata, "spec": spec})


PROBLEMS = {
    "no such package": (("no-package",), 4, ["package"]),
    "no such namespace": (("-n", "no-such-namespace"), 5, ["namespace"]),
    "no such kubeconfig": (("--kubeconfig", "none"), 6, ["kubeconfig"]),
    "two problems": (("no-package", "--kubeconfig", "none"), 4, ["package", "kubeconfig"]),
}


@pytest.mark.parametrize(("words", "status", "names"), PROBLEMS.values(), ids=PROBLEMS)
def test_the_first_problem_has_the_exit_status(
    cnf: Cnf,
    admin_kubeconfig: str,
    words: tuple[str, ...],
    status: int,
    names: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Doctor(cnf, admin_kubeconfig).problems(*words) == (status, names)


def test_a_server_that_cannot_be_reached_ends_the_checks(doctor: Doctor, tmp_path: Path) -> None:
    file = tmp_path / "nowhere"
    file.write_text(
        '{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": '
        '"https://127.0.0.1:9"}}], "contexts": [{"name": "a", "context": {"cluster": "c"}}]}'
    )
    assert doctor.problems("--kubeconfig", str(file)) == (6, ["server"])
