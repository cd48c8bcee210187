# SPDX-License-Identifier: Apache-2.0
"""The command is used as those of kubectl and Helm are."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from container_update import __version__, install
from tests.functional.cnf import BAD_IMAGE, Cnf
from tests.functional.manifests import workload
from tests.internals.core import Collection, main


def said(*words: str, status: int = 0) -> str:
    """Return what a command writes; it ends with this exit status."""
    out = io.StringIO()
    assert main(words, out) == status, out.getvalue()
    return out.getvalue()


@pytest.fixture(autouse=True)
def _status_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTAINER_UPDATE_DETAILED_EXITCODE")


def test_the_exit_status_is_0_where_nothing_is_wrong_and_tells_more_where_that_is_asked_for(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    old, new, refused = (
        cnf.package({"w.yaml": workload("Deployment", name, image=image)})
        for name, image in (("a", "nginx:1.27"), ("a", "nginx:1.28"), ("another", "nginx:1.27"))
    )
    Path(refused, "Files", "w.yaml").write_text("kind: Deployment\n")
    where = ("--kubeconfig", admin_kubeconfig, "-n", cnf.namespace, "--instance-id", "one")
    for command, status in (
        (("history",), 2),
        (("install", old), 0),
        (("install", old), 2),
        (("plan", new), 3),
        (("plan", old), 2),
        (("plan", refused), 4),
        (("change", new, "--upgrade-type", "RollingUpdate", "--plan"), 3),
        (("apply", new), 0),
        (("apply", new), 2),
        (("status",), 2),
        (("resume",), 2),
        (("rollback",), 2),
        (("history",), 0),
        (("undo", "--plan"), 3),
        (("uninstall", "--plan"), 3),
        (("uninstall",), 0),
        (("uninstall",), 2),
    ):
        if status in {2, 3}:
            said(*command, *where, "--detailed-exitcode", status=status)
        said(*command, *where, status=0 if status in {2, 3} else status)


def test_the_history_shows_the_reason_that_an_operation_was_given(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    old, new = (
        cnf.package({"w.yaml": workload("Deployment", "a", image=image)})
        for image in ("nginx:1.27", "nginx:1.28")
    )
    where = ("--kubeconfig", admin_kubeconfig, "-n", cnf.namespace, "--instance-id", "one")
    change = ("change", old, "--upgrade-type", "RollingUpdate")
    reasons = "the first", "ticket 4711", "back"
    for reason, command in zip(reasons, (("install", old), ("apply", new), change), strict=True):
        said(*command, *where, "-m", reason)
    with pytest.raises(SystemExit, match="64"):
        said("undo", *where, "-m", "two\nlines")
    kept = json.loads(said("history", *where, "-o", "json"))["revisions"]
    assert [each["why"] for each in kept] == [*reversed(reasons)]
    assert all(reason in said("history", *where) for reason in reasons)
    assert "Why       back" in said("history", "--last", *where)


def test_the_history_shows_the_reason_that_ended_what_waited(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    old, new = (
        cnf.package({"w.yaml": workload("Deployment", "a", image=image, replicas=2)})
        for image in ("nginx:1.27", "nginx:1.28")
    )
    where = ("--kubeconfig", admin_kubeconfig, "-n", cnf.namespace, "--instance-id", "one")
    said("install", old, *where)
    canary = ("--upgrade-type", "Canary", "--canary-steps", "50,100", "--hold")
    for verb in ("abort", "promote"):
        said("change", old, new, *canary, *where, "-m", "ticket 4711")
        said(verb, old, new, *where, "-m", f"by {verb}")
    kept = json.loads(said("history", *where, "-o", "json"))["revisions"]
    reasons = ["ticket 4711; by promote", "ticket 4711; by abort", ""]
    assert [each["why"] for each in kept] == reasons


def test_the_options_that_say_where_may_be_before_the_command(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    package = cnf.package({"w.yaml": workload("Deployment", "a")})
    install(package, cnf.admin, namespace=cnf.namespace, instance_id="one", options=cnf.options)
    where = ["--kubeconfig", admin_kubeconfig, "-n", cnf.namespace]
    after = said("history", *where)
    assert "install" in after
    assert said(*where, "history") == after
    assert said(f"--kubeconfig={admin_kubeconfig}", "history", "-n", cnf.namespace) == after


def test_the_version_is_told_with_that_of_the_server(cnf: Cnf, admin_kubeconfig: str) -> None:
    server = cnf.admin.version()
    where = ("version", "--kubeconfig", admin_kubeconfig)
    assert said(*where) == f"Client: {__version__}\nServer: {server}\n"
    document = json.loads(said(*where, "-o", "json"))
    assert (document["client"], document["server"]) == (__version__, server)


def test_the_version_is_told_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONTAINER_UPDATE_KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert said("version") == f"Client: {__version__}\nServer: none is configured\n"
    assert json.loads(said("version", "-o", "json"))["server"] is None


def test_a_version_of_a_server_that_is_asked_for_and_missing_is_an_error(tmp_path: Path) -> None:
    said("version", "--kubeconfig", str(tmp_path / "none"), status=6)


def test_a_plan_in_short_is_a_line_for_each_object(cnf: Cnf, admin_kubeconfig: str) -> None:
    names = ["a", "b", "c", "d", "e"]
    old, new = (
        cnf.package({f"{n}.yaml": workload("Deployment", n, image=image) for n in names})
        for image in ("nginx:1.27", "nginx:1.28")
    )
    install(old, cnf.admin, namespace=cnf.namespace, instance_id="one", options=cnf.options)
    where = ("--kubeconfig", admin_kubeconfig, "-n", cnf.namespace)
    head, *steps, total = said("plan", new, *where, "--summary").splitlines()[-7:]
    assert head.startswith("Packages ")
    assert [line.split()[1:3] for line in steps] == [
        ["Deployment", f"{cnf.namespace}/{name}:"] for name in names
    ]
    assert total.startswith("Plan: ")
    assert said("plan", old, *where, "--summary").splitlines()[-1].startswith("Nothing ")


@pytest.mark.parametrize(
    "command", ["list", "status", "history", "version", "doctor", "plan PACKAGE"]
)
def test_yaml_has_what_json_has(command: str, cnf: Cnf, admin_kubeconfig: str) -> None:
    package = cnf.package({"w.yaml": workload("Deployment", "a")})
    install(package, cnf.admin, namespace=cnf.namespace, instance_id="one", options=cnf.options)
    words = command.replace("PACKAGE", package).split()
    where = [*words, "--kubeconfig", admin_kubeconfig, "-n", cnf.namespace]
    out = {style: io.StringIO() for style in ("json", "yaml")}
    statuses = {main([*where, "-o", style], out[style]) for style in out}
    assert len(statuses) == 1
    document = json.loads(out["json"].getvalue())
    assert document["kind"]
    assert yaml.safe_load(out["yaml"].getvalue()) == document


def test_the_event_of_an_undone_update_has_the_reason_that_it_was_given(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    old, bad = (
        cnf.package({"w.yaml": workload("Deployment", "a", image=image)})
        for image in ("nginx:1.27", BAD_IMAGE)
    )
    install(old, cnf.admin, namespace=cnf.namespace, instance_id="one", options=cnf.options)
    where = ("--kubeconfig", admin_kubeconfig, "-n", cnf.namespace, "--grace-period", "0.5")
    said("apply", bad, *where, "-m", "ticket 4711", status=7)
    every = Collection("", "Event", cnf.namespace)
    told = [body for body in cnf.admin.list(every).items if body.get("reason") == "UpdateUndone"]
    assert ["(ticket 4711)" in body["message"] for body in told] == [True]


def test_the_reason_of_what_was_done_is_in_an_event_of_each_workload(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    old, new = (
        cnf.package({f"{n}.yaml": workload("Deployment", n, image=image) for n in "ab"})
        for image in ("nginx:1.27", "nginx:1.28")
    )
    install(old, cnf.admin, namespace=cnf.namespace, instance_id="one", options=cnf.options)
    said("apply", new, "--kubeconfig", admin_kubeconfig, "-n", cnf.namespace, "-m", "ticket 4711")
    every = Collection("", "Event", cnf.namespace)
    told = [body for body in cnf.admin.list(every).items if body.get("reason") == "Updated"]
    assert {body["message"] for body in told} == {"roll (ticket 4711): done"}
    assert sorted(body["involvedObject"]["name"] for body in told) == ["a", "b"]


@pytest.mark.parametrize("command", ["plan", "apply", "change"])
def test_a_command_without_a_package_names_what_it_takes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="64"):
        main([command])
    assert "are required: [OLD] NEW\n" in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["0,200", "10,101", "ten", "10,,100"])
def test_percentages_that_are_none_are_named(
    steps: str, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ("--upgrade-type", "Canary", f"--canary-steps={steps}")
    assert main(["change", "old", "new", *how]) == 64
    told = f"expected whole numbers from 1 to 100 like 10,50,100, found {steps}."
    assert told in capsys.readouterr().err
