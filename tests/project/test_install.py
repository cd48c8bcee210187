"""``install.py``, the README's first command: it shows how far pip is, and fails when pip does."""

from __future__ import annotations

import io
import sys

import pytest

import install

PIP_SAYS = """\
Processing /somewhere/container-update
  Installing build dependencies: started
Collecting kubernetes>=30 (from container-update==0.1.0)
  Downloading kubernetes-36.0.0-py2.py3-none-any.whl (2.0 MB)
Requirement already satisfied: pip in .venv/lib/python3.11/site-packages
Processing /wheels/PyYAML-6.0.3-cp311-cp311-linux_x86_64.whl (from container-update==0.1.0)
Building wheels for collected packages: container-update
  Building wheel for container-update (pyproject.toml): started
Installing collected packages: PyYAML, kubernetes, container-update
Successfully installed PyYAML-6.0.3 container-update-0.1.0 kubernetes-36.0.0
"""
STEPS = [
    "collecting container-update",
    "collecting kubernetes>=30",
    "collecting PyYAML-6.0.3-cp311-cp311-linux_x86_64.whl",
    "building a wheel",
    "installing 3 packages",
]


def test_what_pip_says_becomes_one_line_for_each_package(
    capsys: pytest.CaptureFixture[str],
) -> None:
    install.show(io.StringIO(PIP_SAYS), terminal=False)
    assert [line.partition(" s  ")[2] for line in capsys.readouterr().out.splitlines()] == STEPS


def test_a_terminal_shows_one_line_that_fits_into_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    install.show(io.StringIO(PIP_SAYS), terminal=True)
    first, *shown = capsys.readouterr().out.split("\r\x1b[K")
    assert (first, shown[-1]) == ("", ""), "the line is not cleared at the end"
    assert len(shown) == len(STEPS) + 1
    assert all("\n" not in line and len(line) < 30 for line in shown)


@pytest.mark.parametrize(
    ("venv", "pip", "status", "ends_with"),
    [
        pytest.param(0, 0, 0, ".venv/bin/container-update", id="both succeed"),
        pytest.param(0, 3, 3, "takes about a minute", id="pip fails"),
        pytest.param(2, 0, 2, "takes about a minute", id="venv fails"),
    ],
)
def test_the_status_is_that_of_what_failed(
    venv: int,
    pip: int,
    status: int,
    ends_with: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = "import sys; sys.exit({})".format
    monkeypatch.setattr(install, "VENV", (sys.executable, "-c", program(venv)))
    monkeypatch.setattr(install, "PIP", (sys.executable, "-c", program(pip)))
    assert install.install(["emulator"]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Installing into .venv; takes about a minute"
    assert lines[-1].endswith(ends_with)
