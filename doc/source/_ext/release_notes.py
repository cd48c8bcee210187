# SPDX-License-Identifier: Apache-2.0
"""The directive ``release-notes`` of reno, also where there is no git history."""

from __future__ import annotations

import logging
from pathlib import Path

from docutils import nodes
from dulwich.errors import NotGitRepository
from dulwich.repo import Repo
from reno.sphinxext import ReleaseNotesDirective
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[3]


class ReleaseNotes(ReleaseNotesDirective):
    """The notes of every release, and of what is in development."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the notes; in an sdist a sentence that says where they are."""
        try:
            Repo(str(ROOT)).head()
        except (NotGitRepository, KeyError):
            text = (
                "This copy of the documentation was built without the git history, which says what "
                "belongs to which version. The notes are the files in releasenotes/notes."
            )
            return [nodes.paragraph(text, text)]
        logging.getLogger("reno").setLevel(logging.WARNING)
        self.options["reporoot"] = str(ROOT)
        return list(super().run())


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("release-notes", ReleaseNotes)
    return {"parallel_read_safe": True}
