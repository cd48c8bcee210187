# SPDX-License-Identifier: Apache-2.0
"""What keeps the service from starting is said in a sentence that names it, and no secret."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from container_update import ContainerUpdateError, Options
from container_update.cli import main
from tests.internals.service import Service, Settings

SECRET = "hunter2-and-more"

REFUSED = {
    "[vnfm]\nworkers = 0": "workers .* Should be greater than or equal to 1",
    "[vnfm]\nport = 70000": "port .* less than or equal to 65535",
    "[vnfm]\nhost = a b": "option host ",
    "[vnfm]\nport = many": "option port ",
    f"[vnfm]\nkeystone_password {SECRET}": r"vnfm.conf:2: No ':' or '=' found in assignment",
    "[vnfm]\nkeystone_password = pa$word": r"a \$ in a value .*: write \$\$ for a \$",
    f"[vnfm]\ndatabase_url = postgresql://me:{SECRET}@host:x/db": r"expected .* write %40 for @",
    f"[vnfm]\ndatabase_url = postgresql://me:{SECRET}@127.0.0.1:1/db": "cannot be used: .*refused",
    f"[vnfm]\ndatabase_url = postgresql://127.0.0.1:1/db?user=me&password={SECRET}": "refused",
    "[vnfm]\ndatabase_url = sqlite:////nowhere/db": "/nowhere/db: expected a file that belongs to",
}


@pytest.mark.parametrize("conf", REFUSED)
def test_a_setting_that_cannot_be_used_is_named(
    conf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "vnfm.conf"
    file.write_text(conf)
    words = ["vnfm", "db", "upgrade", "--config-file", str(file)]
    assert main.main([*words, "--state-dir", str(tmp_path / "state")]) == 1
    text = " ".join(capsys.readouterr().err.split())
    assert re.search(REFUSED[conf], text), text
    assert "word" not in text.replace("keystone_password", "").replace("a password", "")
    assert SECRET not in text


def _private(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)


def _short_token(state: Path) -> None:
    _private(state / "tokens", "ann too-short")


def _public_tokens(state: Path) -> None:
    _private(state / "tokens", f"ann {SECRET}")
    (state / "tokens").chmod(0o644)


def _no_key(state: Path) -> None:
    _private(state / "vault.key", SECRET)


def _for_everybody(state: Path) -> None:
    state.chmod(0o777)


def _no_database(state: Path) -> None:
    _private(state / "vnfm.sqlite", "no database " * 100)


def _newer_tables(state: Path) -> None:
    with closing(sqlite3.connect(state / "vnfm.sqlite")) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num)")
        connection.execute("INSERT INTO alembic_version VALUES ('9999')")
        connection.commit()


STATES: Mapping[Callable[[Path], None], str] = {
    _short_token: "tokens:1: expected NAME TOKEN",
    _public_tokens: r"others than its owner have rights on it \(mode 644\)",
    _no_key: "vault.key: expected Fernet keys",
    _for_everybody: "found one for everybody",
    _no_database: "vnfm.sqlite cannot be used: file is not a database",
    _newer_tables: r"its tables have revision 9999, and .* knows none after \d{4}",
}


@pytest.mark.parametrize("spoil", STATES, ids=lambda spoil: spoil.__name__)
def test_a_state_directory_that_cannot_be_used_is_named(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    spoil(state)
    with pytest.raises(ContainerUpdateError, match=STATES[spoil]) as raised:
        Service(Settings(state_dir=str(state)), Options())
    assert SECRET not in str(raised.value)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


NAMES = {
    "[vnfm]\ndrain_second = 1": "[vnfm] drain_second: there is no such option, so it has no "
    "effect: did you mean drain_seconds?",
    "state-dir = x": "[vnfm] state-dir: there is no such option, so it has no effect: did you mean "
    "state_dir?",
    "[container_update]\nnamespace = x": "[container_update] namespace: there is no such option, "
    "so it has no effect: remove it",
    "[VNFM]\nports = 1": "[VNFM] ports: there is no such option, so it has no effect: did you mean "
    "port?",
    "[vnmf]\nport = 1": "[vnmf] is not read: did you mean vnfm?",
    "[DEFAULT]\ndebug = true": None,
    "[oslo_messaging]\nx = 1": None,
}
"""Parts of a file, and what a start says of each; what may be of other programs is let alone."""


def test_an_option_that_does_not_exist_and_an_address_that_is_taken_are_named(
    taken: int, tmp_path: Path
) -> None:
    file = tmp_path / "vnfm.conf"
    file.write_text("\n".join(NAMES))
    words = ["vnfm", "serve", "--config-file", str(file), "--port", str(taken)]
    started = subprocess.run(
        [sys.executable, "-m", "container_update", *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert started.returncode == 1
    logged = [json.loads(line) for line in started.stderr.splitlines() if line.startswith("{")]
    said = [entry["message"].partition("vnfm.conf: ")[2] for entry in logged]
    assert said == [each for each in NAMES.values() if each]
    assert {entry["levelname"] for entry in logged} == {"WARNING"}
    assert "choose another address or port" in started.stderr
