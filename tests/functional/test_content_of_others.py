# SPDX-License-Identifier: Apache-2.0
"""Content that no package names is somebody else's: every verb leaves it alone, key by key."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from container_update.engine.goals.change_package import change_package
from container_update.engine.goals.upkeep import heal
from container_update.model.errors import UpdateFailedError
from container_update.model.objects import Json
from container_update.planning.comparison.package_pair import Placing
from tests.functional.cnf import BAD_IMAGE, Cnf
from tests.functional.manifests import ENV, config_map, workload

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
    heal(cnf.old, cnf.cluster, (), cnf.options, placing=Placing(namespace=cnf.namespace))


VERBS: dict[str, tuple[Callable[[Cnf], None], str]] = {
    "an update": (updated, "2"),
    "a change of the package": (changed, "2"),
    "an update that fails": (failed, "1"),
    "an update and its undo": (undone, "1"),
    "a heal": (healed, "1"),
}


@pytest.mark.parametrize(("verb", "number"), VERBS.values(), ids=VERBS)
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
    text = "key ca: in no manifest, so somebody else's: left alone"
    notes = [(note.key, note.text) for note in plan.notes if "ca" in note.text]
    assert notes == [(cnf.key("ConfigMap", "cm"), text), (cnf.key("Secret", "token"), text)]


def test_labels_take_effect_and_restart_nothing(cnf: Cnf) -> None:
    cnf.instantiate(**OLD)
    before = cnf.pods("Deployment", "w")
    cnf.update({**OLD, "token": NEW["token"]})
    assert cnf.get("Secret", "token")["metadata"]["labels"]["release"] == "2"
    assert cnf.pods("Deployment", "w") == before
