# SPDX-License-Identifier: Apache-2.0
"""Why a resource failed, in the words in which Heat reports it at each level above."""

from __future__ import annotations


class ResourceFailedError(Exception):
    """A resource failed. The text of the error is the resource's ``resource_status_reason``."""


def refusal(error: str, name: str, reason: str) -> ResourceFailedError:
    """Return the failure of a resource whose service refused a request.

    :param error: Heat's name of the error.
    """
    return ResourceFailedError(f"{error}: resources.{name}: {reason}")


def invalid(name: str, message: str) -> ResourceFailedError:
    """Return the failure of a nested stack that is not even begun: its template is wrong."""
    return ResourceFailedError(f"resources.{name}: {message}")


def below(name: str, action: str, reason: str) -> ResourceFailedError:
    """Return the failure of a resource whose nested stack failed for *reason*.

    As Heat does, it puts the resource before the second part of the nested reason, where the path
    normally is; with the message of a wrong template the result reads oddly (recording 191).
    """
    parts = reason.removeprefix(f"Resource {action} failed: ").split(": ", 2)
    if len(parts) < 3 or not reason.startswith(f"Resource {action} failed: "):
        return ResourceFailedError(f"resources.{name}: {reason}")
    error, path, message = parts
    return ResourceFailedError(f"{error}: resources.{name}.{path}: {message}")


def cancellation(name: str, action: str) -> ResourceFailedError:
    """Return the failure of a resource whose nested stack was cancelled between two updates."""
    return ResourceFailedError(f"resources.{name}: Stack {action} cancelled")
