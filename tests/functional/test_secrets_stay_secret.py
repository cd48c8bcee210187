"""What a Secret holds is nowhere to be read: in no output, log, error, plan, report or status."""

from __future__ import annotations

import base64
import io
import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from container_update.cli.main import main
from container_update.cli.output import FORMATS, HTML
from container_update.cli.reports import html_report, text_report
from container_update.model.cancellation import CancelToken
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Collection
from container_update.model.outcome import StepResult
from container_update.model.plan import Plan
from container_update.operations.update import update
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.manifests import config_map, workload

WORDS = {name: f"planted-{name}-Zq7xW" for name in ("old", "new", "text", "pull", "note", "other")}
"""What nothing may show, by where it is planted."""

USES = """
env:
- name: PASSWORD
  valueFrom: {secretKeyRef: {name: sec, key: password}}
envFrom: [{secretRef: {name: sec}}]
"""
PULL = "imagePullSecrets: [{name: pull}]"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def hidden() -> list[str]:
    """Every form of the words: plain, in base64 wherever they begin, as hexadecimal digits."""
    forms = []
    for word in WORDS.values():
        forms += [word, word.encode().hex()]
        # of what stands before and after it in base64, the middle does not depend
        forms += [b64("x" * shift + word)[4:-4] for shift in range(3)]
    return forms


def secret(word: str, **more: object) -> str:
    """A Secret that holds a word as data, as stringData and in an annotation."""
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sec", "annotations": {"last-applied": WORDS["note"] + word}},
        "data": {"password": b64(word)},
        "stringData": {"text": WORDS["text"] + word},
        **more,
    }
    return yaml.safe_dump(body)


def pull_secret(word: str) -> str:
    """Credentials of a registry."""
    login = f'{{"auths": {{"registry.example": {{"auth": "{word}"}}}}}}'
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "pull"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": b64(login)},
    }
    return yaml.safe_dump(body)


def files(word: str, image: str = IMAGES[0], pull: str = "", **more: object) -> dict[str, str]:
    return {
        "sec": secret(WORDS[word], **more),
        "pull": pull_secret(WORDS["pull"] + pull),
        "cm": config_map(setting=word),
        "w": workload("Deployment", container=USES, pod=PULL, image=image),
        "p": workload("Pod", "p", container=USES, pod=PULL),
    }


class Ear:
    """Hears everything that is said while an update runs."""

    def __init__(
        self,
        cnf: Cnf,
        kubeconfig: str,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        self.cnf, self.caplog, self.capfd = cnf, caplog, capfd
        self.common = ("-n", cnf.namespace, "--kubeconfig", kubeconfig, "--instance-id", INSTANCE)
        self.common += ("--grace-period", "0.2", "-vv")
        self.said: list[str] = []

    def type(self, command: str, *arguments: str) -> int:
        """A command, once with each kind of output that it has; the first exit status."""
        statuses = []
        for output in [style for style in FORMATS if (command, style) != ("status", HTML)]:
            out = io.StringIO()
            statuses.append(main([command, *arguments, *self.common, "-o", output], out))
            self.said.append(out.getvalue())
        return statuses[0]

    def call(self, act: Callable[[], object]) -> ContainerUpdateError:
        """What fails, with every error of its chain in every form."""
        with pytest.raises(ContainerUpdateError) as raised:
            act()
        error: BaseException | None = raised.value
        self.said += traceback.format_exception(raised.value)
        while error is not None:
            self.said += [str(error), repr(error), repr(error.args)]
            error = error.__cause__ or error.__context__
        return raised.value

    def heard(self) -> str:
        """All of it: results, standard output and error, logs with their arguments."""
        captured = self.capfd.readouterr()
        records = [f"{record.getMessage()} {record.args}" for record in self.caplog.records]
        return "\n".join([*self.said, captured.out, captured.err, self.caplog.text, *records])


@pytest.fixture
def ear(
    cnf: Cnf,
    kubeconfig: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Ear]:
    """Listens at DEBUG to all loggers; at the end nothing of the words was heard."""
    caplog.set_level(logging.DEBUG)
    cnf.instantiate(**files("old"))
    listening = Ear(cnf, kubeconfig, caplog, capfd)
    yield listening
    heard = listening.heard()
    assert "sec" in heard, "nothing was said about the Secret at all"
    assert [form for form in hidden() if form in heard] == []


def test_in_a_plan_an_update_and_a_second_one(ear: Ear) -> None:
    new = ear.cnf.package({f"{n}.yaml": t for n, t in files("new", pull="-new").items()})
    assert ear.type("plan", ear.cnf.old, new) == 3
    assert ear.type("apply", ear.cnf.old, new) == 0
    assert ear.type("status") == 2


def test_in_a_failure_and_its_undo(ear: Ear) -> None:
    new = ear.cnf.package({f"{n}.yaml": t for n, t in files("new", BAD_IMAGE).items()})
    assert ear.type("apply", ear.cnf.old, new) == 7
    ear.call(lambda: ear.cnf.update(files("new", BAD_IMAGE)))


def test_in_a_conflict_with_somebody_else(ear: Ear) -> None:
    def meddle(event: Plan | StepResult) -> None:
        if isinstance(event, Plan):
            live = ear.cnf.get("Secret", "sec")
            live["data"]["password"] = b64(WORDS["other"])
            ear.cnf.admin.replace(live)

    request = ear.cnf.request(files("new"))
    error = ear.call(
        lambda: update(request, ear.cnf.cluster, ear.cnf.options, CancelToken(), meddle)
    )
    assert "was changed by somebody else" in str(error)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"type": "kubernetes.io/tls"}, id="a type that wants other keys"),
        pytest.param({"type": "kubernetes.io/dockerconfigjson"}, id="a type that wants JSON"),
    ],
)
def test_in_what_the_server_refuses(ear: Ear, more: dict[str, object]) -> None:
    error = ear.call(lambda: ear.cnf.update(files("new", **more)))
    assert "422" in str(error)


