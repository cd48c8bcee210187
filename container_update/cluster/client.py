# SPDX-License-Identifier: Apache-2.0
"""The API server: plain dicts in and out.

Requests go through a pool of connections as JSON, never through the models of a client, so that no
field is lost that its version does not know.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from container_update.cluster import journal_key, responses
from container_update.cluster import kubeconfig as kubeconfigs
from container_update.cluster.credentials import basic, checked_url, header_value, pem
from container_update.cluster.keeping import stretch_password
from container_update.cluster.login import client_configuration
from container_update.cluster.login.client_configuration import ClientLogin, Login, Logins
from container_update.cluster.oidc import OidcToken
from container_update.cluster.rights import allows, missing_rights
from container_update.model.cluster import (
    ClusterContext,
    DryRun,
    DryRunVerb,
    Keep,
    Listing,
    Right,
    WatchEvent,
)
from container_update.model.errors import ClusterError, NoDryRunError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.options import Options
from container_update.workloads.api_resources import Resources

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

LOG = logging.getLogger(__name__)

_REVIEWS = "authorization.k8s.io/v1"
_METHODS: Mapping[DryRunVerb, str] = {"create": "POST", "replace": "PUT"}

_PAGES = 10
"""So many times as long as one request may all pages of a list take: by default five minutes, for
which a server remembers where the next one begins."""

Query = Mapping[str, str] | None
Found = TypeVar("Found")


def connect(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    api_client: ApiClient | None = None,
    options: Options = Options(),  # noqa: B008
) -> KubernetesCluster:
    """Connect to a cluster by kubeconfig, or by the service account where we run inside one.

    >>> with connect("admin.conf", context="site-1") as cluster:  # doctest: +SKIP
    ...     plan = plan_update(request, cluster)
    >>> with connect(api_client=kubernetes.client.ApiClient()) as cluster:  # doctest: +SKIP
    ...     plan = plan_update(request, cluster)

    :param kubeconfig: the file; None: ``$KUBECONFIG``, ``~/.kube/config``, else in-cluster.
    :param context: of the kubeconfig; None: its current one.
    :param api_client: a configured client of the library ``kubernetes`` in place of both: its host,
        its connections, its headers and its login are used, and its hook that refreshes the token
        runs before each request. The caller closes it.
    :returns: the connection, to be closed after use; a context manager. Its ``context`` says which
        cluster it is, and which namespace is the default.
    :raises ClusterError: there is no usable configuration.
    """
    options = replace(options, journal_key=journal_key.key_of(options))
    if api_client is not None:
        if kubeconfig or context:
            raise ClusterError("expected a kubeconfig or an api_client, found both: pass one")
        return KubernetesCluster(ClientLogin.of_client(api_client), options)
    files = kubeconfigs.files(kubeconfig)
    configuration, chosen = client_configuration.read(files, context, options)
    access = {"kubeconfig": os.pathsep.join(map(str, files))} if files else {}
    if context or len(files) > 1:  # other programs may choose another of several files
        access["context"] = str(chosen.name)

    def renew() -> Login:
        again, _ = client_configuration.read(files, chosen.name, options)
        if again.host != configuration.host:
            again.remove_files()
            raise ClusterError(
                f"context {chosen.name}: expected the server {configuration.host} as before, found "
                f"{again.host}: begin anew with the other cluster"
            )
        return Login.of(again)

    used = replace(chosen, server=configuration.host)
    login = Login.of(configuration)
    return KubernetesCluster(login, options, renew=renew, access=access, context=used)


def connect_vim(  # noqa: PLR0913
    endpoint: str,
    *,
    bearer_token: str | None = None,
    username: str | None = None,
    password: str | None = None,
    oidc: Mapping[str, str] | None = None,
    ca_text: str | None = None,
    options: Options = Options(),  # noqa: B008
) -> KubernetesCluster:
    """Return a cluster as a VIM connection describes it.

    :param endpoint: the API server's URL.
    :param bearer_token: a token, or
    :param username: with *password*: HTTP basic authentication, or
    :param oidc: ``token_url, client_id, username, password`` and perhaps ``client_secret``: a token
        is got by the password grant (RFC 6749, 4.3) and renewed before it expires.
    :param ca_text: the CA's certificate as PEM, its line breaks perhaps turned into spaces.
    :returns: the connection; journals are signed by what only who has the credentials knows, where
        the options have no key: all hosts of a VNFM have the same credentials. A login without a
        secret signs nothing.
    :raises ClusterError: no credentials, or something that is no URL, token or certificate.
    """
    configuration = client_configuration.Configuration(
        checked_url(endpoint, "the endpoint of the VIM").rstrip("/"),
        client_configuration.constant(""),
        verify_ssl=not options.insecure_skip_tls_verify,
    )
    authority = pem(ca_text) if ca_text and configuration.verify_ssl else ""
    configuration = replace(configuration, authority=authority or None)
    renew = None
    if oidc:
        verified = configuration.verify_ssl
        token = OidcToken(oidc, authority, options.request_timeout, verified=verified)
        authorization = token.authorization

        def renew() -> Login:
            token.forget()
            return Login.of(configuration)

    elif bearer_token or username:
        header = f"Bearer {header_value(bearer_token)}" if bearer_token else ""
        authorization = client_configuration.constant(header or basic(str(username), password))
    else:
        raise ClusterError(
            f"the VIM connection to {endpoint} has no credentials: expected bearer_token, username "
            "and password, or the fields of OpenID Connect"
        )
    configuration = replace(configuration, authorization=authorization)
    login = oidc or {}
    guarded = password or login.get("password") or login.get("client_secret") or ""
    of_login = bearer_token or (guarded and stretch_password(guarded, endpoint))
    options = replace(options, journal_key=journal_key.key_of(options, of_login))
    return KubernetesCluster(Login.of(configuration), options, renew=renew)


class KubernetesCluster:
    """An API server over HTTPS; implements :class:`container_update.model.cluster.Cluster`.

    Thread-safe. Made by :func:`connect` and :func:`connect_vim`.
    """

    def __init__(
        self,
        login: Login,
        options: Options,
        *,
        renew: Callable[[], Login] | None = None,
        access: Mapping[str, str] | None = None,
        context: ClusterContext | None = None,
    ) -> None:
        configuration = login.configuration
        if not configuration.verify_ssl:
            LOG.warning(
                "the certificate of %s is not verified, as the options or the kubeconfig say: "
                "a machine in between can read and change everything",
                configuration.host,
            )
        self._host = configuration.host
        self._options = options
        self._logins = Logins(login, renew)
        self._lock = threading.Lock()
        self._resources = Resources(self._discover)
        self._watches: set[Any] = set()
        self.requests = 0
        self.access = access or {}
        self.journal_key = options.journal_key
        self.context = context or ClusterContext(configuration.host)

    def close(self) -> None:
        """End the watches and close the connections."""
        with self._lock:
            watches = list(self._watches)
        for response in watches:
            # urllib3 before 2.3 cannot wake a reader: the watch ends at its timeoutSeconds
            if hasattr(response, "shutdown"):
                with contextlib.suppress(ValueError, OSError):  # it has just ended by itself
                    response.shutdown()
        self._logins.close()

    def __enter__(self) -> KubernetesCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reading --------------------------------------------------------------------------------

    def list(self, collection: Collection, keep: Keep | None = None) -> Listing:
        """Return the objects of the collection, read in pages; see Cluster."""
        path, what = self._resources.collection_path(collection), f"list {collection}"
        version, _ = self._resources.names(collection.group, collection.kind)
        items: list[Json] = []
        query = {"limit": str(self._options.page_size), **collection.selectors}
        seconds = _PAGES * self._options.request_timeout
        end = time.monotonic() + seconds
        while True:
            if time.monotonic() > end:
                raise ClusterError(f"{what}: expected its last page within {seconds:g} seconds")
            try:
                page = self._send("GET", path, what, query=query).body
            except ClusterError as error:
                if error.status == 410 and "continue" in query:  # its version is kept no longer
                    items = []
                    del query["continue"]
                elif isinstance(error, responses.AnswerTooLargeError) and query["limit"] != "1":
                    query["limit"] = str(max(1, int(query["limit"]) // 8))
                else:
                    raise
                continue
            bodies, resource_version, query["continue"] = responses.objects(
                what, page, version, collection.kind
            )
            bodies.reverse()
            while bodies:  # a body that is dropped, or a part of it, takes no memory from here on
                item = bodies.pop()
                if (kept := keep(item) if keep else item) is not None:
                    items.append(kept)
            if not query["continue"]:
                return Listing(tuple(items), resource_version)

    def get(self, key: ObjectKey) -> Json | None:
        """Return the object, or None where there is none, or the server does not serve its kind."""
        what = f"read {key}"
        try:
            body = self._send("GET", self._resources.object_path(key), what).body
        except ClusterError as error:
            if error.status != 404:
                raise
            return None
        version, _ = self._resources.names(key.group, key.kind, key.api_version)
        return responses.check_object(what, body, version, key.kind)

    def watch(
        self, collection: Collection, resource_version: str, seconds: float
    ) -> Iterator[WatchEvent]:
        """Yield events after *resource_version* until *seconds* are over or the connection ends."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(seconds))),
            **collection.selectors,
        }
        what = f"watch {collection}"
        version, _ = self._resources.names(collection.group, collection.kind)
        path = self._resources.collection_path(collection)
        response = self._send("GET", path, what, query=query, stream_seconds=seconds + 10)
        with self._lock:
            self._watches.add(response)
        try:
            yield from responses.events(what, response, version, collection.kind, seconds)
        finally:
            with self._lock:
                self._watches.discard(response)
            response.close()

    def log(self, pod: ObjectKey, container: str, *, previous: bool, lines: int, limit: int) -> str:
        """Return the end of a container's log; see Cluster."""
        query = {"container": container, "tailLines": str(lines), "limitBytes": str(limit)}
        query |= {"previous": "true"} if previous else {}
        what = f"read the log of {pod}, container {container}"
        answer = self._send("GET", f"{self._resources.object_path(pod)}/log", what, query=query)
        return str(answer.data[:limit], "utf-8", "replace")

    def version(self) -> str:
        """Return the server's version: ``v1.36.2``."""
        answer = self._send("GET", "/version", "read the version of the API server")
        return str(answer.body.get("gitVersion"))

    def api_versions(self) -> tuple[str, ...]:
        """Return all that the server serves: ``apps/v1``, ``apps/v1/Deployment``."""
        return self._resources.everything()

    def look_up_versions(self, group: str, kind: str) -> frozenset[str]:
        """Return the apiVersions in which the server serves a kind now; see Cluster."""
        return self._resources.look_up_versions(group, kind)

    # --- writing --------------------------------------------------------------------------------

    def create(self, body: Json) -> Json:
        """Create an object; return it as the server stored it."""
        return self._send_object("create", body)

    def replace(self, body: Json) -> Json:
        """Replace the object of that name; see Cluster."""
        return self._send_object("replace", body)

    def _send_object(self, verb: DryRunVerb, body: Json) -> Json:
        method, path, what = self._write(verb, body)
        answer = self._send(method, path, what, _without_managers(body))
        return responses.check_object(what, answer.body, body["apiVersion"], body["kind"])

    def delete(
        self,
        key: ObjectKey,
        *,
        uid: str | None = None,
        version: str | None = None,
        orphans: bool = False,
    ) -> None:
        """Delete it; its dependents in the background. See Cluster for the preconditions."""
        path, what = self._resources.object_path(key), f"delete {key}"
        self._send_if_there("DELETE", path, what, _delete_options(uid, version, orphans=orphans))

    def dry_run(self, verb: DryRunVerb, body: Json) -> DryRun:
        """Return what the server would do with a write; see Cluster."""
        method, path, what = self._write(verb, body)
        key = ObjectKey.of(body)
        if not self._resources.declares_dry_run(key.group, key.kind, key.api_version, method):
            raise NoDryRunError(
                f"{what} as a dry run: expected a server that declares dry run for {key.kind} "
                f"of group {key.group}, found one that does not: nothing was sent"
            )
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = self._send(method, path, what, _without_managers(body), query)
        stored = responses.check_object(what, answer.body, body["apiVersion"], body["kind"])
        return DryRun(stored, answer.warnings)

    def _write(self, verb: DryRunVerb, body: Json) -> tuple[str, str, str]:
        """Return the method and the path of a write, and its description."""
        key = ObjectKey.of(body, "default")
        what, stated = f"{verb} {key}", key.api_version
        version, _ = self._resources.names(key.group, key.kind, stated)
        if stated not in ("", version):
            raise ClusterError(
                f"{what}: expected a version that the API server serves ({version}), found "
                f"{stated}, which it does not: write the manifest for {version}",
                status=404,
            )
        if verb == "create":
            path = self._resources.collection_path(Collection.of(key), stated)
        else:
            path = self._resources.object_path(key)
        return _METHODS[verb], path, what

    def evict(self, key: ObjectKey, *, uid: str | None = None) -> None:
        """Request a Pod's eviction (policy/v1)."""
        metadata = {"name": key.name, "namespace": key.namespace}
        body: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        if uid is not None:
            body["deleteOptions"] = {"preconditions": {"uid": uid}}
        path = f"{self._resources.object_path(key)}/eviction"
        self._send_if_there("POST", path, f"evict {key}", body)

    # --- rights ---------------------------------------------------------------------------------

    def missing_rights(self, rights: Sequence[Right]) -> tuple[Right, ...]:
        """Return the rights that this account does not have; see Cluster."""
        return missing_rights(rights, self.rights_in)

    def rights_in(self, namespace: str) -> Callable[[Right], bool]:
        """Return what tells rights in a namespace, by one SelfSubjectRulesReview; see Cluster."""
        rules = self._rules(namespace)
        return lambda right: rules is None or self._is_allowed(right, rules)

    def _rules(self, namespace: str) -> Sequence[Json] | None:
        spec = {"namespace": namespace or "default"}
        body = {"apiVersion": _REVIEWS, "kind": "SelfSubjectRulesReview", "spec": spec}
        path = f"/apis/{_REVIEWS}/selfsubjectrulesreviews"
        what = f"ask for the rights in {f'namespace {namespace}' if namespace else 'the cluster'}"
        try:
            answer = self._send("POST", path, what, body).body
            with responses.reading(what, "a review of rights"):
                status = answer.get("status") or {}
                rules = [_rule(each) for each in status.get("resourceRules") or ()]
        except ClusterError as error:
            if error.transient:
                raise
            LOG.info("%s", error)
            return None
        return None if status.get("incomplete") else rules

    def _is_allowed(self, right: Right, rules: Sequence[Json]) -> bool:
        try:
            _, plural = self._resources.names(right.group, right.kind)
        except ClusterError as error:
            if error.status != 404:
                raise
            return True  # a kind that is not served yet: its plural is not known
        return allows(rules, right, plural)

    # --- requests -------------------------------------------------------------------------------

    def _send_if_there(self, method: str, path: str, what: str, body: Json) -> None:
        try:
            _: Json = self._send(method, path, what, body).body  # a page of a proxy is none
        except ClusterError as error:
            if error.status != 404:
                raise

    def _discover(self, path: str, what: str, read: Callable[[Json], Found]) -> Found:
        answer = self._send("GET", path, what).body
        with responses.reading(what, "a document of discovery"):
            return read(answer)

    def _send(  # noqa: PLR0913
        self,
        method: str,
        path: str,
        what: str,
        body: Json | None = None,
        query: Query = None,
        *,
        stream_seconds: float | None = None,
    ) -> Any:
        """Return an answer that is a success: an Answer, or the open response of a stream.

        :raises ClusterError: there is none, or the API server refuses.
        """

        def request(login: Login) -> Any:
            with self._lock:
                self.requests += 1
            return login.pool.request(
                method,
                f"{self._host}{path}" + (f"?{urlencode(query)}" if query else ""),
                body=None if body is None else json.dumps(body).encode(),
                headers=login.headers(has_body=body is not None),
                timeout=urllib3.Timeout(connect=limit, read=stream_seconds or limit),
                retries=False,
                redirect=False,
                preload_content=False,
            )

        import urllib3  # noqa: PLC0415

        limit = self._options.request_timeout
        try:
            response = self._logins.send(what, request)
            is_success = 200 <= response.status < 300
            if stream_seconds and is_success:
                return response
            answer = responses.read(what, response, limit)
        except urllib3.exceptions.HTTPError as error:
            raise ClusterError(
                f"{what}: cannot reach {self._host}: {responses.cause(error)}: check the address, "
                "the network and the CA certificate",
                transient=not responses.is_refused_certificate(error),
            ) from error
        if not is_success:
            responses.refuse(answer, self.context.user)
        return answer


def _rule(rule: Json) -> Json:
    """Return a rule with the lists of texts that are read."""
    names = ("verbs", "apiGroups", "resources", "resourceNames")
    return {name: frozenset(rule[name]) for name in names if rule.get(name)}


def _without_managers(body: Json) -> Json:
    """Return a request without ``managedFields``, of which a scope keeps a part alone."""
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return {**body, "metadata": metadata}


def _delete_options(uid: str | None, version: str | None, *, orphans: bool = False) -> Json:
    conditions = {"uid": uid, "resourceVersion": version}
    return {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {name: value for name, value in conditions.items() if value},
        "propagationPolicy": "Orphan" if orphans else "Background",
    }
