# SPDX-License-Identifier: Apache-2.0
"""``doc/source/reference/annotations.rst`` has what the program writes into metadata."""

from __future__ import annotations

import re

from tests.project.test_checks import ROOT

PAGE = (ROOT / "doc/source/reference/annotations.rst").read_text(encoding="utf-8")
NO_METADATA = {"container-update/revision"}
"""Other texts of this form: types of Secrets."""


def test_every_annotation_and_label_of_the_program_is_on_the_page() -> None:
    packages = [ROOT / "container_update" / name for name in ("cluster", "planning", "workloads")]
    texts = [path.read_text(encoding="utf-8") for each in packages for path in each.rglob("*.py")]
    names = set(re.findall(r'"(container-update/[a-z-]+)"', "\n".join(texts))) - NO_METADATA
    assert len(names) > 5
    assert [name for name in sorted(names) if f"``{name}``" not in PAGE] == []
