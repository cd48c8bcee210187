"""The command line as a user types it."""

from __future__ import annotations

import io
import json

import pytest

from container_update.cli.main import main
from tests.functional.cnf import BAD_IMAGE, INSTANCE, Cnf
from tests.functional.manifests import ENV, config_map, workload

OLD = {"cm": config_map(setting="old"), "w": workload("Deployment", container=ENV)}
NEW = {**OLD, "cm": config_map(setting="new")}


class Shell:
    """Runs commands for one CNF."""

    def __init__(self, cnf: Cnf, kubeconfig: str) -> None:
        self.cnf = cnf
        self.common = ("-n", cnf.namespace, "--kubeconfig", kubeconfig, "--instance-id", INSTANCE)
        cnf.instantiate(**OLD)

    def package(self, files: dict[str, str]) -> str:
        return self.cnf.package({f"{name}.yaml": text for name, text in files.items()})

    def run(self, command: str, *arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        return main([command, *arguments, *self.common], out), out.getvalue()


@pytest.fixture
def shell(cnf: Cnf, kubeconfig: str) -> Shell:
    return Shell(cnf, kubeconfig)


def test_a_plan_shows_what_restarts_and_why_and_writes_nothing(shell: Shell) -> None:
    status, text = shell.run("plan", shell.cnf.old, shell.package(NEW))
    namespace = shell.cnf.namespace
    assert status == 3
    assert f"ConfigMap {namespace}/cm: replace" in text
    assert (
        f"because env SETTING of container main uses key setting of ConfigMap {namespace}/cm, "
        "which changed" in text
    )
    assert shell.cnf.get("ConfigMap", "cm")["data"] == {"setting": "old"}


def test_apply_shows_the_plan_then_each_step_then_the_summary(shell: Shell) -> None:
    new = shell.package(NEW)
    status, text = shell.run("apply", shell.cnf.old, new)
    assert status == 0
    plan, step, total = (
        text.index("Restarts:"),
        text.index("done: Deployment"),
        text.index("Updated in"),
    )
    assert plan < step < total
    status, text = shell.run("apply", shell.cnf.old, new)
    assert status == 2
    assert text.count("Nothing to do") == 1


def test_json_is_for_programs(shell: Shell) -> None:
    new = shell.package(NEW)
    status, text = shell.run("plan", shell.cnf.old, new, "-o", "json")
    assert [step["action"] for step in json.loads(text)["steps"]] == ["replace", "roll"]
    status, text = shell.run("apply", shell.cnf.old, new, "-o", "json")
    assert status == 0
    assert {result["state"] for result in json.loads(text)["results"]} == {"done"}


def test_a_failure_has_its_status_and_names_its_cause(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = shell.package({**NEW, "w": workload("Deployment", container=ENV, image=BAD_IMAGE)})
    status, text = shell.run("apply", shell.cnf.old, bad, "--grace-period", "0.5")
    assert status == 7
    assert "undone: ConfigMap" in text
    error = capsys.readouterr().err
    assert "ImagePull" in error
    assert "Everything is as before" in error
    status, text = shell.run("apply", shell.cnf.old, bad, "--grace-period", "0.5", "-o", "json")
    assert json.loads(text)["error"] == "UpdateFailedError"


def test_there_is_nothing_to_resume_or_roll_back_after_an_update(shell: Shell) -> None:
    shell.run("apply", shell.cnf.old, shell.package(NEW))
    for command in ("status", "resume", "rollback"):
        assert shell.run(command)[0] == 2


@pytest.mark.parametrize(
    ("files", "more", "status"),
    [
        pytest.param({"w": OLD["w"]}, (), 4, id="a wrong package"),
        pytest.param(NEW, ("--namespace", "no-such-namespace"), 5, id="a wrong namespace"),
        pytest.param(NEW, ("--context", "none"), 6, id="no cluster"),
        pytest.param(NEW, ("--workers", "0"), 1, id="an option out of bounds"),
    ],
)
def test_each_class_of_error_has_a_status_of_its_own(
    cnf: Cnf, admin_kubeconfig: str, files: dict[str, str], more: tuple[str, ...], status: int
) -> None:
    shell = Shell(cnf, admin_kubeconfig)
    common = ("-n", cnf.namespace, "--kubeconfig", admin_kubeconfig)
    assert main(["apply", cnf.old, shell.package(files), *common, *more]) == status


def test_wrong_usage_and_nothing_to_do_have_different_statuses() -> None:
    with pytest.raises(SystemExit) as raised:
        main(["apply"])
    assert raised.value.code == 64
