# SPDX-License-Identifier: Apache-2.0
"""The discovery documents, all made from the table of kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.resources import Catalogue, Resource

VERSION: Json = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
"""The release whose behaviour is emulated, as /version shows it."""


def document(catalogue: Catalogue, path: str, address: str, in_one: bool) -> Json | None:
    """Return the document at *path*, or None.

    :param address: host and port of the server.
    :param in_one: the client accepts all groups and resources in one document.
    """
    fixed: dict[str, Callable[[], Json]] = {
        "/version": lambda: VERSION,
        "/api": lambda: (
            aggregated_discovery(catalogue, core=True) if in_one else core_versions(address)
        ),
        "/apis": lambda: (
            aggregated_discovery(catalogue, core=False) if in_one else groups(catalogue)
        ),
        "/openapi/v3": lambda: openapi_index(catalogue),
    }
    if path in fixed:
        return fixed[path]()
    body = None
    match path.split("/")[1:]:
        case ["api", version]:
            body = resources(catalogue, "", version)
        case ["apis", name]:
            body = group(catalogue, name)
        case ["apis", name, version]:
            body = resources(catalogue, name, version)
        case ["openapi", "v3", "api", version]:
            body = openapi(catalogue, "", version)
        case ["openapi", "v3", "apis", name, version]:
            body = openapi(catalogue, name, version)
    return body


def core_versions(address: str) -> Json:
    """Return /api; *address*: host and port of the server."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def groups(catalogue: Catalogue) -> Json:
    """Return /apis."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, catalogue) for name in _group_names(catalogue)],
    }


def group(catalogue: Catalogue, name: str) -> Json | None:
    """Return /apis/GROUP, or None if there is no such group."""
    if name not in _group_names(catalogue):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, catalogue)}


def resources(catalogue: Catalogue, group_name: str, version: str) -> Json | None:
    """Return /api/v1 or /apis/GROUP/VERSION, or None if there is no such version."""
    kinds = _kinds(catalogue, group_name, version)
    if not kinds:
        return None
    group_version = kinds[0].group_version(version)
    body: Json = {"kind": "APIResourceList", "groupVersion": group_version, "resources": []}
    if group_name:
        body["apiVersion"] = "v1"
    for kind in kinds:
        entry = _entry(kind.plural, kind.singular, kind.namespaced, kind.kind, kind.verbs)
        body["resources"].append(entry | _short_names(kind))
        for below in kind.subresources:
            name = f"{kind.plural}/{below.name}"
            entry = _entry(name, "", kind.namespaced, below.kind, below.verbs)
            if below.group:
                entry |= {"group": below.group, "version": below.version}
            body["resources"].append(entry)
    return body


def aggregated_discovery(catalogue: Catalogue, core: bool) -> Json:
    """Return /api (*core*) or /apis with all resources in one document."""
    names = [""] if core else _group_names(catalogue)
    items = []
    for name in names:
        versions = [
            {
                "version": version,
                "resources": [
                    _aggregated_resource(kind) for kind in _kinds(catalogue, name, version)
                ],
                "freshness": "Current",
            }
            for version in _versions(catalogue, name)
        ]
        items.append({"metadata": {"name": name} if name else {}, "versions": versions})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _kinds(catalogue: Catalogue, group_name: str, version: str) -> list[Resource]:
    kinds = [kind for kind in catalogue if kind.group == group_name and version in kind.versions]
    return sorted(kinds, key=lambda kind: kind.plural)


def _group_names(catalogue: Catalogue) -> list[str]:
    return list(dict.fromkeys(kind.group for kind in catalogue if kind.group))


def _versions(catalogue: Catalogue, group_name: str) -> list[str]:
    of_kinds: Iterable[str] = (
        version for kind in catalogue if kind.group == group_name for version in kind.versions
    )
    return list(dict.fromkeys(of_kinds))


def _group(name: str, catalogue: Catalogue) -> Json:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in _versions(catalogue, name)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _entry(name: str, singular: str, namespaced: bool, kind: str, verbs: Iterable[str]) -> Json:
    entry: Json = {"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind}
    return entry | {"verbs": list(verbs)}


def _short_names(kind: Resource) -> Json:
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {key: value for key, value in names.items() if value}


def _response_kind(group_name: str, version: str, kind: str) -> Json:
    return {"group": group_name, "version": version, "kind": kind}


def _aggregated_resource(kind: Resource) -> Json:
    entry: Json = {
        "resource": kind.plural,
        "responseKind": _response_kind("", "", kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    entry |= _short_names(kind)
    if kind.subresources:
        entry["subresources"] = [
            {
                "subresource": below.name,
                "responseKind": _response_kind(below.group, below.version, below.kind),
                "verbs": list(below.verbs),
            }
            for below in kind.subresources
        ]
    return entry


# --- OpenAPI ----------------------------------------------------------------------------------


def openapi_index(catalogue: Catalogue) -> Json:
    """Return /openapi/v3: the path of each version's document."""
    paths = {}
    for name in ["", *_group_names(catalogue)]:
        for version in _versions(catalogue, name):
            path = _root(name, version)
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash=0"}
    return {"paths": paths}


def openapi(catalogue: Catalogue, group_name: str, version: str) -> Json | None:
    """Return /openapi/v3/...: only what tells kubectl that the server checks fields itself."""
    kinds = _kinds(catalogue, group_name, version)
    if not kinds:
        return None
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string"}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    paths: dict[str, Json] = {}
    for kind in kinds:
        within = "/namespaces/{namespace}" if kind.namespaced else ""
        collection = f"/{_root(group_name, version)}{within}/{kind.plural}"
        about = {"group": group_name, "version": version, "kind": kind.kind}
        named = collection + "/{name}"
        for path, verb in ((collection, "post"), (named, "put"), (named, "patch")):
            action = {"parameters": parameters, "x-kubernetes-group-version-kind": about}
            paths.setdefault(path, {})[verb] = action | {"responses": {}}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": paths,
    }


def _root(group_name: str, version: str) -> str:
    return f"apis/{group_name}/{version}" if group_name else f"api/{version}"
