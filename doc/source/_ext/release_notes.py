# SPDX-License-Identifier: Apache-2.0
"""The directive ``release-notes`` of reno, also where there is no git history."""

from __future__ import annotations

import logging
from pathlib import Path

from docutils import nodes
from dulwich.errors import NotGitRepository
from dulwich.repo import Repo
from reno.config import Config
from reno.loader import Loader
from reno.sphinxext import ReleaseNotesDirective
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[3]


class ReleaseNotes(ReleaseNotesDirective):
    """The notes of one ``:version:``, by default of what is in development.

    The page has the version as its title.
    """

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the notes; in an sdist a sentence that says where they are."""
        try:
            repository = Repo(str(ROOT))
            repository.head()
        except (NotGitRepository, KeyError):
            text = (
                "This copy of the documentation was built without the git history, which says what "
                "belongs to which version. The notes are the files in releasenotes/notes."
            )
            return [nodes.paragraph(text, text)]
        logging.getLogger("reno").setLevel(logging.WARNING)
        self.options["reporoot"] = str(ROOT)
        if "version" not in self.options:
            released = {name.decode() for name in repository.refs.as_dict(b"refs/tags")}
            with Loader(Config(str(ROOT))) as notes:
                versions = [name for name in notes.versions if name not in released]
            self.options["version"] = ", ".join(versions)
        return [
            node
            for part in super().run()
            for node in (part.children[1:] if isinstance(part, nodes.section) else [part])
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("release-notes", ReleaseNotes)
    return {"parallel_read_safe": True}
