# SPDX-License-Identifier: Apache-2.0
"""Content that no package names is another client's: every verb leaves it alone, key by key."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import pytest

from container_update import UpdateFailedError, change_package
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.real import one_of
from tests.functional.upgrade_types import UPGRADE_TYPES
from tests.internals.core import Json, Login, ObjectKey

TOKEN = "kubernetes.io/service-account-token"


def token(release: str) -> str:
    """Return the Secret of a token, which a controller fills in, with a label of the release."""
    annotation = "annotations: {kubernetes.io/service-account.name: default}"
    head = f"metadata: {{name: token, labels: {{release: {release!r}}}, {annotation}}}"
    return f"apiVersion: v1\nkind: Secret\n{head}\ntype: {TOKEN}\n"


def release(number: str, image: str = "nginx:1.27-alpine") -> dict[str, str]:
    """Return the manifests of a release: only it has the key of its number."""
    return {
        "cm": config_map(setting=number, **{f"only{number}": "x"}),
        "token": token(number),
        "w": workload("Deployment", container=ENV, image=image),
    }


OLD, NEW = release("1"), release("2")
THEIRS = {"ca": "theirs"}


def fill_in(cnf: Cnf) -> None:
    """Write into both objects, as a controller does that injects a CA or a token."""
    for kind, name in (("ConfigMap", "cm"), ("Secret", "token")):
        body = cnf.get(kind, name)
        theirs = {key: encoded(kind, value) for key, value in THEIRS.items()}
        cnf.admin.replace({**body, "data": {**(body.get("data") or {}), **theirs}})


def encoded(kind: str, value: str) -> str:
    return value if kind == "ConfigMap" else base64.b64encode(value.encode()).decode()


def contents(cnf: Cnf) -> tuple[Json, Json]:
    return cnf.get("ConfigMap", "cm")["data"], cnf.get("Secret", "token")["data"]


def updated(cnf: Cnf) -> None:
    cnf.update(NEW)


def changed(cnf: Cnf) -> None:
    new = cnf.package({f"{name}.yaml": text for name, text in NEW.items()})
    parameters = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    change_package(parameters, cnf.cluster, cnf.options, old=cnf.old, new=new, **cnf.where)


def undone(cnf: Cnf) -> None:
    cnf.update(NEW)
    cnf.undo()


def failed(cnf: Cnf) -> None:
    with pytest.raises(UpdateFailedError):
        cnf.update(release("2", BAD_IMAGE))


def healed(cnf: Cnf) -> None:
    body = cnf.get("ConfigMap", "cm")
    cnf.admin.replace({**body, "data": {**body["data"], "setting": "by hand"}})
    cnf.heal(cnf.old)


VERBS: dict[str, tuple[Callable[[Cnf], None], str]] = {
    "an update": (updated, "2"),
    "a change of the package": (changed, "2"),
    "an update that fails": (failed, "1"),
    "an update and its undo": (undone, "1"),
    "a heal": (healed, "1"),
}


@pytest.mark.parametrize(("verb", "number"), one_of(2, VERBS.values()), ids=VERBS)
def test_every_verb_leaves_what_others_filled_in(
    verb: Callable[[Cnf], None], number: str, cnf: Cnf
) -> None:
    cnf.instantiate(**OLD)
    fill_in(cnf)
    _, filled = contents(cnf)
    verb(cnf)
    data, secret = contents(cnf)
    assert data == {"setting": number, f"only{number}": "x", **THEIRS}
    assert secret == filled
    assert cnf.get("Secret", "token")["metadata"]["labels"]["release"] == number


def test_what_others_filled_in_is_noted_once_and_is_no_reason_to_write(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    fill_in(cnf)
    plan = cnf.plan(OLD)
    assert plan.is_empty
    # a real server adds a certificate and a token to the Secret of a ServiceAccount
    text = re.compile(r"keys? ca\b.*: in no manifest, so another client's: left alone")
    notes = [note for note in plan.notes if "ca" in note.text]
    assert [note.key for note in notes] == [cnf.key("ConfigMap", "cm"), cnf.key("Secret", "token")]
    assert all(text.fullmatch(note.text) for note in notes)


def managers(cnf: Cnf) -> set[tuple[str, str]]:
    entries = cnf.get("Deployment", "w")["metadata"].get("managedFields") or ()
    return {(each["manager"], each.get("subresource", "")) for each in entries}


def test_the_server_still_knows_who_wrote_which_field(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    write_as("autoscaler", cnf, cnf.get("Deployment", "w") | {"spec": scaled(cnf, 2)})
    before = managers(cnf)
    cnf.update(NEW)
    assert ("autoscaler", "") in before
    assert before <= managers(cnf)


def scaled(cnf: Cnf, replicas: int) -> Json:
    return {**cnf.get("Deployment", "w")["spec"], "replicas": replicas}


def test_labels_take_effect_and_restart_nothing(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    before = cnf.pods("Deployment", "w")
    cnf.update({**OLD, "token": NEW["token"]})
    assert cnf.get("Secret", "token")["metadata"]["labels"]["release"] == "2"
    assert cnf.pods("Deployment", "w") == before


def write_as(manager: str, cnf: Cnf, body: Json, *, applies: bool = False) -> None:
    """Write an object as another client does, which the server notes in its managed fields."""
    query = {"fieldManager": manager}
    key = ObjectKey.of(body)
    path = cnf.admin._resources.object_path(key)
    if not applies:
        cnf.admin._send("PUT", path, f"write {key}", body, query)
        return
    kubectl_like = {"Content-Type": "application/apply-patch+yaml"}
    with patch.object(Login, "headers", lambda login, **_: {**headers(login), **kubectl_like}):
        cnf.admin._send("PATCH", path, f"apply {key}", body, {**query, "force": "true"})


def headers(login: Login, *, of: Callable[..., dict[str, str]] = Login.headers) -> dict[str, str]:
    return of(login, has_body=True)


def hook(rules: str, extra: str = "") -> str:
    config = "clientConfig: {service: {name: w, namespace: default}}"
    return f"""apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {rules}}}
