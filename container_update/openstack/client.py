# SPDX-License-Identifier: Apache-2.0
"""Heat, OpenStack's orchestration; the only module that imports an OpenStack library.

Plain dicts in and out, as Heat sent them. Requests go through keystoneauth1's adapter, which also
renews an expired token; openstacksdk only reads the configuration (clouds.yaml, ``OS_*``
variables, TLS). Its own stack class is not used: it cannot update what exists (PATCH) and drops
fields it does not know; python-heatclient can, but reads no clouds.yaml and brings a command line.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any
from urllib.parse import quote

import openstack.config
import requests
from keystoneauth1 import adapter, exceptions

from container_update.cluster import journal_key
from container_update.cluster.keeping import stretch_password
from container_update.cluster.responses import MALFORMED, is_refused_certificate
from container_update.cluster.retry import Retries
from container_update.model.errors import ClusterError
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.model.schema import Schema
from container_update.openstack import answers

LOG = logging.getLogger(__name__)

_TRANSIENT = frozenset({429, 500, 502, 503, 504})
_HEADERS = {"Accept": "application/json"}
"""Without it Heat answers an update in HTML or plain text."""

Guard = Callable[[], object]
"""Called before each attempt of a write; raises where this run must not write any more."""


def _allow() -> None:
    """Let every attempt through."""


def reference(stack: Mapping[str, Any]) -> str:
    """Return ``name/id`` of a stack: no other stack ever has both."""
    return f"{stack['stack_name']}/{stack['id']}"


def heat_minutes(seconds: float) -> int:
    """Return a time limit as Heat's ``timeout_mins``: whole minutes, at least one."""
    return max(1, math.ceil(seconds / 60))


@contextmanager
def connect(
    cloud: str | None = None,
    auth: Mapping[str, str] | None = None,
    *,
    options: Options = Options(),  # noqa: B008
    region: str | None = None,
    verify: bool | str = True,
) -> Iterator[Heat]:
    """Connect to the Heat of a cloud until the ``with`` block ends.

    :param cloud: its name in clouds.yaml; None: ``OS_CLOUD``, else the other ``OS_*`` variables.
    :param auth: where and as whom to ask Keystone (``auth_url``, ``username``, ``password``,
        ``project_name``, ...), as a VIM's access information has it; then no file is read.
    :param region: with *auth*: the cloud's region, where it has several.
    :param verify: with *auth*: whether certificates are checked, or the file of the authority that
        they are checked with.
    :raises ClusterError: there is no such cloud, or its description is not complete.
    """
    sources: dict[str, Any] = {"load_yaml_config": False, "load_envvars": False} if auth else {}
    selection: dict[str, Any] = {"cloud": cloud}
    if auth:
        # openstacksdk takes braces in the URL for places to fill in, with the password for example
        url = auth.get("auth_url", "").replace("{", "{{").replace("}", "}}")
        selection = {"auth": {**auth, "auth_url": url}, "region_name": region}
        selection |= {"cacert": verify} if isinstance(verify, str) else {}
    try:
        config = openstack.config.OpenStackConfig(**sources).get_one(
            verify=not options.insecure_skip_tls_verify and bool(verify), **selection
        )
        session = config.get_session()
    except (openstack.exceptions.ConfigException, exceptions.ClientException) as error:
        raise ClusterError(
            f"the access data of the OpenStack cloud{f' {cloud}' if cloud else ''} is wrong or "
            f"incomplete: {error}"
        ) from error
    if session.verify is False:
        LOG.warning(
            "the certificates of %s are not verified, as the options or the VIM's description say: "
            "a machine in between can read and change everything",
            config.auth.get("auth_url"),
        )
    session.timeout = options.request_timeout
    answers.limit(session.session, options.request_timeout)

    def client(service: str, version: str | None = None) -> adapter.Adapter:
        return adapter.Adapter(
            session,
            service_type=service,
            interface=config.get_interface(service),
            region_name=config.get_region_name(service),
            endpoint_override=config.get_endpoint(service),
            version=version,
        )

    try:
        yield Heat(
            client("orchestration"),
            client("image", "2"),
            client("compute"),
            options.retry_seconds,
            partial(_journal_key, options, auth or {}),
        )
    finally:
        session.session.close()


def _journal_key(options: Options, auth: Mapping[str, str]) -> str:
    """Return the key of this host, if need be by the credentials of a VIM; '' where it has none."""
    password = auth.get("password")
    of_login = stretch_password(password, auth.get("auth_url", "")) if password else ""
    return journal_key.key_of(options, of_login if auth else None)


