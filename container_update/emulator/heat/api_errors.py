# SPDX-License-Identifier: Apache-2.0
"""The errors that Heat and Keystone respond with."""

from __future__ import annotations

from http import HTTPStatus

from container_update.emulator.json_type import Json

_EXPLANATIONS = {
    400: "The server could not comply with the request since it is either malformed or otherwise "
    "incorrect.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    409: "There was a conflict when trying to complete your request.",
}


class OpenStackApiError(Exception):
    """A request that is answered with an error.

    :param status: the HTTP status.
    :param kind: Heat's name of the error ('StackExists', 'ActionInProgress', ...).
    :param message: Heat's message to the caller.
    :param retry_after: seconds for the ``Retry-After`` header; None: no such header.
    """

    def __init__(
        self, status: int, kind: str, message: str, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self.status = status
        self.kind = kind
        self.message = message

    def heat_body(self) -> Json:
        """Return the body that Heat's fault middleware writes."""
        title = HTTPStatus(self.status).phrase
        return {
            "code": self.status,
            "title": title,
            "explanation": _EXPLANATIONS.get(self.status, title),
            "error": {"type": self.kind, "message": self.message, "traceback": None},
        }

    def keystone_body(self) -> Json:
        """Return the body that Keystone writes."""
        title = HTTPStatus(self.status).phrase
        return {"error": {"code": self.status, "title": title, "message": self.message}}


def bad_request(message: str, kind: str = "StackValidationFailed") -> OpenStackApiError:
    """Return a 400: the template or its parameters are wrong."""
    return OpenStackApiError(400, kind, message)


def unauthorized_error() -> OpenStackApiError:
    """Return a 401: there is no token, or it has expired."""
    return OpenStackApiError(
        401, "HTTPUnauthorized", "The request you have made requires authentication."
    )


def no_stack(reference: str) -> OpenStackApiError:
    """Return a 404: there is no such stack."""
    return OpenStackApiError(404, "EntityNotFound", f"The Stack ({reference}) could not be found.")


def no_resource(name: str, stack: str) -> OpenStackApiError:
    """Return a 404: the stack has no such resource."""
    return OpenStackApiError(
        404, "ResourceNotFound", f"The Resource ({name}) could not be found in Stack {stack}."
    )


def stack_exists(name: str) -> OpenStackApiError:
    """Return a 409: the name is taken."""
    return OpenStackApiError(409, "StackExists", f"The Stack ({name}) already exists.")


def not_supported(feature: str) -> OpenStackApiError:
    """Return a 400: Heat does not do this with a stack in its present state."""
    return OpenStackApiError(400, "NotSupported", f"{feature} is not supported.")


def stack_quota(limit: int) -> OpenStackApiError:
    """Return a 403: the project has as many stacks as it may have."""
    return OpenStackApiError(
        403,
        "RequestLimitExceeded",
        f"Request limit exceeded: You have reached the maximum stacks per tenant, {limit}. "
        "Please delete some stacks.",
    )
