# SPDX-License-Identifier: Apache-2.0
"""A coordination script's process: what it has, what it has not, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.scripts import coordination as scripts_of_a_job
from container_update.engine.scripts.coordination import (
    NEW,
    OLD,
    Coordinated,
    Coordination,
    CoordinationError,
    notes,
)
from container_update.engine.scripts.process import Process
from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.model.scripts import ScriptReport, ScriptStep, VduChange
from container_update.package.tools import build

LOGIN = {"cp_name": "CP1", "username": "ubuntu", "password": "sesame-1"}

CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
print(child.pid, flush=True)
"""

LEFT_BEHIND = {
    "a child": CHILD,
    "a child in a session of its own": CHILD.replace(
        ")\nprint", ", start_new_session=True)\nprint"
    ),
    "the child of a child that has ended": """
import os, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(writer, str(os.getpid()).encode())
        time.sleep(120)
    os._exit(0)
print(os.read(reader, 9).decode(), flush=True)
""",
}

ENDLESS = """
import os, pathlib, subprocess, sys, time

class New:
    def __init__(self, context):
        pass

    def coordinate_vnf(self):
        command = [sys.executable, "-c", "import time; time.sleep(120)"]
        child = subprocess.Popen(command, start_new_session=True)
        pathlib.Path("pids.part").write_text(f"{os.getpid()} {child.pid}")
        os.rename("pids.part", "pids")
        time.sleep(120)

if __name__ == "__main__":
    New({}).coordinate_vnf()
"""

UPDATER = """
import os, pathlib, time
from container_update.engine.goals.change_request import ScriptName
from container_update.engine.scripts.process import Script

here = pathlib.Path.cwd()
script = Script(ScriptName("new.py", {class_name!r}), here, {{}})
while not (here / "pids").exists():
    time.sleep(0.01)
os.kill(os.getpid(), 9)
"""


def coordination(folder: Path, script: str, **options: Any) -> Coordination:
    """A package with this script for the new VNF, and the job that names it."""
    (folder / "Scripts").mkdir()
    (folder / "Scripts/new.py").write_text(script)
    (folder / "data.txt").write_text("something beside it")
    build.write_metadata(folder)
    params = {
        "upgrade_type": "Blue-Green",
        "lcm-operation-coordinate-new-vnf": "Scripts/new.py",
        "vdu_params": [{"vdu_id": "VDU1", "new_vnfc_param": LOGIN}],
    }
    request = ChangeRequest.of({"vnfdId": "vnfd", "additionalParams": params})
    access = {"kubeconfig": "config", "token": "sesame-2"}
    options_ = replace(Options(), **options)
    about = Coordinated(request, None, access=access)
    return Coordination(about, {NEW: str(folder)}, options_)


def run(scripts: Coordination) -> str:
    """Run it for one VDU; what it printed."""
    scripts.run(ScriptStep.of(NEW, "Scripts/new.py", VduChange("VDU1", "old", "new")))
    return scripts.reports[-1].output


