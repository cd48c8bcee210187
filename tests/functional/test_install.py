"""``install`` and ``uninstall``: a CNF that no VNFM runs."""

from __future__ import annotations

import io

import pytest

from container_update.cli.main import main
from container_update.model.objects import Collection
from container_update.operations.install import install
from container_update.operations.terminate import terminate
from tests.functional.cnf import BAD_IMAGE, INSTANCE, Cnf
from tests.functional.counted import Counted
from tests.functional.manifests import ENV, config_map, workload

FILES = {"cm": config_map(setting="a"), "w": workload("Deployment", container=ENV)}


class Shell:
    """Types the commands, as the administrator of the namespace."""

    def __init__(self, cnf: Cnf, admin_kubeconfig: str) -> None:
        self.cnf = cnf
        self.where = ("-n", cnf.namespace, "--kubeconfig", admin_kubeconfig)

    def package(self, **files: str) -> str:
        return self.cnf.package({f"{name}.yaml": text for name, text in files.items()})

    def run(self, command: str, package: str, *more: str) -> tuple[int, str]:
        out = io.StringIO()
        return main([command, package, *self.where, *more], out), out.getvalue()


@pytest.fixture
def shell(cnf: Cnf, admin_kubeconfig: str) -> Shell:
    return Shell(cnf, admin_kubeconfig)


def names(cnf: Cnf) -> set[str]:
    kinds = (("", "ConfigMap"), ("apps", "Deployment"))
    bodies = [b for kind in kinds for b in cnf.admin.list(Collection(*kind, cnf.namespace)).items]
    return {b["metadata"]["name"] for b in bodies} - {"kube-root-ca.crt"}


@pytest.mark.parametrize("instance", [(), ("--instance-id", INSTANCE)], ids=["no id", "an id"])
def test_what_is_installed_is_ready_and_what_is_uninstalled_is_gone(
    shell: Shell, instance: tuple[str, ...]
) -> None:
    package = shell.package(**FILES)
    status, text = shell.run("install", package, *instance)
    assert status == 0
    assert "Plan: 2 to create" in text
    assert "Installed in" in text
    assert shell.cnf.get("Deployment", "w")["status"]["readyReplicas"] == 1
    status, text = shell.run("uninstall", package, *instance)
    assert status == 0
    assert "Plan: 2 to delete" in text
    assert names(shell.cnf) == set()
    status, text = shell.run("uninstall", package, *instance)
    assert status == 2
    assert "nothing of the package" in text


def test_an_installation_that_does_not_get_ready_is_deleted_again(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = shell.package(**{**FILES, "w": workload("Deployment", image=BAD_IMAGE)})
    status, text = shell.run("install", bad, "--grace-period", "0.5")
    assert status == 5
    assert "failed: Deployment" in text
    assert "What was created is deleted again" in capsys.readouterr().err
    assert names(shell.cnf) == set()
    assert shell.run("install", bad, "--grace-period", "0.5", "--leave-failed")[0] == 5
    assert names(shell.cnf) == {"cm", "w"}


def test_what_exists_already_is_not_touched_by_an_installation_that_fails(shell: Shell) -> None:
    other = shell.package(cm=config_map(setting="of others"))
    assert shell.run("install", other)[0] == 0
    assert shell.run("install", shell.package(w=FILES["w"], cm=FILES["cm"]))[0] == 6
    assert shell.cnf.get("ConfigMap", "cm")["data"] == {"setting": "of others"}
    assert names(shell.cnf) == {"cm"}


def test_objects_of_an_instance_are_not_uninstalled_without_its_id(shell: Shell) -> None:
    package = shell.package(cm=FILES["cm"])
    assert shell.run("install", package, "--instance-id", INSTANCE)[0] == 0
    assert shell.run("uninstall", package)[0] == 2
    assert shell.run("uninstall", package, "--instance-id", INSTANCE)[0] == 0


def test_a_namespace_that_does_not_exist_is_an_error(shell: Shell) -> None:
    assert shell.run("install", shell.package(**FILES), "-n", "nowhere")[0] == 5


@pytest.mark.parametrize("instance", [None, INSTANCE], ids=["no id", "an id"])
def test_objects_of_others_are_not_kept(cnf: Cnf, instance: str | None) -> None:
    others = {f"other{number}": workload("Deployment", f"other{number}") for number in range(3)}
    where = {"namespace": cnf.namespace, "options": cnf.options}
    install(cnf.package({"others.yaml": "---\n".join(others.values())}), cnf.admin, **where)
    package = cnf.package({f"{name}.yaml": text for name, text in FILES.items()})
    installing, terminating = Counted(cnf.admin), Counted(cnf.admin)
    install(package, installing, instance_id=instance, **where)
    assert not {name for name in installing.names if name.startswith("other")}
    pods = len(cnf.pods("Deployment", "w"))
    assert installing.kept["Pod"] + installing.kept["ReplicaSet"] > 0
    deleted = terminate(package, terminating, instance_id=instance, **where)
    assert {key.name for key in deleted} == {"cm", "w"}
    assert not {name for name in terminating.names if name.startswith("other")}
    assert (terminating.kept["Deployment"], terminating.kept["Pod"]) == (1, pods)
    assert terminating.sent["Deployment"] == (1 if instance else 4)
    assert all(cnf.pods("Deployment", name) for name in others)
