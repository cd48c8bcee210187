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
from container_update.model.cluster import ClusterContext
from container_update.model.errors import ClusterError
from container_update.model.objects import Json
from container_update.model.options import Options

_OWN_LOGIN = ("auth-provider", "token", "tokenFile")
"""A user that has one of these needs no plugin."""


def read(files: Sequence[Path], name: str | None, options: Options) -> tuple[Any, ClusterContext]:
    """Read kubeconfig files, or what a pod has; return the client's configuration and the context.

    :param name: of the context; None: the current one.
    :raises ClusterError: there is no usable configuration.
    """
    from kubernetes import client, config  # noqa: PLC0415

    loader: Any = config
    configuration = client.Configuration()
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
    login = user.absolute() if user else {}
    if login.get("tokenFile"):
        login.pop("token", None)  # as for kubectl, the file decides
    if user and login.get("exec") and not any(login.get(each) for each in _OWN_LOGIN):
        login |= exec_plugin.fetch(user, cluster, options.request_timeout)
    login.pop("exec", None)
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "its", "user": "its"}}],
        "clusters": [{"name": "its", "cluster": cluster.absolute()}],
        "users": [{"name": "its", "user": login}],
    }
