# SPDX-License-Identifier: Apache-2.0
"""What a step changes in lines, as a service keeps and sends it."""

from __future__ import annotations

import pytest

from container_update.model.objects import ObjectKey, Source
from container_update.model.plan import (
    HIDDEN,
    Action,
    ConfigUse,
    FieldChange,
    ImageChange,
    Reason,
    Step,
)
from container_update.planning.steps import ConfigStep, RestartStep
from container_update.planning.summary import change_lines
from tests.unit.build import config_map, secret

CM = ObjectKey("", "ConfigMap", "ns", "cm")
WEB = ObjectKey("apps", "Deployment", "ns", "web")
CANARY = "a-canary-in-a-secret"


def config(before: dict[str, str] | None, after: dict[str, str]) -> Step:
    old = None if before is None else config_map("cm", before)
    return ConfigStep(CM, Action.REPLACE, old, config_map("cm", after))


def restart(*causes: ImageChange | FieldChange | ConfigUse) -> Step:
    reasons = tuple(Reason("why", cause) for cause in causes)
    return RestartStep(WEB, Action.ROLL, {}, digest="d", reasons=reasons)


def field(path: str, old: str | None, new: str | None) -> FieldChange:
    return FieldChange(path, old, new, Source("f", 1))


CASES = {
    "each key has its hunks under its name": (
        config({"a": "1\n", "b": "1\n"}, {"a": "2\n", "b": "2\n"}),
        ["@@ -1 +1 @@ a", "-1", "+2", "@@ -1 +1 @@ b", "-1", "+2"],
    ),
    "what is no text has its sizes": (
        config({"a": "\0"}, {"a": "\0\0"}),
        [
            "@@ key a: changed (binary, 1 bytes (sha256 6e340b9cffb3) -> "
            "2 bytes (sha256 96a296d224f2)) @@"
        ],
    ),
    "of a Secret there are the names of keys only": (
        ConfigStep(
            ObjectKey("", "Secret", "ns", "s"),
            Action.REPLACE,
            secret("s", {"user": "a", "old": CANARY}),
            secret("s", {"user": CANARY, "new": CANARY}),
            removed=("old",),
        ),
        ["@@ key new: new @@", "@@ key old: removed @@", "@@ key user: changed @@"],
    ),
    "what is deleted has no lines": (
        ConfigStep(CM, Action.DELETE, config_map("cm", {"a": "1"}), config_map("cm", {})),
        [],
    ),
    "images have their containers": (
        restart(
            ImageChange("web", "nginx:1", "nginx:2"), ImageChange("init", "a", "b", init=True)
        ),
        ["@@ container web @@", "-image: nginx:1", "+image: nginx:2",
         "@@ init container init @@", "-image: a", "+image: b"],
    ),
    "fields have both values, or one": (
        restart(
            field("spec.replicas", "1", "2"),
            field("spec.paused", None, "true"),
            field("spec.x", HIDDEN, HIDDEN),
        ),
        ["-spec.replicas: 1", "+spec.replicas: 2", "+spec.paused: true",
         f"-spec.x: {HIDDEN}", f"+spec.x: {HIDDEN}"],
    ),
    "a use of configuration changes nothing itself": (
        restart(ConfigUse(CM, ("a",), "env A of container web")),
        [],
    ),
    "no line controls a terminal": (
        restart(ImageChange("web", "a\x1b[2J", "b")),
        ["@@ container web @@", "-image: a\\x1b[2J", "+image: b"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_step_has_the_lines_that_it_changes(case: str) -> None:
    step, expected = CASES[case]
    assert change_lines(step) == expected


def test_lines_are_limited_in_number_and_length() -> None:
    many = "".join(f"{number}\n" for number in range(250))
    lines = change_lines(config({"a": ""}, {"a": many}))
    assert len(lines) == 201
    assert lines[-1] == "... 51 more lines"
    (_, long) = change_lines(config({}, {"a": 9000 * "x"}))
    assert long == f"+{499 * 'x'}…"
