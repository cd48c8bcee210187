# SPDX-License-Identifier: Apache-2.0
"""toscaparser runs in a process with limits: a VNFD can hang or fill that one only."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from container_update.model.errors import PackageError
from container_update.model.options import DEFAULTS, Options
from container_update.package import csar
from container_update.package.tools.check import check
from container_update.package.tosca import process
from container_update.package.tosca.process import ReaderEndedError
from tests import hostile
from tests.packages import flavour, with_vnfd, write_zip

MIB = 1024 * 1024
GOOD = flavour("simple", {"VDU1": "pod"})
BIG = GOOD.replace("name: pod", f"name: {'x' * 7 * MIB}")


def package(folder: Path, text: str) -> str:
    """A package whose flavour is this text."""
    return write_zip(folder / "vnf.zip", with_vnfd({"df.yaml": text}))


def refusal(
    folder: Path,
    text: str,
    options: Options = DEFAULTS,
    expected: type[PackageError] = ReaderEndedError,
) -> str:
    """The message of the error that ends the reading of a flavour."""
    with (
        csar.open_package(package(folder, text), options=options) as opened,
        pytest.raises(expected) as raised,
    ):
        opened.vdus()
    return str(raised.value)


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every VNFD is read for the first time, by a process that was not started before."""
    monkeypatch.setattr(process, "_KNOWN", {})
    monkeypatch.setattr(process, "_WAITING", [])


def test_a_vnfd_that_was_read_before_needs_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with csar.open_package(package(tmp_path, GOOD)) as opened:
        first = opened.flavours
    monkeypatch.setattr(process, "_output", None)
    with csar.open_package(package(tmp_path, GOOD)) as opened:
        assert opened.flavours == first


def test_a_process_that_was_started_before_reads_the_next_vnfds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.start(2, DEFAULTS)
    waiting, other = process._WAITING
    process.start(1, DEFAULTS)
    assert waiting is other
    assert [waiting, waiting] == process._WAITING
    monkeypatch.setattr(process, "_start", None)
    for name in ("pod", "pad"):
        assert waiting.poll() is None
        with csar.open_package(package(tmp_path, GOOD.replace("pod", name))) as opened:
            assert opened.vdus() == {"VDU1": name}
    assert waiting.returncode == -signal.SIGKILL
    process.start(1, DEFAULTS)
    assert process._WAITING == []


def test_a_process_with_other_limits_reads_nothing(tmp_path: Path) -> None:
    process.start(1, replace(DEFAULTS, vnfd_seconds=60.0))
    (waiting,) = process._WAITING
    options = replace(DEFAULTS, vnfd_seconds=0.3)
    assert "0.3 s of processor time" in refusal(tmp_path, hostile.REGULAR_EXPRESSION, options)
    assert waiting.wait(timeout=30) == -signal.SIGKILL


def test_each_vnfd_has_its_own_time_and_one_that_ends_the_process_leaves_none_to_the_next(
    tmp_path: Path,
) -> None:
    options = replace(DEFAULTS, vnfd_seconds=0.5)
    process.start(3, options)
    (waiting, *_) = process._WAITING
    with csar.open_package(package(tmp_path, GOOD), options=options) as opened:
        assert opened.vdus() == {"VDU1": "pod"}
    assert "0.5 s of processor time" in refusal(tmp_path, hostile.REGULAR_EXPRESSION, options)
    assert waiting.returncode == -signal.SIGPROF
    with csar.open_package(
        package(tmp_path, GOOD.replace("pod", "pad")), options=options
    ) as opened:
        assert opened.vdus() == {"VDU1": "pad"}


