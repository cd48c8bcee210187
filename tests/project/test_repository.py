# SPDX-License-Identifier: Apache-2.0
"""Consistency of the files of the repository."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DEMO = (
    "python3 -m venv .venv && .venv/bin/pip install '.[emulator]' "
    "&& .venv/bin/container-update try demo"
)
TESTS = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest"
ON_THE_LAB = "tests/functional --ignore=tests/functional/stacks -n 4 --durations=40"
PLACES = re.compile(r"/(?:work|home|root|Users|opt/pypi[a-z-]*)/[A-Za-z0-9.]")
"""Paths that only exist on somebody's own machine."""


DECISIONS = ROOT.glob("doc/source/developers/decisions/[0-9]*.rst")
PAGES = [
    *(f"doc/source/developers/{page}" for page in ("architecture", "heat", "promises")),
    *sorted(str(path.relative_to(ROOT).with_suffix("")) for path in DECISIONS),
]


def lines(path: str) -> list[str]:
    return [line.strip() for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("command", [DEMO, TESTS])
def test_the_readme_has_the_command_on_one_line(command):
    assert command in lines("README.rst")


@pytest.mark.parametrize("path", [".ci/run", "CONTRIBUTING.rst"])
def test_the_test_command_is_the_one_in_the_readme(path):
    assert TESTS in lines(path)


def test_ci_is_a_program_of_bash():
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
    subprocess.run(["bash", "-n", ROOT / ".ci/run"], check=True)


LAB = """#!/bin/sh
echo "$1 $LAB_PORT" >>"$(dirname "$0")/calls"
case $1 in start) [ ! -e "$(dirname "$0")/broken" ] || exit 3; echo "$2/admin" ;; esac
"""
PYTEST = f"""#!{sys.executable} -SE
import os, signal, sys
print("pytest", *sys.argv[1:], flush=True)
print(os.path.basename(os.environ.get("CONTAINER_UPDATE_KUBECONFIG", "no")), "cluster", flush=True)
try:
    if os.path.exists("endless"):
        signal.pause()
except KeyboardInterrupt:
    pass
print("the summary", flush=True)
if os.path.exists("fails once"):
    os.remove("fails once")
    sys.exit(1)
sys.exit(os.path.exists("fails"))
"""
ENDINGS = {
    "no lab": ((), 0, "pytest -m thorough", []),
    "no lab, and a failure": (("fails",), 1, "pytest -m thorough", []),
    "a lab": (("lab",), 0, f"pytest {ON_THE_LAB}\nadmin cluster", ["start", "stop"]),
    "a lab, and a failure": (("lab", "fails"), 1, f"pytest {ON_THE_LAB}", ["start", "stop"]),
    "a failure that does not come again": (
        ("lab", "fails once"), 0, "-n 0 --last-failed", ["start", "stop"],
    ),
    "a lab that does not start": (("lab", "lab/broken"), 1, "", ["start", "stop"]),
    "a lab, and no end": (("lab", "endless"), 124, "longer than 5s", ["start", "stop"]),
}  # fmt: skip
"""Files that are there; exit status; what is said; what was asked of the lab."""


def part_of_ci(begin: str, end: str = "") -> str:
    """Return what CI does between two texts, with the functions that it uses."""
    script = (ROOT / ".ci/run").read_text()
    functions = script[script.index("# within LIMIT") : script.index("provide python3 command")]
    start = script.index(begin)
    return functions + script[start : script.index(end, start) if end else None]


def run_part_of_ci(folder: Path, script: str, there: Iterable[str]) -> Any:
    """Run it in a folder with a pytest that does as the files say that are there."""
    (folder / ".venv/bin").mkdir(parents=True)
    write_program(folder / ".venv/bin/pytest", PYTEST)
    for name in there:
        if name == "lab":
            (folder / name).mkdir()
            write_program(folder / "lab/lab.sh", LAB)
        else:
            (folder / name).touch()
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "KUBERNETES_LAB": str(folder / "lab")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("there", "status", "runs"), [((), 0, 1), (("fails once",), 0, 2), (("fails",), 1, 2)]
)
def test_ci_runs_once_more_what_has_failed(tmp_path, there, status, runs):
    script = part_of_ci("status=0", "\n# The tools of").replace(TESTS, ".venv/bin/pytest")
    done = run_part_of_ci(tmp_path, f'{script}\nexit "$status"', there)
    assert done.returncode == status, done.stdout
    assert done.stdout.count("the summary\n") == runs
    assert ("once more and one after another" in done.stdout) == (runs == 2)


