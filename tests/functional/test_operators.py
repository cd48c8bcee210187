# SPDX-License-Identifier: Apache-2.0
"""An operator and its custom resources, which it has to let go: it runs until they are gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from container_update import (
    ClusterError,
    UpdateFailedError,
    change_package,
    install,
    terminate,
)
from tests.functional.cnf import BAD_IMAGE, Cnf
from tests.functional.conftest import until
from tests.functional.manifests import config_map, workload
from tests.functional.test_install import definition
from tests.internals.core import Collection, Included, Json, ObjectKey

CLEANUP = "example.org/cleanup"


class Operator:
    """Puts its finalizer on each Thing of a namespace, and takes it away where that is being
    deleted, while a pod of the Deployment runs."""

    def __init__(self, cnf: Cnf) -> None:
        self.cnf, self.group = cnf, f"{cnf.namespace}.example.org"
        self.definition = definition("Thing", self.group)
        self.thing = (
            f"{{apiVersion: {self.group}/v1, kind: Thing, metadata: {{name: one}}, spec: {{}}}}"
        )
        self.key = ObjectKey(self.group, "Thing", cnf.namespace, "one", f"{self.group}/v1")
        self._over = threading.Event()

    def files(self, **more: str) -> str:
        files = {"operator": workload("Deployment", "operator"), "thing": self.thing, **more}
        return self.cnf.package({f"{name}.yaml": text for name, text in files.items()})

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
            self._release()

    def live(self) -> Json | None:
        try:
            return self.cnf.admin.get(self.key)
        except ClusterError as error:
            if error.status != 404:
                raise
            return None

    def has_finalizer(self) -> bool:
        return bool((self.live() or {"metadata": {}})["metadata"].get("finalizers"))

    def _work(self) -> None:
        while not self._over.wait(0.05):
            body = self.live() if self._is_alive() else None
            if body is not None:
                is_deleting = "deletionTimestamp" in body["metadata"]
                if is_deleting == bool(body["metadata"].get("finalizers")):
                    self._write(body, [] if is_deleting else [CLEANUP])

    def _is_alive(self) -> bool:
        pods = self.cnf.admin.list(Collection("", "Pod", self.cnf.namespace)).items
        return any(
            pod["metadata"].get("labels", {}).get("app") == "operator"
            and "deletionTimestamp" not in pod["metadata"]
            and pod.get("status", {}).get("phase") == "Running"
            for pod in pods
        )

    def _write(self, body: Json, finalizers: list[str]) -> None:
        try:
            self.cnf.admin.replace(
                {**body, "metadata": {**body["metadata"], "finalizers": finalizers}}
            )
        except ClusterError as error:
            if error.status not in (404, 409):  # it has been written meanwhile
                raise

    def _release(self) -> None:
        body = self.live()
        if body is not None:
            self._write(body, [])


def uninstall(cnf: Cnf, _: Operator, **included: bool) -> None:
    options = replace(cnf.options, timeout=20, undo_timeout=5)
    terminate(None, cnf.admin, included=Included(**included), options=options, **cnf.where)


def change(cnf: Cnf, operator: Operator, strategy: str = "RollingUpdate") -> None:
    new = cnf.package({"d.yaml": operator.definition, "c.yaml": config_map(setting="b")})
    request: Any = {"vnfdId": "any", "additionalParams": {"upgrade_type": strategy}}
    options = replace(cnf.options, timeout=20, undo_timeout=5)
    change_package(request, cnf.admin, options, old=cnf.old, new=new, **cnf.where)


ENDS: dict[str, Callable[[Cnf, Operator], None]] = {
    "an uninstallation": uninstall,
    "an uninstallation of all": lambda cnf, operator: uninstall(cnf, operator, shared=True),
    "a change": change,
    "a Blue-Green change": lambda cnf, operator: change(cnf, operator, "Blue-Green"),
}


@pytest.fixture
def operator(cnf: Cnf) -> Iterator[Operator]:
    made = Operator(cnf)
    yield made
    key = ObjectKey("apiextensions.k8s.io", "CustomResourceDefinition", "", f"things.{made.group}")
    if cnf.admin.get(key) is not None:
        cnf.admin.delete(key)


@pytest.mark.parametrize("is_of_package", [True, False], ids=["its definition too", "alone"])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_it_runs_until_its_objects_are_gone(
    cnf: Cnf, operator: Operator, end: Callable[[Cnf, Operator], None], is_of_package: bool
) -> None:
    if not is_of_package:
        only = cnf.package({"d.yaml": operator.definition})
        install(only, cnf.admin, namespace=cnf.namespace, options=cnf.options, instance_id="defs")
    more = {"definition": operator.definition} if is_of_package else {}
    cnf.old = operator.files(**more)
    install(cnf.old, cnf.admin, options=cnf.options, **cnf.where)
    with operator.running():
        until(operator.has_finalizer)
        end(cnf, operator)
        assert operator.live() is None
        assert cnf.admin.get(cnf.key("Deployment", "operator")) is None


def test_the_undo_of_an_installation_deletes_them_before_it(cnf: Cnf, operator: Operator) -> None:
    late = workload(
        "Deployment", "late", image=BAD_IMAGE, metadata="annotations: {container-update/order: '1'}"
    )
    package = operator.files(definition=operator.definition, late=late)
    options = replace(cnf.options, grace_period=2, undo_timeout=20)
    with operator.running(), pytest.raises(UpdateFailedError, match="Everything is as before"):
        install(package, cnf.admin, options=options, **cnf.where)
    assert operator.live() is None
