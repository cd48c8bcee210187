"""How Heat and Keystone say no."""

from __future__ import annotations

from http import HTTPStatus

from container_update.emulator.json_type import Json


class Refusal(Exception):  # noqa: N818, it is an answer
    """A request that is answered with an error.

    :param status: the HTTP status.
    :param kind: Heat's name for it ('StackExists', 'ActionInProgress', ...).
    :param message: what Heat tells the caller.
    :param retry_after: the seconds that the answer's header asks to wait.
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
        """As Heat's fault middleware writes it."""
        status = HTTPStatus(self.status)
        return {
            "code": self.status,
            "title": status.phrase,
            "explanation": status.description or status.phrase,
            "error": {"type": self.kind, "message": self.message, "traceback": None},
        }

    def keystone_body(self) -> Json:
        """As Keystone writes it."""
        title = HTTPStatus(self.status).phrase
        return {"error": {"code": self.status, "title": title, "message": self.message}}


def bad_request(message: str, kind: str = "StackValidationFailed") -> Refusal:
    """400: the template or its parameters are wrong."""
    return Refusal(400, kind, message)


def unauthorized() -> Refusal:
    """401: there is no token, or it has expired."""
    return Refusal(401, "HTTPUnauthorized", "The request you have made requires authentication.")


def no_stack(reference: str) -> Refusal:
    """404: there is no such stack."""
    return Refusal(404, "EntityNotFound", f"The Stack ({reference}) could not be found.")


def no_resource(name: str, stack: str) -> Refusal:
    """404: the stack has no such resource."""
    return Refusal(404, "NotFound", f"The Resource ({name}) could not be found in Stack {stack}.")


def stack_exists(name: str) -> Refusal:
    """409: the name is taken."""
    return Refusal(409, "StackExists", f"The Stack ({name}) already exists.")


def stack_busy(name: str, action: str) -> Refusal:
    """409: something else is done to the stack."""
    return Refusal(
        409, "ActionInProgress", f"Stack {name} already has an action ({action}) in progress."
    )


def not_supported(feature: str) -> Refusal:
    """400: Heat does not do this with the stack as it is."""
    return Refusal(400, "NotSupported", f"{feature} is not supported.")


def stack_quota(limit: int) -> Refusal:
    """403: the project has as many stacks as it may have."""
    return Refusal(
        403,
        "RequestLimitExceeded",
        f"Request limit exceeded: You have reached the maximum stacks per tenant, {limit}. "
        "Please delete some stacks.",
    )
