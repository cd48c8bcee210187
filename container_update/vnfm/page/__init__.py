"""The page at ``/``: the packages, VNF instances and operations, for people.

It has no build step and no external resources. Its files need no token, as they hold no data: the
page asks for a token and reads the REST API with it.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

_FILES = Path(__file__).parent / "files"


def install(app: FastAPI) -> None:
    """Add ``/`` and the files of the page to *app*."""

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(_FILES / "page.html", media_type="text/html")

    app.mount("/page", StaticFiles(directory=_FILES))
