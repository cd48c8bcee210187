# SPDX-License-Identifier: Apache-2.0
"""An installation and a change of the package ask the API server about every write first.

What it refuses, drops, keeps or stores as it was is said before anything is written.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml
from aiohttp import web

from container_update import (
    ClusterError,
    Plan,
    PlanError,
    change_package,
    connect,
    install,
    plan_change,
)
from container_update.emulator.http_server import RequestRecord
from tests.functional.admission import dropping_working_directories, refusing_deployments
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.conftest import OPTIONS
from tests.functional.manifests import config_map, workload
from tests.functional.reference_update import Lab
from tests.functional.server import Server
from tests.functional.test_install import definition as definition_of
from tests.functional.upgrade_types import BLUE_GREEN, CANARY, ROLLING, UPGRADE_TYPES
from tests.internals.core import Action, Json, KubernetesCluster, ObjectKey, main, object_steps

WEB = workload("Deployment", "web")


@pytest.fixture(scope="module")
def server(lab: Lab) -> Server:
    return lab.server


@pytest.fixture(scope="module")
def admin_kubeconfig(lab: Lab) -> str:
    return lab.kubeconfig


@pytest.fixture(scope="module")
def admin(admin_kubeconfig: str) -> Iterator[KubernetesCluster]:
    with connect(admin_kubeconfig, options=OPTIONS) as connected:
        yield connected


def manifest(kind: str, name: str, fields: str = "", version: str = "v1") -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\n{fields}\n"


def service(fields: str = "") -> str:
    spec = f"spec: {{selector: {{app: web}}, ports: [{{port: 80}}]{fields}}}"
    return manifest("Service", "s", spec)


def binding(role: str) -> str:
    group = "rbac.authorization.k8s.io"
    to = f"roleRef: {{apiGroup: {group}, kind: Role, name: {role}}}"
    return manifest("RoleBinding", "b", to, f"{group}/v1")


def claiming(size: str) -> str:
    spec = (
        "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], "
        f"resources: {{requests: {{storage: {size}}}}}}}}}]"
    )
    return workload("StatefulSet", "db", spec=spec, replicas=0)


def requesting(cpu: str, image: str = IMAGES[0]) -> str:
    return workload(
        "Deployment", "web", image=image, container=f"resources: {{requests: {{cpu: {cpu!r}}}}}"
    )


class Changing:
    """A change of the package of a CNF that has the old manifests."""

    def __init__(self, cnf: Cnf, old: dict[str, str], new: dict[str, str]) -> None:
        cnf.instantiate(**old)
        self.cnf = cnf
        self.new = cnf.package({f"{name}.yaml": text for name, text in new.items()})

    def arguments(self, upgrade_type: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": upgrade_type}}
        packages = {"old": self.cnf.old, "new": self.new}
        return (body, self.cnf.admin, self.cnf.options), {**packages, **self.cnf.where}

    def plan(self, upgrade_type: str = ROLLING) -> Plan:
        given, named = self.arguments(upgrade_type)
        return plan_change(*given, **named)

    def run(self, upgrade_type: str = ROLLING) -> Any:
        given, named = self.arguments(upgrade_type)
        return change_package(*given, **named)


@pytest.fixture
def changing(cnf: Cnf) -> Callable[..., Changing]:
    """Have a CNF with the old manifests, to be changed to the new ones."""
    return lambda old, new: Changing(cnf, old, new)


def sent(server: Server, cnf: Cnf) -> list[RequestRecord]:
    """Return the writes of the CNF's own objects, without those of lease, journal and history."""
    kept = ("/secrets", "/leases", "/events", "reviews")
    return [
        each
        for each in server.requests
        if each.method in ("POST", "PUT", "DELETE")
        and f"/namespaces/{cnf.namespace}" in each.path
        and not any(part in each.path for part in kept)
    ]


def is_dry(request: RequestRecord) -> bool:
    return "dryRun=All" in request.query


def notes(plan: Plan) -> str:
    return "\n".join(map(str, plan.notes))


def actions(plan: Plan) -> dict[str, Action]:
    return {step.key.name: step.action for step in plan.steps}


# --- refused ------------------------------------------------------------------------------------

TYPO = workload("Deployment", "web", spec="minReadySecond: 5")

NUMBER = workload("Deployment", "web", container="env: [{name: E, value: 1}]")
REFUSED = {
    "a field that does not exist": ({"web": WEB}, TYPO, 'unknown field "spec.minReadySecond"'),
    "a value of another type": ({"web": WEB}, NUMBER, "cannot unmarshal number"),
    "claims of a StatefulSet": ({"web": claiming("1Gi")}, claiming("2Gi"), "are forbidden"),
    "the role of a binding": ({"web": binding("r")}, binding("q"), "cannot change roleRef"),
    "an address": ({"web": service()}, service(", clusterIP: None"), "may not change once set"),
}


