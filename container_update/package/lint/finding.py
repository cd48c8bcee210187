"""What a check of a package finds."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from container_update.model.objects import Manifest


class Severity(enum.Enum):
    """How bad a finding is; the order of the values is the order of the report."""

    ERROR = 1
    """Tacker refuses the package, or an operation fails."""
    WARNING = 2
    """It works otherwise than expected."""
    NOTE = 3
    """A habit of the trade, not a fault."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong or unusual in a package."""

    severity: Severity
    file: str
    """The path in the package."""
    line: int
    """From 1; 0 where the whole file is meant."""
    message: str
    """What was found, and what it leads to."""
    advice: str
    """What to do about it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.severity.name.lower()}: {place}: {self.message}. To do: {self.advice}"

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "severity": self.severity.name.lower(),
            "file": self.file,
            "line": self.line,
            "message": self.message,
            "advice": self.advice,
        }

    @classmethod
    def error(cls, file: str, message: str, advice: str, line: int = 0) -> Finding:
        """An error in a file."""
        return cls(Severity.ERROR, file, line, message, advice)

    @classmethod
    def warning(cls, file: str, message: str, advice: str, line: int = 0) -> Finding:
        """A warning about a file."""
        return cls(Severity.WARNING, file, line, message, advice)

    @classmethod
    def note(cls, file: str, message: str, advice: str, line: int = 0) -> Finding:
        """A note about a file."""
        return cls(Severity.NOTE, file, line, message, advice)

    @classmethod
    def of(cls, severity: Severity, manifest: Manifest, message: str, advice: str) -> Finding:
        """A finding about an object."""
        return cls(severity, manifest.source.path, manifest.source.line, message, advice)
