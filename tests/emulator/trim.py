# SPDX-License-Identifier: Apache-2.0
"""Makes ``recordings/`` from the full recordings of a real API server: ``trim.py FOLDER``.

Kept is what the tests compare: requests with their answers, without watches, column descriptions
and the long dumps in some messages. The recorder noted some bodies by reference and changed them
afterwards; those entries are put right here, or left out where that cannot be done.
"""

import json
import sys
from pathlib import Path

TARGET = Path(__file__).parent / "recordings"
LONGEST_MESSAGE = 900
SCENARIOS = (
    "configmaps", "daemonset", "deployment", "deployment-strategies", "discovery", "jobs", "leases",
    "long-names", "namespace-delete", "ondelete", "owners-and-finalizers", "pod-recreate", "pods",
    "replicaset", "secrets", "service-switch", "statefulset",
)  # fmt: skip

CHANGED_AFTERWARDS = {
    ("leases", 2): lambda entry: entry["body"]["spec"].update(
        renewTime="2026-11-21T00:00:00.000000Z"
    ),
    ("jobs", 3): lambda entry: _first_container(entry["body"]).update(image="app:1"),
    ("jobs", 6): lambda entry: _first_container(entry["body"]).update(image="app:1"),
    ("pod-recreate", 4): lambda entry: entry["request"]["body"]["spec"].update(
        ephemeralContainers=[{"name": "dbg", "image": "dbg:1"}]
    ),
    ("pod-recreate", 5): lambda entry: entry["request"]["body"]["spec"].update(
        ephemeralContainers=[{"name": "dbg", "image": "dbg:1"}]
    ),
    ("pod-recreate", 6): lambda entry: entry["request"]["body"]["spec"].update(
        {key: entry["body"]["spec"][key] for key in ("volumes", "containers", "nodeName")}
    ),
}


def main(source: Path) -> None:
    """Write one file for each scenario."""
    for name in SCENARIOS:
        entries = json.loads((source / f"{name}.json").read_text(encoding="utf-8"))
        kept = []
        for number, entry in enumerate(entries):
            CHANGED_AFTERWARDS.get((name, number), lambda _: None)(entry)
            if "request" in entry:
                kept.append(_trimmed(number, entry))
        text = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
        (TARGET / f"{name}.json").write_text(text.replace('},{"number"', '},\n{"number"') + "\n")


def _first_container(body: dict) -> dict:
    spec = body["spec"]
    spec = spec.get("jobTemplate", {}).get("spec", spec)
    return spec["template"]["spec"]["containers"][0]


def _trimmed(number: int, entry: dict) -> dict:
    request, body = entry["request"], entry["body"]
    if isinstance(body, dict):
        for column in body.get("columnDefinitions", ()):
            del column["description"]
        _cut_messages(body)
    headers = request.get("headers") or {}
    return {
        "number": number,
        "method": request["method"],
        "path": request["path"],
        "headers": {key: headers[key] for key in ("Accept", "Content-Type") if key in headers},
        "request": request.get("body"),
        "status": entry["status"],
        "body": body,
    }


def _cut_messages(body: dict) -> None:
    for holder in (body, *(body.get("details") or {}).get("causes", ())):
        message = holder.get("message", "")
        if "\n@@" in message:
            holder["message"] = message[: message.index("\n@@")] + "..."
        elif len(message) > LONGEST_MESSAGE:
            holder["message"] = message[: message.index("Invalid value: ")] + "Invalid value: ..."


if __name__ == "__main__":
    main(Path(sys.argv[1]))
