# SPDX-License-Identifier: Apache-2.0
"""Many updates of one VNF, back and forth, by one process: nothing is left, nothing grows.

Every third update fails and is undone. Every second one is run by the command's main function, the
others by the library. The thorough circle has a few, the complete one all.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from container_update import UpdateFailedError
from container_update.emulator.kubernetes import Registry
from tests.circles import Circle, in_circles
from tests.footprint import Footprint, footprint, resident_bytes
from tests.functional.cnf import INSTANCE
from tests.functional.manifests import secret
from tests.functional.promise import Checker
from tests.functional.reference_update import (
    BAD_FILES,
    NEW,
    NEW_FILES,
    OLD,
    OLD_FILES,
    Files,
    Lab,
    until,
)

UPDATES = {Circle.THOROUGH: (12, 6), Circle.COMPLETE: (1_000, 40)}
"""Updates that are counted, and before them those that fill caches."""
WINDOW = 6
"""Updates after which every turn was made both ways; memory is the least of them."""
MARGIN_BLOCKS, BLOCKS_PER_UPDATE = 1_000, 10
"""Of Python's memory, of which there are some 220 000."""
MARGIN_BYTES, BYTES_PER_UPDATE = 8 * 2**20, 16 * 2**10

PROGRAM = """
import contextlib, gc, io, json, sys
from container_update import ContainerUpdateError, Options, UpdateRequest, connect, update
from container_update.cli.main import main

def command(old, new, namespace, instance_id, kubeconfig, options):
    names = [part for name, value in options.items()
             for part in ("--" + name.replace("_", "-"), str(value))]
    return main(["apply", old, new, "-n", namespace, "--instance-id", instance_id,
                 "--kubeconfig", kubeconfig, *names])

def library(old, new, namespace, instance_id, kubeconfig, options):
    request = UpdateRequest(old=old, new=new, namespace=namespace, instance_id=instance_id)
    try:
        with connect(kubeconfig, options=Options(**options)) as cluster:
            update(request, cluster, Options(**options))
    except ContainerUpdateError as error:
        return error.exit_status
    return 0

for line in sys.stdin:
    way, arguments = json.loads(line)
    with contextlib.redirect_stdout(io.StringIO()):
        status = globals()[way](**arguments)
    gc.collect()
    print(json.dumps([status, sys.getallocatedblocks()]), flush=True)
"""

KEPT = {"events", "replicasets", "controllerrevisions"}
"""What Kubernetes keeps: for an hour, and up to ``revisionHistoryLimit``."""
FILES = {**OLD_FILES, "sec": secret("sec", token="old")}
STATE = replace(OLD, config={**OLD.config, ("Secret", "sec"): {"token": "old"}})
TURNS = ((NEW_FILES, NEW, 0), (FILES, STATE, 0), (BAD_FILES, STATE, UpdateFailedError.exit_status))
"""There, back, and there in vain: the package, the state afterwards, the exit status."""


@dataclass(frozen=True)
class Sample:
    """What there is after an update."""

    blocks: int
    """Of memory, in the process."""
    size: int
    """Its resident memory in bytes."""
    held: Footprint
    objects: Mapping[str, int]
    """In the cluster, by resource."""


@dataclass
class Updater:
    """A process that updates one VNF again and again."""

    process: subprocess.Popen[str]
    lab: Lab
    namespace: str
    folder: Path
    blocks: int = 0
    """Of memory, after the last update."""

    def update(self, way: str, old: Files, new: Files) -> int:
        """Update by the command or the library and return the exit status."""
        options = {"timeout": 20, "undo_timeout": 20, "grace_period": 0.3, "lease_seconds": 9,
                   "history": 2}  # fmt: skip
        arguments = {"old": self.lab.package(old), "new": self.lab.package(new),
                     "namespace": self.namespace, "instance_id": INSTANCE,
                     "kubeconfig": self.lab.kubeconfig, "options": options}  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([way, arguments]), file=self.process.stdin, flush=True)
        status, self.blocks = json.loads(self.process.stdout.readline())
        return int(status)

    def sample(self) -> Sample:
        """Return what there is now."""

        def count(registry: Registry) -> Mapping[str, int]:
            names = {each.key for each in registry.catalogue} - KEPT
            numbers = {name: len(registry.list(name, self.namespace)) for name in sorted(names)}
            return {name: number for name, number in numbers.items() if number}

        objects = self.lab.embedded.call(count)
        return Sample(self.blocks, resident_bytes(self.process.pid), self.held(), objects)

    def held(self) -> Footprint:
        """Return what the process holds now."""
        return footprint(self.process.pid, self.folder)

    def end(self) -> None:
        """Let the process end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0


@pytest.fixture
def updater(tmp_path: Path) -> Iterator[Updater]:
    """An updater of the reference update's VNF."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    with (
        Lab.running(tmp_path) as lab,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        yield Updater(process, lab, lab.deploy(FILES), folder)


@in_circles(Circle.THOROUGH, Circle.COMPLETE)
def test_many_updates_of_one_vnf_leave_nothing_and_need_no_more_memory(
    updater: Updater, circle: Circle
) -> None:
    updates, warm_up = UPDATES[circle]
    checker = Checker(updater.lab.server, updater.namespace)
    turns = itertools.cycle(TURNS)
    samples, before = [], FILES
    for number in range(warm_up + updates):
        new, state, status = next(turns)
        way = ("command", "library")[number % 2]
        assert updater.update(way, before, new) == status, f"update {number}, by the {way}"
        before = before if status else new
        assert checker.differences(state, as_before=False) == []
        assert checker.left_over() == []
        if number >= warm_up:  # what ends on a thread of its own may take a moment
            until(lambda: updater.held().within(samples[warm_up - 1].held))
        samples.append(updater.sample())
        if number >= warm_up:
            assert samples[-1].objects == samples[warm_up - 1].objects, f"update {number}"

    first, last = samples[warm_up - WINDOW : warm_up], samples[-WINDOW:]
    blocks, size = (
        [min(getattr(sample, name) for sample in window) for window in (first, last)]
        for name in ("blocks", "size")
    )
    print(f"\n{updates} updates: blocks {blocks}, resident bytes {size}, {last[-1]}")
    assert blocks[1] - blocks[0] < MARGIN_BLOCKS + updates * BLOCKS_PER_UPDATE
    assert size[1] - size[0] < MARGIN_BYTES + updates * BYTES_PER_UPDATE
    updater.end()
    assert list(updater.folder.iterdir()) == []
