# SPDX-License-Identifier: Apache-2.0
"""The command line itself: options, their errors, and where else their values come from."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

import pytest

from container_update import __version__
from container_update.cli import main as command_line
from container_update.cli.arguments import option_arguments, parser
from container_update.model.options import Options

PLAN = ("plan", "old", "new")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """The file that is read where no argument names one."""
    folder = tmp_path / "container-update"
    folder.mkdir()
    return folder / "container-update.conf"


def parse(*arguments: str) -> argparse.Namespace:
    return command_line.root_parser(arguments).parse_args(arguments)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the error of wrong arguments."""
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 64
    return capsys.readouterr().err


WRONG = {
    "a command": (("aply",), "container-update: COMMAND: expected one of plan", "mean apply?"),
    "an option": ((*PLAN, "--namespce", "x"), "container-update plan: ", "mean --namespace?"),
    "an option that is shortened": ((*PLAN, "--namespac", "x"), "plan: ", "mean --namespace?"),
    "a choice": ((*PLAN, "-o", "jsn"), "-o/--output: expected one of text, json", "mean json?"),
    "a choice of a setting": (
        (*PLAN, "--restart-for", "keys"),
        "--restart-for: expected one of changed-keys, changed-objects", 'found "keys"',
    ),
    "the number of an argument": (("undo", "x"), 'undo: REV: expected a number, found "x"', ""),
    "a duration": ((*PLAN, "--timeout", "5x"), '--timeout: expected a duration', 'found "5x"'),
    "a maximum": (
        ("apply", "--lease-seconds", "2h"),
        "--lease-seconds: expected at most 1h, found 2h",
        "",
    ),
    "a minimum": ((*PLAN, "--timeout", "-1"), "--timeout: expected at least 1s, found -1", ""),
    "a number": ((*PLAN, "--workers", "x"), '--workers: expected a number, found "x"', ""),
    "a size": ((*PLAN, "--url-bytes", "x"), "--url-bytes: expected a size such as 8MiB", ""),
    "an argument too many": ((*PLAN, "more"), 'found "more", which is one argument too', ""),
    "an argument that is missing": (("plan",), "are required: [OLD] NEW", ""),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "text", "more"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_named_in_one_line_with_what_was_meant(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str, more: str
) -> None:
    error = refusal(capsys, *arguments)
    first, second = error.splitlines()
    assert text in first
    assert first.endswith(more)
    assert second.endswith("--help shows the arguments")


@pytest.mark.parametrize(
    ("arguments", "count"),
    [(PLAN, 0), (("-v", *PLAN), 1), ((*PLAN, "-vv"), 2), (("-v", "plan", "--verbose", "a"), 2)],
)
def test_verbose_may_be_anywhere_and_adds_up(arguments: tuple[str, ...], count: int) -> None:
    rest, found = parser.verbosity(arguments)
    assert found == count
    assert not any(text.startswith(("-v", "--v")) for text in rest)


def test_what_follows_two_dashes_is_no_option() -> None:
    assert parser.verbosity(["plan", "--", "-v"]) == (["plan", "--", "-v"], 0)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("-n core plan a b", "plan a b -n core"),
        ("--context=c -n core status --watch", "status --context=c -n core --watch"),
        ("--kubeconfig f heat status --stack s", "heat status --kubeconfig f --stack s"),
        ("plan -n core a", "plan -n core a"),
        ("-n core --help", "--help"),
        ("-n core", ""),
        ("-n", ""),
        ("--version", "--version"),
    ],
)
def test_what_says_where_may_be_before_the_command(given: str, meant: str) -> None:
    assert parser.command_first(given.split()) == meant.split()


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("apply v1 v2 -n core --yes --dry-run", "container-update plan v1 v2 -n core"),
        ("plan v1 v2 --dry-run", "container-update plan v1 v2"),
        ("apply v1 v2 --dry-run=server", "container-update plan v1 v2"),
        ("install v1 -n core --dry-run", "container-update install v1 -n core --plan"),
        ("heat change v1 v2 --dry-run", "container-update heat change v1 v2 --plan"),
        ("uninstall --dry-run -y", "container-update uninstall --plan"),
    ],
)
def test_a_dry_run_is_answered_by_the_command_that_plans(
    given: str, used: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(given.split())
    assert ended.value.code == parser.USAGE
    said = capsys.readouterr().err.splitlines()[0]
    assert said.endswith(f"there is no option --dry-run: use {used}")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("apply -f v2", "the folder or the file itself"),
        ("plan -f v2", "the folder or the file itself"),
        ("install v1 --wait", "always waits"),
        ("change v2 --set=a=b", "helm template"),
        ("apply v2 --prune", "change --upgrade-type RollingUpdate"),
    ],
)
def test_an_option_of_kubectl_or_helm_is_answered_by_what_does_the_same(
    given: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(given.split())
    assert ended.value.code == parser.USAGE
    assert answer in capsys.readouterr().err.splitlines()[0]


def test_what_cannot_be_planned_has_no_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["resume", "--dry-run"])
    assert "use " not in capsys.readouterr().err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"container-update {__version__}\n"


