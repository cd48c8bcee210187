# SPDX-License-Identifier: Apache-2.0
"""Ours is what the new manifest states differently from the old one: what another client has
written into a field on which the packages agree stays in every verb, and is noted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from container_update import ClusterError, Plan, change_package, plan_change, undo
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.test_content_of_others import write_as
from tests.functional.upgrade_types import BLUE_GREEN, CANARY, ROLLING
from tests.internals.core import Json, ObjectKey

HOOK = """apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAME, labels: {release: "R"}}
webhooks:
- name: a.example.com
  clientConfig: {service: {name: w, namespace: default}CA}
  sideEffects: None
  failurePolicy: Ignore
  admissionReviewVersions: [v1]
  matchConditions: [{name: never, expression: 'false'}]
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: w, labels: {team: core, release: "R"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec:
      containers:
      - name: main
        image: IMAGE
        env: [{name: A, value: said}, {name: B, value: said}]
        resources: {requests: {cpu: 100m}}
        ports: [{containerPort: 80}]
"""
SERVICE = """apiVersion: v1
kind: Service
metadata: {name: w, annotations: {release: "R"}}
spec:
  selector: {app: w}
  sessionAffinity: None
  ports: [{port: 80, targetPort: 80}]
"""
SCALER = """apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: w, labels: {release: "R"}}
spec:
  minReplicas: 1
  maxReplicas: 5
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: absent}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
"""  # noqa: E501
LIMITS = """apiVersion: v1
kind: LimitRange
metadata: {name: w, labels: {release: "R"}}
spec: {limits: [{type: Container, max: {cpu: "4"}}]}
"""
ACCOUNT = """apiVersion: v1
kind: ServiceAccount
metadata: {name: w, labels: {release: "R"}}
imagePullSecrets: [{name: said}]
"""
BINDING = """apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: w, labels: {release: "R"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: w}]
"""
GROUPS = {"ValidatingWebhookConfiguration": "admissionregistration.k8s.io", "Deployment": "apps"}
GROUPS |= {"HorizontalPodAutoscaler": "autoscaling", "CronJob": "batch"}
GROUPS |= {"RoleBinding": "rbac.authorization.k8s.io"}
MAIN = ("spec", "template", "spec", "containers", 0)
CA, OTHER_CA = "Cg==", "Q0E="


@dataclass(frozen=True)
class Case:
    """A field of an object that another client writes between two packages."""

    kind: str
    text: str
    """The manifest; ``R`` and ``IMAGE`` differ between the packages."""
    path: tuple[Any, ...]
    """The last name ``-``: the end of a list."""
    theirs: Any
    upgrade_types: tuple[str, ...] = (ROLLING,)


HELD = HOOK.replace("CA}", f", caBundle: {CA}}}")
CA_PATH = ("webhooks", 0, "clientConfig", "caBundle")
ALL = (ROLLING, BLUE_GREEN, CANARY)
CASES = {
    "a placeholder that an injector replaced": Case(
        "ValidatingWebhookConfiguration", HELD, CA_PATH, OTHER_CA
    ),
    "a policy of a webhook": Case(
        "ValidatingWebhookConfiguration", HELD, ("webhooks", 0, "failurePolicy"), "Fail"
    ),
    "a variable": Case("Deployment", DEPLOYMENT, (*MAIN, "env", 0, "value"), "theirs", ALL),
    "a request": Case(
        "Deployment", DEPLOYMENT, (*MAIN, "resources", "requests", "cpu"), "50m", ALL
    ),
    "a label": Case("Deployment", DEPLOYMENT, ("metadata", "labels", "team"), "ops"),
    "a port of a Service": Case("Service", SERVICE, ("spec", "ports", 0, "targetPort"), 8081),
    "an affinity": Case("Service", SERVICE, ("spec", "sessionAffinity"), "ClientIP"),
    "a target": Case("HorizontalPodAutoscaler", SCALER, ("spec", "maxReplicas"), 9),
    "a limit": Case("LimitRange", LIMITS, ("spec", "limits", 0, "max", "cpu"), "8"),
}


def at(body: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        body = body[step] if isinstance(body, list) else (body or {}).get(step)
    return body


@dataclass(frozen=True)
class Lab:
    """A CNF of one object whose field another client has written."""

    cnf: Cnf
    case: Case
    upgrade_type: str

    @property
    def key(self) -> ObjectKey:
        is_global = self.case.kind == "ValidatingWebhookConfiguration"
        name = self.cnf.namespace if is_global else "w"
        group = GROUPS.get(self.case.kind, "")
        return ObjectKey(group, self.case.kind, "" if is_global else self.cnf.namespace, name)

    def live(self) -> Json:
        body = self.cnf.admin.get(self.key)
        assert body is not None
        return body

    def files(self, release: int, text: str = "") -> dict[str, str]:
        words = {"NAME": self.key.name, "IMAGE": IMAGES[release], '"R"': f'"{release}"'}
        text = text or self.case.text
        for word, value in words.items():
            text = text.replace(word, value)
        return {"x": text}

    def write(self) -> None:
        for _ in range(20):
            body = self.live()
            if self.case.path[-1] == "-":
                at(body, self.case.path[:-1]).append(self.case.theirs)
            else:
                at(body, self.case.path[:-1])[self.case.path[-1]] = self.case.theirs
            try:
                write_as("theirs", self.cnf, body)
            except ClusterError as error:
                if error.status != 409:
                    raise
            else:
                return
        raise AssertionError("another client wins each time")

    def arguments(self, text: str = "", release: int = 1) -> tuple[Any, dict[str, Any]]:
        new = self.cnf.package({f"{n}.yaml": t for n, t in self.files(release, text).items()})
        parameters = {
            "vnfdId": "unknown",
            "additionalParams": {"upgrade_type": self.upgrade_type},
        }
        return parameters, {"old": self.cnf.old, "new": new, **self.cnf.where}

    def plan(self, text: str = "", release: int = 1) -> Plan:
        parameters, more = self.arguments(text, release)
        return plan_change(parameters, self.cnf.admin, self.cnf.options, **more)

    def change(self, text: str = "", release: int = 1) -> Plan:
        parameters, more = self.arguments(text, release)
        outcome = change_package(parameters, self.cnf.admin, self.cnf.options, **more)
        self.cnf.old = more["new"]
        return outcome.plan


@pytest.fixture
def lab(request: pytest.FixtureRequest, cnf: Cnf) -> Any:
    case, upgrade_type = request.param
    lab = Lab(replace(cnf, cluster=cnf.admin), case, upgrade_type)
    lab.cnf.instantiate(**lab.files(0))
    lab.write()
    yield lab
    if not lab.key.namespace:
        lab.cnf.admin.delete(lab.key)


def points(*names: str) -> Any:
    """Parametrize a test by cases; all of them where none is named."""
    chosen = [(name, CASES[name]) for name in names or CASES]
    rows = [
        pytest.param((case, kind), id=f"{name}, {kind}")
        for name, case in chosen
        for kind in (case.upgrade_types if not names else case.upgrade_types[:1])
    ]
    return pytest.mark.parametrize("lab", rows, indirect=True)


USER = {"kind": "User", "name": "theirs", "apiGroup": "rbac.authorization.k8s.io"}
CONTAINERS = MAIN[:-1]
ADDED = {
    "a pull secret": Case("ServiceAccount", ACCOUNT, ("imagePullSecrets", "-"), {"name": "theirs"}),
    "a subject": Case("RoleBinding", BINDING, ("subjects", "-"), USER),
    "a container": Case(
        "Deployment", DEPLOYMENT, (*CONTAINERS, "-"), {"name": "theirs", "image": IMAGES[0]}, ALL
    ),
    "a pull secret of pods": Case(
        "Deployment",
        DEPLOYMENT.replace("containers:", "imagePullSecrets: [{name: said}]\n      containers:"),
        (*CONTAINERS[:-1], "imagePullSecrets", "-"),
        {"name": "theirs"},
        ALL,
    ),
}


@pytest.mark.parametrize(
    "lab",
    [
        pytest.param((case, kind), id=f"{name}, {kind}")
        for name, case in ADDED.items()
        for kind in case.upgrade_types
    ],
    indirect=True,
)
def test_an_element_that_another_client_added_stays_each_time(lab: Lab) -> None:
    for release in (1, 0, 1):
        lab.change(release=release)
        names = [each["name"] for each in at(lab.live(), lab.case.path[:-1])]
        assert names.count("theirs") == 1
        assert len(names) == 2


THEIRS = ("spec", "template", "metadata", "labels", "theirs")
LABELLED = Case("Deployment", DEPLOYMENT, THEIRS, "theirs")
JOBS = """apiVersion: batch/v1
kind: CronJob
metadata: {name: w}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    metadata: {labels: {release: "R"}}
    spec: {template: {metadata: {labels: {release: "R"}}, spec: {restartPolicy: Never, containers: [{name: main, image: IMAGE}]}}}
