"""Whether an answer says the same as a recorded one, ids, times and random names apart.

Recorded ids are paired with ours as they turn up: the same recorded uid must always be the same one
of ours, and two different ones may not be one. The pairs also translate later requests.
"""

import re
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
AGE = re.compile(r"\d+[smhd](\d+[smh])?")
RANDOM = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5,15}(?=$|[-\"])")
"""The hash or random end of a name, or both run together where the name was cut."""

ANY_TEXT = {
    "addresses", "clusterIP", "clusterIPs", "containerID", "continue", "controller-revision-hash",
    "currentRevision", "hostIP", "imageID", "ip", "pod-template-hash", "podIP", "updateRevision",
}  # fmt: skip


class Pairs:
    """Recorded texts and ours."""

    def __init__(self) -> None:
        self._ours: dict[str, str] = {}
        self._recorded: dict[str, str] = {}

    def learn(self, recorded: str, ours: str) -> bool:
        """Pair two texts; False where either is paired with another."""
        known = self._ours.setdefault(recorded, ours)
        back = self._recorded.setdefault(ours, recorded)
        return known == ours and back == recorded

    def knows(self, recorded: str) -> bool:
        return recorded in self._ours

    def translate(self, value: Any) -> Any:
        """*value* with every paired text replaced, within longer texts too."""
        if isinstance(value, dict):
            return {self.translate(key): self.translate(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self.translate(entry) for entry in value]
        if isinstance(value, str):
            return self._translate_text(value)
        return value

    def _translate_text(self, text: str) -> str:
        if text in self._ours:
            return self._ours[text]
        for recorded, ours in self._ours.items():
            if len(recorded) > 12 and recorded in text:
                text = text.replace(recorded, ours)
        return text


def differences(recorded: Any, ours: Any, pairs: Pairs, path: str = "") -> list[str]:
    """Where *ours* does not say what *recorded* says: one line for each place."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        found = []
        for key in sorted(set(recorded) | set(ours)):
            place = f"{path}.{key}"
            if key not in ours:
                found.append(f"{place}: missing, recorded {recorded[key]!r}")
            elif key not in recorded:
                found.append(f"{place}: {ours[key]!r}, not in the recording")
            else:
                found += differences(recorded[key], ours[key], pairs, place)
        return found
    if isinstance(recorded, list) and isinstance(ours, list):
        if len(recorded) != len(ours):
            return [f"{path}: {len(ours)} entries, recorded {len(recorded)}: {recorded} {ours}"]
        found = []
        for place, (theirs, mine) in enumerate(zip(recorded, ours, strict=True)):
            found += differences(theirs, mine, pairs, f"{path}[{place}]")
        return found
    if _same_leaf(recorded, ours, path, pairs):
        return []
    return [f"{path}: {ours!r}, recorded {recorded!r}"]


def _same_leaf(recorded: Any, ours: Any, path: str, pairs: Pairs) -> bool:
    key = re.sub(r"\[\d+\]$", "", path).rpartition(".")[2]
    if not (isinstance(recorded, str) and isinstance(ours, str)):
        return bool(recorded == ours) and type(recorded) is type(ours)
    if key in ANY_TEXT:
        return bool(ours)
    if key == "resourceVersion":
        return ours.isdigit() and ("items" in path or pairs.learn(f"rv{recorded}", f"rv{ours}"))
    if path.endswith(("uid", "controller-uid")) and len(recorded) == 36:
        return pairs.learn(recorded, ours)
    if TIME.fullmatch(recorded):
        return bool(TIME.fullmatch(ours)) and len(recorded) == len(ours)
    translated = pairs.translate(recorded)
    if translated == ours:
        return True
    if RANDOM.sub("-<random>", translated) != RANDOM.sub("-<random>", ours):
        return False
    return pairs.learn(recorded, ours) if key == "name" else True
