# SPDX-License-Identifier: Apache-2.0
"""A change of the package that is to be made: its request, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.engine.goals.change_request import ChangeRequest
from container_update.model.options import Options
from container_update.package.csar import Csar


@dataclass(frozen=True)
class Occurrence:
    """The operation occurrence of a change, where a VNFM shows it (SOL003)."""

    id: str
    url: str
    instance_url: str


@dataclass(frozen=True)
class ChangeJob:
    """A change that is to be made: the request, its packages, and its instance."""

    request: ChangeRequest
    old: str
    """The package that the VNF runs from, as ``UpdateRequest.old``."""
    new: str
    instance_id: str | None = None
    options: Options = field(default_factory=Options)
    leave_failed: bool = False
    """A failure is left for a rollback or a resume; otherwise it is undone at once."""
    promote: str = ""
    """The name of the hold that a person has promoted: a change that waits there goes on."""
    instance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The VnfInstance as the VNFM has it, for the scripts; may be empty."""
    occurrence: Occurrence | None = None
    """For the scripts; None: no VNFM shows this change."""
    opened: Csar | None = field(default=None, repr=False, compare=False)
    """The new package, where the caller has opened it already, and closes it."""
