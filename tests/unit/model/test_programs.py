# SPDX-License-Identifier: Apache-2.0
"""The programs that are started: what of our environment, and which words, reach each of them."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from container_update.model import programs
from container_update.model.options import Options
from container_update.package import csar, oci
from container_update.package.tools.check import check
from tests.packages import CONFIG_MAP

AUTHORITIES = {"SSL_CERT_DIR", "SSL_CERT_FILE"}
REACHES: dict[str, set[str] | None] = {
    "helm": set(),
    "kubectl": set(),
    "openssl": {"LD_LIBRARY_PATH"},
    "docker-credential-*": None,
    "the exec plugin of a kubeconfig": None,
    "a script of a package": {"LANG", "LC_ALL", "LC_CTYPE", "PATH", *AUTHORITIES, "TZ"},
    "toscaparser": {"LD_LIBRARY_PATH", "PATH"},
    "the reader of a driver's answer": {"LD_LIBRARY_PATH"},
}
"""The variables that reach each program; None: all, as the user has configured this program."""
CREDENTIALS = {
    "KUBECONFIG": "/admin.kubeconfig",
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "HELM_PLUGINS": "/plugins",
    "HELM_KUBETOKEN": "secret",
    "HTTPS_PROXY": "http://user:secret@proxy",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "GIT_SSH_COMMAND": "ssh -i key",
    "SSH_AUTH_SOCK": "/agent",
    "OS_PASSWORD": "secret",
}
"""Of our environment, what no program may see that works on what others have written."""


def test_each_program_gets_the_variables_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new program, or a new variable, needs a row here and in ``threat-model.rst``."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    assert {each.name: each.inherits and set(each.inherits) for each in programs.PROGRAMS} == {
        name: variables or (() if variables is not None else None)
        for name, variables in REACHES.items()
    }
    made = {name for name, value in vars(programs).items() if isinstance(value, programs.Program)}
    assert {vars(programs)[name].name for name in made} == REACHES.keys()
    for each in programs.PROGRAMS:
        seen = each.environment().items() & CREDENTIALS.items()
        assert not seen or each.inherits is None, each.name


def test_the_threat_model_names_each_program() -> None:
    page = Path(__file__).parents[3] / "doc/source/developers/threat-model.rst"
    text = page.read_text(encoding="utf-8")
    assert [each.name for each in programs.PROGRAMS if f"* - {each.name}" not in text] == []


Door = Callable[[Path], object]


def chart(folder: Path, name: object = "upf") -> object:
    (folder / "Chart.yaml").write_text(json.dumps({"apiVersion": "v2", "name": name}))
    return check(str(folder), options=Options(render=True))


def kustomization(folder: Path) -> object:
    (folder / "kustomization.yaml").write_text("resources: []")
    return check(str(folder), options=Options(render=True))


def signed(folder: Path) -> object:
    (folder / "upf.yaml").write_text(CONFIG_MAP)
    (folder / "upf.yaml.p7s").write_text("DER")
    with suppress(csar.PackageError), csar.open_package(str(folder / "upf.yaml")) as package:
        return package.source
    return None


def login(folder: Path) -> object:
    (folder / "config.json").write_text('{"credsStore": "safe"}')
    return oci.credentials("registry.example.org")


DOORS: dict[str, tuple[str, Door, list[str] | None]] = {
    "helm": ("helm", chart, ["upf", "FOLDER"]),
    "kubectl": ("kubectl", kustomization, ["FOLDER"]),
    "openssl": ("openssl", signed, None),
    "docker-credential-*": ("docker-credential-safe", login, None),
}
"""The name of its file, what has it started, and its operands."""
ELSEWHERE = {
    "the exec plugin of a kubeconfig": "cluster/login/test_exec_plugin.py",
    "a script of a package": "engine/test_coordination.py",
    "toscaparser": "package/test_tosca.py",
    "the reader of a driver's answer": "../vnfm/test_driver_scripts.py",
}
"""Programs with no words of others but a script's path; what is tried with them."""


def test_each_program_is_started_with_words_and_credentials_that_it_must_not_get() -> None:
    unit = Path(__file__).parents[1]
    assert DOORS.keys() | ELSEWHERE.keys() == REACHES.keys()
    assert [path for path in ELSEWHERE.values() if not (unit / path).is_file()] == []


@pytest.mark.parametrize(("program", "door", "operands"), DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("folder", ["upf", "--post-renderer=sh"])
def test_a_program_gets_no_credentials_and_no_word_of_others_as_an_option(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    door: Door,
    operands: list[str] | None,
    folder: str,
) -> None:
    """A stand-in notes how it is started; the folder, too, has a name of the author's choice."""
    folder = f"{folder}-{program}"  # what is rendered is kept by its path
    noted, place = tmp_path / "noted", tmp_path / folder
    place.mkdir()
    (tmp_path / program).write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"facts = sys.argv[1:], dict(os.environ), os.getcwd(), os.listdir()\n"
        f"open({str(noted)!r}, 'w').write(json.dumps(facts))\n"
        f"print({CONFIG_MAP!r} if {program!r} in ('helm', 'kubectl') else '{{}}')\n"
        f"sys.exit({program!r}.startswith('docker'))\n"
    )
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(place))
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    door(Path(folder))
    words, environment, where, files = json.loads(noted.read_text())
    if program.startswith("docker"):  # configured by the user, and may need anything
        assert words == ["get"]
        return
    assert not environment.items() & CREDENTIALS.items()
    assert where == environment["HOME"] == environment["PATH"] != str(tmp_path)
    assert files == []
    assert not os.path.exists(where)
    at = words.index("--") if operands else len(words)
    expected = [str(place) if each == "FOLDER" else each for each in operands or ()]
    assert words[at + 1 :] == expected
    assert not any(folder in word and word.startswith("-") for word in words[:at])


@pytest.mark.parametrize(
    "name",
    ["--post-renderer=sh", "-h", "a b", "../x", "A", "", "x" * 54, "a-", 7, ["a"], None],
)
def test_a_chart_is_not_rendered_under_a_name_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: object
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(csar.PackageError, match=r"Chart\.yaml: name: expected a name that Helm"):
        chart(tmp_path, name)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="this system limits no other process")
def test_a_program_ends_at_its_limits_of_memory_and_of_processor_time() -> None:
    """The second one also where the command that started it was killed."""
    program = programs.Program("python", (), memory=2**28)
    code = (
        "import resource\n"
        "while resource.getrlimit(resource.RLIMIT_CPU)[0] != 61: pass\n"
        "try: bytearray(2**30)\n"
        "except MemoryError: print('refused')\n"
    )
    ran = programs.run(program, sys.executable, ["-c", code], seconds=60)
    assert ran.stdout == b"refused\n", ran.stderr


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_prints_without_an_end_is_ended(stream: str) -> None:
    program = programs.Program("python", ())
    code = f"import sys\nwhile True: sys.{stream}.write('a' * 1000)"
    with pytest.raises(programs.TooMuchError):
        programs.run(program, sys.executable, ["-c", code], seconds=60, most=10_000)


def test_a_program_that_does_not_end_is_ended() -> None:
    program = programs.Program("python", ())
    with pytest.raises(programs.TimeoutExpired):
        programs.run(program, sys.executable, ["-c", "while True: pass"], seconds=0.5)