def assert_ends(pid: int) -> None:
    """The process is there no more, or soon."""
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and not _is_zombie(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs"
        time.sleep(0.01)


def _is_zombie(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def assert_nobody_reads() -> None:
    """Nobody waits for more output of a script: no process is left that could write some."""
    assert "script output" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("script", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_a_script_that_runs_too_long_ends_with_all_that_it_started(
    tmp_path: Path, script: str
) -> None:
    scripts = coordination(tmp_path, script + "time.sleep(120)", coordination_seconds=1)
    with pytest.raises(CoordinationError, match=r"within 1 s, ended it"):
        run(scripts)
    (report,) = scripts.reports
    assert report.status is None
    assert_nobody_reads()
    assert_ends(int(report.output))


@pytest.mark.parametrize("script", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_what_a_script_leaves_running_ends_with_it(tmp_path: Path, script: str) -> None:
    output = run(coordination(tmp_path, script))
    assert_nobody_reads()
    assert_ends(int(output))


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("import os; os.kill(os.getpid(), 11)", 128 + signal.SIGSEGV),
        ("import os; os.killpg(0, 9)", 128 + signal.SIGKILL),
        ("import sys; sys.exit(3)", 3),
    ],
)
def test_the_status_is_that_of_the_script(tmp_path: Path, script: str, status: int) -> None:
    scripts = coordination(tmp_path, script)
    with pytest.raises(CoordinationError, match=f"ended with status {status}"):
        run(scripts)


def test_what_a_program_answers_is_apart_from_what_it_says(tmp_path: Path) -> None:
    program = "import sys; print('the answer'); print('by the way', file=sys.stderr)"
    command = [sys.executable, "-c", program]
    with Process(command, {}, folder=tmp_path, home=tmp_path, answer_bytes=99) as process:
        assert process.wait(60) == 0
    assert (process.answer(), process.output().strip()) == (b"the answer\n", "by the way")


def test_of_much_output_the_end_is_kept(tmp_path: Path) -> None:
    script = "print('x' * 50_000_000); print('the end')"
    output = run(coordination(tmp_path, script))
    assert output.startswith("[...]\nxxx")
    assert output.endswith("x\nthe end\n")
    assert len(output) < 10_000


@pytest.mark.parametrize("class_name", [None, "New"])
def test_a_script_ends_with_a_process_that_is_killed(
    tmp_path: Path, class_name: str | None
) -> None:
    (tmp_path / "new.py").write_text(ENDLESS)
    updater = UPDATER.format(class_name=class_name)
    killed = subprocess.run([sys.executable, "-c", updater], check=False, cwd=tmp_path, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    for pid in (tmp_path / "pids").read_text().split():
        assert_ends(int(pid))


def test_a_stop_ends_a_script_and_is_no_failure_of_it(tmp_path: Path) -> None:
    scripts = coordination(tmp_path, "import time; time.sleep(120)")
    scripts.cancel.request("by a test")
    assert run(scripts) == ""


def test_a_script_has_a_copy_of_the_package_in_a_folder_that_goes(tmp_path: Path) -> None:
    script = "import os, pathlib; print(os.getcwd()); print(pathlib.Path('data.txt').read_text())"
    where, content = run(coordination(tmp_path, script)).splitlines()
    assert content == "something beside it"
    assert Path(where) != tmp_path
    assert not Path(where).exists()


@pytest.mark.parametrize("limit", [{"package_bytes": 100}, {"package_files": 2}])
def test_a_package_over_the_operators_limits_is_not_copied(
    tmp_path: Path, limit: dict[str, int]
) -> None:
    scripts = coordination(tmp_path, "print('it ran')", **limit)
    with pytest.raises(PackageError, match=rf"at most {min(limit.values())} .*option {min(limit)}"):
        run(scripts)
    assert scripts.reports == []


def test_what_a_script_does_to_its_folder_is_done_to_the_copy(tmp_path: Path) -> None:
    run(coordination(tmp_path, "open('data.txt', 'w').write('mine')"))
    assert (tmp_path / "data.txt").read_text() == "something beside it"


def test_a_script_inherits_a_few_harmless_variables_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OS_PASSWORD", "KUBECONFIG", "PYTHONPATH", "LD_PRELOAD"):
        monkeypatch.setenv(name, "")
    found = run(coordination(tmp_path, "import os; print(*os.environ)")).split()
    ours = {"HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE"}
    harmless = {"LANG", "LC_ALL", "LC_CTYPE", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ"}
    assert ours <= set(found) <= ours | harmless


def test_a_script_inherits_no_open_file(tmp_path: Path) -> None:
    script = "import os; print(*sorted(os.listdir('/proc/self/fd'), key=int))"
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        found = run(coordination(tmp_path, script)).split()
    assert found == ["0", "1", "2", "3"], "beside its own three only the listing itself"


def test_what_it_was_told_in_confidence_is_struck_out_of_its_report(tmp_path: Path) -> None:
    script = """
import pickle, sys
mine = pickle.load(sys.stdin.buffer)["coordination"]
print(mine["vnfc_param"]["password"], mine["access"]["token"])
sys.exit(mine["vnfc_param"]["password"])
"""
    scripts = coordination(tmp_path, script)
    with pytest.raises(CoordinationError, match=r"ended with status 1: \*\*\*$") as caught:
        run(scripts)
    assert scripts.reports[0].output.split() == ["***"] * 3
    assert "sesame" not in f"{caught.value}{scripts.reports}"


def test_a_secret_that_begins_or_ends_with_another_is_struck_out_as_a_whole(tmp_path: Path) -> None:
    scripts = coordination(tmp_path, "print('sesame-and-the-rest', 'sesame', 'before-sesame')")
    secrets = {f"password_{name}": "sesame" + "-and-the-rest"[:name] for name in range(14)}
    access = {**secrets, "password": "before-sesame"}
    scripts.about = replace(scripts.about, access=access)
    assert run(scripts).split() == ["***"] * 3


def test_a_script_that_is_not_what_the_package_lists_is_not_run(tmp_path: Path) -> None:
    scripts = coordination(tmp_path, "print('as listed')")
    (tmp_path / "Scripts/new.py").write_text("print('another')")
    with pytest.raises(PackageError, match=r"Scripts/new\.py"):
        run(scripts)
    assert not scripts.reports


# --- the scripts of a job -----------------------------------------------------------------------


def test_a_vnf_without_a_script_has_no_report(tmp_path: Path) -> None:
    scripts = coordination(tmp_path, "")
    assert scripts.run(ScriptStep.of(OLD, "", VduChange("VDU1", "old", "new"))) is None
    assert scripts.reports == []


def test_a_script_that_cannot_be_started_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no process can be started")

    scripts = coordination(tmp_path, "")
    monkeypatch.setattr(scripts_of_a_job, "Script", fail)
    with pytest.raises(CoordinationError, match=r"cannot be run: no process"):
        run(scripts)


@pytest.mark.parametrize(("most", "there"), [(4999, False), (5000, True)])
def test_what_is_as_big_as_a_container_image_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, there: bool
) -> None:
    scripts = coordination(tmp_path, "import pathlib; print(pathlib.Path('data.txt').exists())")
    (tmp_path / "data.txt").write_bytes(bytes(5000))
    monkeypatch.setattr(scripts_of_a_job, "_BIGGEST_COPY", most)
    assert run(scripts) == f"{there}\n"


@pytest.mark.parametrize(("status", "how"), [(3, "status 3"), (None, "was ended")])
def test_a_report_can_be_read_and_be_processed(status: int | None, how: str) -> None:
    report = ScriptReport("new", "VDU1", "Scripts/new.py", status, 1.23456, "one\ntwo\n")
    assert str(report) == (
        f"  Scripts/new.py (new VNF, VDU1): {how} (1.2 s)\n      | one\n      | two"
    )
    assert report.as_dict() == {
        "vnf": "new",
        "vduId": "VDU1",
        "script": "Scripts/new.py",
        "status": status,
        "seconds": 1.235,
        "output": "one\ntwo\n",
    }


@pytest.mark.parametrize(
    ("used", "said"),
    [
        ({NEW}, []),
        (
            set(),
            ["Scripts/new.py is not run: a Blue-Green does not call the script of the new VNF"],
        ),
    ],
)
def test_the_operator_is_told_which_scripts_are_not_run(
    tmp_path: Path, used: set[str], said: list[str]
) -> None:
    assert [note.text for note in notes(coordination(tmp_path, "").about.change, used)] == said
