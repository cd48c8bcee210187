# SPDX-License-Identifier: Apache-2.0
"""Canary, hold and gate: new pods take over in steps; a person, metric or script lets them."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from container_update import (
    CancelToken,
    ContainerUpdateError,
    NextStep,
    PackageError,
    PlanError,
    ResumeStarted,
    Step,
    StepResult,
    UpdateFailedError,
    UpdateInProgressError,
    abort,
    history,
    promote,
    rollback,
    status,
)
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite, Shape
from tests.functional.change_vnfpkg.site import V1, V2, Arguments
from tests.functional.conftest import until
from tests.functional.real import one_of
from tests.functional.upgrade_types import BLUE_GREEN, CANARY
from tests.internals.core import Action, Event, StepState, main
from tests.internals.core import prometheus as prometheus_client

TEN = Shape(replicas=10)
HELD_ONCE = Arguments({"canary_steps": [{"percent": 30, "hold": True}, 100]})


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Return a function that instantiates a VNF of a shape, for a strategy."""
    with kubernetes_site(CANARY, request, tmp_path) as site:
        assert isinstance(site, KubernetesContractSite)

        def instantiate(shape: Shape = TEN, kind: str = CANARY) -> KubernetesContractSite:
            site.shape, site.upgrade_type = shape, kind
            site.instantiate(V1)
            return site

        yield instantiate


def shares(site: KubernetesContractSite) -> dict[str, int]:
    """How many pods of VDU1 run the image of each version."""
    images = [pod["spec"]["containers"][0]["image"] for pod in site.pods("VDU1")]
    return {image: images.count(image) for image in sorted(set(images))}


def let_go_on(site: KubernetesContractSite) -> Any:
    """Promote as somebody on another host does, who has both packages."""
    packages = list(filter(None, (site.old, site.new)))
    return promote(site.cluster, site.options, **site.where(), packages=packages)


# --- a canary -----------------------------------------------------------------------------------


def test_new_pods_take_over_in_the_steps_of_the_request(make: Any) -> None:
    site, seen = make(), list[tuple[str, int]]()

    def watch(event: Any) -> None:
        if isinstance(event, StepResult) and event.step.action is Action.SCALE:
            seen.append((event.step.key.name, getattr(event.step, "replicas", 0)))

    site.change(V2, Arguments({"canary_steps": [20, 60, 100]}, progress=watch))
    assert site.is_at("v2")
    web = [number for name, number in seen if name == "web"]
    green = [number for name, number in seen if name.startswith("web-")]
    assert (web, green) == ([8, 4, 0], [6, 10])


def test_without_steps_a_tenth_comes_first_then_half_then_all(make: Any) -> None:
    plan = make().plan(V2)
    reasons = [str(step.reasons[0]) for step in plan.steps if step.action is Action.SCALE]
    percents = list(dict.fromkeys(reason.split(":")[0] for reason in reasons))
    assert percents == ["canary of 10 %", "canary of 50 %", "canary of 100 %"]


def test_a_single_pod_stays_beside_the_new_one_until_the_last_step(make: Any) -> None:
    site = make(Shape(replicas=1))
    site.change(V2, HELD_ONCE)
    assert site.serving() == {"v1", "v2"}
    let_go_on(site)
    assert site.is_at("v2")


def test_after_blue_green_a_canary_shares_the_traffic_again(make: Any) -> None:
    site = make(kind=BLUE_GREEN)
    site.change(V2)
    site.runs_from(V2)
    site.upgrade_type = CANARY
    site.change(replace(V1, version="v3"), HELD_ONCE)
    assert site.serving() == {"v2", "v3"}
    let_go_on(site)
    assert site.is_at("v3")


REFUSED: dict[str, tuple[Shape, dict[str, Any], str]] = {
    "a Service for one version": (
        Shape(labelled=True), {}, r"Service .*web: expected a selector for the old and the new",
    ),
    "an autoscaler": (
        Shape(more={"hpa.yaml": json.dumps({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": 1, "maxReplicas": 3,
            },
        })}),
        {}, "expected no autoscaler",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("shape", "params", "said"), REFUSED.values(), ids=REFUSED)
