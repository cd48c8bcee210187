# SPDX-License-Identifier: Apache-2.0
"""What the YAML files of one package hold, and what is unusual in them."""

from __future__ import annotations

from dataclasses import dataclass

from container_update.package.tools.lint.finding import Finding

_MOST_FINDINGS = 1000
"""More are counted by nobody, and a package is somebody else's."""


@dataclass(frozen=True)
class Size:
    """How much a part of a file holds."""

    lines: int
    values: int
    characters: int


class Reading:
    """What was seen while the YAML files of one package were read.

    A file that is read again counts once.
    """

    def __init__(self) -> None:
        self.values = self.characters = 0
        self._files: dict[str, tuple[int, int]] = {}
        self._findings: dict[Finding, None] = {}

    def record(self, path: str, values: int = 0, characters: int = 0) -> None:
        """Record what a file holds, instead of what was recorded for it before."""
        before = self._files.get(path, (0, 0))
        self._files[path] = values, characters
        self.values += values - before[0]
        self.characters += characters - before[1]

    def note(self, finding: Finding) -> None:
        """Record what is unusual in a file, each finding once and not more than 1,000."""
        if len(self._findings) < _MOST_FINDINGS:
            self._findings[finding] = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is unusual in the files, in the order in which it was read."""
        return tuple(self._findings)
