# SPDX-License-Identifier: Apache-2.0
"""Compare a response with a recorded one, except for ids, times and random names.

Recorded ids are paired with the emulator's as they appear: a recorded uid must always be paired
with the same one, and two different ones with different ones. The pairs also translate later
requests.
"""

import re
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
AGE = re.compile(r"\d+[smhd](\d+[smh])?")
RANDOM = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5,15}(?=$|[-\"])")
"""The hash or random suffix of a name, or both without a separator in a truncated name."""

ANY_TEXT = {
    "addresses", "clusterIP", "clusterIPs", "containerID", "continue", "controller-revision-hash",
    "currentRevision", "hostIP", "imageID", "ip", "pod-template-hash", "podIP", "updateRevision",
}  # fmt: skip


LEFT_OUT = {"managedFields"}
"""What the recordings do not have."""


class Pairs:
    """Recorded texts and those of the emulator."""

    def __init__(self) -> None:
        self._ours: dict[str, str] = {}
        self._recorded: dict[str, str] = {}

    def learn(self, recorded: str, ours: str) -> bool:
        """Pair two texts; return False if either is paired with another."""
        known = self._ours.setdefault(recorded, ours)
        back = self._recorded.setdefault(ours, recorded)
        return known == ours and back == recorded

    def knows(self, recorded: str) -> bool:
        return recorded in self._ours

    def translate(self, value: Any) -> Any:
        """Return *value* with every paired text replaced, within longer texts too."""
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
    """Return where *ours* differs from *recorded*, a line for each path."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        problems = []
        for key in sorted((set(recorded) | set(ours)) - LEFT_OUT):
            entry_path = f"{path}.{key}"
            if key not in ours:
                problems.append(f"{entry_path}: missing, recorded {recorded[key]!r}")
            elif key not in recorded:
                problems.append(f"{entry_path}: {ours[key]!r}, not in the recording")
            else:
                problems += differences(recorded[key], ours[key], pairs, entry_path)
        return problems
    if isinstance(recorded, list) and isinstance(ours, list):
        if len(recorded) != len(ours):
            return [f"{path}: {len(ours)} entries, recorded {len(recorded)}: {recorded} {ours}"]
        problems = []
        for index, (theirs, mine) in enumerate(zip(recorded, ours, strict=True)):
            problems += differences(theirs, mine, pairs, f"{path}[{index}]")
        return problems
    if _same_leaf(recorded, ours, path, pairs):
        return []
    return [f"{path}: {ours!r}, recorded {recorded!r}"]


def _same_leaf(recorded: Any, ours: Any, path: str, pairs: Pairs) -> bool:
    key = re.sub(r"\[\d+\]$", "", path).rpartition(".")[2]
    if not (isinstance(recorded, str) and isinstance(ours, str)):
        return bool(recorded == ours) and type(recorded) is type(ours)
    if key in ANY_TEXT:
        return bool(ours) == bool(recorded)
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
