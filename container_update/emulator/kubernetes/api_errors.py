# SPDX-License-Identifier: Apache-2.0
"""The errors of the API server.

Rules raise an :class:`ApiError`; the HTTP side answers with its :meth:`~ApiError.status`. Texts and
fields are those of recorded responses of a Kubernetes 1.36 API server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from container_update.emulator.json_type import Json, compact


class ApiError(Exception):
    """A request that is answered with an error.

    :param code: the HTTP status.
    :param reason: the machine-readable reason ('NotFound', 'Conflict', ...); '': it has none.
    :param message: the sentence for people.
    :param details: the Status object's ``details``; None: it has none.
    :param retry_after: seconds for the ``Retry-After`` header; None: no such header.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> Json:
        """Return the Status object for the response."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


class NoSuchPathError(ApiError):
    """No group of the server's own is at the path: the answer is plain text."""


@dataclass(frozen=True)
class FieldError:
    """An invalid field."""

    reason: str
    """The cause's reason: 'FieldValueInvalid', 'FieldValueRequired', ..."""
    field: str
    """The path: 'spec.containers[0].name'."""
    message: str
    """The sentence without the path."""

    def cause(self) -> Json:
        """Return the entry of ``details.causes``."""
        return {"reason": self.reason, "message": self.message, "field": self.field}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def invalid_value(field: str, value: Any, why: str) -> FieldError:
    """Return the error for a wrong value; *why* says what is expected."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {compact(value)}: {why}")


def required_error(field: str, why: str = "") -> FieldError:
    """Return the error for a missing field."""
    return FieldError(
        "FieldValueRequired", field, f"Required value: {why}" if why else "Required value"
    )


def forbidden_field(field: str, why: str) -> FieldError:
    """Return the error for a field that may not be set or changed."""
    return FieldError("FieldValueForbidden", field, f"Forbidden: {why}")


def unsupported_error(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Return the error for a value that is none of those *supported*."""
    known = ", ".join(compact(entry) for entry in supported)
    return FieldError(
        "FieldValueNotSupported",
        field,
        f"Unsupported value: {compact(value)}: supported values: {known}",
    )


def duplicate(field: str, value: Any) -> FieldError:
    """Return the error for a value that may appear only once in a list."""
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {compact(value)}")


def dangling(field: str, value: Any) -> FieldError:
    """Return the error for a value that names something that does not exist."""
    return FieldError("FieldValueNotFound", field, f"Not found: {compact(value)}")


def too_long(field: str, limit: int) -> FieldError:
    """Return the error for a value of more than *limit* bytes."""
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


def details_of(name: str, group: str, kind: str, uid: str = "") -> Json:
    """Return the ``details`` of a Status object."""
    details = {"name": name, "group": group, "kind": kind, "uid": uid}
    return {key: value for key, value in details.items() if value}


def _qualified_name(plural_or_kind: str, group: str) -> str:
    return f"{plural_or_kind}.{group}" if group else plural_or_kind


def not_found(group: str, plural: str, name: str) -> ApiError:
    """Return a 404: there is no object of that name."""
    message = f'{_qualified_name(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details_of(name, group, plural))


def no_such_resource() -> ApiError:
    """Return a 404: a group of the server's own serves nothing at this path."""
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, {})


def no_such_path() -> NoSuchPathError:
    """Return a 404: no group of the server's own is at this path."""
    return NoSuchPathError(404, "NotFound", "404 page not found")


def not_supported(group: str, plural: str, verb: str) -> ApiError:
    """Return a 405: the resource does not allow the verb, now or ever."""
    message = f'{verb} is not supported on resources of kind "{_qualified_name(plural, group)}"'
    return ApiError(405, "MethodNotAllowed", message, {"group": group, "kind": plural})


def already_exists(group: str, plural: str, name: str, is_deleting: bool) -> ApiError:
    """Return a 409: the name is taken."""
    message = "object is being deleted: " if is_deleting else ""
    message += f'{_qualified_name(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details_of(name, group, plural))


def conflict(group: str, kind: str, name: str, why: str) -> ApiError:
    """Return a 409: the object is not in the state that the request assumes.

    :param kind: the plural, or the kind.
    """
    message = f'Operation cannot be fulfilled on {_qualified_name(kind, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details_of(name, group, kind))


def invalid(group: str, kind: str, name: str, errors: list[FieldError]) -> ApiError:
    """Return a 422: one or more fields are invalid."""
    text = "; ".join(map(str, errors))
    if len(errors) > 1:
        text = "[" + ", ".join(map(str, errors)) + "]"
    details = details_of(name, group, kind) | {"causes": [error.cause() for error in errors]}
    return ApiError(
        422, "Invalid", f'{_qualified_name(kind, group)} "{name}" is invalid: {text}', details
    )


def forbidden(group: str, plural: str, name: str, why: str, causes: list[Json]) -> ApiError:
    """Return a 403: the request is valid but not allowed."""
    message = f'{_qualified_name(plural, group)} "{name}" is forbidden: {why}'
    details = details_of(name, group, plural) | ({"causes": causes} if causes else {})
    return ApiError(403, "Forbidden", message, details)


def not_decodable(message: str) -> ApiError:
    """Return a 500 without a reason: the server answers so to what its own code refuses late."""
    return ApiError(500, "", message)


def bad_request(message: str) -> ApiError:
    """Return a 400: the request is malformed."""
    return ApiError(400, "BadRequest", message)


def not_typed(namespace: str, name: str, version: str, kind: str, why: str) -> ApiError:
    """Return a 500: what is to be applied has fields that the kind does not have."""
    what = f"{namespace}/{name}; {version}, Kind={kind}"
    return ApiError(500, "", f"failed to create typed patch object ({what}): {why}")


def apply_conflict(found: list[tuple[str, str]]) -> ApiError:
    """Return a 409: an apply would change fields that others own.

    :param found: who owns which field.
    """
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {owner}", "field": field}
        for owner, field in found
    ]
    if len(found) == 1:
        text = f"1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    else:
        text = f"{len(found)} conflicts: " + "\n".join(
            "\n".join([f"conflicts with {owner}:", *(f"- {f}" for o, f in found if o == owner)])
            for owner in sorted({owner for owner, _ in found})
        )
    return ApiError(409, "Conflict", f"Apply failed with {text}", {"causes": causes})


def undecodable(kind: str, version: str, why: str) -> ApiError:
    """Return a 400: the body cannot be read as an object of the kind."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def expired_error(message: str) -> ApiError:
    """Return a 410: the requested version is no longer kept."""
    return ApiError(410, "Expired", message)
