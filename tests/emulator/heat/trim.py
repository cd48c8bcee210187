# SPDX-License-Identifier: Apache-2.0
"""Makes ``recordings/`` from the full recordings of a real Heat: ``trim.py FOLDER``.

One file for each scenario. Left out is nothing that the tests compare: the addresses of the cloud
become ``{heat}``, and an event that several answers hold is written once. Its links follow from
the stack and the resource it is about, which is checked here.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "recordings"
SCENARIOS = {
    "life": (1, 99),
    "failures": (100, 125),
    "refused": (126, 146),
    "slow": (147, 169),
    "quiet": (170, 182),
    "resize": (183, 189),
    "stuck": (190, 206),
    "no-host": (207, 218),
}
"""The first and the last recording of each."""
OTHER_RUNS = {"unhealthy": "member-marked-unhealthy-*"}
_KEPT = ("Location", "Content-Type")
_HEAT = re.compile(r"(http://127\.0\.0\.1:28004)?/v1/[0-9a-f]{32}")


def main(source: Path) -> None:
    """Write one file for each scenario."""
    numbered = sorted(source.glob("[0-9]*.json"))
    for scenario, (first, last) in SCENARIOS.items():
        _write(scenario, [path for path in numbered if first <= int(path.name[:3]) <= last])
    for scenario, pattern in OTHER_RUNS.items():
        _write(scenario, sorted((source / "other-runs").glob(pattern)))


def _write(scenario: str, paths: list[Path]) -> None:
    events: dict[str, dict[str, Any]] = {}
    entries = [_trimmed(path, events) for path in paths]
    lines = (
        json.dumps(each, separators=(",", ":"), ensure_ascii=False)
        for each in (list(events.values()), *entries)
    )
    (TARGET / f"{scenario}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


def _trimmed(path: Path, events: dict[str, dict[str, Any]]) -> dict[str, Any]:
    entry = json.loads(_HEAT.sub("{heat}", path.read_text(encoding="utf-8")))
    request, body = entry["request"], entry["body"]
    if isinstance(body, dict) and isinstance(body.get("events"), list):
        roots = {_root(event) for event in body["events"]}
        assert len(roots) <= 1
        numbers = [_number(event, events) for event in body["events"]]
        body = {"events": numbers, "root": roots.pop() if roots else None}
    return {
        "name": path.stem,
        "method": request["method"],
        "path": request["path"].removeprefix("{heat}"),
        "request": request["body"],
        "status": entry["status"],
        "headers": {key: entry["headers"][key] for key in _KEPT if key in entry["headers"]},
        "body": body,
    }


def _root(event: dict[str, Any]) -> str | None:
    """Return the stack that was asked for its events and those of the stacks nested in it."""
    return next((link["href"] for link in event["links"] if link["rel"] == "root_stack"), None)


def _number(event: dict[str, Any], events: dict[str, dict[str, Any]]) -> int:
    links = {link["rel"]: link["href"] for link in event.pop("links")}
    stack, resource = links["stack"], f"{links['stack']}/resources/{event['resource_name']}"
    assert links["resource"] == resource
    assert links["self"] == f"{resource}/events/{event['id']}"
    noted = {**event, "stack": stack}
    assert events.setdefault(event["id"], noted) == noted
    return list(events).index(event["id"])


def events_in(body: dict[str, Any], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of a trimmed answer as Heat wrote them."""
    written, root = [], body["root"]
    for number in body["events"]:
        event = dict(events[number])
        stack = event.pop("stack")
        resource = f"{stack}/resources/{event['resource_name']}"
        links = [("self", f"{resource}/events/{event['id']}"), ("resource", resource)]
        links += [("stack", stack)] + ([("root_stack", root)] if root else [])
        written.append({**event, "links": [{"href": href, "rel": rel} for rel, href in links]})
    return written


if __name__ == "__main__":
    main(Path(sys.argv[1]))