WRONG = {
    "a value that is no base64": {"data": {"password": WORDS["new"]}},
    "a value that is a list": {"stringData": {"text": [WORDS["new"]]}},
    "a value that is a mapping": {"data": {"password": {WORDS["new"]: WORDS["old"]}}},
    "data that is text": {"data": WORDS["new"]},
    "immutable that is text": {"immutable": WORDS["new"]},
}


@pytest.mark.parametrize("more", WRONG.values(), ids=WRONG)
def test_in_what_is_wrong_with_a_manifest(ear: Ear, more: dict[str, object]) -> None:
    ear.call(lambda: ear.cnf.update(files("new", **more)))


TEXTS = {
    "a password that looks like an alias": "password: *{}",
    "a password that looks like an anchor": "password: &{} [",
    "a password that looks like a tag": "password: !{} x",
    "a password that looks like a tag of a handle": "password: !a!{} x",
    "a quote that is missing": 'password: "{}',
    "a password with an escape": 'password: "\\q{}"',
    "a password that is a list's text": "- {}",
    "a password on a line of its own": "password:\n{}",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_in_yaml_that_is_wrong(ear: Ear, text: str) -> None:
    head = "apiVersion: v1\nkind: Secret\nmetadata: {name: sec}\nstringData:\n  "
    broken = head + text.replace("{}", WORDS["new"]) + "\n"
    ear.call(lambda: ear.cnf.update({**files("new"), "sec": broken}))


def test_in_the_status_and_the_rollback_of_an_update_that_was_cut_short(ear: Ear) -> None:
    cancel = CancelToken()

    def cut_short(event: Plan | StepResult) -> None:
        if isinstance(event, StepResult):
            cancel.request("for a test", keep_journal=True)

    request = ear.cnf.request(files("new"))
    ear.call(lambda: update(request, ear.cnf.cluster, ear.cnf.options, cancel, cut_short))
    assert ear.type("status") == 0
    assert ear.type("rollback") == 0


def test_in_what_a_report_is_made_of(ear: Ear) -> None:
    outcome = ear.cnf.update(files("new"))
    plan = outcome.plan
    ear.said += [text_report.plan_text(plan), text_report.plan_json(plan)]
    ear.said += [text_report.outcome_text(outcome), text_report.outcome_json(outcome)]
    ear.said += [html_report.plan_html(plan), html_report.outcome_html(outcome)]


def test_in_what_was_restarted_and_in_the_lock(ear: Ear) -> None:
    ear.cnf.update(files("new"))
    lists = [Collection("apps", "Deployment", ""), Collection("", "Pod", "")]
    lists += [Collection("coordination.k8s.io", "Lease", ""), Collection("", "Event", "")]
    for collection in lists:
        there = replace(collection, namespace=ear.cnf.namespace)
        ear.said += [str(body) for body in ear.cnf.admin.list(there).items]


def test_the_words_would_be_heard(tmp_path: Path) -> None:
    """The forms that are looked for are those that a careless program would show."""
    for word in WORDS.values():
        for text in (word, b64(word), b64(f"a{word}"), b64(f"ab{word}c"), repr(word.encode())):
            assert any(form in text for form in hidden()), text