@pytest.mark.parametrize(("there", "status", "said", "asked"), ENDINGS.values(), ids=ENDINGS)
def test_ci_ends_with_the_lab_or_with_the_thorough_circle(tmp_path, there, status, said, asked):
    script = "status=0\n" + part_of_ci("\nlab=")
    if "endless" in there:
        script = script.replace("limit=45m", "limit=5s")
    done = run_part_of_ci(tmp_path, script, there)
    assert done.returncode == status, done.stdout
    assert said in done.stdout
    assert ("No tests on a real Kubernetes" in done.stdout) == ("lab" not in there)
    assert done.stdout.endswith("the summary\n") or "lab/broken" in there
    calls = (tmp_path / "lab/calls").read_text().split() if asked else []
    assert calls[::2] == asked
    assert len(set(calls[1::2])) == bool(asked)


def test_ci_knows_the_oldest_and_the_newest_python_of_the_machine(tmp_path):
    hidden = tmp_path / "versions/3.10.13/bin"
    hidden.mkdir(parents=True)
    for name in ("python3", "python3.9", "python3.11", "python3.11-config", "python3.13"):
        write_program(tmp_path / name, f"#!/bin/sh\necho py3{name[8:]} $0\n")
    write_program(
        tmp_path / "python3.12", "#!/bin/sh\nexit 127\n"
    )  # as pyenv has one that is not selected
    write_program(hidden / "python3.10", "#!/bin/sh\necho py310 $0\n")
    for name in ("grep", "sort"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    function = re.search(r"^pythons\(\) \{.*?^\}$", (ROOT / ".ci/run").read_text(), re.M | re.S)
    assert function
    done = subprocess.run(
        [str(shutil.which("bash")), "-c", f"{function.group()}; pythons"],
        env={"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    paths = {"py310": hidden / "python3.10", "py311": tmp_path / "python3.11"}
    paths["py313"] = tmp_path / "python3.13"
    assert done.stdout.splitlines() == [f"{name} {path}" for name, path in paths.items()]


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("page", ["CONTRIBUTING", *PAGES])
def test_the_modules_that_developers_are_sent_to_are_there(page):
    named = re.findall(r"``((?:[a-z0-9_]+/)*[a-z0-9_]+\.py)", (ROOT / f"{page}.rst").read_text())
    assert named or "decisions" in page
    there = {str(path.relative_to(ROOT)) for path in tracked() if path.exists()}
    missing = [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in there)]
    assert missing == []


MEASURED = {"tests/hostile.py": "a process whose memory is measured imports no more than it needs"}
"""Modules of tests that import internals by their own path, and why."""


def imports(path: Path) -> set[str]:
    """Return the modules from which a module imports."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_internals_are_imported_by_one_place_of_the_tests():
    internal = re.compile(r"container_update\.(?!emulator\b)")
    tests = {path.relative_to(ROOT).as_posix(): path for path in tracked() if path.suffix == ".py"}
    by_path = {
        name
        for name, path in tests.items()
        if re.match(r"tests/(?!unit/|internals/)", name) and any(map(internal.match, imports(path)))
    }
    assert by_path == set(MEASURED), "import it from container_update, or from tests/internals"


def test_bindep_lists_what_ci_installs():
    installed = [line.split()[1] for line in lines(".ci/run") if line.startswith("provide ")]
    listed = [line.split()[0] for line in lines("bindep.txt") if line[:1] not in ("", "#")]
    assert listed == sorted(installed)


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout: " + listed.stderr.strip())
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_no_file_contains_a_path_of_a_developers_machine():
    lines_with_paths = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked()
        if path.is_file() and path.suffix not in {".png", ".zip"}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PLACES.search(line)
    ]
    assert lines_with_paths == []


def test_every_part_of_the_documentation_that_a_file_names_exists():
    named = {
        f"{path.relative_to(ROOT)}: {page}"
        for path in tracked()
        if path.is_file() and path.suffix not in {".png", ".zip"}
        for page in re.findall(r"doc/source/[\w/.-]*\w", path.read_text(encoding="utf-8"))
        if not (ROOT / page).exists()
    }
    assert named == set()


def test_every_ruled_line_of_the_documentation_belongs_to_a_title():
    """Sphinx takes one that does not, which a merge has left for example, for ordinary text."""
    broken = []
    for path in (path for path in tracked() if path.suffix == ".rst"):
        text = ["", *path.read_text(encoding="utf-8").splitlines(), ""]
        for number, line in enumerate(text):
            if not re.fullmatch(r"([=\-~^])\1+", line):
                continue
            above, title = text[number - 2], text[number - 1]
            is_over = not title and text[number + 2 :][:1] == [line]
            is_under = bool(title) and len(line) >= len(title) and above in ("", line)
            if not (is_over or is_under):
                broken.append(f"{path.name}:{number}")
    assert broken == []


PINNED = ("container_update/drivers/tacker_v", "samples/")
"""Compared byte for byte with copies, or hashed: no line may be added."""


def test_every_python_file_names_its_license():
    names = [path.relative_to(ROOT).as_posix() for path in tracked() if path.is_file()]
    modules = [name for name in names if name.endswith(".py") and not name.startswith(PINNED)]
    header = "# SPDX-License-Identifier: Apache-2.0"
    assert [name for name in modules if header not in lines(name)[:2]] == []
