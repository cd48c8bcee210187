"""How long an update takes as a whole process, and how many requests it makes.

    python benchmarks/update.py            the user guide's sample, and 20 of 100 Deployments
    python benchmarks/update.py -n 9       more runs

Starts the embedded cluster in a process of its own, instantiates the old package, and times
``container-update apply`` from outside. Figures are minimum, median and maximum of several runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from container_update.cli.demo.scenarios import guide_request
from container_update.cluster.client import KubernetesCluster, connect
from container_update.model.requests import UpdateRequest
from container_update.operations.install import install

COMMAND = [sys.executable, "-m", "container_update"]

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: d{number}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: d{number}}}}}
  template:
    metadata: {{labels: {{app: d{number}}}}}
    spec:
      containers:
      - name: main
        image: {image}
"""


@contextmanager
def emulated(folder: Path) -> Iterator[Path]:
    """Run the embedded cluster in another process; yield its kubeconfig."""
    kubeconfig = folder / "kubeconfig"
    command = [*COMMAND, "emulate", "--write-kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield kubeconfig
        finally:
            process.terminate()


def guide(_: Path) -> UpdateRequest:
    """Return the request of the user guide's sample."""
    return guide_request("v1")


def hundred(folder: Path) -> UpdateRequest:
    """Write both packages of 100 Deployments of two pods; return the request."""
    for name, changed in (("old", 0), ("new", 20)):
        files = folder / name / "Files"
        files.mkdir(parents=True)
        for number in range(100):
            image = "app:2" if number < changed else "app:1"
            text = DEPLOYMENT.format(number=number, image=image)
            (files / f"d{number:03}.yaml").write_text(text)
    return UpdateRequest(str(folder / "old"), str(folder / "new"))


SCENARIOS = {
    "the user guide's sample: 12 objects, 7 of which change": guide,
    "100 Deployments of two pods, 20 of which get another image": hundred,
}


def run(request: UpdateRequest, cluster: KubernetesCluster, kubeconfig: Path) -> tuple[float, int]:
    """Run one update in a separate namespace; return its seconds and requests."""
    name = f"b{time.monotonic_ns()}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    request = replace(request, namespace=name, instance_id=None)
    install(request.old, cluster, def_files=request.def_files, namespace=name)
    command = [*COMMAND, "apply", request.old, request.new, "-n", name, "-o", "json"]
    command += ["--kubeconfig", str(kubeconfig)]
    for path in request.def_files:
        command += ["--def-file", path]
    for path in request.config_paths:
        command += ["--config-path", path]
    began = time.monotonic()
    completed = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return time.monotonic() - began, json.loads(completed.stdout)["requests"]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-n", type=int, default=5, help="runs of each (default: %(default)s)")
    runs = parser.parse_args().n
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with emulated(folder) as kubeconfig, connect(str(kubeconfig)) as cluster:
            for title, scenario in SCENARIOS.items():
                request = scenario(folder)
                figures = [run(request, cluster, kubeconfig) for _ in range(runs)]
                seconds = sorted(second for second, _ in figures)
                requests = sorted({count for _, count in figures})
                print(
                    f"{title}: {seconds[0]:.2f} / {statistics.median(seconds):.2f} / "
                    f"{seconds[-1]:.2f} s, {', '.join(map(str, requests))} requests"
                )


if __name__ == "__main__":
    main()
