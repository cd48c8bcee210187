# SPDX-License-Identifier: Apache-2.0
"""What a VNFM adds to the request of a change of the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Occurrence:
    """The operation occurrence of a change, where a VNFM shows it (SOL003)."""

    id: str
    url: str
    instance_url: str


@dataclass(frozen=True)
class FromVnfm:
    """What a VNFM knows of a VNF whose package changes; all of it may be missing."""

    instance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The VnfInstance, for the scripts."""
    occurrence: Occurrence | None = None
    """For the scripts; None: no VNFM shows this change."""
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How a script reaches the VIM; empty: as this process does."""
    promoted: str = ""
    """The name of the hold that a person has promoted: a change that waits there goes on."""
