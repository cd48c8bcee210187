# SPDX-License-Identifier: Apache-2.0
"""How an API server is reached: address, TLS, and a login of now, from a kubeconfig or a pod.

It is read as often as the login is got: each time the files are read anew, and a plugin runs again.
Only a login of an ``auth-provider`` needs the client's own library, which takes longer to import
than a small update takes in all.

Source: Kubernetes documentation, "Organizing Cluster Access Using kubeconfig Files", and the
reference of ``kubeconfig (v1)``.
"""

from __future__ import annotations

import base64
import ipaddress
import logging
import math
import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from container_update.cluster import kubeconfig as kubeconfigs
from container_update.cluster.credentials import (
    basic,
    checked_url,
    header_value,
    is_loopback,
    private_file,
)
from container_update.cluster.login import exec_plugin
from container_update.cluster.responses import timely
from container_update.model.cluster import ClusterContext
from container_update.model.errors import ClusterError
from container_update.model.options import Options

_CONNECTIONS = 32
"""That are kept: for the concurrent requests of an operation, and its watches."""
_AUTHORITY, _CERTIFICATE, _KEY = "certificate-authority", "client-certificate", "client-key"


def constant(header: str) -> Callable[[], str]:
    """Return what gives this header to each request."""
    return lambda: header


@dataclass(frozen=True)
class Configuration:
    """How an API server is reached, and by whom."""

    host: str
    authorization: Callable[[], str]
    """Returns the value of the header; asked for before each request."""
    verify_ssl: bool = True
    ssl_ca_cert: str | None = None
    """A file; or, in place of it,"""
    authority: str | None = None
    """a text with certificates, PEM."""
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None
    """In the server's certificate, where it is not the host's."""
    proxy: str | None = None
    """None: that of the environment."""
    own_files: tuple[Path, ...] = ()
    """Those of these files that were made for it: they exist until they are loaded."""

    def connections(self) -> Any:
        """Return a pool of connections to the server; the files that were made for it are gone."""
        import urllib3  # noqa: PLC0415, heavy

        how: dict[str, Any] = {
            "cert_reqs": "CERT_REQUIRED" if self.verify_ssl else "CERT_NONE",
            "ssl_context": self._tls(),
            "maxsize": _CONNECTIONS,
        }
        if self.server_name:
            how["server_hostname"] = self.server_name
        proxy = self.proxy or _proxy_for(self.host)
        if not proxy:
            return timely(urllib3.PoolManager(**how))
        if proxy.startswith("socks"):
            from urllib3.contrib.socks import SOCKSProxyManager  # noqa: PLC0415

            return timely(SOCKSProxyManager(proxy, **how))
        return timely(urllib3.ProxyManager(proxy, **how))

    def _tls(self) -> ssl.SSLContext:
        """Return what verifies the server, and shows the client certificate."""
        from urllib3.util.ssl_ import create_urllib3_context  # noqa: PLC0415, heavy

        context = create_urllib3_context(
            cert_reqs=ssl.CERT_REQUIRED if self.verify_ssl else ssl.CERT_NONE
        )
        try:
            if self.ssl_ca_cert or self.authority:
                context.load_verify_locations(self.ssl_ca_cert, cadata=self.authority)
            else:
                context.load_default_certs()
            if self.cert_file:  # a key with a passphrase is refused, and nothing asks for it
                context.load_cert_chain(self.cert_file, self.key_file, lambda: b"")
        except (OSError, ValueError) as error:  # ValueError: a text that is no PEM
            reason = getattr(error, "reason", "") or type(error).__name__
            raise ClusterError(
                f"{self.host}: expected certificates of authorities, and a client certificate with "
                f"its key, as PEM: {reason}: correct the kubeconfig, or the VIM's ssl_ca_cert"
            ) from error
        finally:
            self.remove_files()
        return context

    def remove_files(self) -> None:
        """Remove the files that were made for it."""
        for path in self.own_files:
            path.unlink(missing_ok=True)


