# SPDX-License-Identifier: Apache-2.0
"""What somebody wrote into the cluster controls no terminal."""

from __future__ import annotations

import base64
import gzip
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
    content = {"steps": [{**step, "images": {}, "content": {}}], "defFiles": [], "context": {}}
    content |= {"objects": [], "podsBefore": [], "report": []}
    content |= {name: more.pop(name) for name in set(more) & set(content)}
    packed = gzip.compress(json.dumps(content).encode())
    progress = {"phase": b"update", "groups": b"0", "scripts": b"[]", "run": b"r"}
    data = {"operation": head(**more), "content": packed, **progress}
    put(cnf, name_of(None), "journal", data)


def head(origin: str = "update", **more: Any) -> bytes:
    values: Json = {"format": 5, "operation": "o", "host": "h", "goal": "t", "instance_id": None}
    values |= {"started": "2026-01-01T00:00:00+00:00", "parts": {}, "digests": {}, "end": None}
    values["origin"] = {"kind": origin, "user": "u" + ORDER, "host": "h", "packages": []}
    return json.dumps({**values, **more}).encode()


def put_lease(cnf: Cnf, holder: str) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 1}
    spec["renewTime"] = "2026-01-01T00:00:00.000000Z"
    metadata = {"name": name_of(None), "namespace": cnf.namespace}
    body: Json = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    cnf.admin.create({**body, "spec": spec})


def put_revision(cnf: Cnf, **more: Any) -> None:
    end = {"ended": "2026-01-01T00:00:00+00:00", "seconds": 1, "changes": 1, "cause": "c" + ORDER}
    end |= {"number": 1, "result": "done", "isKept": False, **more}
    put(cnf, f"{name_of(None)}.v1", "revision", {"operation": head("update" + ORDER, end=end)})


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
