# SPDX-License-Identifier: Apache-2.0
"""What a script of a package may do to the service that runs it as a v2 Mgmt Driver: little."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.service import (
    ScriptError,
    Service,
    Settings,
    driver_answer,
    plain_answer,
    v2,
)
from tests.unit.engine.test_coordination import LEFT_BEHIND, assert_ends
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.waiting import until

MEMORY = 150 * 1024 * 1024
"""What the service may need for a script, whatever the script writes."""

STUBBORN = """
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path({file!r}).write_text(str(os.getpid()))
time.sleep(120)
"""
FLOOD = "import sys\nfor _ in range(300): sys.{stream}.write('x' * 1_000_000)\nsys.exit('the end')"


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Assert that this process needs little more memory in between."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


@contextmanager
def service(folder: Path, **settings: Any) -> Iterator[Client]:
    """A client of a service in this process."""
    state = str(folder / "state")
    running = Service(Settings(state_dir=state, auth="none", **settings), Options())
    with TestClient(running.app, base_url="http://127.0.0.1:9890") as http:
        yield Client(http, "v2")


def begin(client: Client, cluster: EmbeddedCluster, folder: Path, script: str) -> str:
    """Begin an instantiation whose start the script has to do; return the operation's path."""
    driver = vnfs.Driver("mgmt-other", "../Scripts/s.py", script.encode(), ("instantiate_start",))
    package, vnfd_id = vnfs.package(folder, "1.0", driver)
    client.onboard(package)
    body = vnfs.instantiation(client.vims(cluster))
    return client.begin("POST", f"{client.create(vnfd_id)}/instantiate", body)


def failure(folder: Path, cluster: EmbeddedCluster, script: str, **settings: Any) -> str:
    """Run a script that fails and return what the operation says of it."""
    with service(folder, **settings) as client:
        operation = client.settled(begin(client, cluster, folder, script))
    assert operation["operationState"] == "FAILED_TEMP"
    return str(operation["error"]["detail"])


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        pytest.param("import time; time.sleep(120)", "within 1 s (driver_seconds)", id="long"),
        pytest.param(STUBBORN, "within 1 s (driver_seconds)", id="long, and ignores SIGTERM"),
        pytest.param(FLOOD.format(stream="stdout"), "more than 16777216 bytes", id="stdout"),
        pytest.param(FLOOD.format(stream="stderr"), "the end", id="stderr"),
    ],
)
def test_a_script_has_limits_of_time_and_output(
    cluster: EmbeddedCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    detail: str,
) -> None:
    monkeypatch.setattr(v2, "_TERM_SECONDS", 0.3)
    seconds = 1 if "sleep" in script else 600
    text = script.format(file=str(tmp_path / "pid")) if script is STUBBORN else script
    with bounded_memory():
        assert detail in failure(tmp_path, cluster, text, driver_seconds=seconds)


@pytest.mark.parametrize("script", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_what_a_script_leaves_running_ends_with_it(
    cluster: EmbeddedCluster, tmp_path: Path, script: str
) -> None:
    text = f"import sys; sys.stdout = sys.stderr\n{script}\nsys.exit(1)"
    *_, pid = failure(tmp_path, cluster, text).partition("s.py failed: ")
    assert_ends(int(pid.partition(".")[0]))


def test_no_script_outlives_its_service(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(v2, "_TERM_SECONDS", 0.3)
    file = tmp_path / "pid"
    with service(tmp_path, drain_seconds=0) as client:
        begin(client, cluster, tmp_path, STUBBORN.format(file=str(file)))
        until(lambda: file.exists() and file.read_text(), "the script to run")
    assert_ends(int(file.read_text()))


def test_a_script_inherits_none_of_the_services_secrets(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGPASSWORD", "OS_PASSWORD", "KUBECONFIG", "PYTHONPATH"):
        monkeypatch.setenv(name, "")
    found = failure(tmp_path, cluster, "import os, sys; sys.exit(' '.join(os.environ))")
    names = set(found.partition("s.py failed: ")[2].partition(".")[0].split())
    ours = {"CONTAINER_UPDATE_CONFIG", "CONTAINER_UPDATE_LOG"}
    ours |= {"HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE"}
    harmless = {"LANG", "LC_ALL", "LC_CTYPE", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ"}
    assert ours <= names <= ours | harmless


# --- its answer ---------------------------------------------------------------------------------


class Anything:
    """Not a plain value."""


def nested(levels: int, width: int) -> list[Any]:
    """A list of lists of ..., each level the same one so often."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value] * width
    return value


def test_the_answer_of_a_script_is_a_dict_of_plain_values() -> None:
    values = {"a": [1, "b", None, True, 2.5, ["c"]], "d": {"e": -(2**63)}, "text": "x" * 10**6}
    assert plain_answer(pickle.dumps(values)) == values
    assert plain_answer(pickle.dumps({"a": ("b",)})) == {"a": ["b"]}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"Hello",
        pickle.dumps([]),
        b"\x80\x04\x8b" + (10**9).to_bytes(4, "little") + b"x.",
        b"\x80\x04}]b.",
        b"\x80\x04}]R.",
    ],
)
def test_other_bytes_are_no_answer(text: bytes) -> None:
    with bounded_memory():
        assert plain_answer(text) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (pickle.dumps({"a": Anything()}), r"test_driver_scripts\.Anything"),
        (pickle.dumps({"a": b"bytes"}), "type bytes"),
        (pickle.dumps({"a": {1, 2}}), "type set"),
        (pickle.dumps({("a",): 1}), "keys must be str"),
        (pickle.dumps({"a": float("nan")}), "not JSON compliant"),
        (pickle.dumps({"a": nested(2, 10_000)}), "at most 16777216 bytes"),
        (pickle.dumps({"a": ["x" * 10**6] * 100}), "at most 16777216 bytes"),
    ],
    ids=range(7),
)
def test_an_answer_that_would_take_much_memory_is_refused(text: bytes, found: str) -> None:
    with bounded_memory(), pytest.raises(ScriptError, match=found):
        plain_answer(text)


@pytest.mark.parametrize(
    "text",
    [
        b"\x80\x04}r\xff\xe0\xf5\x05.",
        b"}p100000000\n.",
        b"\x80\x04" + b"}" * 10_000_000 + b".",
        b"\x80\x04\x8e" + (10**9).to_bytes(8, "little") + b"x.",
        b"\x80\x05\x96" + (10**9).to_bytes(8, "little") + b"x.",
    ],
    ids=range(5),
)
def test_a_pickle_that_takes_much_memory_takes_none_of_the_services(text: bytes) -> None:
    with bounded_memory(), suppress(ScriptError):
        assert plain_answer(text) == {}


def test_an_answer_whose_keys_have_one_hash_is_ended_while_other_threads_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each key is compared with all before it: without a limit that takes hours."""
    monkeypatch.setattr(driver_answer, "_SECONDS", 3.0)
    keys = b"".join(b"\x8a" + bytes([60]) + _number_of(n) + b"N" for n in range(1, 60_000))
    with pytest.raises(ScriptError, match="cannot be read within"):
        plain_answer(b"\x80\x04}(" + keys + b"u.")


def _number_of(n: int) -> bytes:
    """Return a number whose hash is 0, as a pickle has it."""
    return (n * (2**61 - 1)).to_bytes(60, "little")