def _proxy_for(url: str) -> str | None:
    """Return the proxy of the environment for a server; None: it is reached directly, as one on
    this host is, which kubectl does too (golang.org/x/net/http/httpproxy)."""
    from urllib.request import getproxies  # noqa: PLC0415, heavy

    proxies, parts = getproxies(), urlsplit(url)
    if is_loopback(parts.hostname or ""):
        return None
    excepted = (each.strip().lower() for each in proxies.get("no", "").split(","))
    if any(_is_excepted(parts.hostname or "", each) for each in excepted if each):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def _is_excepted(host: str, excepted: str) -> bool:
    """Tell whether an item of NO_PROXY is about a host: ``*``, a domain, or a network."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(excepted, strict=False)
    except ValueError:
        domain = excepted.partition(":")[0].lstrip(".")
        return excepted == "*" or host == domain or host.endswith(f".{domain}")


def read(
    files: Sequence[Path], name: str | None, options: Options
) -> tuple[Configuration, ClusterContext]:
    """Read kubeconfig files, or what a pod has; return the configuration and the context.

    :param name: of the context; None: the current one.
    :raises ClusterError: there is no usable configuration.
    """
    if files:
        configuration, context = _of_files(files, name, options)
    elif name:
        raise ClusterError(f"there is no kubeconfig, and so no context {name}: name a file")
    else:
        configuration = _of_pod()
        context = ClusterContext("", namespace=kubeconfigs.namespace_of_pod() or "default")
    if options.insecure_skip_tls_verify:
        configuration = replace(configuration, verify_ssl=False)
    return configuration, context


def _of_pod() -> Configuration:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
    token, authority = (kubeconfigs.SERVICE_ACCOUNT / name for name in ("token", "ca.crt"))
    if not host or not port or not token.is_file() or not authority.is_file():
        variable = os.environ.get("KUBECONFIG")
        where = f"{variable}, which $KUBECONFIG names" if variable else kubeconfigs.DEFAULT
        raise ClusterError(
            f"there is no kubeconfig {where}, nor a service account of a pod: name one that exists"
        )
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    bearer = constant(f"Bearer {_text(token, str(token))}")
    return Configuration(url, bearer, ssl_ca_cert=str(authority))


def _of_files(
    files: Sequence[Path], name: str | None, options: Options
) -> tuple[Configuration, ClusterContext]:
    kubeconfig = kubeconfigs.read(files)
    context, cluster, user = kubeconfig.parts(name)
    host = checked_url(cluster.text("server"), "the server of the kubeconfig").rstrip("/")
    its, fields, place = cluster.absolute(), user.absolute() if user else {}, context.place
    if user:
        place, fields = user.place, _with_login(user, fields, cluster, options)
    authorization = constant(_authorization(fields, place))
    authority, made = _inside(its, _AUTHORITY, cluster.place), list[Path]()
    try:
        configuration = Configuration(
            host,
            authorization,
            not its.get("insecure-skip-tls-verify"),
            None if authority else _file(its, _AUTHORITY, cluster.place, made),
            authority,
            _file(fields, _CERTIFICATE, place, made),
            _file(fields, _KEY, place, made),
            its.get("tls-server-name"),
            its.get("proxy-url"),
            tuple(made),
        )
    except ClusterError:
        for path in made:
            path.unlink()
        raise
    return configuration, kubeconfig.context(name)


def _with_login(
    user: kubeconfigs.Entry, fields: dict[str, Any], cluster: kubeconfigs.Entry, options: Options
) -> dict[str, Any]:
    """Return a user with its login; as for kubectl: a file, then the token, then the plugin."""
    if fields.get("auth-provider"):
        return fields | {"token": _of_provider(user, cluster)}
    if path := fields.get("tokenFile"):
        return fields | {"token": _text(Path(path), f"{user.place}.tokenFile")}
    if fields.get("exec") and not fields.get("token"):
        return fields | exec_plugin.fetch(user, cluster, options.request_timeout)
    return fields


def _of_provider(user: kubeconfigs.Entry, cluster: kubeconfigs.Entry) -> str:
    """Return the token of an ``auth-provider``, which is got again where it has expired."""
    from kubernetes import client, config  # noqa: PLC0415, heavy

    loader: Any = config
    configuration: Any = client.Configuration()
    document = {
        "current-context": "its",
        "contexts": [{"name": "its", "context": {"cluster": "its", "user": "its"}}],
        "clusters": [{"name": "its", "cluster": {"server": cluster.text("server")}}],
        "users": [{"name": "its", "user": {"auth-provider": user.body["auth-provider"]}}],
    }
    try:
        loader.load_kube_config_from_dict(document, "its", configuration, persist_config=False)
    except (config.ConfigException, ValueError, KeyError):  # its text may have a credential
        raise _unusable(f"{user.place}.auth-provider", "no token can be got") from None
    # it is the only one; its name is BearerToken since 36 of the library, and was authorization
    return str(next(iter(configuration.api_key.values()), "")).partition(" ")[2]


def _authorization(fields: Mapping[str, Any], place: str) -> str:
    """Return the header of a user's fields."""
    if fields.get("token"):
        return f"Bearer {fields['token']}"
    if fields.get("username"):
        if not fields.get("password"):
            raise _unusable(f"{place}.password", "a username has a password")
        return basic(fields["username"], fields["password"])
    return ""


