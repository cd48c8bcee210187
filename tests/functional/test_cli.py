# SPDX-License-Identifier: Apache-2.0
"""The command line as a user types it."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.functional.cnf import BAD_IMAGE, INSTANCE, Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import NOTHING_KEPT, main

OLD = {"cm": config_map(setting="old"), "w": workload("Deployment", container=ENV)}
NEW = {**OLD, "cm": config_map(setting="new")}
BAD = {**NEW, "w": workload("Deployment", container=ENV, image=BAD_IMAGE)}

Target = Callable[[], AbstractContextManager[int]]


class Shell:
    """Runs commands for one CNF."""

    def __init__(self, cnf: Cnf, kubeconfig: str) -> None:
        self.cnf = cnf
        self.common = ("-n", cnf.namespace, "--kubeconfig", kubeconfig, "--instance-id", INSTANCE)
        where = ("--kubeconfig", kubeconfig, "--namespace", cnf.namespace)
        self.way_back = (*where, "--instance-id", INSTANCE)
        cnf.instantiate(**OLD)

    def package(self, files: dict[str, str]) -> str:
        return self.cnf.package({f"{name}.yaml": text for name, text in files.items()})

    def run(self, command: str, *arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        return main([command, *arguments, *self.common], out), out.getvalue()

    def run_into(
        self, target: Target | None, *arguments: str, errors_too: bool = False
    ) -> tuple[int, str]:
        """Run a command in a process of its own; return its status and what it told of errors.

        :param target: opens its standard output; None: it has none.
        :param errors_too: standard error is the same.
        """
        command = [sys.executable, "-m", "container_update", *arguments, *self.common]
        if target is None:
            closed = "1>&- 2>&-" if errors_too else "1>&-"
            command = ["sh", "-c", f'exec "$@" {closed}', "sh", *command]
        with (target or full_disk)() as out:
            errors = out if errors_too else subprocess.PIPE
            done = subprocess.run(command, check=False, stdout=out, stderr=errors, timeout=120)
        return done.returncode, (done.stderr or b"").decode()


@pytest.fixture
def shell(cnf: Cnf, kubeconfig: str) -> Shell:
    return Shell(cnf, kubeconfig)


def test_a_plan_shows_what_restarts_and_why_and_writes_nothing(shell: Shell) -> None:
    status, text = shell.run("plan", shell.cnf.old, shell.package(NEW))
    namespace = shell.cnf.namespace
    assert status == 3
    assert f"ConfigMap {namespace}/cm: replace" in text
    assert (
        f"because env SETTING of container main uses key setting of ConfigMap {namespace}/cm, "
        "which changed" in text
    )
    assert shell.cnf.get("ConfigMap", "cm")["data"] == {"setting": "old"}


def test_apply_shows_the_plan_then_each_step_then_the_summary(shell: Shell) -> None:
    new = shell.package(NEW)
    status, text = shell.run("apply", shell.cnf.old, new)
    assert status == 0
    plan, step, total = (
        text.index("Restarts:"),
        text.index("done: Deployment"),
        text.index("Updated in"),
    )
    assert plan < step < total
    status, text = shell.run("apply", shell.cnf.old, new)
    assert status == 2
    assert text.count("Nothing to do") == 1


def test_a_failure_has_its_status_and_names_its_cause(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = shell.package(BAD)
    status, text = shell.run("apply", shell.cnf.old, bad, "--grace-period", "0.5")
    assert status == 7
    assert "undone: ConfigMap" in text
    error = capsys.readouterr().err
    assert "ImagePull" in error
    assert "Everything is as before" in error
    status, text = shell.run("apply", shell.cnf.old, bad, "--grace-period", "0.5", "-o", "json")
    assert json.loads(text)["error"] == "UpdateFailedError"


def test_there_is_nothing_to_resume_or_roll_back_after_an_update(shell: Shell) -> None:
    shell.run("apply", shell.cnf.old, shell.package(NEW))
    for command in ("status", "resume", "rollback"):
        assert shell.run(command)[0] == 2


@pytest.mark.parametrize(
    ("files", "more", "status"),
    [
        pytest.param({"w": OLD["w"]}, (), 4, id="a wrong package"),
        pytest.param(NEW, ("--namespace", "no-such-namespace"), 5, id="a wrong namespace"),
        pytest.param(NEW, ("--context", "none"), 6, id="no cluster"),
    ],
)
def test_each_class_of_error_has_a_status_of_its_own(
    cnf: Cnf, admin_kubeconfig: str, files: dict[str, str], more: tuple[str, ...], status: int
) -> None:
    shell = Shell(cnf, admin_kubeconfig)
    common = ("-n", cnf.namespace, "--kubeconfig", admin_kubeconfig)
    assert main(["apply", cnf.old, shell.package(files), *common, *more]) == status


@pytest.mark.parametrize(
    ("files", "is_deleted", "refused"),
    [
        pytest.param(
            {**OLD, "cm": config_map("cm-7f9c", setting="new")}, False, (4, "ChangeNeededError"),
            id="new content has a new name, with a hash of kustomize",
        ),
        pytest.param(BAD, True, (5, "MissingError"), id="the workload was deleted"),
    ],
)  # fmt: skip
def test_where_an_update_is_refused_the_plan_names_the_command_that_changes_the_package(
    shell: Shell, files: dict[str, str], is_deleted: bool, refused: tuple[int, str]
) -> None:
    if is_deleted:
        shell.cnf.admin.delete(shell.cnf.key("Deployment", "w"))
    new = shell.package(files)
    for command in ("plan", "apply"):
        status, text = shell.run(command, shell.cnf.old, new, "-o", "json")
        told = json.loads(text)
        assert (status, told["error"]) == refused
        change = f"container-update change {shell.cnf.old} {new} --upgrade-type RollingUpdate "
        assert told["advice"].startswith(f"To do that: {change}")


def test_an_old_package_that_is_not_what_the_instance_runs_from_is_told_with_what_that_is(
    shell: Shell,
) -> None:
    more, another = {"x": config_map("x")}, {"cm": config_map(setting="another")}
    old, new, other = map(shell.package, (OLD | more, NEW | more, OLD | another | more))
    assert shell.run("install", old)[0] == 0
    for given, which in (
        ((other, new), "neither of these packages"),
        ((new, old), "the new package"),  # the two in the wrong order
    ):
        text = shell.run("plan", *given)[1]
        (row,) = (line for line in text.splitlines() if line.startswith("Runs from  "))
        assert row.startswith(f"Runs from  {Path(old).name} (sha256 ")
        assert row.endswith(f"), by its record: {which}")
    for right in ((old, new), (new,)):
        assert "Runs from" not in shell.run("plan", *right)[1]
    document = shell.run("plan", other, new, "-o", "markdown")[1]
    assert ", by its record: neither of these packages" in document


def test_a_plan_that_is_refused_shows_what_a_change_would_do_and_its_command(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    cnf = shell.cnf
    settings = config_map("settings-7f9c", setting="new")
    new = shell.package({**OLD, "cm": settings, "other": config_map("second", b="1")})
    status, text = shell.run("plan", cnf.old, new)
    assert status == 4
    for line in (
        f"+ ConfigMap {cnf.namespace}/settings-7f9c: create",
        f"+ ConfigMap {cnf.namespace}/second: create",
        f"- ConfigMap {cnf.namespace}/cm: delete",
    ):
        assert line in text
    told = capsys.readouterr().err.partition("To do that: container-update ")[2]
    command = told.splitlines()[0].removesuffix(".")
    assert main([*shlex.split(command), "--yes"], io.StringIO()) == 0
    assert cnf.admin.get(cnf.key("ConfigMap", "settings-7f9c"))


@contextmanager
def nowhere() -> Iterator[int]:
    """A standard output that is not read."""
    with Path(os.devnull).open("wb") as file:
        yield file.fileno()


def test_a_warning_about_a_package_has_no_words_of_the_log(shell: Shell) -> None:
    hook = "metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}"
    text = config_map("hook").replace("metadata: {name: hook}", hook)
    new = shell.package({**NEW, "hook": text})
    told = shell.run_into(nowhere, "plan", shell.cnf.old, new)[1]
    name = f"ConfigMap {shell.cnf.namespace}/hook"
    assert told.startswith(f"WARNING: Files/hook.yaml:1 in {new}: {name} is a hook of a Helm chart")


def test_an_update_ends_with_what_it_left_and_the_command_that_deletes_it(shell: Shell) -> None:
    first, second = config_map(setting="old"), config_map("second", b="1")
    old = shell.package({**OLD, "cm": f"{first}---\n{second}"})
    assert shell.run("install", old)[0] == 0
    new = shell.package(NEW)
    status, text = shell.run("apply", old, new)
    assert status == 0
    left = f"ConfigMap {shell.cnf.namespace}/second"
    said = f"Not in the new package, left alone: {left}. To delete: container-update "
    command = text.partition(said)[2].splitlines()[0]
    assert command.startswith(f"change {old} {new} --upgrade-type RollingUpdate ")
    out = io.StringIO()
    assert main([*shlex.split(command), "--yes"], out) == 0
    assert "1 object deleted" in out.getvalue()
    assert "Not in the new package" not in out.getvalue()


@pytest.mark.parametrize("command", ["status", "resume", "rollback"])
def test_nothing_interrupted_is_said_only_of_a_namespace_that_exists(
    cnf: Cnf, admin_kubeconfig: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(cnf, admin_kubeconfig)
    assert shell.run(command)[0] == 2
    common = ("--kubeconfig", admin_kubeconfig, "--instance-id", INSTANCE)
    assert main([command, "-n", "no-such-namespace", *common]) == 5
    assert "namespace no-such-namespace does not exist" in capsys.readouterr().err


COMMANDS = {
    "plan": (["plan", "OLD", "NEW"], 3),
    "apply": (["apply", "OLD", "NEW"], 0),
    "change": (["change", "OLD", "NEW", "--upgrade-type", "RollingUpdate"], 0),
    "status": (["status"], 2),
    "resume": (["resume"], 2),
    "rollback": (["rollback"], 2),
    "history": (["history"], 2),
    "undo": (["undo"], 2),
    "undo --plan": (["undo", "--plan"], 2),
    "watch": (["status", "--watch"], 2),
    "uninstall": (["uninstall", "OLD"], 0),
}
"""Each with its exit status where the VNF is."""


@pytest.mark.parametrize(("words", "status"), COMMANDS.values(), ids=COMMANDS)
def test_the_namespace_is_that_of_the_context_unless_an_option_names_another(
    cnf: Cnf, admin_kubeconfig: str, tmp_path: Path, words: list[str], status: int
) -> None:
    cnf.instantiate(**OLD)
    names = {"OLD": cnf.old, "NEW": cnf.package({f"{n}.yaml": text for n, text in NEW.items()})}
    command = [names.get(word, word) for word in words] + ["--instance-id", INSTANCE]
    here, elsewhere = (
        str(with_namespace(admin_kubeconfig, name, tmp_path / name))
        for name in (cnf.namespace, "no-such-namespace")
    )
    assert main([*command, "--kubeconfig", elsewhere]) == 5
    assert main([*command, "--kubeconfig", here, "-n", "no-such-namespace"]) == 5
    assert main([*command, "--kubeconfig", here]) == status


def with_namespace(kubeconfig: str, namespace: str, to: Path) -> Path:
    """Write a kubeconfig whose current context has this namespace."""
    content: Any = yaml.safe_load(Path(kubeconfig).read_text())
    for entry in content["contexts"]:
        entry["context"]["namespace"] = namespace
    to.write_text(yaml.safe_dump(content))
    return to


@contextmanager
def unread_pipe() -> Iterator[int]:
    """The end to write to of a pipe that nobody reads any more, as after ``| head -1``."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@contextmanager
