# SPDX-License-Identifier: Apache-2.0
"""Sealed values and the file with the keys."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from container_update.cluster.private_file import others_rights, private_text
from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.store.vault import Vault, VaultError

VALUE = {"cluster": {"accessInfo": {"bearer_token": "s3cret", "many": [1, None, True]}}}


def write(path: Path, *keys: str) -> Path:
    path.write_text("\n".join(keys) + "\n")
    path.chmod(0o600)
    return path


def test_sealed_values_can_be_opened_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "state" / "vault.key"
    sealed = Vault(path).seal(VALUE)
    assert "s3cret" not in sealed
    assert Vault(path).open(sealed) == VALUE
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["vault.key"]


def test_the_same_value_is_never_sealed_the_same_way(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "key")
    assert vault.seal(VALUE) != vault.seal(VALUE)


def test_a_new_first_key_seals_and_the_old_one_still_opens(tmp_path: Path) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    sealed = Vault(write(tmp_path / "key", old)).seal(VALUE)
    both = Vault(write(tmp_path / "key", new, old))
    renewed = both.seal(both.open(sealed))
    only_new = Vault(write(tmp_path / "key", new))
    assert both.open(sealed) == only_new.open(renewed) == VALUE
    with pytest.raises(VaultError, match="none of its keys decrypts"):
        only_new.open(sealed)


@pytest.mark.parametrize("sealed", ["", "gAAAAA", "not base64 !", "\u00e4"])
def test_a_value_that_was_not_sealed_cannot_be_opened(tmp_path: Path, sealed: str) -> None:
    with pytest.raises(VaultError):
        Vault(tmp_path / "key").open(sealed)


@pytest.mark.parametrize("text", ["", "hunter2-is-no-key", "\u00e4"], ids=["none", "other", "utf8"])
def test_a_file_without_keys_is_refused_without_showing_its_content(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(ContainerUpdateError) as caught:
        Vault(write(tmp_path / "key", text))
    assert "hunter2" not in str(caught.value)
    assert str(tmp_path / "key") in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_file_that_others_have_rights_on_is_refused(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path / "key", Fernet.generate_key().decode())
    path.chmod(mode)
    with pytest.raises(ContainerUpdateError, match="chmod 600"):
        Vault(path)


def test_two_services_that_start_at_once_share_the_key_file(tmp_path: Path) -> None:
    barrier, texts = threading.Barrier(8), []

    def start(number: int) -> None:
        barrier.wait(10)
        texts.append(private_text(tmp_path / "file", f"text {number}"))

    threads = [threading.Thread(target=start, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(texts) == 8
    assert len(set(texts)) == 1


@pytest.mark.parametrize(
    ("owner", "user", "mode", "private"),
    [
        pytest.param(10001, 10001, 0o600, True, id="the user's own"),
        pytest.param(10001, 10001, 0o640, False, id="the user's own, and its group reads it"),
        pytest.param(0, 10001, 0o440, True, id="a Secret of Kubernetes, a credential of systemd"),
        pytest.param(0, 10001, 0o460, False, id="root's, and its group writes it"),
        pytest.param(0, 10001, 0o444, False, id="root's, and everybody reads it"),
        pytest.param(0, 0, 0o440, False, id="the service runs as root, and a group reads it"),
        pytest.param(10002, 10001, 0o440, False, id="another user's"),
    ],
)
def test_only_roots_own_group_may_read_a_private_file(
    owner: int, user: int, mode: int, private: bool
) -> None:
    assert (mode & others_rights(owner, user) == 0) is private
