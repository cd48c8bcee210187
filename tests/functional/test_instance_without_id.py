# SPDX-License-Identifier: Apache-2.0
"""A VNF instance without an id, beside another one in the namespace: the empty id names it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from container_update import UpdateRequest, install, update
from tests.functional.conftest import Cnf
from tests.functional.manifests import config_map
from tests.internals.core import main


@pytest.mark.parametrize("verb", ["history", "status", "undo", "plan"])
def test_beside_another_instance_the_one_without_an_id_is_named_by_an_empty_one(
    cnf: Cnf, admin_kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    for name, number in (("old", "1"), ("new", "2"), ("other", "1")):
        text = config_map("another" if name == "other" else "settings", a=number)
        (tmp_path / f"{name}.yaml").write_text(text)
    old, new, other = (str(tmp_path / f"{name}.yaml") for name in ("old", "new", "other"))
    request = UpdateRequest(old, new, namespace=cnf.namespace)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}
    metadata = {"name": "settings", "namespace": cnf.namespace}
    cnf.admin.create({**settings, "metadata": metadata})
    update(request, cnf.admin)
    install(other, cnf.admin, namespace=cnf.namespace, instance_id="another")
    more = [old, new] if verb == "plan" else ["--yes"] if verb == "undo" else []
    common = ["--namespace", cnf.namespace, "--kubeconfig", admin_kubeconfig]
    assert main([verb, *more, *common], io.StringIO()) == 5
    assert "'' is the one without" in capsys.readouterr().err
    out = io.StringIO()
    assert main([verb, *more, *common, "--instance-id", ""], out) in {0, 2}
    assert (verb == "undo") is ("--instance-id ''" in out.getvalue())
