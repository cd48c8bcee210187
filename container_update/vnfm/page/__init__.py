# SPDX-License-Identifier: Apache-2.0
"""The page at ``/``: the packages, VNF instances and operations, for people; ``/docs``: the OpenAPI
document in Swagger UI, whose files come from a Python package.

The page has no build step and no external resources. Its files need no token, as they hold no data:
it asks for a token and reads the REST API with it.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from swagger_ui_bundle import swagger_ui_path

_FILES = Path(__file__).parent / "files"
_PLACES = {
    "/": (_FILES / "page.html", "text/html"),
    "/docs": (_FILES / "docs.html", "text/html"),
    "/docs/swagger-ui.css": (Path(str(swagger_ui_path)) / "swagger-ui.css", "text/css"),
    "/docs/swagger-ui-bundle.js": (
        Path(str(swagger_ui_path)) / "swagger-ui-bundle.js",
        "text/javascript",
    ),
}
"""What is served of that package, which also has pages of its own, and our two."""


def install(app: FastAPI) -> None:
    """Add the page, ``/docs`` and their files to *app*."""
    for path, (file, media_type) in _PLACES.items():
        _add(app, path, file, media_type)
    app.mount("/page", StaticFiles(directory=_FILES))


def _add(app: FastAPI, path: str, file: Path, media_type: str) -> None:
    @app.get(path, include_in_schema=False)
    def read() -> FileResponse:
        return FileResponse(file, media_type=media_type)