def test_a_canary_that_could_not_share_the_traffic_is_refused(
    make: Any, shape: Shape, params: dict[str, Any], said: str
) -> None:
    site = make(shape)
    with pytest.raises(PlanError, match=said):
        site.change(V2, Arguments(params))
    assert site.is_at("v1")


WRONG = {
    "no number": {"canary_steps": ["10"]},
    "more than all": {"canary_steps": [110]},
    "true is no number": {"canary_steps": [True]},
    "no step": {"canary_steps": []},
    "steps that shrink": {"canary_steps": [50, 10]},
    "unknown": {"canary_steps": [{"percent": 10, "pause": 3}]},
    "a text as hold": {"hold": "yes"},
    "a gate without a query": {"gate": {"at_most": 1}},
    "a gate of two kinds": {"gate": {"query": "up", "script": "Scripts/gate.py"}},
    "bounds of a script": {"gate": {"script": "Scripts/gate.py", "at_most": 1}},
    "a script elsewhere": {"gate": {"script": "../gate.py"}},
}


@pytest.mark.parametrize("params", one_of(6, WRONG.values()), ids=WRONG)
def test_a_wrong_parameter_is_named(make: Any, params: dict[str, Any]) -> None:
    with pytest.raises(PackageError, match=f"additionalParams.{next(iter(params))}"):
        make(Shape()).change(V2, Arguments(params))


def test_a_rolling_update_has_no_place_to_wait(make: Any) -> None:
    with pytest.raises(PackageError, match="hold: expected a strategy that has new pods beside"):
        make(Shape(), "RollingUpdate").change(V2, Arguments({"hold": True}))


# --- a hold -------------------------------------------------------------------------------------


def test_a_canary_waits_until_somebody_promotes_it(make: Any) -> None:
    site = make()
    outcome = site.change(V2, HELD_ONCE).outcome
    assert str(outcome.held.key) == "Hold canary of 30 %"
    assert shares(site) == {"nginx:1.27-alpine": 7, "nginx:1.28-alpine": 3}
    assert site.serving() == {"v1", "v2"}
    assert status(site.cluster, **site.where()).is_held
    assert let_go_on(site).held is None
    assert site.is_at("v2")
    assert not site.left_over()


def test_the_same_request_waits_on_and_another_one_is_refused(make: Any) -> None:
    site = make()
    site.change(V2, HELD_ONCE)
    assert site.change(V2, HELD_ONCE).outcome.held is not None
    with pytest.raises(UpdateInProgressError, match="promote or abort") as refused:
        site.change(replace(V2, version="v3"))
    assert refused.value.next_step is NextStep.PROMOTE_OR_ABORT
    assert shares(site) == {"nginx:1.27-alpine": 7, "nginx:1.28-alpine": 3}


def test_an_abort_takes_the_canary_back(make: Any) -> None:
    site = make()
    site.change(V2, HELD_ONCE)
    packages = [site.old, site.new]
    abort(site.cluster, site.options, **site.where(), packages=packages)
    newest, *_ = history(site.cluster, site.options, **site.where())
    assert newest.cause == f"operation {newest.operation} was aborted (canary of 30 %)"
    assert site.is_at("v1")
    assert shares(site) == {"nginx:1.27-alpine": 10}
    assert not site.left_over()


def test_an_abort_says_of_no_step_that_somebody_else_changed_its_object(make: Any) -> None:
    site = make()
    site.change(V2, Arguments({"canary_steps": [30, {"percent": 60, "hold": True}, 100]}))
    outcome = abort(site.cluster, site.options, **site.where(), packages=[site.old, site.new])
    assert outcome is not None
    assert outcome.left_to_others == ()
    assert site.is_at("v1")


@pytest.mark.parametrize("kind", [CANARY, BLUE_GREEN])
def test_while_one_host_promotes_another_one_can_neither_promote_nor_abort(
    make: Any, kind: str
) -> None:
    site, refused, left = make(Shape(), kind), list[ContainerUpdateError](), list[int]()
    hold = HELD_ONCE if kind == CANARY else Arguments({"hold": True})
    site.change(V2, hold)
    how = {**site.where(), "packages": [site.old, site.new]}

    def beside(event: Event) -> None:
        if isinstance(event, ResumeStarted):
            left.append(len(event.steps))
        if isinstance(event, Step) and not refused:
            for verb in (promote, abort):
                with pytest.raises(PlanError, match="found one that is not finished") as error:
                    verb(site.cluster, site.options, **how)
                refused.append(error.value)

    outcome = promote(site.cluster, site.options, None, beside, **how)
    assert outcome is not None
    assert 0 < sum(left) < len(outcome.plan.steps), "the steps before the hold are done"
    assert len(refused) == 2
    assert {result.state for result in outcome.results} == {StepState.DONE}
    assert site.is_at("v2")