webhooks:
- name: a.example.com
  {config}
  sideEffects: None
  failurePolicy: Ignore
  admissionReviewVersions: [v1]
  matchConditions: [{{name: never, expression: 'false'}}]
{extra}"""


def test_a_change_leaves_what_an_injector_wrote_into_a_field(cnf: Cnf) -> None:
    cnf = replace(cnf, cluster=cnf.admin)
    name = f"hook-{cnf.namespace}"
    cnf.instantiate(h=hook(name))
    key = ObjectKey("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "", name)
    live = cnf.admin.get(key)
    assert live is not None
    live["webhooks"][0]["clientConfig"]["caBundle"] = "Q0E="
    write_as("cainjector", cnf, live)
    new = cnf.package({"h.yaml": hook(name, "  timeoutSeconds: 3\n")})
    parameters = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    change_package(parameters, cnf.cluster, cnf.options, old=cnf.old, new=new, **cnf.where)
    after = cnf.admin.get(key)
    cnf.admin.delete(key)
    assert after is not None
    (changed,) = after["webhooks"]
    assert (changed["timeoutSeconds"], changed["clientConfig"]["caBundle"]) == (3, "Q0E=")


@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
def test_a_change_leaves_a_variable_that_somebody_gave_a_container(
    cnf: Cnf, upgrade_type: str
) -> None:
    cnf.instantiate(w=workload("Deployment"))
    live = cnf.get("Deployment", "w")
    live["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "theirs"}]
    write_as("ops", cnf, live)
    new = cnf.package({"w.yaml": workload("Deployment", image=IMAGES[1])})
    parameters = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": upgrade_type}}
    change_package(parameters, cnf.admin, cnf.options, old=cnf.old, new=new, **cnf.where)
    (container,) = cnf.get("Deployment", "w")["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"][0]["value"]) == (IMAGES[1], "theirs")


FILLED: dict[str, tuple[str | None, str | None, bool, str]] = {
    "a key that is left empty for it": ("", "", False, "theirs"),
    "a key that a controller applies": ("said", "said", True, "theirs"),
    "a key that the new package drops": ("", None, False, "theirs"),
    "a key that the new package changes": ("said", "new", True, "new"),
    "a key that another client edited": ("said", "said", False, "said"),
}
"""Old value, new value, whether it was applied, and what is there afterwards."""


@pytest.mark.parametrize(("old", "new", "applies", "expected"), FILLED.values(), ids=FILLED)
def test_a_key_that_is_another_managers_is_no_change_of_the_package(
    old: str | None, new: str | None, applies: bool, expected: str, cnf: Cnf
) -> None:
    def files(setting: str, value: str | None) -> dict[str, str]:
        more = {} if value is None else {"key": value}
        return {"cm": config_map(setting=setting, **more), "w": OLD["w"]}

    cnf.instantiate(**files("1", old))
    body = cnf.get("ConfigMap", "cm")
    if applies:
        metadata = {"name": "cm", "namespace": cnf.namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}
    body = {**body, "data": {**body["data"], "key": "theirs"}}
    write_as("operator", cnf, body, applies=applies)
    outcome = cnf.update(files("2", new))
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "2", "key": expected}
    step = next(each for each in outcome.plan.steps if each.is_config)
    announced = {getattr(reason.cause, "key", None) for reason in step.reasons}
    assert ("key" in announced) == (expected != "theirs")
