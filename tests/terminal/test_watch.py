# SPDX-License-Identifier: Apache-2.0
"""What a person sees who watches an update on a terminal, and leaves it with Ctrl-C."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from container_update import CancelToken, StepWait, UpdateInterruptedError, connect, install, update
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from tests.internals.core import Event, guide_request
from tests.terminal.recorder import record

REQUEST = guide_request("v1")


def test_ctrl_c_ends_the_watching_and_not_the_update(tmp_path: Path) -> None:
    waits, cancel = threading.Event(), CancelToken()

    def note(event: Event) -> None:
        if isinstance(event, StepWait):
            waits.set()

    with EmbeddedCluster(behaviour=Behaviour()) as embedded, ThreadPoolExecutor(1) as pool:
        path = str(embedded.write_kubeconfig(tmp_path / "kubeconfig"))
        with connect(path) as cluster:
            install(
                REQUEST.old,
                cluster,
                def_files=REQUEST.def_files,
                instance_id=REQUEST.instance_id,
            )
            embedded.behaviour.never_ready = ["*"]
            running = pool.submit(update, REQUEST, cluster, cancel=cancel, progress=note)
            assert waits.wait(60)
            command = [
                "status",
                "--watch",
                "--kubeconfig",
                path,
                "--instance-id",
                str(REQUEST.instance_id),
            ]
            recording = record(command, 80, {"not Ready": "\x03"})
            assert not running.done()
            assert recording.status == 0
            assert "no longer watching; the operation goes on" in recording.words
            assert "new 0/1" in recording.raw
            assert max(map(len, recording.text.splitlines())) <= 80
            embedded.behaviour.never_ready = []
            cancel.request("for a test", keep_journal=True)
            assert isinstance(running.exception(60), UpdateInterruptedError)
