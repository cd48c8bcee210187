"""What a client can depend on in watch events, without what differs from cluster to cluster.

Ids, times, addresses, hashes and random names are replaced; what is left of a recorded event and
of an event of ours can be compared. Events are compared object by object: how those of different
objects interleave is a race in a real cluster.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from container_update.model.objects import Json

FOLDER = Path(__file__).parent / "recordings_watches"
_HASH = r"[456789bcdf]{6,10}"
"""The form of a template's hash: decimal digits, written with ten characters that make no words."""
_RANDOM = r"[bcdfghjklmnpqrstvwxz2456789]{5}"
_CONDITION_FIELDS = ("type", "status", "reason", "message", "observedGeneration")


def recorded(name: str) -> list[Json]:
    """The steps of a recording: requests, and watches with their events."""
    steps: list[Json] = json.loads((FOLDER / f"{name}.json").read_text())
    return steps


def events_after(
    steps: list[Json], method: str, path_end: str, watched: str, nth: int = 0
) -> list[tuple[str, Json]]:
    """The events of the watch on *watched* that follows a request (the *nth* of its like)."""
    found = -1
    for step in steps:
        if "request" in step:
            request = step["request"]
            found += request["method"] == method and request["path"].endswith(path_end)
        elif found == nth and step["watch"].endswith(f"/{watched}"):
            return [(event["type"], event["object"]) for event in step["events"]]
    raise AssertionError(f"no watch on {watched} after {method} {path_end}")


class Names:
    """Gives hashes numbers in the order in which they come up, and drops random ends."""

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}

    def plain(self, text: str) -> str:
        """The text with ``#1`` for the first hash and ``*`` for random ends."""
        text = re.sub(rf"(?<=-){_HASH}(?=$|-|\")|^{_HASH}$", self._number, text)
        return re.sub(rf"(?<=-){_RANDOM}$", "*", text)

    def _number(self, match: re.Match[str]) -> str:
        return self._hashes.setdefault(match[0], f"#{len(self._hashes) + 1}")


def sequences(events: Iterable[tuple[str, Json]]) -> dict[str, list[list[Any]]]:
    """By plain name, the facts of each object's events in order; repeated facts count once.

    Several objects whose names differ in their random ends have the same plain name: their
    sequences are sorted, as which of them was first is a matter of chance.
    """
    names = Names()
    by_object: dict[str, list[Any]] = {}
    for kind, obj in events:
        sequence = by_object.setdefault(obj["metadata"]["name"], [])
        found = facts(obj, names)
        if kind == "DELETED":
            found.pop("finalizers", None)  # It is gone, whatever held it last.
        fact = [kind, found]
        if not sequence or sequence[-1] != fact:
            sequence.append(fact)
    grouped: dict[str, list[list[Any]]] = {}
    for name, sequence in by_object.items():
        grouped.setdefault(names.plain(name), []).append(sequence)
    return {name: sorted(group, key=json.dumps) for name, group in grouped.items()}


def facts(obj: Json, names: Names) -> Json:
    """What a client can depend on in one version of an object."""
    metadata = obj["metadata"]
    spec = obj.get("spec") or {}
    found: Json = {
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
        found["bound"] = "nodeName" in spec
    return {key: value for key, value in found.items() if value not in (None, [], {})}


def _is_deleting(obj: Json) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _plain_values(values: Json | None, names: Names) -> Json:
    return {
        key: names.plain(value)
        for key, value in sorted((values or {}).items())
        if not key.endswith(("controller-uid", "last-change-trigger-time"))
    }


def _status(status: Json, names: Names) -> Json:
    found: Json = {}
    for key, value in sorted(status.items()):
        if key == "conditions":
            found[key] = [_condition(entry, names) for entry in value]
        elif key in {"containerStatuses", "initContainerStatuses"}:
            found[key] = [_container(entry) for entry in value]
        elif key in {"podIP", "hostIP", "startTime"}:
            found[key] = bool(value)
        elif key not in {"podIPs", "hostIPs"}:
            found[key] = names.plain(value) if isinstance(value, str) else value
    if "phase" in found:
        found.pop("startTime", None)
    return found


def _condition(condition: Json, names: Names) -> Json:
    found = {key: condition[key] for key in _CONDITION_FIELDS if key in condition}
    if found["type"] == "DisruptionTarget":
        found.pop("observedGeneration", None)  # Depends on who asked for the eviction.
    if "message" in found:
        found["message"] = names.plain(found["message"])
    return found


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
        kind: {key: entry[key] for key in ("reason", "exitCode", "message") if key in entry}
        for kind, entry in state.items()
    }


def differences(
    wanted: Iterable[tuple[str, Json]],
    found: Iterable[tuple[str, Json]],
    *,
    merged: int = 0,
    extra: int = 0,
) -> list[str]:
    """What keeps *found* from being the recorded events, object by object; nothing is equality.

    :param merged: how many states between the first and the last of each object may be missing:
        changes that the recording saw one by one may come at once.
    :param extra: how many states of each object may be seen that the recording has not.
    """
    recorded_sequences, our_sequences = sequences(wanted), sequences(found)
    if set(recorded_sequences) != set(our_sequences):
        return [f"recorded {sorted(recorded_sequences)}, found {sorted(our_sequences)}"]
    return [
        f"{name}: {problem}"
        for name, group in recorded_sequences.items()
        for problem in _group_differences(group, our_sequences[name], merged, extra)
    ]


def _group_differences(
    wanted: list[list[Any]], found: list[list[Any]], merged: int, extra: int
) -> list[str]:
    if len(wanted) != len(found):
        return [f"recorded {len(wanted)} objects, found {len(found)}"]
    problems = []
    for recorded_states, our_states in zip(wanted, found, strict=True):
        before, after = _lines(recorded_states), _lines(our_states)
        delta = [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
        missing = [line for line in delta if line[0] == "-"]
        ends_differ = (before[0], before[-1]) != (after[0], after[-1])
        if ends_differ or len(missing) > merged or len(delta) - len(missing) > extra:
            problems.append("\n".join(["(- recorded, + found)", *delta]))
    return problems


def _lines(states: list[Any]) -> list[str]:
    return [json.dumps(state, sort_keys=True) for state in states]
