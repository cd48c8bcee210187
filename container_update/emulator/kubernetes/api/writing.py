# SPDX-License-Identifier: Apache-2.0
"""Requests that write: calls of the registry for a path, a query and a body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import api_errors
from container_update.emulator.kubernetes.api import listing, patching, scale
from container_update.emulator.kubernetes.api.negotiation import flag
from container_update.emulator.kubernetes.api.paths import RequestTarget
from container_update.emulator.kubernetes.api_errors import ApiError, FieldError
from container_update.emulator.kubernetes.eviction import evict
from container_update.emulator.kubernetes.objects import is_deleting, key_of
from container_update.emulator.kubernetes.registry import Own, Registry, is_finished
from container_update.emulator.kubernetes.rules import ownership, schema, shape, warnings
from container_update.emulator.kubernetes.rules.ownership import FieldManager

_VALIDATIONS = ("Ignore", "Strict", "Warn")
_PROPAGATIONS = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True)
class WriteRequest:
    """A request whose body has been read."""

    target: RequestTarget
    query: Mapping[str, str]
    body: Any
    content_type: str = "application/json"
    user_agent: str = ""
    options_kind: str = "CreateOptions"
    """What the server calls the options in the query."""
    admit: Callable[[Json], None] = lambda _body: None
    """Raises 403 where the account may not write the body, though it may write such objects."""
    warnings: list[str] = field(default_factory=list)
    """What the response's ``Warning`` headers say."""

    def manager(self, operation: str) -> FieldManager:
        """Return who owns what the request writes."""
        name = self.query.get("fieldManager") or self.user_agent.partition("/")[0] or "unknown"
        return FieldManager(name, operation, self.target.api_version, self.target.subresource)

    def own(self, old: Json | None, new: Json) -> list[Json]:
        """Return the managed fields after the request has written *new*."""
        manager = self.manager(ownership.UPDATE)
        return ownership.after_update(self.target.resource, manager, old, new)

    def own_as_stated(self, body: Json) -> Own:
        """Return :meth:`own` for a body, which may itself say who owned what before."""
        stated = (body.get("metadata") or {}).get("managedFields")

        def own(old: Json | None, new: Json) -> list[Json]:
            if old is not None and stated is not None:
                old = {**old, "metadata": {**old["metadata"], "managedFields": stated}}
            return self.own(old, new)

        return own

    def unknown_fields(self, body: Json) -> str:
        """Return what is wrong with the fields of a body under ``fieldValidation=Strict``.

        Without it the server warns, unless it is told to ignore them.
        """
        stated = self.query.get("fieldValidation") or "Warn"
        if stated not in _VALIDATIONS:
            error = api_errors.unsupported_error("fieldValidation", stated, ("", *_VALIDATIONS))
            raise self.invalid_options(error)
        target = self.target
        if stated == "Ignore" or target.subresource not in ("", "status"):
            return ""
        paths = schema.unknown(target.resource, body)
        problems = [f'unknown field "{path}"' for path in paths]
        if stated == "Strict" and problems:
            return f"strict decoding error: {', '.join(problems)}"
        self.warnings.extend(problems)
        return ""

    @property
    def dry_run(self) -> bool:
        """True for ``dryRun=All``; raises 422 for any other value."""
        return self.is_dry_run([self.query["dryRun"]] if self.query.get("dryRun") else [])

    def is_dry_run(self, stated: list[str]) -> bool:
        """Return whether the options say ``All``; raise 422 where they say something else."""
        if any(value != "All" for value in stated):
            raise self.invalid_options(api_errors.unsupported_error("dryRun", stated, ["All"]))
        return bool(stated)

    def invalid_options(self, *errors: FieldError) -> ApiError:
        """Return the 422 for wrong options of the request."""
        return api_errors.invalid("meta.k8s.io", self.options_kind, "", list(errors))


