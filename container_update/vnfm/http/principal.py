"""Who asks something of the service, and what tells it by a token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Principal:
    """Who asks."""

    name: str
    project: str = ""


Check = Callable[[str], Principal | None]
"""A token to its principal; None where the token is not good (any more)."""