class Heat:
    """Heat over HTTP. Every method may raise ClusterError.

    A stack is named by its name, or by ``name/id`` as :func:`reference` gives it.

    A request is repeated while the cloud is away or overloaded, even one that must not be carried
    out twice: Heat refuses the second one with 409, and the caller looks at the stack.
    """

    def __init__(
        self,
        heat: adapter.Adapter,
        glance: adapter.Adapter,
        nova: adapter.Adapter,
        retry_seconds: float,
        journal_key: Callable[[], str],
    ) -> None:
        self._adapter, self._glance, self._nova = heat, glance, nova
        self._names: dict[str, Any] = {}
        self._retries = Retries(retry_seconds)
        self._journal_key = journal_key
        self.requests = 0
        """How many requests were sent so far."""

    @cached_property
    def journal_key(self) -> str:
        """The key of this host, with which journals are signed; '' where it has none."""
        return self._journal_key()

    def stacks(self) -> Sequence[Json]:
        """Return the project's stacks as Heat lists them, without nested ones and those that have
        just been deleted."""
        stacks: Sequence[Json] = self._get("/stacks", answers.STACKS)["stacks"]
        return [stack for stack in stacks if stack["stack_status"] != "DELETE_COMPLETE"]

    def stack(self, stack: str) -> Json | None:
        """Return the stack, or None where there is none (deleted ones count as none)."""
        answer = self._get_unless_missing(_path(stack), answers.STACK)
        current: Json | None = answer and answer["stack"]
        is_there = current is not None and current["stack_status"] != "DELETE_COMPLETE"
        return current if is_there else None

    def template(self, stack: str) -> Json:
        """Return the template in force."""
        return self._get(_path(stack) + "/template", answers.TEMPLATE)

    def environment(self, stack: str) -> Json:
        """Return the environment in force; its ``parameters`` are those that were given."""
        return self._get(_path(stack) + "/environment", answers.ENVIRONMENT)

    def files(self, stack: str) -> dict[str, str]:
        """Return the files in force: name to content."""
        return self._get(_path(stack) + "/files", answers.FILES)

    def resources(self, stack: str, depth: int = 0) -> Sequence[Json]:
        """Return the resources, and those of nested stacks down to a depth."""
        path = f"{_path(stack)}/resources{f'?nested_depth={depth}' if depth else ''}"
        resources: Sequence[Json] = self._get(path, answers.RESOURCES)["resources"]
        return resources

    def resource(self, stack: str, name: str) -> Json | None:
        """Return a resource with its attributes, or None where there is none."""
        path = f"{_path(stack)}/resources/{quote(name, safe='')}"
        answer = self._get_unless_missing(path, answers.RESOURCE)
        resource: Json | None = answer and answer["resource"]
        return resource

    def create(self, body: Json, *, guard: Guard = _allow) -> str:
        """Begin to create a stack; return its reference."""
        answer = answers.content(self._try("POST", "/stacks", body, guard), answers.CREATED)
        return f"{body['stack_name']}/{answer['stack']['id']}"

    def update(
        self, stack: str, body: Json, *, existing: bool = False, guard: Guard = _allow
    ) -> None:
        """Begin to update a stack; *existing* keeps what the body does not mention."""
        self._try("PATCH" if existing else "PUT", _path(stack), body, guard)

    def delete(self, stack: str, *, guard: Guard = _allow) -> None:
        """Begin to delete a stack, if there is one."""
        self._send_unless({404}, "DELETE", _path(stack), guard=guard)

    def mark_unhealthy(
        self, stack: str, resource: str, reason: str, *, guard: Guard = _allow
    ) -> None:
        """Mark a resource, so that the next update of its stack replaces it."""
        path = f"{_path(stack)}/resources/{quote(resource, safe='')}"
        body = {"mark_unhealthy": True, "resource_status_reason": reason}
        self._try("PATCH", path, body, guard)

    def cancel(self, stack: str, *, guard: Guard = _allow) -> None:
        """Cancel the update that is in progress, if there is one; Heat undoes nothing."""
        ended = {400, 404, 409}
        path = _path(stack) + "/actions"
        self._send_unless(ended, "POST", path, {"cancel_without_rollback": None}, guard)

    # --- what a name in a template means ---------------------------------------------------------

    def image_id(self, name: str) -> str | None:
        """Return the id of an image by its name or its id, as a template may have either; None
        where this is not known."""
        images: list[Json] = []
        for selection in ("name=", "id=in:"):
            path = f"/images?{selection}{quote(name, safe='')}"
            images = images or self._list_once(self._glance, path, "images")
        return str(images[0]["id"]) if len(images) == 1 else None

    def image_name(self, image_id: str) -> str:
        """Return the name of an image; its id where the name is not known."""
        path = f"/images?id=in:{quote(image_id, safe='')}"
        images = self._list_once(self._glance, path, "images")
        return str(images[0].get("name") or image_id) if len(images) == 1 else image_id

    def flavour_names(self, flavour: str) -> set[str]:
        """Return the name and the id of a flavour; nothing where they are not known."""
        return {str(known[key]) for known in self._flavours(flavour) for key in ("id", "name")}

    def flavour_disk(self, flavour: str) -> int | None:
        """Return the size of a flavour's root disk in GB; None where this is not known."""
        return next((int(known["disk"]) for known in self._flavours(flavour)), None)

    def _flavours(self, flavour: str) -> list[Json]:
        known = self._list_once(self._nova, "/flavors/detail", "flavors")
        return [entry for entry in known if flavour in (entry["id"], entry["name"])]

    def _list_once(self, client: adapter.Adapter, path: str, kind: str) -> list[Json]:
        """Return a list of another service, asked for once; nothing where it cannot be had."""
        if path not in self._names:
            self.requests += 1
            try:
                answer = client.get(path, headers=_HEADERS)
                self._names[path] = answers.content(answer, answers.LISTS[kind])[kind]
            except (exceptions.ClientException, ClusterError, *MALFORMED) as error:
                LOG.info("%s cannot be looked up: %s", kind, error)
                self._names[path] = []
        entries: list[Json] = self._names[path]
        return entries

    # --- one request ----------------------------------------------------------------------------

    def _send_unless(
        self,
        nothing: Collection[int],
        method: str,
        path: str,
        body: Json | None = None,
        guard: Guard = _allow,
    ) -> requests.Response | None:
        """Send a request; return None where Heat answers with one of the statuses in *nothing*."""
        try:
            return self._try(method, path, body, guard)
        except ClusterError as error:
            if error.status not in nothing:
                raise
            return None

    def _get(self, path: str, schema: Schema) -> Json:
        return answers.content(self._try("GET", path), schema)

    def _get_unless_missing(self, path: str, schema: Schema) -> Json | None:
        answer = self._send_unless({404}, "GET", path)
        return None if answer is None else answers.content(answer, schema)

    def _try(
        self, method: str, path: str, body: Json | None = None, guard: Guard = _allow
    ) -> requests.Response:
        """Send a request, repeatedly where that may help."""

        def attempt() -> requests.Response:
            guard()
            return self._send(method, path, body)

        return self._retries.send(attempt)

    def _send(self, method: str, path: str, body: Json | None) -> requests.Response:
        what = f"{method} {path.partition('?')[0]}"
        self.requests += 1
        try:
            self._look_up_endpoint()
            answer: requests.Response = self._adapter.request(
                path, method, json=body, headers=_HEADERS, raise_exc=False
            )
        except exceptions.HttpError as error:  # from Keystone, before a request to Heat
            status = error.http_status
            raise ClusterError(
                f"Keystone refused a token for {what}: {error}: check the cloud's access data",
                status=status,
                transient=status in _TRANSIENT,
            ) from error
        except exceptions.ConnectionError as error:
            raise ClusterError(
                f"{what}: cannot reach OpenStack: {error}",
                transient=not is_refused_certificate(error),
            ) from error
        except exceptions.ClientException as error:
            raise ClusterError(f"{what}: {error}") from error
        except MALFORMED as error:  # from the library, which reads what Keystone answers
            raise ClusterError(
                f"{what}: expected a token and a catalogue of services from Keystone, found an "
                f"answer of another form ({type(error).__name__}): is its URL (auth_url) right?"
            ) from error
        if answer.status_code >= 400:
            raise _refusal(what, answer)
        return answer

    def _look_up_endpoint(self) -> None:
        """Look Heat's address up once: the adapter would do it for each request."""
        if self._adapter.endpoint_override is None:
            url = self._adapter.get_endpoint()
            self._adapter.endpoint_override = url and url.replace("%", "%%")  # it is formatted


def _path(stack: str) -> str:
    return "/stacks/" + "/".join(quote(part, safe="") for part in stack.split("/"))


def _refusal(what: str, answer: requests.Response) -> ClusterError:
    """Return Heat's own words as an error. A proxy may answer in HTML, which is left out."""
    kind, message = "", answer.reason or ""
    with suppress(ClusterError):
        error = answers.content(answer, answers.REFUSAL)["error"]
        kind, message = error["type"], error["message"]
    after = answer.headers.get("Retry-After", "")
    return ClusterError(
        f"Heat refused {what}: {answer.status_code} {kind}: {message}",
        status=answer.status_code,
        reason=kind,
        retry_after=float(after) if after.isdecimal() else None,
        transient=answer.status_code in _TRANSIENT,
    )


def state_sentence(stack: Json) -> str:
    """Return the state of a stack as a sentence, with Heat's reason."""
    return (
        f"stack {stack['stack_name']} is {stack['stack_status']}, Heat says: "
        f"{stack['stack_status_reason']}"
    )