def create(registry: Registry, request: WriteRequest) -> tuple[int, Json]:
    """Carry out a POST and return the status and the body of the response."""
    target, body = request.target, _checked_object_in(request)
    key, space = target.resource.key, target.space
    if target.subresource == "eviction":
        stated = (body.get("metadata") or {}).get("name")
        if stated != target.name:
            raise api_errors.bad_request(f"the name in the body ({stated}) is not that of the path")
        return 201, evict(registry, space, target.name, body, dry_run=request.dry_run)
    if target.subresource == "binding":
        return 201, bind(registry, space, {**body, "metadata": {"name": target.name}})
    if target.name or (target.resource.namespaced and not space):
        raise not_allowed("POST")
    request.admit(body)
    return 201, registry.create(key, space, body, own=request.own, dry_run=request.dry_run)


def bind(registry: Registry, namespace: str, body: Json) -> Json:
    """Carry out a Binding of a pod to a node and return the response."""
    name = (body.get("metadata") or {}).get("name", "")
    bound = {"spec": {"nodeName": (body.get("target") or {}).get("name", "")}}
    registry.update("pods", namespace, name, bound, subresource="binding")
    return success()


def replace(registry: Registry, request: WriteRequest) -> tuple[int, Json]:
    """Carry out a PUT and return the status and the body of the response."""
    body = _checked_object_in(request)
    if not request.target.subresource:  # read before the stored object is looked at
        shape.read(request.target.resource, body)
    return _replace(registry, request, body)


def _replace(
    registry: Registry, request: WriteRequest, body: Json, own: Own | None = None
) -> tuple[int, Json]:
    target = request.target
    if not target.name:
        raise not_allowed("PUT")
    if target.subresource == "scale":
        return 200, scale.write(registry, target, body, request.own, dry_run=request.dry_run)
    request.admit(body)
    key, below = target.resource.key, target.subresource
    options: Json = {"subresource": below, "dry_run": request.dry_run}
    if not below:
        options["own"] = own or request.own_as_stated(body)
    return 200, registry.update(key, target.space, target.name, body, **options)


def patch(registry: Registry, request: WriteRequest) -> tuple[int, Json]:
    """Carry out a PATCH and return the status and the body of the response."""
    target = request.target
    if not target.name:
        raise not_allowed("PATCH")
    patching.check_type(target.resource, request.content_type)
    if request.content_type == patching.APPLY_PATCH:
        return _apply(registry, request)
    base = registry.require(target.resource.key, target.space, target.name)
    if target.subresource == "scale":
        base = scale.of(base)
    patched = patching.apply(target.resource, request.content_type, base, request.body)
    if problem := request.unknown_fields(patched):
        error = api_errors.invalid_value("patch", request.body, problem)
        raise api_errors.invalid("", "", "", [error])
    uid = (patched.get("metadata") or {}).get("uid", "")
    if not target.subresource and uid != base["metadata"]["uid"]:
        kind = target.resource
        error = api_errors.invalid_value("metadata.uid", uid, "field is immutable")
        raise api_errors.invalid(kind.group, kind.kind, target.name, [error])
    return _replace(registry, request, patched)


def _apply(registry: Registry, request: WriteRequest) -> tuple[int, Json]:
    """Carry out a server-side apply."""
    target, query = request.target, request.query
    kind, name = target.resource, target.name
    if not query.get("fieldManager"):
        why = "is required for apply patch"
        error = api_errors.required_error("fieldManager", why)
        raise api_errors.invalid("meta.k8s.io", "PatchOptions", "", [error])
    applied = {**_object_in(request)}
    applied["metadata"] = {"name": name, **(applied.get("metadata") or {})}
    if problem := ownership.undeclared_field(kind, applied):
        raise api_errors.not_typed(target.space, name, target.api_version, kind.kind, problem)
    applied, manager = shape.read(kind, applied), request.manager(ownership.APPLY)

    def own(old: Json | None, _new: Json) -> list[Json]:
        return ownership.after_apply(kind, manager, old, applied)

    live = registry.get(kind.key, target.space, name)
    if live is None:
        request.admit(applied)
        options: Json = {"own": own, "dry_run": request.dry_run}
        return 201, registry.create(kind.key, target.space, applied, **options)
    found = ownership.conflicts(kind, manager, live, applied)
    if found and not flag(query, "force"):
        raise api_errors.apply_conflict([(str(each.manager), each.field) for each in found])
    return _replace(registry, request, ownership.merge(kind, manager, live, applied), own)


