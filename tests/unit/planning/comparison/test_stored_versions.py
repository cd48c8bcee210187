# SPDX-License-Identifier: Apache-2.0
"""A definition keeps the versions in which the server may have objects stored."""

from __future__ import annotations

import pytest

from container_update.model.objects import Json
from container_update.planning.comparison.stored_versions import remark, with_stored_versions

CRD = "apiextensions.k8s.io/v1"


def definition(*names: str, stored: tuple[str, ...] = (), api_version: str = CRD) -> Json:
    """Return a definition whose last version is the one of the storage."""
    versions = [
        {"name": name, "served": True, "storage": name == names[-1], "schema": {}} for name in names
    ]
    return {
        "apiVersion": api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.example.org"},
        "spec": {"versions": versions},
        "status": {"storedVersions": list(stored)},
    }


@pytest.mark.parametrize(
    ("live", "kept"),
    [
        (definition("v1", "v2", stored=("v1", "v2")), ["v2"]),
        (definition("v1", "v2", stored=("v1",)), []),
        (definition("v1", stored=("v1",)), []),
        (definition("v1", "v2", stored=("v2",), api_version="vendor.example/v1"), []),
    ],
    ids=["stored", "not stored", "in both", "a kind of another group"],
)
def test_a_version_that_the_server_has_stored_stays_unserved(live: Json, kept: list[str]) -> None:
    body = definition("v1", api_version=live["apiVersion"])
    written = with_stored_versions(body, live)
    added = written["spec"]["versions"][1:]
    assert [version["name"] for version in added] == kept
    assert not any(version["served"] or version["storage"] for version in added)
    assert ("stays, not served" in remark(body, live)) == bool(kept)
