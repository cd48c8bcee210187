# SPDX-License-Identifier: Apache-2.0
"""A Secret's values are in no output, log, error, plan, report or status."""

from __future__ import annotations

import base64
import io
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from container_update import CancelToken, ContainerUpdateError, Plan, StepResult, update
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.manifests import config_map, workload
from tests.internals.core import (
    FORMATS,
    MARKDOWN,
    Collection,
    json_report,
    main,
    markdown_report,
    outcome_report,
    plan_json,
    plan_report,
    text_of,
)

PLANTED = {
    name: f"planted-{name}-Zq7xW" for name in ("old", "new", "text", "pull", "note", "other")
}
"""The values that nothing may show, by where they are planted."""

USES = """
env:
- name: PASSWORD
  valueFrom: {secretKeyRef: {name: sec, key: password}}
envFrom: [{secretRef: {name: sec}}]
"""
PULL = "imagePullSecrets: [{name: pull}]"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def forbidden_forms() -> list[str]:
    """Return every form of the words: plain, in base64 at any offset, as hexadecimal digits."""
    forms = []
    for word in PLANTED.values():
        forms += [word, word.encode().hex()]
        # the middle of the base64 text does not depend on what surrounds the word
        forms += [b64("x" * shift + word)[4:-4] for shift in range(3)]
    return forms


def secret(word: str, **more: object) -> str:
    """Return a Secret that holds a word as data, as stringData and in an annotation."""
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sec", "annotations": {"last-applied": PLANTED["note"] + word}},
        "data": {"password": b64(word)},
        "stringData": {"text": PLANTED["text"] + word},
        **more,
    }
    return yaml.safe_dump(body)


def pull_secret(word: str) -> str:
    """Return a Secret with credentials of a registry."""
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
        "sec": secret(PLANTED[word], **more),
        "pull": pull_secret(PLANTED["pull"] + pull),
        "cm": config_map(setting=word),
        "w": workload("Deployment", container=USES, pod=PULL, image=image),
        "p": workload("Pod", "p", container=USES, pod=PULL),
    }


class Recorder:
    """Records all that commands and the library print, log and raise."""

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
        self.texts: list[str] = []

    def run_command(self, command: str, *arguments: str) -> int:
        """Run a command with each of its output formats; return the first exit status."""
        statuses = []
        for output in [style for style in FORMATS if command != "status" or style != MARKDOWN]:
            out = io.StringIO()
            statuses.append(main([command, *arguments, *self.common, "-o", output], out))
            self.texts.append(out.getvalue())
        return statuses[0]

    def record_error(self, act: Callable[[], object]) -> ContainerUpdateError:
        """Run what fails and record every error of its chain in every form."""
        with pytest.raises(ContainerUpdateError) as raised:
            act()
        error: BaseException | None = raised.value
        self.texts += traceback.format_exception(raised.value)
        while error is not None:
            self.texts += [str(error), repr(error), repr(error.args)]
            error = error.__cause__ or error.__context__
        return raised.value

    def recorded(self) -> str:
        """Return everything: results, standard output and error, logs with their arguments."""
        captured = self.capfd.readouterr()
        records = [f"{record.getMessage()} {record.args}" for record in self.caplog.records]
        return "\n".join([*self.texts, captured.out, captured.err, self.caplog.text, *records])


@pytest.fixture
def recorder(
    cnf: Cnf,
    kubeconfig: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Recorder]:
    """Record all loggers at DEBUG; check at the end that none of the planted words appears."""
    caplog.set_level(logging.DEBUG)
    cnf.instantiate(**files("old"))
    recorder = Recorder(cnf, kubeconfig, caplog, capfd)
    yield recorder
    recorded = recorder.recorded()
    assert "sec" in recorded, "the Secret is not mentioned at all"
    assert [form for form in forbidden_forms() if form in recorded] == []


def test_in_a_plan_an_update_and_a_second_one(recorder: Recorder) -> None:
    new = recorder.cnf.package({f"{n}.yaml": t for n, t in files("new", pull="-new").items()})
    assert recorder.run_command("plan", recorder.cnf.old, new) == 3
    assert recorder.run_command("apply", recorder.cnf.old, new) == 0
    assert recorder.run_command("status") == 2


