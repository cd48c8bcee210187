"""``/docs``: the OpenAPI document in Swagger UI, whose files come from a Python package."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse
from swagger_ui_bundle import swagger_ui_path

_FILES = Path(__file__).parent / "files"
_VENDORED = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
}
"""What is served of that package, which also has pages of its own."""


def install(app: FastAPI) -> None:
    """Add ``/docs`` and its files to *app*."""
    _add(app, "/docs", _FILES / "docs.html", "text/html")
    for name, media_type in _VENDORED.items():
        _add(app, f"/docs/{name}", Path(str(swagger_ui_path)) / name, media_type)


def _add(app: FastAPI, path: str, file: Path, media_type: str) -> None:
    @app.get(path, include_in_schema=False)
    def read() -> FileResponse:
        return FileResponse(file, media_type=media_type)
