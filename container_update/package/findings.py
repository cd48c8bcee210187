# SPDX-License-Identifier: Apache-2.0
"""What is unusual in a package: each finding with its place and what to do, and how many values its
YAML files hold."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

from container_update.model.objects import Source


class Severity(enum.Enum):
    """How serious a finding is; the report is sorted by the values."""

    ERROR = 1
    """Tacker refuses the package, or an operation fails."""
    WARNING = 2
    """The package works, but not as expected."""
    NOTE = 3
    """A recommendation that the package does not follow."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong or unusual in a package."""

    severity: Severity
    file: str
    """The path in the package."""
    line: int
    """From 1; 0 for the file as a whole."""
    message: str
    """What was found, and its consequence."""
    advice: str
    """What to do."""

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.severity.name.lower()}: {location}: {self.message}. To do: {self.advice}"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {**asdict(self), "severity": self.severity.name.lower()}

    @classmethod
    def error(cls, source: Source | str, message: str, advice: str) -> Finding:
        """Return an error about a place in a file, or about a file as a whole."""
        return cls(Severity.ERROR, *_file_and_line(source), message, advice)

    @classmethod
    def warning(cls, source: Source | str, message: str, advice: str) -> Finding:
        """Return a warning, as :meth:`error`."""
        return cls(Severity.WARNING, *_file_and_line(source), message, advice)

    @classmethod
    def note(cls, source: Source | str, message: str, advice: str) -> Finding:
        """Return a note, as :meth:`error`."""
        return cls(Severity.NOTE, *_file_and_line(source), message, advice)


def _file_and_line(source: Source | str) -> tuple[str, int]:
    return (source, 0) if isinstance(source, str) else (source.path, source.line)


_MOST_FINDINGS = 1000
"""More are of no use, and a package is not trusted."""
_LONGEST_SHARED = 64
"""Characters of a text that may be in memory once."""


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
        self._texts: dict[str, str] = {}

    def share(self, text: str) -> str:
        """Return an equal text of the package that was read before, if it is short: keys, kinds and
        images are in every manifest, and in memory once."""
        return self._texts.setdefault(text, text) if len(text) <= _LONGEST_SHARED else text

    def record(self, path: str, values: int = 0, characters: int = 0) -> None:
        """Record the content of a file, instead of the earlier record."""
        before = self._files.get(path, (0, 0))
        self._files[path] = values, characters
        self.values += values - before[0]
        self.characters += characters - before[1]

    def note(self, finding: Finding) -> None:
        """Record findings about a file, each once and not more than 1,000."""
        if len(self._findings) < _MOST_FINDINGS:
            self._findings[finding] = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is unusual in the files, in the order in which it was read."""
        return tuple(self._findings)
