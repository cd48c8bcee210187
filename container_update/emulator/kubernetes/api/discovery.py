"""The documents from which clients learn what is served, all made from the table of kinds."""

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
"""The release whose behaviour is modelled, as /version tells it."""


def document(catalogue: Catalogue, path: str, address: str, in_one: bool) -> Json | None:
    """The document at *path*, or None where there is none.

    *address*: host and port of the server; *in_one*: the client takes groups with all their
    resources in one document.
    """
    fixed: dict[str, Callable[[], Json]] = {
        "/version": lambda: VERSION,
        "/api": lambda: aggregated(catalogue, core=True) if in_one else core_versions(address),
        "/apis": lambda: aggregated(catalogue, core=False) if in_one else groups(catalogue),
        "/openapi/v3": lambda: openapi_index(catalogue),
    }
    if path in fixed:
        return fixed[path]()
    found = None
    match path.split("/")[1:]:
        case ["api", version]:
            found = resources(catalogue, "", version)
        case ["apis", name]:
            found = group(catalogue, name)
        case ["apis", name, version]:
            found = resources(catalogue, name, version)
        case ["openapi", "v3", "api", version]:
            found = openapi(catalogue, "", version)
        case ["openapi", "v3", "apis", name, version]:
            found = openapi(catalogue, name, version)
    return found


def core_versions(address: str) -> Json:
    """/api; *address*: host and port of the server."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def groups(catalogue: Catalogue) -> Json:
    """/apis."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, catalogue) for name in _group_names(catalogue)],
    }


def group(catalogue: Catalogue, name: str) -> Json | None:
    """/apis/GROUP, or None where there is no such group."""
    if name not in _group_names(catalogue):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, catalogue)}


def resources(catalogue: Catalogue, group_name: str, version: str) -> Json | None:
    """/api/v1 or /apis/GROUP/VERSION, or None where there is no such version."""
    kinds = _kinds(catalogue, group_name, version)
    if not kinds:
        return None
    group_version = kinds[0].group_version(version)
    body: Json = {"kind": "APIResourceList", "groupVersion": group_version, "resources": []}
    if group_name:
        body["apiVersion"] = "v1"
    for kind in kinds:
        body["resources"].append(_resource(kind))
        for below in kind.subresources:
            entry = {
                "name": f"{kind.plural}/{below.name}",
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": below.kind,
                "verbs": list(below.verbs),
            }
            if below.group:
                entry |= {"group": below.group, "version": below.version}
            body["resources"].append(entry)
    return body


def aggregated(catalogue: Catalogue, core: bool) -> Json:
    """/api (*core*) or /apis in one document, as kubectl asks for them."""
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
    found = [kind for kind in catalogue if kind.group == group_name and version in kind.versions]
    return sorted(found, key=lambda kind: kind.plural)


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


def _resource(kind: Resource) -> Json:
    entry: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    return entry | _nicknames(kind)


def _nicknames(kind: Resource) -> Json:
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {key: value for key, value in names.items() if value}


def _aggregated_resource(kind: Resource) -> Json:
    entry: Json = {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    entry |= _nicknames(kind)
    if kind.subresources:
        entry["subresources"] = [
            {
                "subresource": below.name,
                "responseKind": {
                    "group": below.group,
                    "version": below.version,
                    "kind": below.kind,
                },
                "verbs": list(below.verbs),
            }
            for below in kind.subresources
        ]
    return entry


# --- OpenAPI ----------------------------------------------------------------------------------


def openapi_index(catalogue: Catalogue) -> Json:
    """/openapi/v3: where each group and version is described."""
    paths = {}
    for name in ["", *_group_names(catalogue)]:
        for version in _versions(catalogue, name):
            path = _root(name, version)
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash=0"}
    return {"paths": paths}


def openapi(catalogue: Catalogue, group_name: str, version: str) -> Json | None:
    """/openapi/v3/...: only as much as tells kubectl that the server checks fields itself."""
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
        for path, verb in ((collection, "post"), (collection + "/{name}", "patch")):
            action = {"parameters": parameters, "x-kubernetes-group-version-kind": about}
            paths.setdefault(path, {})[verb] = action | {"responses": {}}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": paths,
    }


def _root(group_name: str, version: str) -> str:
    return f"apis/{group_name}/{version}" if group_name else f"api/{version}"
