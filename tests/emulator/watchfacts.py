# SPDX-License-Identifier: Apache-2.0
"""The facts in watch events that a client can depend on, without what differs between clusters.

Ids, times, addresses, hashes and random names are replaced, so that a recorded event and an event
of the emulator can be compared. Events are compared object by object: how those of different
objects interleave is a race in a real cluster.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.internals.core import Json

FOLDER = Path(__file__).parent / "recordings_watches"
_HASH = r"[456789bcdf]{6,10}"
"""The form of a template's hash: decimal digits, mapped to ten characters without vowels."""
_RANDOM = r"[bcdfghjklmnpqrstvwxz2456789]{5}"
_CONDITION_FIELDS = ("type", "status", "reason", "message", "observedGeneration")


def recorded(name: str) -> list[Json]:
    """Return the steps of a recording: requests, and watches with their events."""
    steps: list[Json] = json.loads((FOLDER / f"{name}.json").read_text())
    return steps


def events_after(
    steps: list[Json], method: str, path_end: str, watched: str, nth: int = 0
) -> list[tuple[str, Json]]:
    """Return the events of the watch on *watched* after the *nth* request of this kind."""
    matching_requests = -1
    for step in steps:
        if "request" in step:
            request = step["request"]
            matching_requests += request["method"] == method and request["path"].endswith(path_end)
        elif matching_requests == nth and step["watch"].endswith(f"/{watched}"):
            return [(event["type"], event["object"]) for event in step["events"]]
    raise AssertionError(f"no watch on {watched} after {method} {path_end}")


class Names:
    """Numbers hashes in the order of their appearance, and drops random suffixes."""

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}

    def plain(self, text: str) -> str:
        """Return the text with ``#1`` for the first hash and ``*`` for random suffixes."""
        text = re.sub(rf"(?<=-){_HASH}(?=$|-|\")|^{_HASH}$", self._number, text)
        return re.sub(rf"(?<=-){_RANDOM}$", "*", text)

    def _number(self, match: re.Match[str]) -> str:
        return self._hashes.setdefault(match[0], f"#{len(self._hashes) + 1}")


def sequences(events: Iterable[tuple[str, Json]]) -> dict[str, list[list[Any]]]:
    """Return the facts of each object's events in order, by plain name; repeated facts count once.

    Objects whose names differ only in their random suffixes have the same plain name: their
    sequences are sorted, since their order is random.
    """
    names = Names()
    by_object: dict[str, list[Any]] = {}
    for kind, obj in events:
        sequence = by_object.setdefault(obj["metadata"]["name"], [])
        object_facts = facts(obj, names)
        if kind == "DELETED":
            object_facts.pop("finalizers", None)  # It is deleted, whichever finalizer was the last.
        fact = [kind, object_facts]
        if not sequence or sequence[-1] != fact:
            sequence.append(fact)
    grouped: dict[str, list[list[Any]]] = {}
    for name, sequence in by_object.items():
        grouped.setdefault(names.plain(name), []).append(sequence)
    return {name: sorted(group, key=json.dumps) for name, group in grouped.items()}


def facts(obj: Json, names: Names) -> Json:
    """Return what a client can depend on in one version of an object."""
    metadata = obj["metadata"]
    spec = obj.get("spec") or {}
    object_facts: Json = {
        "generation": metadata.get("generation"),
        "deleting": metadata.get("deletionGracePeriodSeconds") if _is_deleting(obj) else None,
        "finalizers": metadata.get("finalizers"),
        "labels": _plain_values(metadata.get("labels"), names),
        "owner": [
            (owner["kind"], names.plain(owner["name"]), owner.get("controller"))
            for owner in metadata.get("ownerReferences") or []
        ],
        "annotations": _plain_values(metadata.get("annotations"), names),
        "replicas": spec.get("replicas"),
        "status": _status(obj.get("status") or {}, names),
    }
    if obj["kind"] == "Pod":
        object_facts["bound"] = "nodeName" in spec
    return {key: value for key, value in object_facts.items() if value not in (None, [], {})}


def _is_deleting(obj: Json) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _plain_values(values: Json | None, names: Names) -> Json:
    return {
        key: names.plain(value)
        for key, value in sorted((values or {}).items())
        if not key.endswith(("controller-uid", "last-change-trigger-time"))
    }


def _status(status: Json, names: Names) -> Json:
    plain_status: Json = {}
    for key, value in sorted(status.items()):
        if key == "conditions":
            plain_status[key] = [_condition(entry, names) for entry in value]
        elif key in {"containerStatuses", "initContainerStatuses"}:
            plain_status[key] = [_container(entry) for entry in value]
        elif key in {"podIP", "hostIP", "startTime"}:
            plain_status[key] = bool(value)
        elif key not in {"podIPs", "hostIPs"}:
            plain_status[key] = names.plain(value) if isinstance(value, str) else value
    if "phase" in plain_status:
        plain_status.pop("startTime", None)
    return plain_status


def _condition(condition: Json, names: Names) -> Json:
    plain_condition = {key: condition[key] for key in _CONDITION_FIELDS if key in condition}
    if plain_condition["type"] == "DisruptionTarget":
        plain_condition.pop("observedGeneration", None)  # Depends on who requested the eviction.
    if "message" in plain_condition:
        plain_condition["message"] = names.plain(plain_condition["message"])
    return plain_condition


def _container(status: Json) -> Json:
    return {
        "name": status["name"],
        "state": _state(status["state"]),
        "lastState": _state(status["lastState"]),
        "ready": status["ready"],
        "started": status["started"],
        "restarts": status["restartCount"],
        "image": status["image"],
        "ids": [bool(status.get("containerID")), bool(status["imageID"])],
    }


def _state(state: Json) -> Json:
    return {
        kind: {
            # since Kubernetes 1.31 the cause follows what is recorded of a back-off
            key: entry[key].partition(": ErrImagePull: ")[0] if key == "message" else entry[key]
            for key in ("reason", "exitCode", "message")
            if key in entry
        }
        for kind, entry in state.items()
    }


def differences(
    expected: Iterable[tuple[str, Json]],
    actual: Iterable[tuple[str, Json]],
    *,
    merged: int = 0,
    extra: int = 0,
) -> list[str]:
    """Return the differences of the *actual* events from the recorded ones, object by object.

    :param merged: how many states between the first and the last of each object may be missing:
        changes that the recording saw one by one may come at once.
    :param extra: how many states of each object may be seen that the recording has not.
    """
    recorded_sequences, our_sequences = sequences(expected), sequences(actual)
    if set(recorded_sequences) != set(our_sequences):
        return [f"recorded {sorted(recorded_sequences)}, found {sorted(our_sequences)}"]
    return [
        f"{name}: {problem}"
        for name, group in recorded_sequences.items()
        for problem in _group_differences(group, our_sequences[name], merged, extra)
    ]


def _group_differences(
    expected: list[list[Any]], actual: list[list[Any]], merged: int, extra: int
) -> list[str]:
    if len(expected) != len(actual):
        return [f"recorded {len(expected)} objects, found {len(actual)}"]
    problems = []
    for recorded_states, our_states in zip(expected, actual, strict=True):
        before, after = _lines(recorded_states), _lines(our_states)
        delta = [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
        missing = [line for line in delta if line[0] == "-"]
        ends_differ = (before[0], before[-1]) != (after[0], after[-1])
        if ends_differ or len(missing) > merged or len(delta) - len(missing) > extra:
            problems.append("\n".join(["(- recorded, + found)", *delta]))
    return problems


def _lines(states: list[Any]) -> list[str]:
    return [json.dumps(state, sort_keys=True) for state in states]