@pytest.mark.parametrize("verb", [promote, abort])
def test_where_nothing_waits_there_is_nothing_to_promote(make: Any, verb: Any) -> None:
    site = make(Shape())
    with pytest.raises(PlanError, match="expected an operation that waits for a person, found"):
        verb(site.cluster, site.options, **site.where())


def test_blue_green_waits_with_the_new_pods_ready_and_the_old_ones_serving(make: Any) -> None:
    site = make(Shape(), BLUE_GREEN)
    site.change(V2, Arguments({"hold": True}))
    assert site.serving() == {"v1"}
    assert site.running()["VDU1"] == {"v1", "v2"}
    assert site.serving("web-preview") == {"v2"}
    let_go_on(site)
    assert site.is_at("v2")
    assert not site.serving("web-preview")


def test_an_abort_of_blue_green_takes_the_preview_away(make: Any) -> None:
    site = make(Shape(), BLUE_GREEN)
    site.change(V2, Arguments({"hold": True}))
    abort(site.cluster, site.options, **site.where(), packages=[site.old, site.new])
    assert site.is_at("v1")
    assert not site.serving("web-preview")


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=[pytest.mark.thorough] * (n not in (9, 15))) for n in range(8, 22)],
)
@pytest.mark.parametrize("finish", ["resume", "rollback"])
def test_a_promotion_that_is_killed_leaves_no_preview(make: Any, number: int, finish: str) -> None:
    site = make(Shape(), BLUE_GREEN)
    site.change(V2, Arguments({"hold": True}))
    packages = [site.old, site.new]
    dying: Any = Dying(site.cluster, number, ("create", "replace", "delete"))
    with suppress(ContainerUpdateError, Died):
        promote(dying, site.options, **site.where(), packages=packages)
    for lease in site.objects("coordination.k8s.io", "Lease"):
        lease["spec"]["holderIdentity"] = ""
        site.admin.replace(lease)
    if finish == "rollback":
        rollback(site.cluster, site.options, **site.where(), packages=packages)
    elif (outcome := site.resume()) is not None and outcome.held is not None:
        let_go_on(site)
    assert site.is_at("v2") or (finish == "rollback" and site.is_at("v1"))
    assert not [s for s in site.objects("", "Service") if "preview" in s["metadata"]["name"]]


def test_a_hold_for_a_time_ends_by_itself(make: Any) -> None:
    site = make(Shape(), BLUE_GREEN)
    outcome = site.change(V2, Arguments({"hold": 0.2})).outcome
    waits = [result for result in outcome.results if result.step.action is Action.WAIT]
    assert [result.state for result in waits] == [StepState.DONE]
    assert waits[0].seconds >= 0.2
    assert site.is_at("v2")