"""  # noqa: E501
OF_JOBS = ("spec", "jobTemplate", *THEIRS[2:])
OF_PODS_OF_JOBS = ("spec", "jobTemplate", *THEIRS)
TEMPLATES = {
    "of pods, RollingUpdate": (LABELLED, ROLLING),
    "of pods, Blue-Green": (LABELLED, BLUE_GREEN),
    "of pods, canary": (LABELLED, CANARY),
    "of Jobs": (Case("CronJob", JOBS, OF_JOBS, "theirs"), ROLLING),
    "of the pods of Jobs": (Case("CronJob", JOBS, OF_PODS_OF_JOBS, "theirs"), ROLLING),
}


@pytest.mark.parametrize("lab", TEMPLATES.values(), ids=TEMPLATES, indirect=True)
def test_a_label_that_another_client_gave_a_template_stays_each_time(lab: Lab) -> None:
    for release in (1, 0, 1):
        lab.change(release=release)
        assert at(lab.live(), lab.case.path) == lab.case.theirs
    undo(lab.cnf.admin, lab.cnf.options, **lab.cnf.where)
    assert at(lab.live(), lab.case.path) == lab.case.theirs


SPEC = CONTAINERS[:-1]
SELECTED = DEPLOYMENT.replace(
    "      containers:",
    "      nodeSelector: {kubernetes.io/os: linux}\n"
    "      tolerations: [{key: said, operator: Exists}]\n"
    "      securityContext: {}\n      containers:",
)
TOLERATION = {"key": "theirs", "operator": "Exists"}
CONSTRAINT = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "w"}},
}
SCRIPT = {"exec": {"command": ["true"]}}
UNSTATED: dict[str, dict[tuple[Any, ...], Any]] = {
    DEPLOYMENT: {
        ("spec", "minReadySeconds"): 1,
        ("spec", "revisionHistoryLimit"): 3,
        ("spec", "strategy", "rollingUpdate", "maxSurge"): 2,
        (*SPEC, "nodeSelector"): {"kubernetes.io/os": "linux"},
        (*SPEC, "priorityClassName"): "system-cluster-critical",
        (*SPEC, "tolerations"): [TOLERATION],
        (*SPEC, "topologySpreadConstraints"): [CONSTRAINT],
        (*SPEC, "terminationGracePeriodSeconds"): 7,
        (*SPEC, "automountServiceAccountToken"): False,
        (*SPEC, "volumes"): [{"name": "theirs", "emptyDir": {}}],
        (*MAIN, "env", "-"): {"name": "THEIRS", "value": "x"},
        (*MAIN, "resources", "limits"): {"cpu": "1"},
        (*MAIN, "resources", "requests", "memory"): "1Mi",
        (*MAIN, "lifecycle"): {"preStop": SCRIPT},
        (*MAIN, "imagePullPolicy"): "Always",
    },
    SELECTED: {
        (*SPEC, "nodeSelector", "kubernetes.io/arch"): "amd64",
        (*SPEC, "tolerations", "-"): TOLERATION,
        (*SPEC, "securityContext", "fsGroup"): 7,
    },
}
"""By the manifest of a workload: the fields that it does not state and another client writes."""
LEFT_OUT = (
    "      nodeSelector: {kubernetes.io/os: linux}\n",
    "      tolerations: [{key: said, operator: Exists}]\n",
)
"""Of a manifest: what a new package does not state any more."""


def has_written(theirs: Any, live: Any) -> bool:
    """Tell whether a live value has what another client wrote."""
    if isinstance(theirs, dict):
        return isinstance(live, dict) and all(has_written(theirs[n], live.get(n)) for n in theirs)
    return bool(has_written(theirs[0], live[0]) if isinstance(theirs, list) else theirs == live)


def lost(lab: Lab) -> list[tuple[Any, ...]]:
    """Return the fields that have not stayed."""
    live = lab.live()
    values = {
        path: at(live, path) if path[-1] != "-" else (at(live, path[:-1]) or [None])[-1]
        for path in UNSTATED[lab.case.text]
    }
    theirs = UNSTATED[lab.case.text]
    return [path for path in values if not has_written(theirs[path], values[path])]


@pytest.mark.parametrize(
    "lab",
    [
        pytest.param((Case("Deployment", text, *field), upgrade_type), id=f"{what}, {upgrade_type}")
        for what, text in (("fields", DEPLOYMENT), ("fields in stated ones", SELECTED))
        for upgrade_type in ALL
        for field in [next(iter(UNSTATED[text].items()))]
    ],
    indirect=True,
)
def test_what_no_package_states_and_another_client_wrote_stays_each_time(lab: Lab) -> None:
    for path, theirs in UNSTATED[lab.case.text].items():
        replace(lab, case=Case("Deployment", lab.case.text, path, theirs)).write()
    for release in (1, 0, 1):
        lab.change(release=release)
        assert lost(lab) == []
    for _ in range(2):
        undo(lab.cnf.admin, lab.cnf.options, **lab.cnf.where)
        assert lost(lab) == []


@pytest.mark.parametrize(
    "lab",
    [
        (Case("Deployment", SELECTED, (*SPEC, "nodeSelector", "kubernetes.io/arch"), "amd64"), each)
        for each in ALL
    ],
    ids=ALL,
    indirect=True,
)
def test_it_stays_where_a_new_package_drops_what_is_beside_it(lab: Lab) -> None:
    replace(
        lab, case=replace(lab.case, path=(*SPEC, "tolerations", "-"), theirs=TOLERATION)
    ).write()
    text = lab.case.text
    for said in LEFT_OUT:
        text = text.replace(said, "")
    for release in (1, 0):
        lab.change(text, release)
        spec = at(lab.live(), SPEC)
        assert spec["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
        assert spec["tolerations"] == [TOLERATION]


@pytest.mark.parametrize("lab", [(LABELLED, ROLLING)], indirect=True)
def test_so_does_one_that_it_gave_meanwhile(lab: Lab) -> None:
    for release in (1, 0):
        lab.change(release=release)
    body = lab.live()
    body["spec"]["template"]["metadata"]["annotations"] = {"theirs": "new"}
    write_as("theirs", lab.cnf, body)
    undo(lab.cnf.admin, lab.cnf.options, **lab.cnf.where)
    live = lab.live()["spec"]["template"]
    assert live["metadata"]["labels"]["theirs"] == "theirs"
    assert live["metadata"]["annotations"]["theirs"] == "new"
    assert live["spec"]["containers"][0]["image"] == IMAGES[1]


def drifts(plan: Plan) -> list[str]:
    return [note.text for note in plan.notes if note.text.startswith("drift: ")]


@points()
def test_what_another_client_wrote_stays_through_a_change_and_the_way_back(lab: Lab) -> None:
    for release in (1, 0):
        noted = drifts(lab.change(release=release))
        assert at(lab.live(), lab.case.path) == lab.case.theirs
        assert len(noted) == 1, "it is said each time"


@points("a placeholder that an injector replaced", "a variable", "a limit")
def test_nothing_is_written_where_both_packages_are_the_same(lab: Lab) -> None:
    plan = lab.plan(release=0)
    assert plan.is_empty
    assert len(drifts(plan)) == 1


RESTATED = {
    "a placeholder that an injector replaced": (CA, OTHER_CA),
    "a variable": ("A, value: said", "A, value: theirs"),
}


@points(*RESTATED)
def test_a_package_that_states_the_value_itself_has_nothing_to_do(lab: Lab) -> None:
    (words,) = (words for name, words in RESTATED.items() if CASES[name] is lab.case)
    text = lab.case.text.replace(*words)
    assert text != lab.case.text
    before = lab.live()["metadata"].get("generation")
    plan = lab.change(text, release=0)
    assert drifts(plan) == []
    assert lab.live()["metadata"].get("generation") == before
    assert at(lab.live(), lab.case.path) == lab.case.theirs


OURS = {
    "a placeholder that an injector replaced": (CA, "bmV3", "bmV3"),
    "a variable": ("A, value: said", "A, value: new", "new"),
    "a request": ("cpu: 100m", "cpu: 200m", "200m"),
    "an affinity": ("  sessionAffinity: None\n", "", "None"),
    "a target": ("maxReplicas: 5", "maxReplicas: 6", 6),
}


@points(*OURS)
def test_what_the_new_package_states_otherwise_or_drops_takes_effect(lab: Lab) -> None:
    ((said, new, expected),) = (words for name, words in OURS.items() if CASES[name] is lab.case)
    lab.change(lab.case.text.replace(said, new))
    assert at(lab.live(), lab.case.path) == expected
