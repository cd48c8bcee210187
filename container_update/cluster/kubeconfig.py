# SPDX-License-Identifier: Apache-2.0
"""Kubeconfig files: their paths, their merged content, and its errors.

Source: Kubernetes documentation, "Organizing Cluster Access Using kubeconfig Files": of several
files the first that names something decides. No message quotes a value: it may be a credential.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update.model.cluster import ClusterContext
from container_update.model.errors import ClusterError, PackageError
from container_update.model.options import DEFAULTS
from container_update.model.schema import FILLED, MAPPING, TEXT, Fields, ListOf, complete, or_null
from container_update.package import yaml11

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token, and its namespace."""

DEFAULT = "~/.kube/config"

_CONTEXTS, _CLUSTERS, _USERS = "contexts", "clusters", "users"
_SECTIONS = {_CONTEXTS: "context", _CLUSTERS: "cluster", _USERS: "user"}
"""The lists of named entries, and where in an entry its content is."""
_TEXTS = (
    *("server", "certificate-authority", "certificate-authority-data", "tls-server-name"),
    *("proxy-url", "token", "tokenFile", "username", "password", "client-certificate"),
    *("client-certificate-data", "client-key", "client-key-data", "cluster", "user", "namespace"),
)
_CONTENT = Fields({**dict.fromkeys(_TEXTS, TEXT), "exec": MAPPING, "auth-provider": MAPPING})
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields that name a file."""


def files(named_file: str | None) -> tuple[Path, ...]:
    """Return the kubeconfig files that exist: that one, ``$KUBECONFIG``, or ``~/.kube/config``.

    :returns: absolute paths; () where there are none, so that only a pod's service account is left.
    :raises ClusterError: *named_file* does not exist.
    """
    text = named_file or os.environ.get("KUBECONFIG") or DEFAULT
    paths = [Path(path).expanduser().absolute() for path in text.split(os.pathsep) if path]
    existing = tuple(path for path in paths if path.exists())
    if named_file and not existing:
        raise ClusterError(f"kubeconfig {named_file}: there is no such file: name one that exists")
    return existing


def describe_files(paths: Iterable[Path]) -> str:
    """Return how messages name these files."""
    return f"kubeconfig {', '.join(map(str, paths))}"


def namespace_of_pod() -> str | None:
    """Return the namespace of the service account of the pod that this runs in; None outside."""
    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    try:
        in_file = (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        in_file = ""
    return os.environ.get("POD_NAMESPACE") or in_file or None


@dataclass(frozen=True)
class Entry:
    """A named context, cluster or user."""

    body: Mapping[str, Any]
    file: Path
    place: str
    """For messages: ``FILE: users[NAME]``."""

    def text(self, name: str) -> str:
        """Return a field's text, '' where there is none."""
        return str(self.body.get(name) or "")

    def absolute(self) -> dict[str, Any]:
        """Return its content, with paths that are no longer relative to the kubeconfig."""
        paths = {
            name: str(self.file.parent / self.text(name)) for name in _PATHS if self.text(name)
        }
        return {**self.body, **paths}


@dataclass(frozen=True)
class Kubeconfig:
    """What one or several files say together."""

    paths: tuple[Path, ...]
    current: str
    """The name of the current context, or ''."""
    entries: Mapping[str, Mapping[str, Entry]]
    """By section and name."""

    def context(self, name: str | None = None) -> ClusterContext:
        """Return a context; see :meth:`parts`."""
        context, cluster, _ = self.parts(name)
        return ClusterContext(
            server=cluster.text("server"),
            name=name or self.current,
            cluster=context.text("cluster"),
            user=context.text("user") or None,
            namespace=context.text("namespace") or namespace_of_pod() or "default",
        )

    def parts(self, name: str | None = None) -> tuple[Entry, Entry, Entry | None]:
        """Return a context, its cluster and its user; None where it names no user that is there.

        :param name: None: the current one.
        :raises ClusterError: there is none with this name, or its cluster is not there, or a field
            of one of them has a value of the wrong type.
        """
        contexts, clusters = self.entries[_CONTEXTS], self.entries[_CLUSTERS]
        wanted, its = name or self.current, f"its contexts are: {_names(contexts)}"
        if not wanted:
            raise ClusterError(
                f"{describe_files(self.paths)}: it has no current context: name one; {its}"
            )
        if wanted not in contexts:
            which = "" if name else ", which is to be its current one"
            raise ClusterError(
                f"{describe_files(self.paths)}: there is no context {wanted}{which}; {its}"
            )
        context = contexts[wanted]
        if (its_cluster := context.text("cluster")) not in clusters:
            raise ClusterError(
                f"{context.place}.cluster: expected one of its clusters ({_names(clusters)}), "
                f"found {its_cluster or 'nothing'}: correct the file"
            )
        user = self.entries[_USERS].get(context.text("user"))
        for entry in filter(None, (context, clusters[its_cluster], user)):
            for wrong in _CONTENT.violations(entry.body):
                raise ClusterError(f"{entry.place}.{wrong}: correct the file")
        return context, clusters[its_cluster], user


def read(paths: Sequence[Path]) -> Kubeconfig:
    """Read kubeconfig files; ClusterError where one is none, or cannot be read."""
    documents = [(path, _document(path)) for path in paths]
    entries: dict[str, dict[str, Entry]] = {section: {} for section in _SECTIONS}
    for path, document in documents:
        for section in _SECTIONS:
            for name, entry in _entries(path, document, section):
                entries[section].setdefault(name, entry)
    currents = (str(document.get("current-context") or "") for _, document in documents)
    return Kubeconfig(tuple(paths), next(filter(None, currents), ""), entries)


def _document(path: Path) -> Mapping[str, Any]:
    where = describe_files([path])
    try:
        content = "apiVersion, clusters, users and contexts"
        return yaml11.mapping(path.read_bytes(), where, DEFAULTS, content)
    except OSError as error:
        raise ClusterError(f"{where}: cannot be read: {error.strerror}") from error
    except PackageError as error:
        raise ClusterError(f"{error}: correct the file") from None


def _entries(path: Path, document: Mapping[str, Any], section: str) -> Iterable[tuple[str, Entry]]:
    items, where = document.get(section) or [], f"{describe_files([path])}: {section}"
    field = _SECTIONS[section]
    named = ListOf(complete(**{"name": FILLED, field: or_null(MAPPING)}))
    for wrong in named.violations(items):
        raise ClusterError(f"{where}{wrong.field}: {wrong.why}: correct the file")
    for item in items:
        yield item["name"], Entry(item[field] or {}, path, f"{where}[{item['name']}].{field}")


def _names(known: Iterable[str]) -> str:
    return ", ".join(sorted(known)) or "none"
