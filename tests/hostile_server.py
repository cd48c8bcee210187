# SPDX-License-Identifier: Apache-2.0
"""What somebody may answer who sits in the place of a server: effects for either emulator."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from container_update import ContainerUpdateError
from container_update.emulator.faults import Effect, Fault, FaultedRequest, Faults, is_watch
from container_update.emulator.http_server import Middleware
from tests import packed

_CHUNK = 65536
_PACKED = packed.without_end(b"", bytes(1 << 20), 1 << 10)
SECONDS = 120
"""After so many a verb counts as one that never ends: it takes ten of its own at most."""
_MEMORY = 240 * 1000 * 1000
"""Bytes by which a process may grow: one that has just begun has 60 MB, and 300 MB are allowed."""

Chunks = Callable[[], AsyncIterator[bytes]]


def _stream(chunks: Chunks, headers: Mapping[str, str] | None = None) -> Effect:
    """Let the request take effect, then send these chunks until the caller has enough."""

    async def effect(faulted: FaultedRequest) -> web.StreamResponse:
        if not is_watch(faulted.request):
            await faulted.handler(faulted.request)
        answer = web.StreamResponse(headers={"Content-Type": "application/json", **(headers or {})})
        try:
            await answer.prepare(faulted.request)
            async for chunk in chunks():
                transport = faulted.request.transport
                if transport is None or transport.is_closing():
                    break
                await answer.write(chunk)
                # a write to a connection that is lost returns at once: let the loop hear of that
                await asyncio.sleep(0)
        except ConnectionError:
            return answer
        return answer

    return effect


def _body(body: bytes, headers: Mapping[str, str] | None = None, status: int = 200) -> Effect:
    """Let the request take effect, then send this body."""

    async def effect(faulted: FaultedRequest) -> web.StreamResponse:
        if not is_watch(faulted.request):
            await faulted.handler(faulted.request)
        sent = {"Content-Type": "application/json", **(headers or {})}
        return web.Response(body=body, status=status, headers=sent)

    return effect


async def _endless() -> AsyncIterator[bytes]:
    yield b'{"items": ["'
    while True:
        yield b"x" * _CHUNK


async def _endless_lines() -> AsyncIterator[bytes]:
    event = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}}
    while True:
        yield (json.dumps(event) + "\n").encode() * 100


async def _slow() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.05)


async def _slow_headers(faulted: FaultedRequest) -> web.StreamResponse:
    if not is_watch(faulted.request):
        await faulted.handler(faulted.request)
    transport = faulted.request.transport
    if transport is not None:
        transport.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not transport.is_closing():
            transport.write(b"x")
            await asyncio.sleep(0.05)
    return faulted.drop()


async def _truncated(faulted: FaultedRequest) -> web.StreamResponse:
    if not is_watch(faulted.request):
        await faulted.handler(faulted.request)
    answer = web.StreamResponse(headers={"Content-Length": "1000"})
    await answer.prepare(faulted.request)
    await answer.write(b'{"metadata": {')
    return faulted.drop()


async def _mutated(faulted: FaultedRequest) -> web.StreamResponse:
    """Answer what is true, but with other types below the first level."""
    true = await faulted.handler(faulted.request)
    if not isinstance(true, web.Response) or true.content_type != "application/json":
        return true
    body = json.loads(true.text or "null")
    wrong = {name: [7] for name in body} if isinstance(body, dict) else body
    return web.json_response(wrong, status=true.status)


NAMED = {"metadata": {"name": "x", "namespace": "x", "uid": "1", "resourceVersion": "1"}}
WRONG: Mapping[str, Any] = {
    "null": None,
    "a list": [],
    "a text": "x",
    "a number": 7,
    "nothing": {},
    "items that are numbers": {"metadata": {"resourceVersion": "1"}, "items": [7]},
    "items that are an object": {"metadata": {"resourceVersion": "1"}, "items": {"a": 1}},
    "items of no kind": {"metadata": {"resourceVersion": "1"}, "items": [NAMED]},
    "an object of no kind": NAMED,
    "fields of other types": {**NAMED, "spec": [7], "status": "x", "data": 7, "stack": [7]},
    "an event": {"type": 7, "object": {"metadata": {"name": "x", "labels": [7]}}},
    "an error as an event": {"type": "ERROR", "object": {"code": "x", "message": [7]}},
}
HOSTILE: Mapping[str, Effect] = {
    "without an end": _stream(_endless),
    "events without an end": _stream(_endless_lines),
    "ever so slow": _stream(_slow),
    "headers ever so slow": _slow_headers,
    "truncated": _truncated,
    "deep": _body(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "deep lists": _body(b"[" * 1_000_000),
    "wide": _body(b'{"metadata":{"resourceVersion":"1"},"items":[' + b"{}," * 5_000_000 + b"{}]}"),
    "packed": _body(_PACKED, {"Content-Encoding": "gzip"}),
    "no text": _body(b"\xff\xfe\x00" * 100),
    "a number of a million digits": _body(b'{"metadata": ' + b"9" * 1_000_000 + b"}"),
    "an error of other types": _body(
        b'{"kind": "Status", "code": "x", "reason": [7], "details": {"causes": [7]}}',
        {"Retry-After": "\u00b2"},
        429,
    ),
    "an error that asks to wait for years": _body(b"{}", {"Retry-After": "9" * 12}, 503),
    "true, of other types": _mutated,
    **{f"of another type: {name}": _body(json.dumps(v).encode()) for name, v in WRONG.items()},
}
"""What every request may be answered with, and what it is called."""


@dataclass(frozen=True)
class Attack:
    """A hostile answer to some of the requests of a verb."""

    answer: str
    nth: int
    """To which request first, from 1."""
    times: int
    watch: bool | None
    """True: of the watches; None: of all."""

    def on(
        self,
        middlewares: list[Middleware],
        act: Callable[[Callable[[], None]], object],
        seconds: float = SECONDS,
    ) -> tuple[list[str], list[Exception]]:
        """Carry out a verb meanwhile; return what was wrong in that, and what it raised.

        :param act: carries it out, and calls what it is given as soon as it has connected.
        :param seconds: in which it has to end.
        """
        faults = Faults(Fault(HOSTILE[self.answer], "*", "*", self.watch, self.nth, self.times))
        try:
            return judged(lambda: act(lambda: middlewares.append(faults)), seconds)
        finally:
            middlewares.remove(faults)


def judged(
    act: Callable[[], object], seconds: float = SECONDS
) -> tuple[list[str], list[Exception]]:
    """Carry out a verb; return what was wrong in that, and what it raised: it has to end, in little
    memory, and with no error but ours."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001, what is not ours is what is looked for
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    with _growth() as grown:
        thread.start()
        thread.join(seconds)
    assert not thread.is_alive(), f"goes on after {seconds} seconds"
    wrong = [repr(error) for error in raised if not isinstance(error, ContainerUpdateError)]
    if grown.bytes > _MEMORY:
        wrong.append(f"{grown.bytes} bytes of memory")
    return wrong, raised


def attacks(number: int, shift: int, requests: int, watches: int = 0) -> Iterator[Attack]:
    """Yield so many attacks on a verb.

    :param shift: its number: the attacks on each begin with others.
    :param requests: that it sends, about, *watches* among them.
    """
    answers = list(HOSTILE)
    for point in range(number):
        is_watch_ = (shift + point) % 4 == 1 and watches > 0
        yield Attack(
            answers[(shift + point * 5) % len(answers)],
            nth=1 + (shift * 7 + point * 11) % (watches if is_watch_ else requests),
            times=1 + ((shift + point) % 3 == 2) * 10**6,
            watch=is_watch_ or None,
        )


class Grown:
    """By how many bytes this process has grown at most while a block ran."""

    def __init__(self) -> None:
        self.bytes = 0


@contextmanager
def _growth() -> Iterator[Grown]:
    """Yield what has, at the end of the block, the largest growth of this process meanwhile."""
    grown, before = Grown(), _reset_peak()
    yield grown
    grown.bytes = _peak() - before


def _reset_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _peak()


def _peak() -> int:
    status = Path(f"/proc/{os.getpid()}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