def test_the_command_waits_and_says_what_to_do(
    make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = make(Shape(replicas=4))
    shown, packages = io.StringIO(), [site.old, site.package(V2)]
    change = ["--upgrade-type", "canary", "--canary-steps", "50,100", "--hold", "--yes"]
    assert main(["change", *packages, *change, *site.command_options], shown) == 0
    assert "waits for a person" in shown.getvalue()
    assert "container-update promote" in shown.getvalue()
    assert main(["status", *site.command_options], shown) == 0
    told = shown.getvalue().partition("promote or abort it:\n")[2]
    states = [line.split(": ")[0].strip() for line in told.splitlines() if line.startswith("  ")]
    waits = states.index("waits for a person")
    assert set(states[:waits]) == {"done"}
    assert set(states[waits + 1 :]) == {"not started"}
    planned = io.StringIO()
    change = ["--plan", "--upgrade-type", "RollingUpdate"]
    assert main(["change", *packages, *change, *site.command_options], planned) == 3  # changes
    assert planned.getvalue().endswith("The plan is of the objects as they are now.\n")
    assert "waits for a person" in planned.getvalue()
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text("another host's")
    change += ["--journal-key", str(key)]
    assert main(["change", *packages, *change, *site.command_options], planned) == 3
    assert "The state of the last operation cannot be read: Secret" in planned.getvalue()
    assert main(["promote", *packages, "--yes", *site.command_options], shown) == 0
    assert site.is_at("v2")
    assert main(["promote", "--yes", *site.command_options], shown) != 0
    assert "waits for a person" in capsys.readouterr().err


def test_the_command_that_takes_a_canary_back_counts_the_steps_that_were_done(make: Any) -> None:
    site = make(Shape(replicas=4))
    shown, packages = io.StringIO(), [site.old, site.package(V2)]
    change = ["--upgrade-type", "canary", "--canary-steps", "50,100", "--hold", "--yes"]
    assert main(["change", *packages, *change, *site.command_options], shown) == 0
    done = re.search(r"\((\d+) of \d+ steps done", shown.getvalue())
    assert done is not None
    assert main(["abort", *packages, "--yes", *site.command_options], shown) == 0
    announced = re.search(r"Undoing (\d+ steps)", shown.getvalue())
    assert announced is not None
    assert announced[1] == f"{done[1]} steps"
    assert f"everything is as before ({announced[1]})." in shown.getvalue()


# --- a gate -------------------------------------------------------------------------------------


@dataclass
class Prometheus:
    """A server that answers one query after the other; the last answer stays."""

    answers: list[Any]
    queries: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str) -> tuple[int, bytes]:
        self.queries.append(parse_qs(urlsplit(path).query)["query"][0])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int) and not isinstance(answer, bool) and answer >= 400:
            return answer, b"no"
        if isinstance(answer, bytes):
            return 200, answer
        result = [{"metric": {}, "value": [1.0, str(value)]} for value in answer]
        data = {"resultType": "vector", "result": result}
        return 200, json.dumps({"status": "success", "data": data}).encode()


@pytest.fixture
def prometheus() -> Iterator[Prometheus]:
    """A server on loopback."""
    server = Prometheus([[0.001]])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = server.answer(self.path)
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield server
        http.shutdown()


def gated(server: Prometheus, seconds: float = 0.0) -> Arguments:
    """A canary whose first step has a gate."""
    gate = {"query": "error_ratio", "at_most": 0.01, "seconds": seconds, "every": 1}
    steps = [{"percent": 50, "gate": gate}, 100]
    return Arguments({"canary_steps": steps}, options={"prometheus": server.url})


def test_a_gate_lets_a_good_canary_pass(make: Any, prometheus: Prometheus) -> None:
    site = make(Shape(replicas=2))
    site.change(V2, gated(prometheus))
    assert site.is_at("v2")
    assert prometheus.queries == ["error_ratio"]


BAD: dict[str, tuple[list[Any], str]] = {
    "out of bounds": ([[0.2]], r"error_ratio: expected at most 0\.01, found 0\.2"),
    "one of two samples": ([[0.001, 0.5]], r"found 0\.5"),
    "out of bounds later": ([[0.001], [0.2]], r"found 0\.2"),
    "an error": ([500], "3 questions in a row: .*500"),
    "no samples": ([[]], "has no value"),
    "no number": ([["NaN"]], "has no value"),
    "no JSON": ([b"<html>"], "has no value"),
}


@pytest.mark.parametrize(("answers", "said"), one_of(4, BAD.values()), ids=BAD)
def test_a_gate_takes_a_bad_canary_back(
    make: Any, prometheus: Prometheus, answers: list[Any], said: str
) -> None:
    site, prometheus.answers = make(Shape(replicas=2)), answers
    with pytest.raises(UpdateFailedError, match=said):
        site.change(V2, gated(prometheus, 0.5))
    assert site.is_at("v1")


def test_a_gate_bears_an_answer_that_is_missing_once(make: Any, prometheus: Prometheus) -> None:
    site, prometheus.answers = make(Shape(replicas=2)), [500, [], [0.0]]
    site.change(V2, gated(prometheus))
    assert site.is_at("v2")


