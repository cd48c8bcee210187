# SPDX-License-Identifier: Apache-2.0
"""What large packages cost: seconds, processor time and memory, each in a process of its own.

A package is made in a folder: Deployments, each with the ConfigMap and the Secret that it uses and
with a Service, or large objects; the new package differs in one of twenty. No cluster is needed:
the old package's objects stand for what is live.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

from benchmarks.figures import OURS, Row, Run, peak_mib_of
from container_update.engine.goals.update import Update
from container_update.model.objects import Json
from container_update.model.options import DEFAULTS
from container_update.model.requests import UpdateRequest
from container_update.package.tools.check import check
from container_update.planning.update import make_plan

CHANGED_EVERY = 20
"""One manifest of so many differs in the new package."""
_MIB = 1024 * 1024
_MOST = 2**40
NO_LIMITS = replace(
    DEFAULTS,
    package_bytes=_MOST,
    package_files=_MOST,
    def_file_bytes=_MOST,
    yaml_values=_MOST,
    yaml_characters=_MOST,
)
"""The options that a package of more than 256 MiB needs; one of 10,000 manifests needs fewer."""

_OBJECTS = (
    """apiVersion: apps/v1
kind: Deployment
metadata:
  name: d{number}
  labels: {{app: d{number}, part-of: benchmark}}
spec:
  replicas: 2
  selector:
    matchLabels: {{app: d{number}}}
  template:
    metadata:
      labels: {{app: d{number}, app.kubernetes.io/name: d{number}}}
    spec:
      containers:
      - name: main
        image: registry.example/app:{version}
        ports:
        - containerPort: 8080
        env:
        - name: LEVEL
          valueFrom:
            configMapKeyRef: {{name: c{number}, key: level}}
        - name: PASSWORD
          valueFrom:
            secretKeyRef: {{name: s{number}, key: password}}
        resources:
          requests: {{cpu: 100m, memory: 64Mi}}
          limits: {{cpu: 500m, memory: 128Mi}}
""",
    """apiVersion: v1
kind: ConfigMap
metadata:
  name: c{number}
data:
  level: "{version}"
  app.conf: |
    [server]
    port = 8080
    workers = 4
""",
    """apiVersion: v1
kind: Secret
metadata:
  name: s{number}
stringData:
  password: "secret-{version}"
""",
    """apiVersion: v1
kind: Service
metadata:
  name: v{number}
spec:
  selector: {{app: d{number}}}
  ports:
  - port: 80
    targetPort: 808{version}
""",
)
_LARGE = {
    "ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: large{number}\n"
    'data:\n  version: "{version}"\n  text: |\n',
    "CustomResourceDefinition": "apiVersion: apiextensions.k8s.io/v1\n"
    "kind: CustomResourceDefinition\nmetadata:\n  name: large{number}.example.com\n"
    '  annotations:\n    version: "{version}"\nspec:\n  versions:\n',
}
"""Kind to the beginning of a large object."""
_LINES = {
    "ConfigMap": "    {line:07}: a line of a text that a container reads when it starts\n",
    "CustomResourceDefinition": "  - name: v{line:07}\n    schema:\n      openAPIV3Schema:\n"
    "        description: What the field is for, in a sentence or two as people write them.\n"
    "        type: string\n",
}


@dataclass(frozen=True)
class Shape:
    """What a package is made of."""

    manifests: int = 0
    """Small ones: a Deployment, its ConfigMap, its Secret, its Service, and so on."""
    megabytes: int = 0
    """Of objects of 1 MiB."""
    large_kind: str = "ConfigMap"
    """Of those: ConfigMap or CustomResourceDefinition."""
    one_file: bool = False
    """One file of many documents instead of many files."""
    zipped: bool = False
    """A zip instead of a folder."""


def make_package(folder: Path, shape: Shape, *, is_new: bool) -> str:
    """Write a package into a new folder, or a zip beside it; return its path."""
    files = folder / "Files"
    files.mkdir(parents=True)
    if shape.one_file:
        with (files / "all.yaml").open("w") as file:
            for text in _documents(shape, is_new=is_new):
                file.write("---\n")
                file.writelines(text)
    else:
        for number, text in enumerate(_documents(shape, is_new=is_new)):
            with (files / f"{number:06}.yaml").open("w") as file:
                file.writelines(text)
    if not shape.zipped:
        return str(folder)
    return _zip(folder)


def _zip(folder: Path) -> str:
    target = folder.with_suffix(".csar")
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=1) as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, path.relative_to(folder))
    return str(target)


def _documents(shape: Shape, *, is_new: bool) -> Iterator[Iterator[str]]:
    """Yield each document, in parts."""
    for index in range(shape.manifests):
        version = 2 if is_new and index % CHANGED_EVERY == 0 else 1
        number, kind = divmod(index, len(_OBJECTS))
        yield iter([_OBJECTS[kind].format(number=number, version=version)])
    for number in range(shape.megabytes):
        version = 2 if is_new and number % CHANGED_EVERY == 0 else 1
        yield _large(shape.large_kind, number, version)


def _large(kind: str, number: int, version: int) -> Iterator[str]:
    yield _LARGE[kind].format(number=number, version=version)
    size = len(_LINES[kind].format(line=0))
    yield from (_LINES[kind].format(line=line) for line in range(_MIB // size))


def plan(old: str, new: str) -> int:
    """Read and compare both packages, and plan the update; return the number of the plan's steps.

    The live objects are those of the old package.
    """
    matched = Update(UpdateRequest(old, new, namespace="cnf"), NO_LIMITS).matched()
    live = {old.key: _live(old.body) for old, _ in matched.pairs}
    return len(make_plan(matched, live, namespace="cnf").steps)


def _live(body: Json) -> Json:
    return {**body, "metadata": {**body["metadata"], "namespace": "cnf"}}


def rows(runs: int, *, small: bool) -> Iterator[Row]:
    """Yield the figures of planning and checking packages of several sizes."""
    sizes = (100, 200) if small else (2_500, 5_000, 10_000)
    for name, measure in (("plan", planning), ("csar check", checking)):
        for size in sizes:
            shape = Shape(manifests=size)
            yield Row(f"{name}, manifests", size, OURS, [measure(shape) for _ in range(runs)])
    for size in (1,) if small else (100, 500):
        shape = Shape(megabytes=size)
        yield Row("csar check, MiB of ConfigMaps", size, OURS, [checking(shape)])
        yield Row("plan, MiB of ConfigMaps", size, OURS, [planning(shape)])


def planning(shape: Shape) -> Run:
    """Measure :func:`plan`."""
    with TemporaryDirectory() as folder:
        old = make_package(Path(folder, "old"), shape, is_new=False)
        new = make_package(Path(folder, "new"), shape, is_new=True)
        return _measured(plan, old, new)


def checking(shape: Shape) -> Run:
    """Measure ``csar check``."""
    with TemporaryDirectory() as folder:
        package = make_package(Path(folder, "new"), shape, is_new=True)
        return _measured(_findings, package)


def _findings(package: str) -> int:
    return len(check(package, options=NO_LIMITS))


def _measured(work: Callable[..., int], *packages: str) -> Run:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_in_this_process, work, packages).result()


def _in_this_process(work: Callable[..., int], packages: tuple[str, ...]) -> Run:
    began, cpu_before = time.monotonic(), time.process_time()
    items = work(*packages)
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu_before
    return Run(seconds, cpu_seconds, peak_mib_of(os.getpid()), {"items": items})