def test_a_process_that_waits_ends_with_the_one_that_started_it() -> None:
    starts = (
        "from container_update.package.tosca import process;"
        "from container_update.model.options import DEFAULTS;"
        "process.start(2, DEFAULTS); print(*(p.pid for p in process._WAITING))"
    )
    done = subprocess.run([sys.executable, "-c", starts], check=True, capture_output=True)
    processes = [Path("/proc", number) for number in done.stdout.decode().split()]
    assert len(processes) == 2
    assert len(set(processes)) == 1
    deadline = time.monotonic() + 30
    while any(map(_runs, processes)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(folder: Path) -> bool:
    """Whether a process has not ended; one that nobody waited for is still listed."""
    try:
        return " Z " not in (folder / "stat").read_text()
    except OSError:
        return False


def test_only_the_latest_vnfds_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_MOST_KNOWN", 2)
    for number in range(4):
        with csar.open_package(package(tmp_path, GOOD.replace("pod", f"pod{number}"))) as opened:
            assert opened.vdus() == {"VDU1": f"pod{number}"}
    assert len(process._KNOWN) == 2


ENDLESS = ("nested quantifiers in a regular expression", "defaults within defaults, 40 deep")


@pytest.mark.parametrize("what", ENDLESS)
def test_the_time_of_a_vnfd_is_limited_and_is_not_spent_in_this_process(
    tmp_path: Path, what: str
) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    message = refusal(tmp_path, hostile.VNFDS[what], replace(DEFAULTS, vnfd_seconds=0.5))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - used < 0.4
    assert message.startswith("Definitions/df.yaml: the process that reads the VNFD used more than")
    assert "0.5 s of processor time (option vnfd_seconds)" in message


def test_a_process_that_waits_is_ended_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_START", "import time; time.sleep(600)")
    monkeypatch.setattr(process, "_CLOCK", 1)
    assert "1.5 s by the clock" in refusal(tmp_path, GOOD)


def test_the_memory_of_a_vnfd_is_limited(tmp_path: Path) -> None:
    message = refusal(tmp_path, BIG, replace(DEFAULTS, vnfd_bytes=32 * MIB))
    assert f"more than {32 * MIB} bytes of memory (option vnfd_bytes)" in message


def test_the_answer_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "container_update.package.tosca.parser"
    smaller = process._START.replace(
        "; main(", f"; import {module} as p; p._LARGEST_ANSWER = 9; main("
    )
    assert smaller != process._START
    monkeypatch.setattr(process, "_START", smaller)
    assert "answered with too many bytes" in refusal(tmp_path, GOOD)


def test_the_process_inherits_no_password_and_can_write_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    tell = (
        "import os, resource, container_update.package.tosca.parser as parser;"
        "seen = lambda: f'{[*os.environ]} {resource.getrlimit(resource.RLIMIT_FSIZE)}';"
        "parser.answer = lambda _: {'path': 'x', 'problem': seen()};"
    )
    monkeypatch.setattr(process, "_START", process._START.replace(" main(", f"{tell} main("))
    told = refusal(tmp_path, GOOD, expected=PackageError)
    assert told.endswith("(0, 0)")
    assert "PGPASSWORD" not in told


def test_csar_check_reports_a_vnfd_that_hangs_and_tries_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    run = process._output

    def counted(path: str, request: bytes, options: Options) -> bytes:
        tries.append(path)
        return run(path, request, options)

    monkeypatch.setattr(process, "_output", counted)
    options = replace(DEFAULTS, vnfd_seconds=0.3)
    findings = check(package(tmp_path, hostile.REGULAR_EXPRESSION), options=options)
    assert any("option vnfd_seconds" in finding.message for finding in findings)
    assert tries == ["Definitions/df.yaml"]


def test_a_pattern_is_checked(tmp_path: Path) -> None:
    with csar.open_package(package(tmp_path, hostile.pattern("a+", "aaa"))) as opened:
        assert opened.vdus() == {"VDU1": "pod"}
    message = refusal(tmp_path, hostile.pattern("a+", "aab"), expected=PackageError)
    assert 'The value "aab" of property "p" does not match pattern "a+"' in message