def full_disk() -> Iterator[int]:
    """A file on a disk without room."""
    with open("/dev/full", "w") as file:
        yield file.fileno()


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
@pytest.mark.parametrize("target", [unread_pipe, full_disk, None], ids=["pipe", "full", "closed"])
def test_an_output_that_cannot_be_written_decides_nothing(
    shell: Shell, target: Target | None, style: str
) -> None:
    new = shell.package(NEW)
    status, errors = shell.run_into(target, "apply", shell.cnf.old, new, "-o", style)
    assert status == 0, errors
    told = 0 if target is unread_pipe else 1  # who closes a pipe has seen enough
    assert errors.count("container-update: the results cannot be written") == told
    assert "Traceback" not in errors
    assert shell.cnf.get("ConfigMap", "cm")["data"] == {"setting": "new"}


@pytest.mark.parametrize("target", [unread_pipe, full_disk, None], ids=["pipe", "full", "closed"])
def test_a_failure_has_its_status_where_nothing_can_be_written_at_all(
    shell: Shell, target: Target | None
) -> None:
    arguments = ("apply", shell.cnf.old, shell.package(BAD), "--grace-period", "0.5", "-v")
    assert shell.run_into(target, *arguments, errors_too=True) == (7, "")
    assert shell.cnf.get("ConfigMap", "cm")["data"] == {"setting": "old"}
    assert shell.run("status")[0] == 2, "nothing is left to resume"


