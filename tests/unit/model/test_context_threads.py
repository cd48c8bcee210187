# SPDX-License-Identifier: Apache-2.0
"""Threads that know on whose behalf they run."""

from __future__ import annotations

import contextvars

import pytest

from container_update.model import context_threads

WHOSE: contextvars.ContextVar[str] = contextvars.ContextVar("whose", default="nobody's")


def test_every_thread_of_a_pool_knows_whose_it_is() -> None:
    token = WHOSE.set("ours")
    pool = context_threads.pool(3)
    WHOSE.reset(token)
    with pool:
        assert set(pool.map(lambda _: WHOSE.get(), range(20))) == {"ours"}
    assert WHOSE.get() == "nobody's"


def test_a_daemon_thread_knows_whose_it_is() -> None:
    heard: list[str] = []
    token = WHOSE.set("ours")
    thread = context_threads.daemon(
        lambda word: heard.append(f"{word} {WHOSE.get()}"), "is", name="t"
    )
    WHOSE.reset(token)
    thread.start()
    thread.join(timeout=10)
    assert heard == ["is ours"]
    assert (thread.name, thread.daemon) == ("t", True)


def test_what_is_called_in_the_background_knows_whose_it_is() -> None:
    token = WHOSE.set("ours")
    result = context_threads.in_background(WHOSE.get)
    WHOSE.reset(token)
    assert (result(), result()) == ("ours", "ours")


def test_an_error_in_the_background_is_raised_where_the_result_is_asked_for() -> None:
    result = context_threads.in_background(lambda: {}["missing"])
    with pytest.raises(KeyError, match="missing"):
        result()
