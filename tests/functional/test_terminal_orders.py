# SPDX-License-Identifier: Apache-2.0
"""What somebody wrote into the cluster controls no terminal."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.functional.cnf import Cnf
from tests.internals.core import Json, name_of

ORDER = "\x1b]0;title\x07\x1b[2J"


def put(cnf: Cnf, name: str, kind: str, data: Mapping[str, bytes]) -> None:
    content = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": cnf.namespace}
    body: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    cnf.admin.create({**body, "type": f"container-update/{kind}", "data": content})


def put_journal(cnf: Cnf, **more: Any) -> None:
    key = {"group": "", "kind": "ConfigMap", "namespace": cnf.namespace, "name": "x" + ORDER}
    step = {
        "type": "config",
        "key": key,
        "action": "REPLACE",
        "reasons": [],
        "before": None,
        "removed": [],
    }
    record = {"format": 4, "operation": "o", "host": "h", "started": "2026-01-01T00:00:00+00:00"}
    record |= {"target": "t", "instanceId": None, "defFiles": [], "context": {}, "podsBefore": []}
    record |= {"steps": [{**step, "images": {}, "content": {}}], "origin": None, "objects": []}
    part = gzip.compress(json.dumps({**record, **more}).encode())
    digest, numbers = hashlib.sha256(part).hexdigest(), json.dumps({cnf.namespace: 1})
    head = {"sha256": digest, "parts": numbers, "phase": "update", "operation": "o", "run": "r"}
    data = {name: value.encode() for name, value in head.items()}
    put(cnf, name_of(None), "journal", {**data, "part": part})


def put_lease(cnf: Cnf, holder: str) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 1}
    spec["renewTime"] = "2026-01-01T00:00:00.000000Z"
    metadata = {"name": name_of(None), "namespace": cnf.namespace}
    body: Json = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    cnf.admin.create({**body, "spec": spec})


def put_revision(cnf: Cnf, **more: Any) -> None:
    origin = {"kind": "update" + ORDER, "user": "u" + ORDER, "host": "h", "packages": []}
    summary = {"format": 1, "isKept": False, "number": 1, "operation": "o", "origin": origin}
    summary |= {"started": "2026-01-01T00:00:00+00:00", "ended": "2026-01-01T00:00:00+00:00"}
    summary |= {"seconds": 1, "changes": 1, "cause": "c" + ORDER, "result": "done", **more}
    put(cnf, f"{name_of(None)}.v1", "revision", {"summary": json.dumps(summary).encode()})


CASES = {
    "an object of a journal": (put_journal, {}),
    "the host of a journal": (put_journal, {"steps": [], "host": "h" + ORDER}),
    "the time of a journal": (put_journal, {"steps": [], "started": "s" + ORDER}),
    "the holder of a lease": (put_lease, {"holder": f"h{ORDER}/o{ORDER}"}),
    "a revision": (put_revision, {}),
    "the number of a revision": (put_revision, {"number": "1" + ORDER}),
    "the end of a revision": (put_revision, {"ended": "e" + ORDER}),
}


@pytest.mark.parametrize(("write", "what"), CASES.values(), ids=CASES)
def test_no_command_hands_on_what_controls_a_terminal(
    write: Any, what: dict[str, Any], cnf: Cnf, kubeconfig: str
) -> None:
    write(cnf, **what)
    for command in (
        ["status"],
        ["status", "--watch"],
        ["history"],
        ["undo", "--plan"],
        ["rollback"],
    ):
        where = ["-n", cnf.namespace, "--kubeconfig", kubeconfig]
        done = subprocess.run(
            [sys.executable, "-m", "container_update", *command, *where],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        assert b"\x1b" not in done.stdout, (command, done.stdout)
        assert b"Traceback" not in done.stdout, (command, done.stdout)
