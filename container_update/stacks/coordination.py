"""What a change of stacks asks the request's CoordinateVNF scripts to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from container_update.stacks.vnfcs import VnfcServer


@dataclass(frozen=True)
class Coordination:
    """What a CoordinateVNF script is asked to do."""

    role: str
    """``new`` or ``old``: which of the request's two scripts."""
    stack: str
    """The stack of the VNF that it is about."""
    member: VnfcServer | None
    """The VNFC that it is about; None: all of the stack's."""
    back: bool = False
    """The change is being undone: traffic goes back to the old VNF."""


class Coordinator(Protocol):
    """Runs the scripts of the request."""

    def __call__(self, what: Coordination, /) -> None:
        """Run one, where there is one. ContainerUpdateError where it fails."""


def no_coordination(_: Coordination) -> None:
    """There are no scripts."""