@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
@pytest.mark.parametrize(("old", "new", "words"), REFUSED.values(), ids=REFUSED)
def test_what_the_server_would_refuse_stops_a_change_before_its_first_write(
    changing: Any,
    server: Server,
    old: dict[str, str],
    new: str,
    words: str,
    upgrade_type: str,
) -> None:
    both = {"a": config_map("a", key="old")}
    change = changing({**both, **old}, {"a": config_map("a", key="new"), "web": new})
    server.clear_requests()
    for act in (change.plan, change.run):
        with pytest.raises(ClusterError, match=re.escape(words)) as raised:
            act(upgrade_type)
        assert "would refuse 1 of" in str(raised.value)
        assert "web.yaml:1" in str(raised.value)
    writes = sent(server, change.cnf)
    assert writes
    assert all(map(is_dry, writes))
    assert change.cnf.get("ConfigMap", "a")["data"] == {"key": "old"}


def test_a_refusal_names_the_fields_that_the_manifest_changes(changing: Any) -> None:
    """A server says of a StatefulSet which fields may change, not which one has changed."""
    new = claiming("2Gi").replace(IMAGES[0], IMAGES[1])
    with pytest.raises(ClusterError) as raised:
        changing({"web": claiming("1Gi")}, {"web": new}).run()
    changed = str(raised.value).partition(" are forbidden")[2]
    assert "it changes spec.volumeClaimTemplates" in changed
    assert "spec.template" not in changed


def test_what_the_server_would_refuse_stops_an_installation_before_its_first_write(
    cnf: Cnf, server: Server
) -> None:
    files = {
        "a.yaml": config_map("a", key="1"),
        "w.yaml": TYPO,
        "n.yaml": NUMBER.replace("web", "n"),
    }
    package = cnf.package(files)
    server.clear_requests()
    with pytest.raises(ClusterError, match=r"would refuse 2 of 3 writes: .*w\.yaml:1") as raised:
        install(package, cnf.admin, options=cnf.options, **cnf.where)
    assert "n.yaml:1" in str(raised.value)
    assert all(map(is_dry, sent(server, cnf)))


def test_a_service_that_has_no_address_is_not_said_to_get_one(changing: Any) -> None:
    old = {"s": service(", clusterIP: None"), "web": WEB}
    new = {"s": service(), "web": workload("Deployment", "web", image=IMAGES[1])}
    change = changing(old, new)
    for upgrade_type in (*UPGRADE_TYPES, CANARY):
        with pytest.raises(PlanError, match=r"Service .*/s \(.*s\.yaml:1\): .*headless"):
            change.plan(upgrade_type)


def test_what_admission_refuses_is_named_with_its_words(changing: Any, server: Server) -> None:
    change = changing({"web": WEB}, {"web": workload("Deployment", "web", image=IMAGES[1])})
    words = "no image of this kind today"
    with (
        refusing_deployments(server, change.cnf.namespace, words),
        pytest.raises(ClusterError, match=words),
    ):
        change.run()
    assert change.run().results


# --- dropped, kept, stored as it was --------------------------------------------------------------

AS_IT_WAS = {
    "a quantity": (requesting("1000m"), requesting("1")),
    "a default": (
        workload("Deployment", "web"),
        workload("Deployment", "web", container="imagePullPolicy: IfNotPresent"),
    ),
    "a default that goes": (
        workload("Deployment", "web", container="imagePullPolicy: IfNotPresent"),
        workload("Deployment", "web"),
    ),
    "a protocol": (
        workload("Deployment", "web", container="ports: [{containerPort: 80}]"),
        workload("Deployment", "web", container="ports: [{containerPort: 80, protocol: TCP}]"),
    ),
    "memory of an OnDelete": (
        workload("StatefulSet", "web", container="resources: {limits: {memory: 1024Mi}}"),
        workload("StatefulSet", "web", container="resources: {limits: {memory: 1Gi}}"),
    ),
}


