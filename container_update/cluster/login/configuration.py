"""Reads what the kubernetes client needs to reach a cluster: address, TLS, and a login of now.

It is read as often as the login is got: each time the files are read anew, and a plugin runs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from container_update.cluster import kubeconfig as kubeconfigs
from container_update.cluster.credentials import checked_url
from container_update.cluster.login import exec_plugin
from container_update.cluster.login.renewal import Login
from container_update.model.cluster import ClusterContext
from container_update.model.errors import ClusterError
from container_update.model.objects import Json
from container_update.model.options import Options

_OWN_LOGIN = ("auth-provider", "token", "tokenFile")
"""A user that has one of these needs no plugin."""


_CONNECTIONS = 32
"""That are kept: for the concurrent requests of an operation, and its watches."""


def new() -> Any:
    """Return a configuration of the client that says nothing yet."""
    from kubernetes import client  # noqa: PLC0415, heavy

    return client.Configuration()


def login(configuration: Any) -> Login:
    """Return the login of a configuration, with connections of its own."""
    from kubernetes.client import rest  # noqa: PLC0415

    configuration.connection_pool_maxsize = _CONNECTIONS
    return Login(configuration, rest.RESTClientObject(configuration).pool_manager)


def read(files: Sequence[Path], name: str | None, options: Options) -> tuple[Any, ClusterContext]:
    """Read kubeconfig files, or what a pod has; return the client's configuration and the context.

    :param name: of the context; None: the current one.
    :raises ClusterError: there is no usable configuration.
    """
    from kubernetes import config  # noqa: PLC0415

    loader: Any = config
    configuration = new()
    try:
        if files:
            kubeconfig = kubeconfigs.read(files)
            found = kubeconfig.context(name)
            document = _document(kubeconfig, found.name, options)
            loader.load_kube_config_from_dict(
                document, found.name, configuration, persist_config=False
            )
        elif name:
            raise ClusterError(f"there is no kubeconfig, and so no context {name}: name a file")
        else:
            loader.load_incluster_config(client_configuration=configuration)
            found = ClusterContext("", namespace=kubeconfigs.namespace_of_pod() or "default")
    except (config.ConfigException, ValueError) as error:
        where = f"in {kubeconfigs.named(files)}" if files else kubeconfigs.NOWHERE
        cause_text = str(error).partition("{")[0]  # then may come an entry, with its credentials
        raise ClusterError(
            f"no usable configuration {where}: {cause_text}: expected a kubeconfig file"
        ) from None
    except OSError as error:
        raise ClusterError(f"cannot read the kubeconfig: {error}") from error
    configuration.host = checked_url(configuration.host, "the server of the kubeconfig")
    if options.insecure_skip_tls_verify:
        configuration.verify_ssl = False
    return configuration, found


def _document(kubeconfig: kubeconfigs.Kubeconfig, name: str | None, options: Options) -> Json:
    """Return the kubeconfig of one context, with a login in place of the plugin that fetches it."""
    context = kubeconfig.chosen(name)
    cluster, user = kubeconfig.cluster_of(context), kubeconfig.user_of(context)
    its = user.absolute() if user else {}
    if its.get("tokenFile"):
        its.pop("token", None)  # as for kubectl, the file decides
    if user and its.get("exec") and not any(its.get(each) for each in _OWN_LOGIN):
        its |= exec_plugin.fetch(user, cluster, options.request_timeout)
    its.pop("exec", None)
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "its", "user": "its"}}],
        "clusters": [{"name": "its", "cluster": cluster.absolute()}],
        "users": [{"name": "its", "user": its}],
    }
