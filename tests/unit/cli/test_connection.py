# SPDX-License-Identifier: Apache-2.0
"""The cluster that the arguments name: which namespace, and what is said where it is not found."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest
import yaml

from container_update.cli import connection
from container_update.cli.main import main
from container_update.cli.terminal import advice
from container_update.model.errors import ContainerUpdateError, NextStep

KUBECONFIG = {
    "current-context": "east",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
    "contexts": [
        {"name": "east", "context": {"cluster": "c", "namespace": "prod"}},
        {"name": "west", "context": {"cluster": "c"}},
    ],
}


@pytest.fixture(autouse=True)
def _outside_of_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(KUBECONFIG))
    return str(path)


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    connection.add_cluster_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "namespace"),
    [
        ((), "prod"),
        (("--context", "west"), "default"),
        (("-n", "test"), "test"),
        (("--context", "west", "--namespace", "test"), "test"),
    ],
    ids=["current context", "a context without one", "option", "option and context"],
)
def test_the_advice_names_the_namespace_that_the_command_worked_in(
    words: tuple[str, ...], namespace: str, kubeconfig: str
) -> None:
    parsed = parse("--kubeconfig", kubeconfig, *words)
    with connection.connected_cluster(parsed):
        assert parsed.namespace == namespace
    error = ContainerUpdateError(next_step=NextStep.RESUME)
    assert f" --namespace {namespace}" in advice.advice(error, parsed)


def test_a_context_needs_a_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    assert main(["status", "--context", "west"]) == 6
    assert "there is no kubeconfig, and so no context west" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "resume",
        "rollback",
        "change OLD NEW --upgrade-type rolling",
        "change OLD NEW --upgrade-type rolling --plan",
    ],
)
def test_a_stack_without_the_extra_is_told_what_to_install(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "container_update.openstack.client", raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == "openstack"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openstack", None)
    assert main(["heat", *command.split(), "--stack", "vnf"]) == 6
    error = capsys.readouterr().err
    assert "--stack needs the Python package openstack" in error
    assert f"{sys.executable} -m " in error or "uv pip install" in error
    assert "[openstack]" in error


@pytest.mark.parametrize("command", ["status", "resume", "rollback", "plan", "apply"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--kubeconfig", "no/file"), "kubeconfig no/file: there is no such file"),
        (("--context", "nope"), "there is no context nope; its contexts are: east, west"),
    ],
    ids=["file", "context"],
)
def test_a_cluster_that_is_not_found_is_told_with_what_there_is(
    command: str,
    words: tuple[str, ...],
    told: str,
    kubeconfig: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    packages = ("old", "new") if command in ("plan", "apply") else ()
    assert main([command, *packages, *words]) == 6
    assert told in capsys.readouterr().err
