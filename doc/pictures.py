# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the documentation: ``python doc/pictures.py``, at the repository's root.

The terminals are SVG, which a test compares with what it records itself, word by word. The
service's page is photographed by Chromium; ``sources.json`` has a digest of what each picture was
made of, with which the test recognises one of other code.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pyte
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from container_update.cluster.client import connect  # noqa: E402
from container_update.emulator.demo.scenarios import guide_request  # noqa: E402
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster  # noqa: E402
from container_update.engine.verbs import install  # noqa: E402
from tests.terminal.recorder import record  # noqa: E402

if TYPE_CHECKING:
    from tests.vnfm.visit import Visit

PICTURES = ROOT / "doc/source/pictures"
SOURCES = PICTURES / "sources.json"
COLUMNS, ROWS = 100, 24
REQUEST = guide_request("v1")
BAD_IMAGE = "cirros"
FIXED = {
    r"\b\d+\.\d s\b": "0.4 s",
    r"\b\d+ requests\b": "60 requests",
    r"(web-|release=)[0-9a-f]{5}\b": r"\1c7e0b",
    r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b": "-x7k2q",
    r"127\.0\.0\.1:\d+": "127.0.0.1:6443",
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "46eb3af1-b7dd-4962-8963-0d0ef5c91afd",
}
"""What differs from run to run, and what stands for it."""
FONT = (r"@font-face \{\{.*?\n    \}\}\n", ""), ("Fira Code, monospace", "ui-monospace, monospace")
"""In the frame of rich: its font comes from the network."""
SERVED = ROOT / "container_update/vnfm/page/files"


@contextlib.contextmanager
def cluster() -> Iterator[tuple[EmbeddedCluster, dict[str, str]]]:
    """Yield a cluster with the guide's CNF, and the environment of commands that work on it."""
    with EmbeddedCluster(behaviour=Behaviour()) as embedded, TemporaryDirectory() as folder:
        kubeconfig = str(embedded.write_kubeconfig(Path(folder, "kubeconfig")))
        with connect(kubeconfig) as client:
            install(REQUEST.old, client, def_files=REQUEST.def_files)
        settings = {"WORKERS": "1", "GRACE_PERIOD": "500ms"}
        named = {f"CONTAINER_UPDATE_{name}": value for name, value in settings.items()}
        yield embedded, {"KUBECONFIG": kubeconfig, **named}


@contextlib.contextmanager
def folder(path: Path) -> Iterator[None]:
    """Work in a folder until the block ends."""
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def fixed(text: str) -> str:
    """Return a text in which nothing differs from run to run."""
    for pattern, words in FIXED.items():
        text = re.sub(pattern, words, text)
    return text


# --- terminals ----------------------------------------------------------------------------------


def terminals() -> Mapping[str, str]:
    """Return the picture of each terminal, by the name of its file."""
    with cluster() as (embedded, environment), folder(Path(REQUEST.old).parent):
        plan = terminal("plan", environment)
        embedded.behaviour.bad_images.append(BAD_IMAGE)
        failure = terminal("apply", environment, rows=ROWS)
        embedded.behaviour.bad_images.clear()
        apply = terminal("apply", environment, rows=ROWS)
    return {"plan.svg": plan, "failure.svg": failure, "apply.svg": apply, **pauses()}


WEB = """\
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
 "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
---
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
 "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": {
   "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
     {"name": "web", "image": "web:1.0"}]}}}}
"""
GATE = {"query": "error_ratio", "at_most": 0.01, "every": 1, "seconds": 60}
GATED = {"upgrade_type": "Canary", "canary_steps": [{"percent": 25, "gate": GATE}, 100]}


def pauses() -> Mapping[str, str]:
    """Return the pictures of a canary that waits for a person, and of one that a metric stops."""
    with EmbeddedCluster(behaviour=Behaviour()) as embedded, TemporaryDirectory() as here:
        for name, text in (("before", WEB), ("after", WEB.replace("1.0", "1.1"))):
            Path(here, name).mkdir()
            Path(here, name, "web.yaml").write_text(text)
        Path(here, "gate.json").write_text(json.dumps({"additionalParams": GATED}))
        kubeconfig = str(embedded.write_kubeconfig(Path(here, "kubeconfig")))
        with prometheus({"error_ratio": 0.07}) as url, folder(Path(here)):
            named = {"CONTAINER_UPDATE_PROMETHEUS": url, "CONTAINER_UPDATE_WORKERS": "1"}
            environment = {"KUBECONFIG": kubeconfig, **named}
            with connect(kubeconfig) as client:
                install("before", client, instance_id="web")
            canary = "change --upgrade-type Canary --canary-steps 25,100 --hold"
            hold = terminal(canary, environment, name="hold")
            promote = terminal("promote", environment, ("-y",))
            gate = terminal(
                "change --request gate.json", environment, ("after", "before"), ROWS + 8
            )
    return {"hold.svg": hold, "promote.svg": promote, "gate.svg": gate}