@pytest.mark.parametrize(("old", "new"), AS_IT_WAS.values(), ids=AS_IT_WAS)
def test_what_the_server_stores_as_it_was_restarts_nothing(
    changing: Any, old: str, new: str
) -> None:
    change = changing({"web": old}, {"web": new})
    plan = change.plan()
    assert plan.is_empty
    what = (
        r"differs \(Files/web\.yaml:\d+ of the old package\), but the API server keeps it: changes"
    )
    assert bool(re.search(what, notes(plan))) is (new == WEB)  # what it has already says nothing
    assert (not plan.notes) is (new != WEB)
    assert [key.name for key in plan.unchanged] == ["web"]
    assert not change.run().results


def test_a_change_that_the_server_does_not_see_is_no_reason_of_a_restart(changing: Any) -> None:
    new = requesting("1", IMAGES[1])
    plan = changing({"web": requesting("1000m")}, {"web": new}).plan()
    (step,) = plan.steps
    assert step.action is Action.ROLL
    assert [str(reason) for reason in step.reasons] == [
        f"container main: image {IMAGES[0]} -> {IMAGES[1]}"
    ]
    assert not plan.notes


def test_a_workload_whose_template_stays_is_replaced_and_restarts_no_pod(changing: Any) -> None:
    change = changing(
        {"web": WEB}, {"web": workload("Deployment", "web", spec="minReadySeconds: 1")}
    )
    assert actions(change.plan()) == {"web": Action.REPLACE}
    before = change.cnf.pods("Deployment", "web")
    change.run()
    assert change.cnf.get("Deployment", "web")["spec"]["minReadySeconds"] == 1
    assert change.cnf.pods("Deployment", "web") == before


def test_a_field_that_the_server_drops_is_said(changing: Any, server: Server) -> None:
    new = workload("Deployment", "web", container="workingDir: /here", image=IMAGES[1])
    change = changing({"web": WEB}, {"web": new})
    with dropping_working_directories(server, change.cnf.namespace):
        assert re.search(r"workingDir .*does not store it", notes(change.plan()))


# --- what cannot be tried -------------------------------------------------------------------------


def definition(group: str) -> str:
    """Return the definition of a kind that no other test on the same server defines."""
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: fws.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: fws, singular: fw, kind: Fw}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""


def test_an_object_whose_kind_comes_with_it_is_said_not_to_be_tried(
    cnf: Cnf,
) -> None:
    group = f"{cnf.namespace}.example.org"
    files = {"c.yaml": definition(group), "f.yaml": manifest("Fw", "f", version=f"{group}/v1")}
    plans: list[Plan] = []

    def keep(event: object) -> None:
        plans.extend([event] if isinstance(event, Plan) else [])

    try:
        install(cnf.package(files), cnf.admin, options=cnf.options, progress=keep, **cnf.where)
    finally:
        cnf.admin.delete(ObjectKey(*DEFINITION_KEY, "", f"fws.{group}"))
    (plan,) = plans
    assert re.search(rf"fws\.{group}: .*validated .*Fw .*/f", notes(plan))
    assert (plan.writes, plan.tried) == (2, 1)


DEFINITION_KEY = ("apiextensions.k8s.io", "CustomResourceDefinition")


def test_a_pod_whose_account_comes_with_it_is_said_not_to_be_tried(cnf: Cnf) -> None:
    pod = workload("Pod", "p", pod="serviceAccountName: mine")
    files = {"p.yaml": pod, "s.yaml": manifest("ServiceAccount", "mine")}
    outcome = install(cnf.package(files), cnf.admin, options=cnf.options, **cnf.where)
    assert re.search(r"ServiceAccount .*/mine: .*validated .*Pod .*/p", notes(outcome.plan))


