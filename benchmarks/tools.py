# SPDX-License-Identifier: Apache-2.0
"""The same update with Helm and with kubectl: apply the new manifests, and wait for rollouts."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clusters import Target
from benchmarks.figures import HELM, KUBECTL, Run, measured
from container_update.model.requests import UpdateRequest

_PATIENCE = "--timeout=20m"


@dataclass(frozen=True)
class Tool:
    """A program that brings the manifests of a folder into the cluster, and waits."""

    name: str
    apply: Callable[[str, UpdateRequest, Target], Sequence[str]]
    """Returns the command for the files of a package."""

    def install(self, request: UpdateRequest, target: Target) -> None:
        """Bring in the old package: what the program updates has to be its own."""
        subprocess.run(self.apply(request.old, request, target), check=True, capture_output=True)

    def update(self, request: UpdateRequest, target: Target, _: Path) -> Run:
        """Bring in the new one."""
        return measured(self.apply(request.new, request, target))


def found() -> dict[str, Tool]:
    """Return those that are on the PATH."""
    tools = {HELM: Tool("helm", _helm), KUBECTL: Tool("kubectl", _kubectl)}
    return {name: tool for name, tool in tools.items() if shutil.which(tool.name)}


def _helm(package: str, request: UpdateRequest, target: Target) -> Sequence[str]:
    """Return the command for a chart that has the files as they are."""
    chart = Path(package, "chart")
    shutil.copytree(Path(package, "Files"), chart / "templates", dirs_exist_ok=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: benchmark, version: 1.0.0}\n")
    where = ["-n", request.namespace, "--kubeconfig", target.kubeconfig]
    where += ["--kube-context", target.context] if target.context else []
    return ["helm", "upgrade", "--install", "vnf", str(chart), "--wait", _PATIENCE, *where]


def _kubectl(package: str, request: UpdateRequest, target: Target) -> Sequence[str]:
    """Return the two commands that its documentation names, in one shell."""
    kubectl = shlex.join(["kubectl", *target.arguments, "--namespace", request.namespace])
    apply = f"{kubectl} apply --recursive --filename={package}/Files"
    return ["sh", "-ec", f"{apply}; {kubectl} rollout status deployment {_PATIENCE}"]
