# SPDX-License-Identifier: Apache-2.0
"""``helm.sh/resource-policy: keep``: no operation deletes the object, and each says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from container_update import (
    Outcome,
    UpdateFailedError,
    change_package,
    install,
    terminate,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.manifests import ENV, config_map, secret, workload
from tests.internals.core import INSTANCE_LABEL, Included, Json, ObjectKey

KEEP = {"helm.sh/resource-policy": "keep"}
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: kept}
spec: {selector: {app: none}, ports: [{port: 80}]}
"""


def kept(text: str, annotations: Json = KEEP) -> str:
    """Return a manifest with the annotation."""
    body = yaml.safe_load(text)
    body["metadata"]["annotations"] = annotations
    return yaml.safe_dump(body)


OBJECTS = {
    "secret": kept(secret("kept", password="generated")),
    "cm": kept(config_map("kept", state="a")),
    "service": kept(SERVICE),
}
KINDS = {"Secret": "", "ConfigMap": "", "Service": ""}


def package(cnf: Cnf, image: str = IMAGES[0], **files: str) -> str:
    w = workload("Deployment", container=ENV, image=image)
    files = {"setting": config_map(setting=image), "w": w, **files}
    return cnf.package({f"{name}.yaml": text for name, text in files.items()})


def there(cnf: Cnf) -> dict[str, str]:
    """Return the kinds and UIDs of the kept objects."""
    keys = [ObjectKey(group, kind, cnf.namespace, "kept") for kind, group in KINDS.items()]
    bodies = [cnf.admin.get(key) for key in keys]
    return {body["kind"]: body["metadata"]["uid"] for body in bodies if body is not None}


def changed(cnf: Cnf, old: str, new: str, strategy: str) -> Outcome:
    request = {"vnfdId": "any", "additionalParams": {"upgrade_type": strategy}}
    return change_package(request, cnf.admin, cnf.options, old=old, new=new, **cnf.where)


def ended(cnf: Cnf, *_: str, **included: bool) -> Outcome:
    more = Included(**included)
    return terminate(None, cnf.admin, included=more, options=cnf.options, **cnf.where)


