# SPDX-License-Identifier: Apache-2.0
"""Record what a real cluster answers to the table of requests.

``python -m tests.emulator.record --kubeconfig FILE [SUBJECT ...]`` plays the requests against the
cluster of the kubeconfig, whose user has to be its administrator, and writes ``answers/*.json``. It
creates namespaces named ``table-*`` and removes them.
"""

from __future__ import annotations

import argparse
import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.emulator import table
from tests.emulator.client import Api

_SECONDS = 30.0
"""How long a controller of the real cluster may take."""


@dataclass(frozen=True)
class RealServer:
    """A server on loopback, as a kubeconfig describes it."""

    port: int
    ca_text: str
    token: str


def main() -> None:
    """Record the subjects that the command line names, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.emulator.record")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("subjects", nargs="*", default=table.SUBJECTS)
    arguments = parser.parse_args()
    api = connect(arguments.kubeconfig)
    for subject in arguments.subjects:
        player = table.Player(subject, api, _SECONDS)
        found = player.play()
        if player.unmet:
            raise SystemExit("\n".join(player.unmet))
        (table.ANSWERS / f"{subject}.json").write_text(_text(found))
        print(f"{subject}: {len(found)} answers")


def _text(answers: dict[str, Any]) -> str:
    """Return the answers as JSON, a line each."""
    lines = (f"{json.dumps(name)}: {_compact(answers[name])}" for name in sorted(answers))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(answer: Any) -> str:
    return json.dumps(answer, sort_keys=True, separators=(",", ":"))


def connect(kubeconfig: Path) -> Api:
    """Return a connection to the server of a kubeconfig, whose user has a token."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Api(RealServer(urlsplit(cluster["server"]).port or 443, authority, user["token"]))


if __name__ == "__main__":
    main()