def _file(fields: Mapping[str, Any], name: str, place: str, made: list[Path]) -> str | None:
    """Return the file of a certificate or a key; one *made* here from the kubeconfig is added."""
    if text := _inside(fields, name, place):
        made.append(private_file(text))
        return str(made[-1])
    path = fields.get(name)
    if path and not os.path.isfile(path):
        raise _unusable(f"{place}.{name}", "there is no such file")
    return path


def _inside(fields: Mapping[str, Any], name: str, place: str) -> str | None:
    """Return the certificate or the key that is in the kubeconfig itself."""
    try:
        return base64.b64decode(fields.get(f"{name}-data") or "").decode("ascii") or None
    except ValueError:
        raise _unusable(f"{place}.{name}-data", "expected PEM in base64") from None


def _text(path: Path, place: str) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise _unusable(place, "it cannot be read") from None


def _unusable(place: str, cause: str) -> ClusterError:
    return ClusterError(f"no usable configuration: {place}: {cause}: correct the kubeconfig")


# --- another login ------------------------------------------------------------------------------
# Tokens and certificates live for minutes or hours, an update of many pods may take longer. A 401
# is the one sign that holds for every kind of login: nothing looks at the time when one expires.

LOG = logging.getLogger(__name__)

_PAUSE = 10.0
"""After how many seconds a login is got again that was of no use when it was got the last time, so
that of an account that was locked not every request starts a plugin."""


@dataclass(frozen=True, eq=False)
class Login:
    """What the server knows us by."""

    configuration: Configuration
    pool: Any
    """The connections: a client certificate belongs to a connection."""

    @classmethod
    def of(cls, configuration: Configuration) -> Login:
        """Return the login of a configuration, with connections of its own."""
        return cls(configuration, configuration.connections())

    def headers(self, *, has_body: bool) -> dict[str, str]:
        """Return the headers of a request."""
        headers = {"Accept": "application/json", "User-Agent": "container-update"}
        if has_body:
            headers["Content-Type"] = "application/json"
        if credentials := self.configuration.authorization():
            headers["authorization"] = header_value(credentials)
        return headers

    def close(self) -> None:
        """Close the connections."""
        self.pool.clear()


@dataclass(frozen=True, eq=False)
class ClientLogin(Login):
    """The login of a ``kubernetes.client.ApiClient``, which its owner configured and closes."""

    client: Any

    @classmethod
    def of_client(cls, client: Any) -> ClientLogin:
        """Return the login of a client."""
        its = client.configuration

        def authorization() -> str:
            settings = its.auth_settings().values()  # runs the hook that refreshes a token
            return next((each["value"] for each in settings if each["in"] == "header"), "")

        host = checked_url(its.host, "the host of the api_client").rstrip("/")
        configuration = Configuration(host, authorization, bool(its.verify_ssl))
        return cls(configuration, client.rest_client.pool_manager, client)

    def headers(self, *, has_body: bool) -> dict[str, str]:
        """Return the headers of a request, the client's own ones among them."""
        return {**self.client.default_headers, **super().headers(has_body=has_body)}

    def close(self) -> None:
        """Leave the connections to their owner."""


@dataclass(eq=False)
class Logins:
    """The login in use, and how to get another, one for all threads that are refused."""

    current: Login
    renew: Callable[[], Login] | None
    """Gets another; None: there is only this one."""
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _before: list[Login] = field(default_factory=list, init=False)
    _accepted: Login | None = field(default=None, init=False)
    """The last one that the server has accepted."""
    _asked: float = field(default=-math.inf, init=False)
    """When another was asked for."""

    def close(self) -> None:
        """Close all logins."""
        for login in [*self._before, self.current]:
            login.close()

    def send(self, what: str, request: Callable[[Login], Any]) -> Any:
        """Send a request; once more, with another login, where the answer is 401.

        A request that is answered so has changed nothing, whatever its method is.

        :param what: the request, for messages.
        :raises ClusterError: it could not be sent, or no other login be got.
        """
        used = self.current
        response = request(used)
        if response.status == 401 and (other := self._other(used, what)) is not used:
            response.close()
            used, response = other, request(other)
        if response.status != 401:
            self._accepted = used
        return response

    def _other(self, refused: Login, what: str) -> Login:
        """Return another login; the refused one where there is none."""
        with self._lock:
            helps = self._accepted is refused or self.clock() - self._asked >= _PAUSE
            if self.current is refused and self.renew and helps:
                LOG.info("%s: the API server answered 401: the credentials are got again", what)
                self._asked, self._accepted = self.clock(), None
                try:
                    self.current = self.renew()
                    self._before.append(refused)
                except ClusterError as error:
                    status = None if error.transient else 401
                    raise ClusterError(
                        f"{what}: the API server answered 401, and the credentials could not be "
                        f"got again: {error}",
                        status=status,
                        transient=error.transient,
                    ) from error
            return self.current
