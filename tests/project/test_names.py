# SPDX-License-Identifier: Apache-2.0
"""Names of functions: a verb with its object, or what is returned; never a participle alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PRODUCT = Path(__file__).parents[2] / "container_update"
IRREGULAR = frozenset(
    {"begun", "built", "chosen", "found", "gone", "held", "kept", "known", "made"}
)
KEPT = {
    "package/rendering.py": "rendered",
    "cluster/prometheus.py": "measured",
    "emulator/kubernetes/kubelet/behaviour.py": "started",
}
"""Other programs call these."""


def functions() -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each function and method; properties are values."""
    for path in PRODUCT.rglob("*.py"):
        place = path.relative_to(PRODUCT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                decorators = (ast.unparse(each) for each in node.decorator_list)
                if not any("property" in each for each in decorators):
                    yield place, node.name.strip("_")


def test_no_function_is_named_by_a_participle_alone() -> None:
    found = [
        f"{place}: {name}"
        for place, name in functions()
        if (re.fullmatch("[a-z]+ed", name) or name in IRREGULAR) and KEPT.get(place) != name
    ]
    assert not found, "name it by a verb with its object, or by what it returns"
