"""The page at ``/``: what there is, what runs, and what became of it, for people.

Three files, no build step, nothing from elsewhere. They are answered without a token: they hold no
data, but read the REST API with the token that they ask for.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

FILES = Path(__file__).parent / "files"


def install(app: FastAPI) -> None:
    """Have *app* answer ``/`` and what the page needs."""

    def page() -> FileResponse:
        return FileResponse(FILES / "page.html", media_type="text/html")

    app.add_api_route("/", page, include_in_schema=False)
    app.mount("/page", StaticFiles(directory=FILES))