def help_text(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_help_has_no_settings_and_the_other_has_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    short, whole = (help_text(capsys, "apply", option) for option in ("--help", "--help-all"))
    assert "--namespace" in short
    assert "--timeout TIME" not in short
    assert "--timeout TIME" in whole
    assert "--yaml-depth" in whole
    assert "examples:\n  container-update apply" in short
    assert len(short.splitlines()) < len(whole.splitlines()) / 2


@pytest.mark.parametrize("words", ["(default: 10m)", "8MiB)", "(default: none)", "http, https)"])
def test_defaults_are_in_words(capsys: pytest.CaptureFixture[str], words: str) -> None:
    text = " ".join(help_text(capsys, "plan", "--help-all").split())
    assert words in text
    assert "in seconds" not in text


# --- the environment and the file -------------------------------------------------------------


def test_an_argument_is_worth_more_than_the_environment_and_that_more_than_the_file(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write_text(
        "[container_update]\ntimeout = 1m\nundo_timeout = 2m\nnamespace = core\nworkers = 5\n"
    )
    monkeypatch.setenv("CONTAINER_UPDATE_UNDO_TIMEOUT", "3m")
    monkeypatch.setenv("CONTAINER_UPDATE_NAMESPACE", "edge")
    parsed = parse(*PLAN, "-n", "mine")
    assert (parsed.timeout, parsed.undo_timeout, parsed.namespace) == (60, 180, "mine")
    assert (parsed.workers, parsed.grace_period) == (5, 30.0)


def test_an_argument_that_is_the_default_is_still_an_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONTAINER_UPDATE_TIMEOUT", "1m")
    assert parse(*PLAN, "--timeout", "600").timeout == 600


def test_switches_and_lists_can_be_configured_too(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write_text("[container_update]\ndef_file = a.yaml, b.yaml\nall = yes\n")
    monkeypatch.setenv("CONTAINER_UPDATE_URL_HOSTS", "a.example,b.example")
    parsed = parse(*PLAN)
    assert (parsed.def_file, parsed.all) == (["a.yaml", "b.yaml"], True)
    assert parsed.url_hosts == ("a.example", "b.example")
    assert parse(*PLAN, "--def-file", "c.yaml").def_file == ["c.yaml"]


def test_each_setting_is_an_option_and_may_be_in_the_file(config_file: Path) -> None:
    defaults = {option.name: option.default for option in fields(Options)}
    texts = {n: ",".join(d) if isinstance(d, tuple) else d for n, d in defaults.items()}
    lines = "".join(f"{name} = {text}\n" for name, text in texts.items())
    config_file.write_text(f"[container_update]\n{lines}")
    assert option_arguments.read(parse(*PLAN)) == Options(render=True)


def test_a_file_may_have_options_of_other_commands(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_settings = {option.name for option in fields(Options)}
    monkeypatch.setattr(parser, "_KNOWN", only_settings)  # as in a process that has just begun
    config_file.write_text("[container_update]\nvdu = VDU1\nyes = true\n")
    assert parse(*PLAN).namespace is None


def test_another_file_can_be_named(tmp_path: Path, config_file: Path) -> None:
    config_file.write_text("[container_update]\nnamespace = core\n")
    other = tmp_path / "other.conf"
    other.write_text("[container_update]\nnamespace = edge\n")
    assert parse(*PLAN, "--config-file", str(other)).namespace == "edge"
    assert parse(*PLAN, f"--config-file={other}").namespace == "edge"


FILES = {
    "a name": ("[container_update]\n\ntimout = 5\n", "container-update.conf:3: there is no option"),
    "a value": ("[container_update]\ntimeout = 5x\n", ":2: timeout: expected a duration such as"),
    "a choice": ("[container_update]\noutput = x\n", ":2: output: expected one of text, json"),
    "a switch": ("[container_update]\nall = x\n", ':2: all: expected true or false, found "x"'),
    "its syntax": ("timeout = 5\n", "container-update.conf:1: expected a section before"),
}


@pytest.mark.parametrize(("text", "error"), FILES.values(), ids=FILES)
def test_what_is_wrong_in_the_file_is_told_with_its_line(
    config_file: Path, capsys: pytest.CaptureFixture[str], text: str, error: str
) -> None:
    config_file.write_text(text)
    assert error in refusal(capsys, *PLAN)


def test_a_wrong_variable_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTAINER_UPDATE_TIMEOUT", "5x")
    assert "environment variable CONTAINER_UPDATE_TIMEOUT: expected" in refusal(capsys, *PLAN)


def test_a_file_that_is_named_has_to_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    error = refusal(capsys, *PLAN, "--config-file", "/nowhere")
    assert "--config-file: /nowhere: there is no such file" in error
