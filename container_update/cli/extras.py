"""The extras of this package: what a command needs that is not always installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from container_update.model.errors import ContainerUpdateError


@contextmanager
def needed_by(
    what: str, extras: str, failure: type[ContainerUpdateError] = ContainerUpdateError
) -> Iterator[None]:
    """Turn an ImportError in the ``with`` block into an error that says what to install.

    :param what: the subject of the message.
    :param extras: their names, separated by commas.
    """
    try:
        yield
    except ImportError as error:
        raise failure(
            f"{what} needs the Python package {error.name}: install it with "
            f"pip install 'container-update[{extras}]'"
        ) from error