OPERATIONS: dict[str, Callable[[Cnf, str, str], Outcome]] = {
    "a rolling change": lambda cnf, old, new: changed(cnf, old, new, "RollingUpdate"),
    "a Blue-Green change": lambda cnf, old, new: changed(cnf, old, new, "Blue-Green"),
    "a canary": lambda cnf, old, new: changed(cnf, old, new, "Canary"),
    "an uninstallation": ended,
    "an uninstallation of all": lambda cnf, *_: ended(cnf, data=True, shared=True),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_what_is_to_be_kept_stays_with_a_note(
    cnf: Cnf, operation: Callable[[Cnf, str, str], Outcome]
) -> None:
    old, new = package(cnf, **OBJECTS), package(cnf, IMAGES[1])
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    before = there(cnf)
    outcome = operation(cnf, old, new)
    assert there(cnf) == before
    noted = {note.key.kind for note in outcome.plan.notes if "resource-policy" in note.text}
    assert noted == KINDS.keys()


def test_an_installation_that_is_undone_leaves_it_and_names_it(cnf: Cnf) -> None:
    bad = package(cnf, BAD_IMAGE, **OBJECTS)
    with pytest.raises(UpdateFailedError) as raised:
        install(bad, cnf.admin, options=cnf.options, **cnf.where)
    uids = there(cnf)
    assert uids.keys() == KINDS.keys()
    assert {key.kind for key in raised.value.outcome.kept} == KINDS.keys()
    assert "stays: its annotation helm.sh/resource-policy says so" in raised.value.outcome.ending
    assert cnf.admin.get(cnf.key("ConfigMap", "cm")) is None
    for kind, group in KINDS.items():
        body = cnf.admin.get(ObjectKey(group, kind, cnf.namespace, "kept"))
        assert body is not None
        assert not body["metadata"].get("ownerReferences"), "it would go with the journal"
    install(package(cnf, **OBJECTS), cnf.admin, options=cnf.options, **cnf.where)
    assert there(cnf) == uids


def test_a_heal_leaves_it_and_creates_it_where_it_is_gone(cnf: Cnf) -> None:
    files = package(cnf, **OBJECTS)
    install(files, cnf.admin, options=cnf.options, **cnf.where)
    cnf.admin.delete(cnf.key("ConfigMap", "kept"))
    secret = cnf.get("Secret", "kept")
    cnf.admin.replace({**secret, "data": {**secret["data"], "password": "bmV3"}})
    before = there(cnf)
    cnf.heal(files, cnf.admin)
    after = there(cnf)
    assert after.keys() == KINDS.keys()
    assert after.items() >= before.items()
    assert cnf.get("Secret", "kept")["data"]["password"] != "bmV3"


def test_an_update_that_has_created_it_is_undone_without_it(cnf: Cnf) -> None:
    cnf.instantiate(setting=config_map(setting="a"), w=workload("Deployment", container=ENV))
    both = f"{config_map(setting='b')}---\n{OBJECTS['cm']}"
    cnf.update({"setting": both, "w": workload("Deployment", container=ENV)})
    before = there(cnf)
    assert before.keys() == {"ConfigMap"}
    outcome = cnf.undo()
    assert outcome is not None
    assert there(cnf) == before
    assert any("resource-policy" in note.text for note in outcome.plan.notes)


def test_its_namespace_stays_with_it(cnf: Cnf) -> None:
    body: Any = cnf.admin.get(ObjectKey("", "Namespace", "", cnf.namespace))
    labels = {**body["metadata"].get("labels", {}), INSTANCE_LABEL: cnf.where["instance_id"]}
    cnf.admin.replace({**body, "metadata": {**body["metadata"], "labels": labels}})
    space = yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cnf.namespace}}
    )
    install(package(cnf, space=space, **OBJECTS), cnf.admin, options=cnf.options, **cnf.where)
    outcome = ended(cnf, data=True, shared=True)
    texts = {note.key.kind: note.text for note in outcome.plan.notes}
    assert "stays, and would be deleted with it" in texts["Namespace"]
    assert there(cnf).keys() == KINDS.keys()


def test_an_old_deployment_that_is_to_be_kept_stays_beside_its_successor(cnf: Cnf) -> None:
    old = cnf.package({"w.yaml": kept(workload("Deployment", "w"))})
    new = cnf.package({"w.yaml": workload("Deployment", "other", image=IMAGES[1])})
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    uid = cnf.get("Deployment", "w")["metadata"]["uid"]
    for strategy in ("Blue-Green", "RollingUpdate"):
        outcome = changed(cnf, old, new, strategy)
        assert any("resource-policy" in note.text for note in outcome.plan.notes)
        assert cnf.get("Deployment", "w")["metadata"]["uid"] == uid
        assert cnf.get("Deployment", "other")["status"]["readyReplicas"] == 1


def test_a_webhook_goes_with_the_service_that_answers_it(cnf: Cnf) -> None:
    """Without that the API server would refuse what others create."""
    service = yaml.safe_load(SERVICE)
    hook = {
        "name": "a.example.com",
        "clientConfig": {"service": {"name": "kept", "namespace": cnf.namespace}},
        "rules": [
            {
                "apiGroups": ["example.com"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["widgets"],
            }
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    api, name = "admissionregistration.k8s.io/v1", cnf.namespace
    kinds = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    hooks = [
        {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "webhooks": [hook]}
        for kind in kinds
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [],
    }
    files = yaml.safe_dump_all([service, *hooks, role])
    install(package(cnf, hooks=files), cnf.admin, options=cnf.options, **cnf.where)
    outcome = ended(cnf)
    assert {step.key.kind for step in outcome.plan.steps[:2]} == {*kinds}
    for kind in kinds:
        assert cnf.admin.get(ObjectKey("admissionregistration.k8s.io", kind, "", name)) is None
    assert [note.key.kind for note in outcome.plan.notes] == ["ClusterRole"]
    ended(cnf, shared=True)
