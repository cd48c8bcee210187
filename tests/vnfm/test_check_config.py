# SPDX-License-Identifier: Apache-2.0
"""``container-update serve --check-config``: what a start would trip over, found without one."""

from __future__ import annotations

import io
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from container_update import ContainerUpdateError, Options
from container_update.emulator.heat import EmbeddedOpenStack
from tests.internals.core import main
from tests.internals.service import Database, Service, Settings, Vault, VimRow, known_revisions, now
from tests.vnfm.later import later_version

SECRET = "hunter2-and-more"


def checked(folder: Path, conf: str = "", *arguments: str) -> tuple[int, str]:
    """Check a configuration; return the exit status and what was written."""
    file, out = folder / "vnfm.conf", io.StringIO()
    file.write_text(conf)
    words = ["vnfm", "serve", "--check-config", "--config-file", str(file), "--port", "0"]
    state = ["--state-dir", str(folder / "state")]
    status = main([*words, *state, *arguments], out)
    assert SECRET not in out.getvalue()
    return status, out.getvalue()


def problems(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("problem")]


def files(folder: Path) -> Mapping[str, bytes]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_before_the_first_start_all_is_in_order_and_nothing_is_created(tmp_path: Path) -> None:
    status, text = checked(tmp_path)
    assert (status, problems(text)) == (0, [])
    names = ["settings", "state_dir", "auth", "key_file", "tls_cert", "database", "address"]
    assert re.findall(r"^ok +(\w+): ", text, re.M) == names
    assert text.count("the first start creates it") == 4
    assert files(tmp_path).keys() == {"vnfm.conf"}


def test_after_a_start_nothing_is_changed(tmp_path: Path) -> None:
    started = Service(Settings(state_dir=str(tmp_path / "state")), Options())
    started.context.process_lock.leave()
    started.context.database.close()
    before = files(tmp_path)
    status, text = checked(tmp_path)
    assert (status, problems(text)) == (0, [])
    assert "tokens of admin" in text
    assert f"its tables have revision {known_revisions()[0]}, the newest" in text
    (token,) = (tmp_path / "state/tokens").read_text().split()[1:]
    assert token not in text
    assert {**before, "vnfm.conf": b""} == files(tmp_path)


NAMES = {
    "[vnfm]\ndrain_second = 1": "[vnfm] drain_second: there is no such option, so it has no "
    "effect: did you mean drain_seconds?",
    "[vnfm]\nstate-dir = x": "[vnfm] state-dir: .* did you mean state_dir?",
    "[container_update]\nnamespace = x": "[container_update] namespace: .*: remove it",
    "[VNFM]\nports = 1": "[VNFM] ports: .* did you mean port?",
    "[vnmf]\nport = 1": "[vnmf] is not read: did you mean vnfm?",
}


@pytest.mark.parametrize("conf", NAMES)
def test_an_option_that_does_not_exist_is_named(conf: str, tmp_path: Path) -> None:
    status, text = checked(tmp_path, conf)
    (line,) = problems(text)
    assert status == 1
    pattern = re.escape(NAMES[conf]).replace(r"\.\*", ".*").replace("\\ ", " ")
    assert re.search(f"vnfm.conf: {pattern}$", line), line
    assert len(text.splitlines()) == 8, "everything else is checked too"


def test_sections_of_other_programs_are_let_alone(tmp_path: Path) -> None:
    conf = "[DEFAULT]\ndebug = true\n[oslo_messaging]\nx = 1\n[VNFM]\nworkers = 2\n"
    assert checked(tmp_path, conf)[0] == 0


REFUSED = {
    "[vnfm]\nworkers = 0": "workers .* Should be greater than or equal to 1",
    "[vnfm]\nport = 70000": "port .* less than or equal to 65535",
    "[vnfm]\nhost = a b": "option host ",
    "[vnfm]\nport = many": "option port ",
    f"[vnfm]\nkeystone_password {SECRET}": r"vnfm.conf:2: No ':' or '=' found in assignment$",
    "[vnfm]\nkeystone_password = pa$word": r"a \$ in a value .*: write \$\$ for a \$$",
    f"[vnfm]\ndatabase_url = postgresql://me:{SECRET}@host:x/db": r"expected .* write %40 for @",
    f"[vnfm]\ndatabase_url = postgresql://me:{SECRET}@127.0.0.1:1/db": "cannot be used: .*refused",
    f"[vnfm]\ndatabase_url = postgresql://127.0.0.1:1/db?user=me&password={SECRET}": "refused",
    "[vnfm]\ndatabase_url = sqlite:////nowhere/db": "expected its folder to exist",
    "[vnfm]\ntls_cert = /nowhere/crt\ntls_key = /nowhere/key": "No such file",
    "[vnfm]\nauth = keystone": "keystone_url: expected with auth = keystone",
    "[vnfm]\nauth = keystone\nkeystone_url = http://127.0.0.1:1/v3\nkeystone_username = me\n"
    f"keystone_password = {SECRET}": "gave the service's user no token",
}


@pytest.mark.parametrize("conf", REFUSED)
def test_a_setting_that_cannot_be_used_is_a_problem(conf: str, tmp_path: Path) -> None:
    status, text = checked(tmp_path, conf)
    (line,) = problems(text)
    assert status == 1
    assert re.search(REFUSED[conf], line), line
    assert "word" not in line.replace("keystone_password", "").replace("a password", "")


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


