# SPDX-License-Identifier: Apache-2.0
"""An operator and its custom resources, which it has to let go: it runs until they are gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import yaml

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
from tests.functional.real import REAL
from tests.functional.test_install import definition
from tests.internals.core import Collection, Included, Json, ObjectKey

CLEANUP = "example.org/cleanup"
CA = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJDRENCcjZBREFnRUNBZ0VCTUFvR0NDcUdTTTQ5QkFNQ01B"
    "MHhDekFKQmdOVkJBTU1BbU5oTUNBWERUSXcKTURFd01UQXdNREF3TUZvWUR6SXdPVGt3TVRBeE1EQXdNREF3V2pB"
    "Tk1Rc3dDUVlEVlFRRERBSmpZVEJaTUJNRwpCeXFHU000OUFnRUdDQ3FHU000OUF3RUhBMElBQkJvL0xFM0hDbzdE"
    "RW83bjUwb2M5Qzl6a000ZXQ0U0tFU1NOCi9jVmtJQ0hlMm9UOXJWblZNZ21IWk1MN3ZxUjg5d0wyLzR5cStBRStq"
    "RnRuT2FRMFY2RXdDZ1lJS29aSXpqMEUKQXdJRFNBQXdSUUlnZEd1czA1ckFaWUduV1JwQjcwNHpoU1J5ajVSRHFN"
    "b015dXNQSElCNTZlZ0NJUUQvdkQ1QwphMFpaVzA4dmM4RTFMeVBscVZvWUJoZERyYTJCNGlDZ1FRUytSZz09Ci0t"
    "LS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"
)
"""A certificate of its own."""


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
        self.plural = f"things.{self.group}"
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
            body = self.live() if self.runs() else None
            if body is not None:
                is_deleting = "deletionTimestamp" in body["metadata"]
                if is_deleting == bool(body["metadata"].get("finalizers")):
                    self._write(body, [] if is_deleting else [CLEANUP])

    def runs(self) -> bool:
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
    key = ObjectKey("apiextensions.k8s.io", "CustomResourceDefinition", "", made.plural)
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


def other_thing(operator: Operator, **metadata: Any) -> ObjectKey:
    """Create a Thing that is in no package, and return its identity."""
    space = operator.cnf.namespace
    version = f"{operator.group}/v1"
    own = {"name": "others", "namespace": space, **metadata}
    operator.cnf.admin.create({"apiVersion": version, "kind": "Thing", "metadata": own, "spec": {}})
    return ObjectKey(operator.group, "Thing", space, "others", version)


def test_what_goes_with_its_definition_is_let_go_before_it(cnf: Cnf, operator: Operator) -> None:
    cnf.old = operator.files(definition=operator.definition)
    install(cnf.old, cnf.admin, options=cnf.options, **cnf.where)
    operator.key = other_thing(operator, finalizers=[CLEANUP])
    with operator.running():
        uninstall(cnf, operator, shared=True)
        assert operator.live() is None


def test_what_is_to_be_kept_keeps_its_definition(cnf: Cnf, operator: Operator) -> None:
    cnf.old = operator.files(definition=operator.definition)
    install(cnf.old, cnf.admin, options=cnf.options, **cnf.where)
    other = other_thing(operator, annotations={"helm.sh/resource-policy": "keep"})
    with operator.running():
        until(operator.has_finalizer)
        uninstall(cnf, operator, shared=True)
        assert operator.live() is None
    assert cnf.admin.get(other) is not None


CONVERSION = """
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {caBundle: Cg==, service: {name: operator, namespace: SPACE}}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: operator}
spec: {selector: {app: operator}, ports: [{port: 443}]}
"""


def test_a_definition_that_waits_for_its_ca_does_not_hold_up_what_injects_it(
    cnf: Cnf, operator: Operator
) -> None:
    converted = operator.definition.rstrip() + CONVERSION.replace("SPACE", cnf.namespace)
    package = operator.files(definition=converted, service=SERVICE)
    key = ObjectKey("apiextensions.k8s.io", "CustomResourceDefinition", "", operator.plural)
    over = threading.Event()

    def inject() -> None:
        until(lambda: over.is_set() or operator.runs())
        body = cnf.admin.get(key)
        if body is not None:
            body["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = CA
            cnf.admin.replace(body)

    injector = threading.Thread(target=inject, daemon=True)
    injector.start()
    try:
        install(package, cnf.admin, options=replace(cnf.options, timeout=20), **cnf.where)
    finally:
        over.set()
        injector.join()
    assert operator.live() is not None


@pytest.mark.skipif(not REAL, reason="the embedded cluster calls no conversion webhook")
def test_a_webhook_that_converts_nothing_is_named_with_its_definition(cnf: Cnf) -> None:
    group = f"{cnf.namespace}.example.org"
    crd = yaml.safe_load(definition("Foo", group))
    (version,) = crd["spec"]["versions"]
    crd["spec"]["versions"].append({**version, "name": "v2", "storage": False})
    cnf.admin.create(crd)
    key = ObjectKey.of(crd)
    metadata = {"name": "one", "namespace": cnf.namespace}
    old = {"apiVersion": f"{group}/v1", "kind": "Foo", "metadata": metadata, "spec": {}}
    until(lambda: _is_created(cnf, old))
    live = cnf.admin.get(key)
    assert live is not None
    conversion = yaml.safe_load(CONVERSION.replace("SPACE", cnf.namespace))["conversion"]
    conversion["webhook"]["clientConfig"]["caBundle"] = CA
    cnf.admin.replace({**live, "spec": {**live["spec"], "conversion": conversion}})
    foo = f"{{apiVersion: {group}/v2, kind: Foo, metadata: {{name: one}}}}"
    package = cnf.package({"foo.yaml": foo})
    named = rf"operator\.{cnf.namespace}\.svc.*CustomResourceDefinition of {group}/v1, Kind=Foo"
    try:
        until(lambda: _converts_nothing(cnf, group))
        with pytest.raises(ClusterError, match=named):
            install(package, cnf.admin, options=cnf.options, **cnf.where)
    finally:
        live = cnf.admin.get(key)
        assert live is not None
        cnf.admin.replace({**live, "spec": {**live["spec"], "conversion": {"strategy": "None"}}})
        cnf.admin.delete(key)


def _is_created(cnf: Cnf, body: Json) -> bool:
    try:
        return bool(cnf.admin.create(body))
    except ClusterError:
        return False


def _converts_nothing(cnf: Cnf, group: str) -> bool:
    try:
        cnf.admin.get(ObjectKey(group, "Foo", cnf.namespace, "one", f"{group}/v2"))
    except ClusterError as error:
        return error.status == 500
    return False
