# SPDX-License-Identifier: Apache-2.0
"""Packages whose manifests name a namespace, as most public ones do, and no ``-n``.

What is kept of an instance is where its objects are: commands without a package find it there.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
import yaml

from container_update import PackageError, history
from tests.functional.cnf import Cnf
from tests.functional.conftest import new_namespace
from tests.functional.manifests import config_map, workload
from tests.internals.core import main


@pytest.fixture
def elsewhere(cnf: Cnf) -> Iterator[str]:
    """A second namespace."""
    with new_namespace(cnf.admin) as name:
        yield name


def package(cnf: Cnf, *spaces: str, setting: str = "1") -> str:
    """Return a package that names the namespaces of its ConfigMap and its Deployment; '': none."""
    texts = (config_map(setting=setting), workload("Deployment"))
    bodies = [yaml.safe_load(text) for text in texts]
    for body, space in zip(bodies, spaces, strict=True):
        body["metadata"] |= {"namespace": space} if space else {}
    return cnf.package({"all.yaml": yaml.safe_dump_all(bodies)})


def typed(kubeconfig: str, *words: str) -> tuple[int, str]:
    out = io.StringIO()
    return main([*words, "--kubeconfig", kubeconfig], out), out.getvalue()


def test_the_namespace_that_all_objects_name_is_that_of_the_instance(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    here = cnf.namespace
    old, new = (package(cnf, here, here, setting=each) for each in ("1", "2"))
    status, text = typed(admin_kubeconfig, "install", old, "--yes", "--instance-id", "one")
    assert status == 0
    assert f"\nNamespace  {here} (named by the manifests)\n" in text
    status, text = typed(admin_kubeconfig, "apply", new, "--yes")
    address = f"--kubeconfig {admin_kubeconfig} --namespace {here}"
    assert f"To go back: container-update undo 2 {address}" in text
    kinds = [each.origin.kind for each in history(cnf.admin, namespace=here, instance_id="one")]
    assert kinds == ["update", "install"]
    assert history(cnf.admin, namespace="default", instance_id="one") == ()


def test_a_namespace_that_is_given_comes_before_that_of_the_manifests(
    cnf: Cnf, elsewhere: str, admin_kubeconfig: str
) -> None:
    here = cnf.namespace
    old = package(cnf, here, here)
    command = ("install", old, "--yes", "--instance-id", "one", "-n", elsewhere)
    status, text = typed(admin_kubeconfig, *command)
    assert (status, f"\nNamespace  {elsewhere}\n" in text) == (0, True)
    assert history(cnf.admin, namespace=elsewhere, instance_id="one")


def test_objects_of_several_namespaces_need_one_that_is_named(
    cnf: Cnf, elsewhere: str, admin_kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    both = package(cnf, cnf.namespace, elsewhere)
    assert typed(admin_kubeconfig, "install", both, "--plan")[0] == PackageError.exit_status
    spaces = ", ".join(sorted((cnf.namespace, elsewhere)))
    told = f"the objects of {both} are in the namespaces {spaces}: name with -n the one"
    assert told in capsys.readouterr().err
    assert typed(admin_kubeconfig, "install", both, "--plan", "-n", elsewhere)[0] == 3


def test_an_object_that_names_none_leaves_the_namespace_to_the_context(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    status, text = typed(admin_kubeconfig, "install", package(cnf, cnf.namespace, ""), "--plan")
    assert (status, "\nNamespace  default\n" in text) == (3, True)
