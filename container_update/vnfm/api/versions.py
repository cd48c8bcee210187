# SPDX-License-Identifier: Apache-2.0
"""``api_versions`` (SOL013, 9.3)."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter

from container_update.model.objects import Json
from container_update.vnfm.api.parts import VERSIONS, refusals


def router() -> APIRouter:
    """Return the resources: of both APIs together, and of each."""
    routes = APIRouter(tags=["Versions"])
    for prefix, versions in {
        "/vnflcm": list(VERSIONS.values()),
        **{f"/vnflcm/{api}": [version] for api, version in VERSIONS.items()},
    }.items():
        routes.get(f"{prefix}/api_versions", responses=refusals())(_answer(prefix, versions))
    return routes


def _answer(prefix: str, versions: list[str]) -> Callable[[], Json]:
    def show() -> Json:
        """Return the versions of the interface."""
        entries = [{"version": version, "isDeprecated": False} for version in versions]
        return {"uriPrefix": prefix, "apiVersions": entries}

    return show