@contextlib.contextmanager
def prometheus(values: Mapping[str, float]) -> Iterator[str]:
    """Serve the values of some queries as Prometheus does; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            (query,) = parse_qs(urlsplit(self.path).query)["query"]
            result = [{"metric": {}, "value": [0, str(values[query])]}]
            data = {"resultType": "vector", "result": result}
            body = json.dumps({"status": "success", "data": data}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def terminal(
    command: str,
    environment: Mapping[str, str],
    packages: Sequence[str] = ("before", "after"),
    rows: int | None = None,
    name: str | None = None,
) -> str:
    """Return what a terminal shows after a command: all of it, or its last lines.

    :param name: of the picture; None: the command's.
    """
    words = [*command.split(), *packages]
    line = f"container-update {' '.join(words)}"
    recording = record(words, COLUMNS, {"[y/N] ": "y\n"}, environment)
    lines = shown(fixed(recording.raw))
    if rows is None:
        lines = [Text.assemble(("$ ", "green"), (line, "bold")), *lines]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        for text in lines[-(rows or 0) :]:
            console.print(text, no_wrap=True, crop=True)
        frame = CONSOLE_SVG_FORMAT
        for pattern, words in FONT:
            frame = re.sub(pattern, words, frame, flags=re.DOTALL)
        name = name or command.partition(" ")[0]
        return console.export_svg(title=line, code_format=frame, unique_id=name)


def shown(raw: str) -> list[Text]:
    """Return the lines that a terminal shows in the end, with those that have left it."""
    screen = pyte.HistoryScreen(COLUMNS, ROWS, history=10_000)
    pyte.Stream(screen).feed(raw)
    rows = [*screen.history.top, *(screen.buffer[number] for number in range(ROWS))]
    lines = [Text.assemble(*pieces([row[i] for i in range(COLUMNS)])) for row in rows]
    for line in lines:
        line.rstrip()
    while lines and not lines[-1]:
        lines.pop()
    return lines


def pieces(row: Sequence[pyte.screens.Char]) -> Iterator[tuple[str, str]]:
    """Yield the characters of a row, those of a style together, with what rich calls the style."""
    for style, chars in itertools.groupby(row, key=style_of):
        yield "".join(char.data for char in chars), style


def style_of(char: pyte.screens.Char) -> str:
    """Return the style of a character, as rich calls it."""
    colour = {"brown": "yellow"}.get(char.fg, char.fg)
    return f"bold {colour}" if char.bold else colour


# --- pages --------------------------------------------------------------------------------------


def photograph_pages() -> None:
    """Write the pictures of the service's page: while an update runs, and with many instances."""
    from tests.vnfm import many, site  # noqa: PLC0415, the extra test
    from tests.vnfm.browser import chromium, window  # noqa: PLC0415
    from tests.vnfm.visit import Visit, walk  # noqa: PLC0415

    viewport = {"width": 1000, "height": 900}
    with (
        chromium() as browser,
        site.running() as vnfm,
        window(browser, viewport=viewport) as context,
    ):
        visit = Visit(context, vnfm)
        visit.enter(vnfm.token)
        walk(visit, vnfm, partial(_photograph, visit))
        vnfm.create(site.SCENES["guide-v2"], "edge")
        for name, (width, height, rows) in LISTS.items():
            if name == "list":
                many.store(vnfm.service, 200)
            visit.tab.set_viewport_size({"width": width, "height": height})
            visit.go("Instances")
            visit.tab.locator("#instances tbody").nth(rows - 1).wait_for()
            visit.tab.screenshot(path=PICTURES / f"page-{name}.png")


PAGE_PICTURES: Mapping[str, str] = {
    **dict.fromkeys(("resources", "plan", "failing", "failed", "change-plan"), "#instance"),
    "history": "#history",
}
"""By its name the part of the page that the picture has."""
LISTS: Mapping[str, tuple[int, int, int]] = {
    "few": (1000, 390, 3),
    "list": (1000, 640, 10),
    "phone": (390, 640, 10),
}
"""By its name the width and height of the window in which the picture shows the list, and how many
rows it waits for."""


def _photograph(visit: Visit, name: str) -> None:
    """Photograph what the walk looks at; of what fails, while its steps run."""
    if name == "failing":
        visit.tab.locator(".objects .badge", has_text="running").first.wait_for()
    size = visit.tab.viewport_size
    height = visit.tab.evaluate("document.documentElement.scrollHeight")
    visit.tab.set_viewport_size({**size, "height": max(size["height"], height)})
    visit.tab.locator(PAGE_PICTURES[name]).first.screenshot(path=PICTURES / f"page-{name}.png")
    visit.tab.set_viewport_size(size)


def sources() -> Mapping[str, str]:
    """Return a digest of what each photograph is made of, by the name of its file."""
    files = b"".join(file.read_bytes() for file in sorted(SERVED.iterdir()))
    return dict.fromkeys(
        (f"page-{name}.png" for name in (*PAGE_PICTURES, *LISTS)), hashlib.sha256(files).hexdigest()
    )


def main() -> None:
    """Write all pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name, svg in terminals().items():
        (PICTURES / name).write_text(svg, encoding="utf-8")
    if shutil.which("chromium") is None:
        sys.exit("the photographs stay as they are: no Chromium: apt-get install chromium")
    photograph_pages()
    SOURCES.write_text(json.dumps(sources(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