def _private(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)


STATES: Mapping[Callable[[Path], None], str] = {
    _short_token: "tokens:1: expected NAME TOKEN",
    _public_tokens: r"others than its owner have rights on it \(mode 644\)",
    _no_key: "vault.key: expected Fernet keys",
    _for_everybody: "found one for everybody",
    _no_database: "vnfm.sqlite cannot be used: file is not a database",
    _newer_tables: r"its tables have revision 9999, and .* knows none after \d{4}",
}


@pytest.mark.parametrize("spoil", STATES, ids=lambda spoil: spoil.__name__)
def test_a_state_directory_that_cannot_be_used_is_a_problem(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    spoil(state)
    before = files(state)
    status, text = checked(tmp_path)
    (line,) = problems(text)
    assert status == 1
    assert re.search(STATES[spoil], line), line
    assert files(state) == before
    with pytest.raises(ContainerUpdateError):  # and a start trips over it
        Service(Settings(state_dir=str(state)), Options())


@pytest.mark.parametrize("key", ["its own", "another one", "none"])
def test_the_key_has_to_open_what_is_in_the_database(
    key: str, database: str, tmp_path: Path
) -> None:
    settings = Settings(state_dir=str(tmp_path / "state"), database_url=database)
    service = Service(settings, Options()).context
    with service.database.writing() as session:
        sealed = service.vault.seal({"password": SECRET})
        body: dict[str, Any] = {"name": "a", "is_default": True, "body": {}, "sealed": sealed}
        session.add(VimRow(id="a", created=now(), **body))
    service.process_lock.leave()
    service.database.close()
    if key != "its own":
        settings.key_path.unlink()
    if key == "another one":
        Vault(settings.key_path)
    status, text = checked(tmp_path, "", *(("--database-url", database) if database else ()))
    said = {
        "its own": "ok       key_file: .* decrypts the credentials in the database",
        "another one": "problem  key_file: .* put back the key that was in use",
        "none": "problem  key_file: .* not there, and the database has credentials",
    }
    assert (status, bool(re.search(said[key], text))) == (int(key != "its own"), True), text


def test_a_certificate_is_loaded_with_its_key(tmp_path: Path) -> None:
    issued, other = (trustme.CA().issue_cert("vnfm.example") for _ in range(2))
    issued.private_key_pem.write_to_path(tmp_path / "key")
    other.private_key_pem.write_to_path(tmp_path / "other")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "crt")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    (tmp_path / "locked").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(SECRET.encode()),
        )
    )
    said = {"key": "valid until", "other": "expected a certificate", "locked": "has a passphrase"}
    for name, text in said.items():
        conf = f"[vnfm]\ntls_cert = {tmp_path / 'crt'}\ntls_key = {tmp_path / name}"
        status, found = checked(tmp_path, conf)
        (line,) = (line for line in found.splitlines() if "tls_cert" in line)
        assert (status, text in line) == (int(name != "key"), True), line


def test_an_upgrade_is_foretold_and_not_made(database: str, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    url = database or f"sqlite:///{tmp_path / 'state' / 'vnfm.sqlite'}"
    Database(url).upgrade()
    before = Database(url).revision()
    with later_version(tmp_path) as newest:
        for _ in range(2):
            status, text = checked(tmp_path, "", "--database-url", url)
            assert status == 0
            assert f"revision {before}: the start upgrades them to {newest}" in text
        assert Database(url).revision() == before


def test_an_empty_database_gets_its_tables_at_the_start(postgresql: str, tmp_path: Path) -> None:
    status, text = checked(tmp_path, "", "--database-url", postgresql)
    assert (status, "it has no tables yet, the first start creates them" in text) == (0, True)
    assert Database(postgresql).revision() is None


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_an_address_that_is_taken_is_a_problem(taken: int, tmp_path: Path) -> None:
    status, text = checked(tmp_path, "", "--port", str(taken))
    assert status == 1
    assert "choose another address or port" in problems(text)[0]


def test_the_address_of_the_service_that_runs_is_none(
    taken: int, database: str, tmp_path: Path
) -> None:
    settings = Settings(state_dir=str(tmp_path / "state"), database_url=database)
    running = Service(settings, Options())
    arguments = ("--port", str(taken), *(("--database-url", database) if database else ()))
    status, text = checked(tmp_path, "", *arguments)
    assert (status, "a service on this database runs" in text) == (0, True), text
    running.context.process_lock.leave()
    assert checked(tmp_path, "", *arguments)[0] == 1


def test_keystone_is_asked_for_a_token_of_the_services_user(tmp_path: Path) -> None:
    with EmbeddedOpenStack() as cloud:
        auth = cloud.auth()
        conf = (
            f"[vnfm]\nauth = keystone\nkeystone_url = {auth['auth_url']}\n"
            f"keystone_username = {auth['username']}\nkeystone_project = {auth['project_name']}\n"
        )
        wrong = checked(tmp_path, f"{conf}keystone_password = {SECRET}")
        right = checked(tmp_path, f"{conf}keystone_password = {auth['password']}")
    assert (right[0], "got a token" in right[1]) == (0, True), right[1]
    assert (wrong[0], "gave the service's user no token" in wrong[1]) == (1, True), wrong[1]
