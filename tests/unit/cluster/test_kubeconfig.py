# SPDX-License-Identifier: Apache-2.0
"""Kubeconfig files: the context and its namespace, several files, and what is wrong with one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update.cluster import kubeconfig
from container_update.cluster.kubeconfig import files, read
from container_update.model.cluster import ClusterContext
from container_update.model.errors import ClusterError

SITES = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "east",
    "clusters": [
        {"name": "c-east", "cluster": {"server": "https://east:6443"}},
        {"name": "c-west", "cluster": {"server": "https://west:6443"}},
    ],
    "users": [
        {"name": "admin", "user": {"token": "pl4nted"}},
        {"name": "cloud", "user": {"exec": {"command": "login", "args": ["--id", "pl4nted"]}}},
    ],
    "contexts": [
        {"name": "east", "context": {"cluster": "c-east", "user": "admin", "namespace": "prod"}},
        {"name": "west", "context": {"cluster": "c-west", "user": "cloud"}},
        {"name": "nobody", "context": {"cluster": "c-west"}},
    ],
}

Change = Callable[[Any], object]


@pytest.fixture(autouse=True)
def _outside_of_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "POD_NAMESPACE", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)


def written(path: Path, content: Any = SITES, change: Change = lambda _: None) -> Path:
    content = copy.deepcopy(content)
    change(content)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (None, ClusterContext("https://east:6443", "east", "c-east", "admin", "prod")),
        ("west", ClusterContext("https://west:6443", "west", "c-west", "cloud", "default")),
        ("nobody", ClusterContext("https://west:6443", "nobody", "c-west", None, "default")),
    ],
    ids=["the current one", "no namespace, a login by a command", "no user"],
)
def test_a_context_says_cluster_user_and_namespace(
    name: str | None, expected: ClusterContext, tmp_path: Path
) -> None:
    found = read([written(tmp_path / "config")]).context(name)
    assert found == expected
    assert "pl4nted" not in repr(found)


@pytest.mark.parametrize(
    ("variable", "file", "expected"),
    [
        (None, "cnf\n", "cnf"),
        ("given", "cnf\n", "given"),
        (None, None, "default"),
    ],
    ids=["its file", "POD_NAMESPACE", "no file"],
)
def test_in_a_pod_a_context_without_a_namespace_has_the_pods(
    variable: str | None,
    file: str | None,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    if variable:
        monkeypatch.setenv("POD_NAMESPACE", variable)
    if file:
        (tmp_path / "namespace").write_text(file)
    sites = read([written(tmp_path / "config")])
    assert sites.context("west").namespace == expected
    assert sites.context("east").namespace == "prod"


def test_outside_of_a_pod_its_file_and_variable_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("POD_NAMESPACE", "cnf")
    (tmp_path / "namespace").write_text("cnf")
    assert read([written(tmp_path / "config")]).context("west").namespace == "default"


def test_of_two_files_the_first_that_names_something_decides(tmp_path: Path) -> None:
    def other(content: Any) -> None:
        content["current-context"] = "west"
        content["contexts"][0]["context"]["namespace"] = "test"
        content["contexts"].append({"name": "more", "context": {"cluster": "c-east"}})

    first, second = written(tmp_path / "a"), written(tmp_path / "b", change=other)
    assert read([first, second]).context().namespace == "prod"
    assert read([second, first]).context("east").namespace == "test"
    assert read([second, first]).context().name == "west"
    assert read([first, second]).context("more").cluster == "c-east"


def test_files_are_found_where_kubectl_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files(None) == ()
    (tmp_path / ".kube").mkdir()
    home, other = written(tmp_path / ".kube" / "config"), written(tmp_path / "other")
    assert files(None) == (home,)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none::{other}:~/.kube/config")
    assert files(None) == (other, home)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none")
    assert files(None) == ()
    assert files("~/other") == (other,)


def test_a_file_that_is_named_and_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=f"^kubeconfig {tmp_path}/no: there is no such file"):
        files(f"{tmp_path}/no")


WRONG: dict[str, tuple[Any, Change, str]] = {
    "a list": ([1], lambda c: None, ": expected one YAML document with apiVersion, .*: correct"),
    "empty": ("", lambda c: None, ": expected one YAML document with apiVersion, .*: correct"),
    "no YAML": ("a:\n\t- pl4nted\n", lambda c: None, ":2: invalid YAML: .*: correct the file"),
    "an alias": ("a: *pl4nted\n", lambda c: None, ":1: an alias without an anchor"),
    "an alias bomb": (
        "a: &a [1]\n" + "".join(f"{b}: &{b} [{f'*{a}, ' * 9}]\n" for a, b in pairwise("abcdefghi")),
        lambda c: None,
        r":\d: more than 500000 values in ",
    ),
    "merges": ("a: {x: 1}\n" + "<<: {}\n" * 99999 + "<<: 1", lambda c: None, ":100001: << expects"),
    "binary": ("\0", lambda c: None, ": invalid YAML: .*control characters: correct"),
    "no list": (SITES, lambda c: c.update(users="pl4nted"), ": users: expected a list, found text"),
    "no name": (
        SITES,
        lambda c: c["users"].insert(0, {"user": {"token": "pl4nted"}}),
        r": users\[0\].name: expected text in one line, found nothing",
    ),
    "no object": (
        SITES,
        lambda c: c["users"][0].update(user="pl4nted"),
        r": users\[0\].user: expected a mapping, found text",
    ),
    "a number as token": (
        SITES,
        lambda c: c["users"][0]["user"].update(token=4711),
        r": users\[admin\].user.token: expected text, found a number",
    ),
    "a text as login command": (
        SITES,
        lambda c: c["users"][0]["user"].update(exec="pl4nted"),
        r": users\[admin\].user.exec: expected a mapping, found text",
    ),
    "a number as namespace": (
        SITES,
        lambda c: c["contexts"][0]["context"].update(namespace=5),
        r": contexts\[east\].context.namespace: expected text, found a number",
    ),
    "another cluster": (
        SITES,
        lambda c: c["contexts"][0]["context"].update(cluster="gone"),
        r": contexts\[east\].context.cluster: expected one of its clusters \(c-east, c-west\), "
        "found gone",
    ),
    "another current context": (
        SITES,
        lambda c: c.update({"current-context": "gone"}),
        ": there is no context gone, which is to be its current one; its contexts are: east, "
        "nobody, west",
    ),
    "no current context": (
        SITES,
        lambda c: c.pop("current-context"),
        ": it has no current context: name one; its contexts are: east, nobody, west",
    ),
}


@pytest.mark.parametrize(("content", "change", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_file_is_told_with_its_place_and_no_credential(
    content: Any, change: Change, told: str, tmp_path: Path
) -> None:
    file = written(tmp_path / "config", content, change)
    with pytest.raises(ClusterError, match=f"^kubeconfig {file}{told}") as raised:
        read([file]).context()
    assert "pl4nted" not in str(raised.value)
    assert "4711" not in str(raised.value)


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    file = written(tmp_path / "config")
    with pytest.raises(ClusterError, match="there is no context nope; its contexts are: east, nob"):
        read([file]).context("nope")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="cannot be read: Is a directory"):
        read([tmp_path])