def test_without_standard_error_the_log_is_not_among_the_results(shell: Shell) -> None:
    words = ["apply", shell.cnf.old, shell.package(NEW), "-v", "-o", "json", *shell.common]
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "container_update", *words]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, timeout=120)
    assert json.loads(done.stdout)["kind"] == "Outcome"


def test_wrong_usage_and_nothing_to_do_have_different_statuses() -> None:
    with pytest.raises(SystemExit) as raised:
        main(["apply"])
    assert raised.value.code == 64


def test_what_was_done_is_listed_shown_and_undone(shell: Shell) -> None:
    assert shell.run("history") == (2, f"{NOTHING_KEPT}\n")
    assert shell.run("undo", "--yes")[0] == 2
    status, text = shell.run("apply", shell.cnf.old, shell.package(NEW))
    assert f"To go back: container-update undo 1 {' '.join(shell.way_back)}" in text
    status, text = shell.run("history")
    heading, row = text.splitlines()
    assert status == 0
    assert heading.split()[:3] == ["REV", "ENDED", "(UTC)"]
    assert row.split()[0] == "1"
    assert "update" in row
    status, text = shell.run("history", "--last")
    assert "Revision  1: update, by " in text
    assert "uses key setting of ConfigMap" in text
    status, text = shell.run("history", "1", "--diff")
    assert "+new" in text
    assert "uses key setting" not in text
    status, text = shell.run("undo", "--plan")
    assert status == 3
    assert shell.cnf.get("ConfigMap", "cm")["data"] == {"setting": "new"}
    status, text = shell.run("undo", "--yes")
    assert status == 0
    assert shell.cnf.get("ConfigMap", "cm")["data"] == {"setting": "old"}
    assert len(shell.run("history")[1].splitlines()) == 3