def delete(registry: Registry, request: WriteRequest) -> tuple[int, Json]:
    """Carry out a DELETE of one object and return the status and the body of the response."""
    target = request.target
    if target.subresource:
        raise not_allowed("DELETE")
    options = _delete_options(request)
    last = registry.delete(target.resource.key, target.space, target.name, **options)
    is_held = is_deleting(last) and not is_finished(target.resource, last)
    if target.resource.returns_deleted or is_held:
        return 200, last
    kind, uid = target.resource, last["metadata"]["uid"]
    return 200, success(api_errors.details_of(target.name, kind.group, kind.plural, uid))


def delete_collection(registry: Registry, request: WriteRequest) -> tuple[int, Json]:
    """Carry out a DELETE of a collection and return the status and the list of objects."""
    target = request.target
    if "deletecollection" not in target.resource.verbs:
        raise not_allowed("DELETE")
    options = _delete_options(request)
    selected = listing.selector(target, request.query)
    key = target.resource.key
    chosen = registry.list(key, target.namespace, selected)
    items = [registry.delete(key, *key_of(item), **options) for item in chosen]
    return 200, {
        "kind": target.resource.list_kind,
        "apiVersion": target.api_version,
        "metadata": {"resourceVersion": registry.resource_version},
        "items": [without_kind(item) for item in items],
    }


def without_kind(item: Json) -> Json:
    """Return an object as it is in a list, whose kind says what it has."""
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


def success(details: Json | None = None) -> Json:
    """Return the Status object of a success."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return body | ({"details": details} if details else {})


def _checked_object_in(request: WriteRequest) -> Json:
    body, kind = _object_in(request), request.target.resource
    stated, expected = body.get("apiVersion"), request.target.api_version
    if stated and stated != expected and request.target.subresource in ("", "status"):
        raise api_errors.bad_request(
            f"the API version in the data ({stated}) does not match the expected API version "
            f"({expected})"
        )
    if problem := request.unknown_fields(body):
        raise api_errors.undecodable(kind.kind, kind.versions[0], problem)
    if not request.target.subresource and not kind.custom:
        request.warnings.extend(warnings.of(body))
    return body


def _object_in(request: WriteRequest) -> Json:
    if not isinstance(request.body, dict):
        kind = request.target.resource.kind
        raise api_errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): it is not an object"
        )
    return request.body


def _delete_options(request: WriteRequest) -> Json:
    """Return the options of a deletion: the body's, or the query's where there is no body.

    An API server reads the query of a DELETE only where the body is empty (k8s.io/apiserver,
    ``endpoints/handlers/delete.go``): a ``dryRun`` beside a body is not seen, and the object goes.
    """
    body, query = request.body, request.query
    if body is not None:
        options = _options_in(body)
        dry_run = request.is_dry_run(list(options.get("dryRun") or ()))
    else:
        options = dict(query)
        if "orphanDependents" in query:
            options["orphanDependents"] = flag(query, "orphanDependents")
        dry_run = request.dry_run
    preconditions = options.get("preconditions") or {}
    grace, propagation = options.get("gracePeriodSeconds"), options.get("propagationPolicy")
    orphan = options.get("orphanDependents")
    if propagation not in (None, *_PROPAGATIONS):
        error = api_errors.unsupported_error(
            "propagationPolicy", propagation, (*_PROPAGATIONS, "nil")
        )
        raise request.invalid_options(error)
    if propagation is not None and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        raise request.invalid_options(
            api_errors.invalid_value("propagationPolicy", propagation, why)
        )
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    return {
        "uid": preconditions.get("uid"),
        "resource_version": preconditions.get("resourceVersion"),
        "grace_seconds": None if grace is None else int(grace),
        "propagation": propagation,
        "dry_run": dry_run,
    }


def _options_in(body: Any) -> Json:
    if not isinstance(body, dict):
        raise api_errors.bad_request("couldn't get version/kind: the body is not an object")
    kind = body.get("kind", "DeleteOptions")
    if kind != "DeleteOptions":
        raise api_errors.bad_request(f'no kind "{kind}" is registered as options of a deletion')
    return body


def not_allowed(verb: str) -> ApiError:
    """Return a 405: the path does not support the verb."""
    return ApiError(
        405,
        "MethodNotAllowed",
        f"the server does not allow this method ({verb}) on the requested resource",
        {},
    )
