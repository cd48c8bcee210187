# SPDX-License-Identifier: Apache-2.0
"""A process that is gone is known to be gone, and no other is taken for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from container_update.model.process_identity import ProcessIdentity

IDENTITY = ProcessIdentity.current()
if IDENTITY is None:
    pytest.skip("this system has no /proc", allow_module_level=True)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A process that tells its identity and waits until its standard input is closed."""
    program = (
        "import sys\n"
        "from container_update.model.process_identity import ProcessIdentity\n"
        "print(ProcessIdentity.current(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def identity_of(process: subprocess.Popen[str]) -> ProcessIdentity:
    assert process.stdout is not None
    identity = ProcessIdentity.parse(process.stdout.readline())
    assert identity is not None
    return identity


def test_a_process_is_gone_when_it_was_killed_also_before_its_parent_asks(
    child: subprocess.Popen[str],
) -> None:
    identity = identity_of(child)
    assert not identity.is_gone()
    child.kill()
    assert child.stdout is not None
    child.stdout.read()  # returns when the process has ended; nobody has waited for it yet
    while not identity.is_gone():  # its memory is given back after its files are closed
        assert child.returncode is None
    child.wait()
    assert identity.is_gone()


@pytest.mark.parametrize(
    ("other", "is_gone"),
    [
        pytest.param({}, False, id="this very process"),
        pytest.param({"started": "1"}, True, id="its pid was given again"),
        pytest.param({"boot": "another", "started": "1"}, False, id="another machine"),
        pytest.param(
            {"pid_namespace": "pid:[1]", "started": "1"}, False, id="another container of this one"
        ),
        pytest.param({"pid": 2**22 + 1}, True, id="a pid that nobody has"),
    ],
)
def test_only_a_process_of_this_boot_and_namespace_is_judged(
    other: dict[str, object], is_gone: bool
) -> None:
    assert IDENTITY is not None
    assert replace(IDENTITY, **other).is_gone() is is_gone  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "host.1", "a b c d", "a b 1", "a b 1 2 3"])
def test_text_that_is_no_identity_is_none(text: str) -> None:
    assert ProcessIdentity.parse(text) is None
    assert ProcessIdentity.parse(str(IDENTITY)) == IDENTITY
