# SPDX-License-Identifier: Apache-2.0
"""Access control: bearer tokens, and the rules of the Roles that are bound to their owners.

The administrator may do everything. Any other token belongs to a service account, which may do what
Roles and ClusterRoles in the cluster grant it. Source: Kubernetes documentation, "Using RBAC
Authorization", and the API reference of rbac.authorization.k8s.io/v1 and TokenRequest.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api.negotiation import flag
from container_update.emulator.kubernetes.api.paths import RequestTarget
from container_update.emulator.kubernetes.api_errors import ApiError, details_of
from container_update.emulator.kubernetes.registry import Registry

ADMINISTRATOR = "kubernetes-admin"

_ACCOUNT = "system:serviceaccount:"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "HEAD": "get"}
_TOKEN_SECONDS = 3600


@dataclass(frozen=True)
class RequestAttributes:
    """The attributes of a request that rules are compared with."""

    verb: str
    group: str
    resource: str
    """The plural, with its subresource: 'pods', 'pods/eviction'."""
    namespace: str
    name: str

    @classmethod
    def of(cls, method: str, target: RequestTarget, query: Mapping[str, str]) -> RequestAttributes:
        """Return the attributes of a request; a Namespace counts as within itself."""
        resource, space = target.resource, target.space
        if resource.plural == "namespaces" and not resource.group:
            space = target.name
        plural = resource.plural + (f"/{target.subresource}" if target.subresource else "")
        return cls(_verb(method, target.name, query), resource.group, plural, space, target.name)

    @classmethod
    def of_unknown(
        cls, method: str, path: str, query: Mapping[str, str]
    ) -> RequestAttributes | None:
        """Return the attributes of a request for a kind that is not served; None: it names none."""
        parts = [part for part in path.split("/") if part]
        before = {"api": 2, "apis": 3}.get(parts[0] if parts else "", 0)
        if not before or len(parts) <= before:
            return None
        group = "" if before == 2 else parts[1]
        rest, space = parts[before:], ""
        if rest[0] == "namespaces" and len(rest) > 2:
            space, rest = rest[1], rest[2:]
        plural, name, below = [*rest, "", ""][:3]
        verb = _verb(method, name, query)
        return cls(verb, group, f"{plural}/{below}" if below else plural, space, name)

    def is_granted_by(self, rule: Json) -> bool:
        """Return whether one rule of a Role allows the request."""
        subresource = self.resource.partition("/")[2]
        resources = {"*", self.resource, *([f"*/{subresource}"] if subresource else [])}
        names = rule.get("resourceNames") or ()
        return (
            not resources.isdisjoint(rule.get("resources") or ())
            and not {"*", self.verb}.isdisjoint(rule.get("verbs") or ())
            and not {"*", self.group}.isdisjoint(rule.get("apiGroups") or ())
            and (not names or self.name in names)
        )

    def forbidden(self, user: str) -> ApiError:
        """Return the server's 403 for the request."""
        plural = self.resource.partition("/")[0]
        qualified = f"{plural}.{self.group}" if self.group else plural
        subject = f'{qualified} "{self.name}"' if self.name else qualified
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        message = (
            f'{subject} is forbidden: User "{user}" cannot {self.verb} resource "{self.resource}" '
            f'in API group "{self.group}" {where}'
        )
        details = details_of(self.name, self.group, plural)
        return ApiError(403, "Forbidden", message, details)


def _verb(method: str, name: str, query: Mapping[str, str]) -> str:
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    if method != "GET":
        return _VERBS.get(method, method.lower())
    if flag(query, "watch"):
        return "watch"
    return "get" if name else "list"


@dataclass
class Access:
    """The tokens of a cluster and the rights of their owners.

    :param registry: holds the ServiceAccounts, Roles and bindings.
    :param token: the administrator's token.
    """

    registry: Registry
    token: str
    _accounts: dict[str, str] = field(default_factory=dict, init=False)
    """Token to the user name of its service account."""

    def user(self, authorization: str | None) -> str:
        """Return the owner of the token in an Authorization header; raise 401 without one."""
        scheme, _, token = (authorization or "").partition(" ")
        return self.owner(token if scheme == "Bearer" else "")

    def owner(self, token: str) -> str:
        """Return the owner of a token; raise 401 for an unknown one."""
        if secrets.compare_digest(token.encode(), self.token.encode()):
            return ADMINISTRATOR
        user = self._accounts.get(token)
        if user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return user

    def check(self, user: str, attributes: RequestAttributes) -> None:
        """Raise 403 unless the user may do it."""
        if not any(
            attributes.is_granted_by(rule) for rule in self.rules(user, attributes.namespace)
        ):
            raise attributes.forbidden(user)

    def rules(self, user: str, namespace: str) -> Iterator[Json]:
        """Yield the rules for the user in a namespace ('': for objects without one)."""
        if user == ADMINISTRATOR:
            yield {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        yield from self._bound(user, namespace)

    def issue(self, target: RequestTarget, request: Json) -> Json:
        """Return the answer to a TokenRequest for a service account; raise 404 without one."""
        self.registry.require("serviceaccounts", target.space, target.name)
        token = secrets.token_urlsafe(24)
        self._accounts[token] = f"{_ACCOUNT}{target.space}:{target.name}"
        spec = request.get("spec") or {}
        seconds = int(spec.get("expirationSeconds") or _TOKEN_SECONDS)
        end = datetime.now(timezone.utc) + timedelta(seconds=seconds)
        status = {"token": token, "expirationTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ")}
        metadata = {"name": target.name, "namespace": target.space}
        head = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        return {**head, "metadata": metadata, "spec": spec, "status": status}

    def _bound(self, user: str, namespace: str) -> Iterator[Json]:
        """Yield the rules of every Role that is bound to the user."""
        bindings = [("", binding) for binding in self.registry.list("clusterrolebindings")]
        if namespace:
            local = self.registry.list("rolebindings", namespace)
            bindings += [(namespace, binding) for binding in local]
        for space, binding in bindings:
            if any(_is_user(user, subject, space) for subject in binding.get("subjects") or ()):
                role = self.role(binding["roleRef"], space)
                yield from (role or {}).get("rules") or ()

    def role(self, reference: Json, namespace: str) -> Json | None:
        """Return the Role or ClusterRole that a binding of the namespace refers to."""
        if reference["kind"] == "ClusterRole":
            return self.registry.get("clusterroles", "", reference["name"])
        return self.registry.get("roles", namespace, reference["name"])


def _is_user(user: str, subject: Json, namespace: str) -> bool:
    """Return whether a binding's subject is this user."""
    if subject.get("kind") == "ServiceAccount":
        space = subject.get("namespace") or namespace
        return user == f"{_ACCOUNT}{space}:{subject.get('name')}"
    return subject.get("kind") == "User" and subject.get("name") == user
