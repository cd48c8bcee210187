# SPDX-License-Identifier: Apache-2.0
"""``api_versions`` (SOL013, 9.3)."""

from __future__ import annotations

from fastapi import APIRouter

from container_update.model.objects import Json
from container_update.vnfm.api.parts import VERSIONS, refusals


def router() -> APIRouter:
    """Return the resources."""
    routes = APIRouter(prefix="/vnflcm", tags=["Versions"])

    @routes.get("/api_versions", responses=refusals())
    def every() -> Json:
        """Return the versions of both APIs."""
        return _versions("/vnflcm", *VERSIONS.values())

    @routes.get("/v1/api_versions", responses=refusals())
    def v1() -> Json:
        """Return the version of v1."""
        return _versions("/vnflcm/v1", VERSIONS["v1"])

    @routes.get("/v2/api_versions", responses=refusals())
    def v2() -> Json:
        """Return the version of v2."""
        return _versions("/vnflcm/v2", VERSIONS["v2"])

    return routes


def _versions(prefix: str, *versions: str) -> Json:
    return {
        "uriPrefix": prefix,
        "apiVersions": [{"version": version, "isDeprecated": False} for version in versions],
    }
