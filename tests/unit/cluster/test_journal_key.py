# SPDX-License-Identifier: Apache-2.0
"""The key of a user is made once, for them alone."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from container_update.cluster import private_file
from container_update.cluster.journal_key import key_of
from container_update.model.errors import ContainerUpdateError
from container_update.model.options import Options


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the key of the user is in, when it is made."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "container-update" / "journal.key"


def test_the_key_of_a_user_is_made_once_for_its_owner_only(file: Path) -> None:
    assert key_of(Options()) == key_of(Options()) == file.read_text().strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_processes_that_begin_at_once_end_with_one_key(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, keys = threading.Barrier(8), list[str]()
    create = private_file._create

    def create_together(path: Path, text: str) -> None:
        both.wait(30)
        create(path, text)

    monkeypatch.setattr(private_file, "_create", create_together)
    threads = [threading.Thread(target=lambda: keys.append(key_of(Options()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert keys == [file.read_text().strip()] * 8


@pytest.mark.parametrize(
    ("options", "of_login", "key"),
    [
        (Options(journal_key="configured"), None, "configured"),
        (Options(journal_key="configured"), "of a VIM", "configured"),
        (Options(), "of a VIM", "of a VIM"),
        (Options(), "", ""),
        (Options(no_journal_key=True), None, ""),
        (Options(no_journal_key=True), "of a VIM", ""),
        (Options(no_journal_key=True, journal_key="configured"), None, ""),
    ],
)
def test_what_is_configured_or_of_a_login_makes_no_key(
    file: Path, options: Options, of_login: str | None, key: str
) -> None:
    assert key_of(options, of_login) == key
    assert not file.exists()


def spoil_with_rights(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("a key")
    file.chmod(0o644)


def spoil_with_nothing(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.touch(0o600)


def spoil_the_folder(file: Path) -> None:
    file.parent.parent.write_text("no folder")


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (spoil_with_rights, "chmod 600"),
        (spoil_with_nothing, "it is empty"),
        (spoil_the_folder, "expected a folder"),
    ],
)
def test_a_key_that_cannot_be_read_or_made_is_an_error_with_both_ways_out(
    file: Path, spoil: object, problem: str
) -> None:
    assert callable(spoil)
    spoil(file)
    ways = "option journal_key.*option no_journal_key"
    with pytest.raises(ContainerUpdateError, match=rf"(?s){file.parent}.*{problem}.*{ways}"):
        key_of(Options())


def test_a_user_without_a_home_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    with pytest.raises(ContainerUpdateError, match="has no home folder"):
        key_of(Options())
