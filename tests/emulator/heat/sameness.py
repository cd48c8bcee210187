# SPDX-License-Identifier: Apache-2.0
"""What two answers of Heat must have in common: everything but ids, times, names and free text."""

import json
import re
from collections import Counter
from typing import Any

FREE = (
    "message", "stack_status_reason", "resource_status_reason", "stack_owner", "traceback",
    "stack_user_project_id", "output_error", "physical_resource_id",
)  # fmt: skip
"""Keys whose texts differ from cloud to cloud: only their types are compared."""
_RANDOM = [
    (re.compile(r"https?://[^/\s\"<>]+/[^\s\"<>]*?(?=/stacks/)"), "{heat}"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\b[a-z2-7]{12}\b"), "<name>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "<address>"),
]


def without_ids(text: str) -> str:
    """Return the text with placeholders for what is another at every run."""
    for pattern, placeholder in _RANDOM:
        text = pattern.sub(placeholder, text)
    return text


def shape(value: Any, key: str = "") -> Any:
    """Return what must be the same in another cloud. Two shapes can be compared with ``==``."""
    if key in FREE:
        return None if value is None else type(value).__name__
    if key == "events":
        return _events(value)
    if isinstance(value, dict):
        pairs = [(without_ids(name), shape(inner, name)) for name, inner in value.items()]
        return sorted(pairs, key=str)
    if isinstance(value, list):
        shapes = [shape(inner) for inner in value]
        return sorted(shapes, key=str) if key in ("resources", "stacks", "required_by") else shapes
    return without_ids(value) if isinstance(value, str) else value


def _events(events: list[dict[str, Any]]) -> Any:
    """Return each resource's states in their order; what is parallel has no order."""
    assert [event["event_time"] for event in events] == sorted(
        (event["event_time"] for event in events), reverse=True
    ), "newest first"
    states: dict[tuple[str, str], list[str]] = {}
    for event in events:
        stack = next(link["href"] for link in event["links"] if link["rel"] == "stack")
        states.setdefault((stack, event["resource_name"]), []).append(event["resource_status"])
    sequences = Counter(
        (without_ids(stack), without_ids(name), *reversed(of_one))
        for (stack, name), of_one in states.items()
    )
    forms = {json.dumps(shape({**event, "resource_status": ""})) for event in events}
    return sorted(sequences.items()), sorted(forms)


def differences(recorded: Any, here: Any) -> list[str]:
    """Return in what an answer differs from the recorded one, in lines."""
    recorded, here = _without_attributes(recorded), _without_attributes(here)
    problems = _more_attributes(recorded[1], here[1])
    left, right = shape(recorded[0]), shape(here[0])
    if left != right:
        there, here_too = _lines(left), _lines(right)
        both = {*there} & {*here_too}
        problems += [f"recorded: {line}" for line in there if line not in both]
        problems += [f"here:     {line}" for line in here_too if line not in both]
        problems = problems or [f"recorded: {left}", f"here:     {right}"]
    return problems


def _lines(value: Any) -> list[str]:
    """Return the leaves of a shape, each with its path."""
    if isinstance(value, (list, tuple)) and any(isinstance(part, (list, tuple)) for part in value):
        return [line for part in value for line in _lines(part)]
    return [str(value)]


def _without_attributes(body: Any) -> tuple[Any, dict[str, Any]]:
    """Return the answer without resources' attributes, and these by the resources' names."""
    if isinstance(body, list):
        parts = [_without_attributes(part) for part in body]
        return [part for part, _ in parts], {k: v for _, found in parts for k, v in found.items()}
    if not isinstance(body, dict):
        return body, {}
    found = {}
    if "attributes" in body:
        found[without_ids(body["resource_name"])] = body["attributes"]
    left = {}
    for key, value in body.items():
        if key != "attributes":
            left[key], more = _without_attributes(value)
            found |= more
    return left, found


def _more_attributes(recorded: Any, here: Any, path: str = "attributes") -> list[str]:
    """Return what a resource has here and not there. It may have less."""
    if isinstance(here, dict) and isinstance(recorded, dict):
        more = [f"here:     {path}.{key}" for key in here.keys() - recorded.keys()]
        both = here.keys() & recorded.keys()
        deeper = (_more_attributes(recorded[key], here[key], f"{path}.{key}") for key in both)
        return more + [line for lines in deeper for line in lines]
    if isinstance(here, list) and isinstance(recorded, list):
        if len(here) != len(recorded):
            return [f"{path}: {len(recorded)} recorded, {len(here)} here"]
        pairs = enumerate(zip(recorded, here, strict=True))
        deeper = (_more_attributes(*pair, f"{path}[{number}]") for number, pair in pairs)
        return [line for lines in deeper for line in lines]
    if type(here) is not type(recorded):
        return [f"{path}: {recorded!r} recorded, {here!r} here"]
    return []