def test_a_revision_that_is_not_kept_is_an_error(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run("apply", shell.cnf.old, shell.package(NEW))
    assert shell.run("history", "7")[0] == 5
    assert "revision 7" in capsys.readouterr().err


@pytest.mark.parametrize("which", [0, 1], ids=["old", "new"])
def test_a_manifest_that_is_wrong_is_named_with_its_package(
    shell: Shell, which: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both packages have a file of this name."""
    packages = [shell.cnf.old, shell.cnf.old]
    packages[which] = shell.cnf.package({"cm.yaml": "a: ["})
    assert shell.run("plan", *packages)[0] == 4
    assert f"{packages[which]}: " in capsys.readouterr().err


@pytest.mark.parametrize("device", ["/dev/full", "/dev/zero"])
def test_what_is_no_file_is_neither_read_as_a_plan_nor_written_as_one(
    shell: Shell, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run("plan", shell.cnf.old, shell.package(NEW), "--out", device)[0] == 64
    assert shell.run("apply", device)[0] == 4
    assert "neither a folder nor a file" in capsys.readouterr().err


def test_a_message_that_says_what_to_do_is_not_followed_by_more(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run("history", "12")[0] in {2, 5}
    assert shell.run("plan", "no-such-package", shell.cnf.old)[0] == 4
    assert "run the same command again" not in capsys.readouterr().err


INTERRUPTED = """\
import sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "container_update.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from container_update.__main__ import main
sys.exit(main())
"""


def test_an_interrupt_while_the_program_is_loaded_is_no_traceback() -> None:
    command = [sys.executable, "-c", INTERRUPTED, "plan", "a", "b"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (130, "container-update: interrupted\n")


def test_what_is_shown_of_a_roll_is_its_new_pods_and_their_trouble(shell: Shell) -> None:
    """The old pod is ready all the time."""
    arguments = ("--yes", "--progress", "json", "--grace-period", "1s")
    status, text = shell.run("apply", shell.cnf.old, shell.package(BAD), *arguments)
    assert status == 7
    events = [json.loads(line) for line in text.splitlines()]
    undo = next(n for n, event in enumerate(events) if event.get("event") == "undo")
    waits = [event for event in events[:undo] if event.get("event") == "waiting"]
    assert {wait["ready"] for wait in waits} == {0}
    assert any(BAD_IMAGE.rpartition("/")[2] in wait["trouble"] for wait in waits)


MANY = [f"w{number}" for number in range(6)]


def many(setting: str) -> dict[str, str]:
    """Equal workloads, each with a ConfigMap of its own, and one that all of them use twice."""
    files = {"shared": config_map("shared", setting=setting)}
    for name in MANY:
        files[f"cm-{name}"] = config_map(name, setting=setting)
        container = (
            "env: [{name: A, valueFrom: {configMapKeyRef: {name: shared, key: setting}}}]\n"
            f"envFrom: [{{configMapRef: {{name: shared}}}}, {{configMapRef: {{name: {name}}}}}]"
        )
        files[name] = workload("Deployment", name, container=container)
    return files


@pytest.mark.parametrize("style", ["text", "markdown"])
def test_what_is_done_alike_to_many_objects_is_said_once(shell: Shell, style: str) -> None:
    """And all uses of one ConfigMap are one reason."""
    shell.cnf.instantiate(**many("old"))
    old, new = shell.cnf.old, shell.package(many("new"))
    status, text = shell.run("plan", old, new, "-o", style)
    assert status == 3
    told = text.replace("\\", "")
    assert told.count("7 ConfigMaps of namespace") == 1
    assert told.count("6 Deployments of namespace") == 1
    assert (
        told.count("setting of their ConfigMap changed, which envFrom of container main uses") == 1
    )
    assert len(re.findall(r"because .*shared|setting of ConfigMap \S+shared", told)) == 1
    every = shell.run("plan", old, new, "--all")[1]
    assert all(f"Deployment {shell.cnf.namespace}/{name}: roll" in every for name in MANY)


NOT_PULLED = f'image "{BAD_IMAGE}": not found'


def test_what_was_undone_is_in_the_history_as_a_report_for_a_ticket(shell: Shell) -> None:
    """Its steps with their reasons, and the cause; an Event that only repeats it is left out."""
    applied = ("apply", shell.cnf.old, shell.package(BAD), "--yes", "--grace-period", "1s")
    assert shell.run(*applied)[0] == 7
    status, text = shell.run("history", "--last")
    assert status == 0
    assert "undone: Deployment" in text
    assert f"Deployment {shell.cnf.namespace}/w: roll" in text
    assert NOT_PULLED in text
    assert "Event: Failed: Failed to pull" not in text
    report = shell.run("history", "--last", "-o", "markdown")[1]
    assert "Deployment" in report.partition("**undone: ")[2]
    assert NOT_PULLED in report
    assert "image nginx:" in report.partition("**Restarts**")[2]
    assert shell.run("history", "-o", "markdown")[1].startswith("| REV | ENDED (UTC) |")
    assert "image nginx:" in shell.run("history", "--last", "--diff")[1]
    assert shell.run("undo", "--yes")[0] == 2, "what was undone cannot be undone again"
