# SPDX-License-Identifier: Apache-2.0
"""``developers/compatibility.rst`` has the projects and versions of ``doc/compatibility.py``.

Its results are facts of a run, for which the projects' repositories are needed.
"""

from __future__ import annotations

import runpy

from tests.project.test_repository import ROOT


def test_every_project_is_on_the_page_with_its_versions() -> None:
    page = (ROOT / "doc/source/developers/compatibility.rst").read_text(encoding="utf-8")
    projects = runpy.run_path(str(ROOT / "doc/compatibility.py"))["PROJECTS"]
    told = {each.repository: " to ".join(each.versions) for each in projects}
    assert len(told) >= 8
    assert [
        name for name, versions in told.items() if name not in page or versions not in page
    ] == []
