"""The samples, which are installed as the package ``container_update.samples``."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from container_update.model.errors import ContainerUpdateError

GUIDE = "01-user-guide"
"""The sample with the manifests of both user guides, ``v1`` and ``v2``."""


def root() -> Path:
    """Return the folder that holds the samples.

    :raises ContainerUpdateError: they are not installed, or not as files.
    """
    try:
        folder = resources.files("container_update.samples")
    except ModuleNotFoundError as error:
        raise ContainerUpdateError(
            "the samples are not installed: run 'pip install .' or 'pip install -e .' in the "
            "checkout, and start the command 'container-update' that this installs"
        ) from error
    if not isinstance(folder, Path):
        raise ContainerUpdateError(f"the samples in {folder} cannot be read: unpack the archive")
    return folder