@pytest.mark.parametrize("waits_for", ["the answer", "the next question"])
def test_a_cancellation_ends_the_wait_of_a_gate_at_once(
    make: Any, prometheus: Prometheus, monkeypatch: pytest.MonkeyPatch, waits_for: str
) -> None:
    """Neither the answer nor the next question would come before the test is over."""
    monkeypatch.setattr(prometheus_client, "_SECONDS", 1000.0)
    cancel, asked = CancelToken(), threading.Event()
    answered = threading.Event()

    def answer(path: str) -> tuple[int, bytes]:
        asked.set()
        if waits_for == "the answer":
            answered.wait(300)
        return Prometheus.answer(prometheus, path)

    monkeypatch.setattr(prometheus, "answer", answer)
    gate = {"query": "error_ratio", "at_most": 0.01, "seconds": 3600, "every": 3600}
    params = {"canary_steps": [{"percent": 50, "gate": gate}, 100]}
    arguments = Arguments(params, options={"prometheus": prometheus.url}, cancel=cancel)
    site = make(Shape(replicas=2))
    with ThreadPoolExecutor() as pool:
        change = pool.submit(site.change, V2, arguments)
        assert asked.wait(60), "the gate asks"
        if waits_for == "the next question":
            until(lambda: bool(prometheus.queries))
        cancel.request("by the test")
        try:
            with pytest.raises(UpdateFailedError, match="by the test"):
                change.result(120)
        finally:
            answered.set()
    assert site.is_at("v1")


@pytest.mark.parametrize("every", one_of(4, [0, -1, 0.5, 3601]))
def test_a_gate_that_asks_without_a_pause_is_refused(make: Any, every: float) -> None:
    gate = {"query": "error_ratio", "at_most": 0.01, "every": every}
    with pytest.raises(PackageError, match=r"gate\.every: expected a number: seconds from one"):
        make(Shape()).change(V2, Arguments({"gate": gate}))


SCRIPT = """\
import pathlib, pickle, sys
said = pathlib.Path({log!r})
values = pickle.load(sys.stdin.buffer)["coordination"]
with said.open("a") as file:
    file.write(values["new_resource"][:4] + str(len(values["new_pods"])) + "\\n")
if {bad} and said.read_text().count("\\n") > 2:
    sys.exit("too many calls are lost")
"""


def asked_by_script(log: Path, *, bad: bool, seconds: float = 1.0) -> tuple[Any, Arguments]:
    """The new version with a script of a gate, and the request that names it."""
    release = replace(V2, scripts={"Scripts/gate.py": SCRIPT.format(log=str(log), bad=bad)})
    gate = {"script": "Scripts/gate.py", "every": 1, "seconds": seconds}
    return release, Arguments({"canary_steps": [{"percent": 50, "gate": gate, "hold": True}, 100]})


def test_a_gates_script_is_run_again_and_again_for_each_vdu(make: Any, tmp_path: Path) -> None:
    site, log = make(Shape(replicas=2)), tmp_path / "said"
    site.change(*asked_by_script(log, bad=False))
    asked = log.read_text().split()
    assert (asked.count("web-1"), asked.count("work1")) == (2, 2), "at once, and after a second"
    assert list(shares(site).values()) == [1, 1], "the hold comes after the gate"
    let_go_on(site)
    assert site.is_at("v2")
    assert log.read_text().split() == asked, "it has passed"


def test_a_gates_script_that_fails_takes_the_canary_back(make: Any, tmp_path: Path) -> None:
    site = make(Shape(replicas=2))
    with pytest.raises(UpdateFailedError, match="too many calls are lost"):
        site.change(*asked_by_script(tmp_path / "said", bad=True))
    assert site.is_at("v1")


def test_a_gates_script_that_no_package_has_is_named_before_anything_is_done(make: Any) -> None:
    gate = {"script": "Scripts/none.py"}
    with pytest.raises(PackageError, match=r"gate: expected Scripts/none.py in .* no such file"):
        make(Shape()).change(V2, Arguments({"gate": gate}))


def test_without_a_server_a_gate_never_passes(make: Any) -> None:
    site = make(Shape(replicas=2))
    with pytest.raises(UpdateFailedError, match="option prometheus"):
        site.change(V2, gated(Prometheus([])))
    assert site.is_at("v1")
