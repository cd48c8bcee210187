# SPDX-License-Identifier: Apache-2.0
"""Temporary files are private while they exist, and deleted when the program ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.functional.cnf import INSTANCE, Cnf
from tests.functional.manifests import ENV, config_map, workload

PROGRAM = """
import os, sys
from container_update.cluster import client
from container_update.cli.main import main

def modes():
    for folder, folders, files in os.walk(os.environ["TMPDIR"]):
        for name in (*folders, *files):
            print(oct(os.stat(os.path.join(folder, name)).st_mode & 0o777), file=sys.stderr)

os.umask(0)
close = client.KubernetesCluster.close
client.KubernetesCluster.close = lambda self: (modes(), close(self))
raise SystemExit(main(sys.argv[1:]))
"""


def test_a_command_has_no_temporary_files_while_it_is_connected_and_leaves_none(
    cnf: Cnf, kubeconfig: str, tmp_path: Path
) -> None:
    cnf.instantiate(cm=config_map(setting="old"), w=workload("Deployment", container=ENV))
    new = cnf.package({"cm.yaml": config_map(setting="new"), "w.yaml": workload("Deployment")})
    folder = tmp_path / "temporary"
    folder.mkdir()
    (folder / "mine").touch(0o600)
    common = ["-n", cnf.namespace, "--kubeconfig", kubeconfig, "--instance-id", INSTANCE]
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM, "apply", cnf.old, new, *common],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    modes = {line for line in completed.stderr.splitlines() if line.startswith("0o")}
    assert modes == {"0o600"}, "the file of this test alone, and no certificate"
    assert [path.name for path in folder.iterdir()] == ["mine"]