def test_a_kind_that_an_operator_of_an_earlier_wave_may_bring_is_said_not_to_be_tried(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    wave = "annotations: {container-update/order: '1'}"
    operator, of_it = workload("Deployment", "o"), manifest("Fw", "f", version="e.io/v1")
    files = {"o.yaml": operator, "f.yaml": of_it}
    place = ("--kubeconfig", admin_kubeconfig, "-n", cnf.namespace, "--plan")
    assert main(["install", cnf.package(files), *place], io.StringIO()) == 6
    files["f.yaml"] = of_it.replace("name: f", f"name: f, {wave}")
    out = io.StringIO()
    assert main(["install", cnf.package(files), *place], out) == 3
    assert re.search(r"Deployment .*/o: .*validated .*Fw .*/f", out.getvalue())


def test_a_quota_that_is_raised_does_not_refuse_what_comes_after_it(changing: Any) -> None:
    def quota(number: int) -> str:
        return manifest("ResourceQuota", "q", f"spec: {{hard: {{services: {number!r}}}}}")

    change = changing({"q": quota(0)}, {"q": quota(5), "s": service()})
    assert re.search(r"ResourceQuota .*/q: .*validated .*Service .*/s", notes(change.plan()))
    assert len(change.run().results) == 2


def test_an_account_that_may_not_write_still_gets_a_plan(cnf: Cnf, changing: Any) -> None:
    """What it lacks is said where the change is carried out, before its first write."""
    change = changing({"web": WEB}, {"web": WEB, "more": workload("Deployment", "more")})
    given, named = change.arguments(ROLLING)
    plan = plan_change(given[0], cnf.cluster, cnf.options, **named)
    assert "may not write it" in notes(plan)
    with pytest.raises(ClusterError, match=r"may not .*create Deployment"):
        change_package(given[0], cnf.cluster, cnf.options, **named)


# --- the requests ---------------------------------------------------------------------------------


@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
def test_every_write_is_tried_once_before_the_first_one(
    changing: Any, server: Server, upgrade_type: str
) -> None:
    old = {"a": config_map("a", key="old"), "web": WEB, "s": service()}
    new = {
        "a": config_map("a", key="new"),
        "web": workload("Deployment", "web", image=IMAGES[1]),
        "s": service(", sessionAffinity: ClientIP"),
    }
    change = changing(old, new)
    server.clear_requests()
    outcome = change.run(upgrade_type)
    tried = [is_dry(each) for each in sent(server, change.cnf)]
    # what is handed over has to be there first; a deletion is never tried
    left_out = (Action.HAND_OVER, Action.DELETE)
    number = len([s for s in object_steps(outcome.plan) if s.action not in left_out])
    assert tried.index(False) == number == outcome.plan.tried
    assert sum(tried) == number
    queries = {each.query for each in sent(server, change.cnf) if each.method in ("POST", "PUT")}
    assert {q for q in queries if "dryRun" in q} == {"dryRun=All&fieldValidation=Strict"}
    assert not [r for r in server.requests if r.method == "DELETE" and "dryRun" in r.query]


def test_a_controller_that_writes_meanwhile_is_no_refusal(changing: Any, server: Server) -> None:
    change = changing({"web": WEB}, {"web": workload("Deployment", "web", image=IMAGES[1])})
    key = change.cnf.key("Deployment", "web")
    written: list[Json] = []

    class Busy:
        """A cluster in which a controller writes right before the first write is tried."""

        def __getattr__(self, name: str) -> Any:
            return getattr(change.cnf.admin, name)

        def dry_run(self, verb: Any, body: Json) -> Any:
            if not written:
                live: Any = change.cnf.admin.get(key)
                live["metadata"]["annotations"]["written-by"] = "a controller"
                written.append(change.cnf.admin.replace(live))
            return change.cnf.admin.dry_run(verb, body)

    given, named = change.arguments(ROLLING)
    busy: Any = Busy()
    plan = plan_change(given[0], busy, given[2], **named)
    assert written
    assert actions(plan) == {"web": Action.ROLL}


def test_warnings_of_the_server_are_in_the_plan_once(changing: Any) -> None:
    twice = "env: [{name: A, value: '1'}, {name: A, value: '2'}]"
    new = {name: workload("Deployment", name, container=twice) for name in ("web", "more")}
    plan = changing({"web": WEB}, new).plan(BLUE_GREEN)
    (note,) = [str(each) for each in plan.notes if "warns" in str(each)]
    path = "spec.template.spec.containers[0].env[1]"
    assert f'the API server warns: {path}: hides previous definition of "A"' in note
    assert "(also for Deployment " in note


# --- what cannot answer a dry run -----------------------------------------------------------------


@pytest.fixture
def answering(lab: Lab) -> Iterator[Callable[[Any], None]]:
    """Have a function that is asked before the API server, for one test."""
    added: list[Any] = []

    def answer(function: Any) -> None:
        lab.server.middlewares.append(function)
        added.append(function)

    yield answer
    for function in added:
        lab.server.middlewares.remove(function)


UNSUPPORTED = ' "w.example.org" does not support dry run'
DENIED = ' "w.example.org" denied the request: not in a dry run'
UNANSWERED = ' "w.example.org": context deadline exceeded'
PASSED = {
    "unsupported": (400, f"admission webhook{UNSUPPORTED}", "refuse"),
    "denied": (403, f"admission webhook{DENIED}", "note"),
    "denied as a bad request": (400, f"admission webhook{DENIED}", "note"),
    "not answered": (500, f"Internal error occurred: failed calling webhook{UNANSWERED}", "note"),
}


@pytest.fixture
def answering_dry_runs(answering: Any) -> Callable[[int, str], None]:
    """Have the webhook of Deployments answer dry runs that the server can read."""

    def answer(code: int, message: str) -> None:
        status = {"kind": "Status", "status": "Failure", "message": message, "code": code}

        async def deny(request: Any, handler: Any) -> Any:
            answer = await handler(request)
            is_dry_run = request.query.get("dryRun") == "All" and "deployments" in request.path
            if is_dry_run and answer.status < 300:
                return web.json_response(status, status=code)
            return answer

        answering(deny)

    return answer


@pytest.mark.parametrize("code", [400, 403])
def test_what_admission_denies_is_refused_whatever_the_status(
    changing: Any, answering_dry_runs: Any, code: int
) -> None:
    change = changing({"web": WEB}, {"web": workload("Deployment", "web", image=IMAGES[1])})
    answering_dry_runs(code, f"admission webhook{DENIED}")
    for act in (change.plan, change.run):
        with pytest.raises(ClusterError, match=r"would refuse 1 of 1 .* set the option dry_run_"):
            act()


@pytest.mark.parametrize(("code", "text", "denials"), PASSED.values(), ids=PASSED)
@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
def test_a_webhook_that_answers_no_dry_run_leaves_its_object_untried(
    changing: Any,
    answering_dry_runs: Any,
    code: int,
    text: str,
    denials: str,
    upgrade_type: str,
) -> None:

    change = changing({"a": config_map("a", key="old"), "web": WEB}, {"web": WEB})
    change.cnf.options = replace(change.cnf.options, dry_run_denials=denials, retry_seconds=0)
    answering_dry_runs(code, text)
    files = {"web": workload("Deployment", "web", image=IMAGES[1])}
    files["more"] = workload("Deployment", "more")
    files["a"] = config_map("a", key="new")
    change.new = change.cnf.package({f"{name}.yaml": text for name, text in files.items()})
    plan = change.plan(upgrade_type)
    noted = notes(plan)
    assert noted.count("cannot be tried on the API server: ") == 2, noted
    assert noted.count(text) == 2
    assert plan.tried == 1
    assert plan.writes == 3
    change.run(upgrade_type)
    # what the server cannot read is still found before the first write
    change.new = change.cnf.package({"web.yaml": NUMBER, "more.yaml": workload("Deployment", "m")})
    with pytest.raises(ClusterError, match="cannot unmarshal number"):
        change.plan()


def test_a_kind_whose_server_declares_no_dry_run_is_left_out_and_noted(
    cnf: Cnf, lab: Lab, answering: Any
) -> None:
    group = f"{cnf.namespace}.example.org"

    async def without_dry_run(request: Any, handler: Any) -> Any:
        if request.path != f"/openapi/v3/apis/{group}/v1":
            return await handler(request)
        thing = {"group": group, "version": "v1", "kind": "Thing"}
        post = {"x-kubernetes-group-version-kind": thing, "parameters": [{"name": "pretty"}]}
        path = f"/apis/{group}/v1/namespaces/{{namespace}}/things"
        return web.json_response({"openapi": "3.0.0", "paths": {path: {"post": post}}})

    definition = yaml.safe_load(definition_of("Thing", group))
    cnf.admin.create(definition)
    answering(without_dry_run)
    lab.server.clear_requests()
    files = {"t.yaml": manifest("Thing", "t", version=f"{group}/v1"), "a.yaml": config_map("a")}
    where: Any = {"namespace": cnf.namespace, "instance_id": "i", "options": OPTIONS}
    try:
        outcome = install(cnf.package(files), cnf.admin, **where)
    finally:
        cnf.admin.delete(ObjectKey.of(definition))
    assert "Thing" in notes(outcome.plan)
    assert "expected a server that declares dry run for Thing" in notes(outcome.plan)
    writes = [each for each in sent(lab.server, cnf) if each.path.endswith("/things")]
    assert [is_dry(each) for each in writes] == [False]
    assert outcome.plan.tried == 1


def test_an_update_goes_on_where_what_it_does_not_write_cannot_be_read(
    cnf: Cnf, answering: Any
) -> None:
    """As a custom resource whose conversion webhook does not answer."""

    async def fail(request: Any, handler: Any) -> Any:
        if request.method == "GET" and request.path.endswith("/services/s"):
            return web.json_response({"kind": "Status", "code": 500}, status=500)
        return await handler(request)

    cnf.instantiate(s=service(), web=WEB)
    answering(fail)
    plan = cnf.plan({"s": service(", sessionAffinity: ClientIP"), "web": WEB})
    assert [note.key.kind for note in plan.ignored] == ["Service"]