def test_in_a_failure_and_its_undo(recorder: Recorder) -> None:
    new = recorder.cnf.package({f"{n}.yaml": t for n, t in files("new", BAD_IMAGE).items()})
    assert recorder.run_command("apply", recorder.cnf.old, new) == 7
    recorder.record_error(lambda: recorder.cnf.update(files("new", BAD_IMAGE)))


def test_in_a_conflict_with_somebody_else(recorder: Recorder) -> None:
    def modify_secret(event: Plan | StepResult) -> None:
        if isinstance(event, Plan):
            live = recorder.cnf.get("Secret", "sec")
            live["data"]["password"] = b64(PLANTED["other"])
            recorder.cnf.admin.replace(live)

    request = recorder.cnf.request(files("new"))
    error = recorder.record_error(
        lambda: update(
            request, recorder.cnf.cluster, recorder.cnf.options, CancelToken(), modify_secret
        )
    )
    assert "was changed by another client" in str(error)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"type": "kubernetes.io/tls"}, id="a type that wants other keys"),
        pytest.param({"type": "kubernetes.io/dockerconfigjson"}, id="a type that wants JSON"),
    ],
)
def test_in_what_the_server_refuses(recorder: Recorder, more: dict[str, object]) -> None:
    error = recorder.record_error(lambda: recorder.cnf.update(files("new", **more)))
    assert "422" in str(error)


WRONG = {
    "a value that is no base64": {"data": {"password": PLANTED["new"]}},
    "a value that is a list": {"stringData": {"text": [PLANTED["new"]]}},
    "a value that is a mapping": {"data": {"password": {PLANTED["new"]: PLANTED["old"]}}},
    "data that is text": {"data": PLANTED["new"]},
    "immutable that is text": {"immutable": PLANTED["new"]},
}


@pytest.mark.parametrize("more", WRONG.values(), ids=WRONG)
def test_in_what_is_wrong_with_a_manifest(recorder: Recorder, more: dict[str, object]) -> None:
    recorder.record_error(lambda: recorder.cnf.update(files("new", **more)))


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
def test_in_yaml_that_is_wrong(recorder: Recorder, text: str) -> None:
    head = "apiVersion: v1\nkind: Secret\nmetadata: {name: sec}\nstringData:\n  "
    broken = head + text.replace("{}", PLANTED["new"]) + "\n"
    recorder.record_error(lambda: recorder.cnf.update({**files("new"), "sec": broken}))


def test_in_the_status_and_the_rollback_of_an_interrupted_update(recorder: Recorder) -> None:
    cancel = CancelToken()

    def interrupt(event: Plan | StepResult) -> None:
        if isinstance(event, StepResult):
            cancel.request("for a test", keep_journal=True)

    request = recorder.cnf.request(files("new"))
    recorder.record_error(
        lambda: update(request, recorder.cnf.cluster, recorder.cnf.options, cancel, interrupt)
    )
    assert recorder.run_command("status") == 0
    assert recorder.run_command("rollback") == 0


def test_in_what_a_report_is_made_of(recorder: Recorder) -> None:
    outcome = recorder.cnf.update(files("new"))
    plan = outcome.plan
    recorder.texts += [
        text_of(plan_report.plan_lines(plan)),
        json.dumps(plan_json.plan_dict(plan)),
    ]
    recorder.texts.append(text_of(outcome_report.outcome_lines(outcome)))
    recorder.texts.append(json.dumps(json_report.outcome_dict(outcome)))
    recorder.texts.append(markdown_report.plan_markdown(plan))
    recorder.texts.append(markdown_report.outcome_markdown(outcome))


def test_in_what_was_restarted_and_in_the_lease(recorder: Recorder) -> None:
    recorder.cnf.update(files("new"))
    lists = [Collection("apps", "Deployment", ""), Collection("", "Pod", "")]
    lists += [Collection("coordination.k8s.io", "Lease", ""), Collection("", "Event", "")]
    for collection in lists:
        in_namespace = replace(collection, namespace=recorder.cnf.namespace)
        recorder.texts += [str(body) for body in recorder.cnf.admin.list(in_namespace).items]


def test_the_forms_cover_every_encoding_of_the_words(tmp_path: Path) -> None:
    """The forbidden forms are those that a careless program would show."""
    for word in PLANTED.values():
        for text in (word, b64(word), b64(f"a{word}"), b64(f"ab{word}c"), repr(word.encode())):
            assert any(form in text for form in forbidden_forms()), text
