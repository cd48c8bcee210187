# SPDX-License-Identifier: Apache-2.0
"""The v2 script as Tacker runs it, and what it does with an instance's records."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import types
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from container_update import ChangePackageRequest
from container_update.cluster import client
from container_update.drivers import (
    change_by_modify,
    tacker_v2,
    v2_memory,
    v2_process,
    v2_records,
    vim,
)
from container_update.drivers.advice import sol003_advice
from container_update.model.errors import (
    ChangeNeededError,
    ClusterError,
    ContainerUpdateError,
    PackageError,
    PlanError,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInProgressError,
    UpdateInterruptedError,
    with_advice,
)
from container_update.model.objects import Manifest, ObjectKey, Source
from container_update.model.options import Options
from container_update.model.outcome import Outcome, StepResult, StepState, Vnfc
from container_update.model.plan import Action, Plan
from container_update.planning.steps import ConfigStep, RestartStep
from container_update.records.vnf_records import Records

SCRIPT = Path(str(tacker_v2.__file__))
WEB = ObjectKey("apps", "Deployment", "cnf", "web")
NEW_CONFIG = ObjectKey("", "ConfigMap", "cnf", "added")
OLD_CONFIG = ObjectKey("", "Secret", "cnf", "secret-data")
SECRET_VALUE = "sesame-open"
VIM = {
    "vimType": "ETSINFV.KUBERNETES.V_1",
    "interfaceInfo": {"endpoint": "https://k8s.example:6443", "ssl_ca_cert": "-----BEGIN"},
    "accessInfo": {"bearer_token": "t"},
}


def deployment(image: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "cnf", "labels": {"tacker_vnf_instance_id": "i"}},
        "spec": {
            "replicas": 3,
            "template": {
                "spec": {
                    "initContainers": [{"name": "setup", "image": "init:1"}],
                    "containers": [
                        {"name": "web", "image": image},
                        {"name": "sidecar", "image": "sidecar:1"},
                    ],
                }
            },
        },
    }


def plan_of(image: str = "web:2") -> Plan:
    manifest = Manifest(WEB, deployment(image), Source("Files/web.yaml", 1))
    steps = (
        ConfigStep(NEW_CONFIG, Action.CREATE, None, {"data": {"password": SECRET_VALUE}}),
        ConfigStep(OLD_CONFIG, Action.REPLACE, {"data": {"password": SECRET_VALUE}}, {}),
        RestartStep(WEB, Action.ROLL, None, images={"web": image}),
    )
    files = ("Files/web.yaml", "Files/cm_2.yaml")
    return Plan("cnf", "instance-1", steps, def_files=files, manifests=(manifest,))


def outcome_of(*pods: str) -> Outcome:
    vnfcs = tuple(Vnfc("VDU1", pod, "cnf", "Deployment", "web") for pod in pods)
    plan = plan_of()
    results = tuple(StepResult(step, StepState.DONE) for step in plan.steps)
    return Outcome(plan, results, vnfcs=vnfcs)


def instance(**fields: Any) -> dict[str, Any]:
    info = {
        "flavourId": "simple",
        "vnfcResourceInfo": [{"id": "web-old", "vduId": "VDU1"}],
        "vnfcInfo": [
            {
                "id": "VDU1-web-kept",
                "vduId": "VDU1",
                "vnfcResourceInfoId": "web-kept",
                "vnfcState": "STARTED",
                "vnfcConfigurableProperties": {"colour": "blue"},
            }
        ],
        "metadata": {
            "namespace": "cnf",
            "tenant": "cnf",
            "lcm-kubernetes-def-files": ["Files/web.yaml", "Files/cm_1.yaml"],
            "vdu_reses": {"VDU1": deployment("web:1")},
        },
    }
    made = {"id": "instance-1", "vimConnectionInfo": {"vim1": VIM}, "instantiatedVnfInfo": info}
    return {**made, **fields}


def script_of(operation: str, **fields: Any) -> dict[str, Any]:
    """What Tacker writes to the script's standard input."""
    script = {
        "operation": operation,
        "request": {"vnfdId": "new"},
        "vnf_instance": instance(),
        "grant_request": None,
        "grant_response": None,
        "tmp_csar_dir": "/packages/old",
        "user_script_err_handling_data": {},
    }
    if operation == "modify_information_end":
        script["new_csar_dir"] = "/packages/new"
    return {**script, **fields}


def module(name: str, **content: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(content)
    return made


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stands in for the update and the cluster it is given."""
    seen = SimpleNamespace(
        requests=[],
        changes=[],
        records=None,
        closed=0,
        outcome=outcome_of("web-new"),
        error=None,
    )

    def close() -> None:
        seen.closed += 1

    def connect(*_: Any, **__: Any) -> SimpleNamespace:
        return SimpleNamespace(close=close)

    def goal_of(request: Any, _: Any, __: Any, connection: Any, instance: Any) -> Any:
        is_change = isinstance(request, ChangePackageRequest)
        if is_change:
            seen.changes.append((request.body, connection, instance))
        else:
            seen.requests.append(request)
        records = Records.of_update if not is_change or seen.records is None else seen.records
        return SimpleNamespace(records=records)

    def run(*_: Any) -> Outcome:
        if seen.error:
            raise seen.error
        return seen.outcome

    monkeypatch.setattr(client, "connect_vim", connect)
    monkeypatch.setattr(change_by_modify, "goal_of", goal_of)
    monkeypatch.setattr(change_by_modify, "run", run)
    monkeypatch.setattr(v2_process, "_start_log", lambda: None)
    return seen


def answer(script: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    return v2_process.answer(io.BytesIO(pickle.dumps(script)))


def run_script(script: object, *command: str) -> subprocess.CompletedProcess[bytes]:
    """Run the script as Tacker does: a process, a pickle in, a pickle out."""
    return subprocess.run(
        [sys.executable, *(command or [str(SCRIPT)])],
        input=script if isinstance(script, bytes) else pickle.dumps(script),
        capture_output=True,
        check=False,
    )


# --- the process --------------------------------------------------------------------------------

IDLE = sorted(v2_process.OPERATIONS - v2_process.WORK.keys())
MODIFY = sorted(name for name in v2_process.WORK if name.startswith("modify_information"))


def test_there_are_seven_operations_with_four_points_each() -> None:
    assert len(v2_process.OPERATIONS) == 28
    assert v2_process.WORK.keys() - {*MODIFY} == {
        "change_current_package_start",
        "change_current_package_end",
        "heal_start",
        "heal_end",
        "instantiate_end",
        "terminate_start",
    }
    assert MODIFY == [
        "modify_information_end",
        "modify_information_rollback_end",
        "modify_information_rollback_start",
    ]


@pytest.mark.parametrize("operation", IDLE)
def test_an_operation_that_is_not_ours_is_answered_with_an_empty_dict(
    operation: str, engine: SimpleNamespace
) -> None:
    assert answer(script_of(operation)) == ({}, "")
    assert engine.requests == []


NOTHING_TO_UPDATE = {
    "no vnfdId": {"request": {"vnfInstanceName": "other"}},
    "an empty request": {"request": {}},
    "not instantiated": {"vnf_instance": {"id": "instance-1"}},
}


@pytest.mark.parametrize("fields", NOTHING_TO_UPDATE.values(), ids=NOTHING_TO_UPDATE.keys())
@pytest.mark.parametrize("operation", MODIFY)
def test_a_modification_that_concerns_no_running_package_touches_nothing(
    operation: str, fields: dict[str, Any], engine: SimpleNamespace
) -> None:
    script = script_of(operation, **fields)
    script.pop("new_csar_dir", None)
    assert answer(script) == ({}, "")
    assert engine.requests == []


SERVERS = {"vim1": {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}}


@pytest.mark.parametrize("operation", sorted(v2_process.WORK))
def test_a_vnf_of_servers_is_left_to_tacker(operation: str, engine: SimpleNamespace) -> None:
    on_openstack = {**instance(), "vimConnectionInfo": SERVERS}
    assert answer(script_of(operation, vnf_instance=on_openstack)) == ({}, "")
    assert engine.requests == []


@pytest.mark.parametrize("vim_type", ["ETSINFV.HELM.V_3", "ETSINFV.KUBERNETES.V_1"])
def test_a_vnf_with_any_other_vim_is_not_one_of_servers(vim_type: str) -> None:
    assert vim.is_of_servers(SERVERS)
    assert not vim.is_of_servers({})
    assert not vim.is_of_servers({**SERVERS, "vim2": {"vimType": vim_type}})


@pytest.mark.parametrize("named", ["configmap_secret_paths", "upgrade_type"])
def test_a_modification_of_containers_is_refused_for_a_vnf_of_servers(
    named: str, engine: SimpleNamespace
) -> None:
    value = ["Files/cm.yaml"] if named == "configmap_secret_paths" else "RollingUpdate"
    script = script_of(
        "modify_information_end",
        request={"vnfdId": "new", "metadata": {named: value}},
        vnf_instance={**instance(), "vimConnectionInfo": SERVERS},
    )
    _, reason = answer(script)
    assert "found ETSINFV.OPENSTACK_KEYSTONE.V_3: name the Kubernetes VIM" in reason
    assert engine.requests == []


def test_the_script_answers_a_start_with_one_pickled_dict_and_says_nothing() -> None:
    done = run_script(script_of("modify_information_start"))
    assert (done.returncode, pickle.loads(done.stdout), done.stderr) == (0, {}, b"")


@pytest.mark.parametrize("operation", ["explode_start", "__init__", None, 7])
def test_an_unknown_operation_is_a_clear_error_and_no_traceback(operation: Any) -> None:
    done = run_script(script_of(operation))
    assert (done.returncode, pickle.loads(done.stdout)) == (1, {})
    (reason,) = done.stderr.decode().splitlines()
    assert reason.startswith(f"operation {operation!r}: expected one of change_current_package_end")


@pytest.mark.parametrize(
    "sent",
    [b"", b"hello", b"\x80", pickle.dumps([1, 2]), pickle.dumps({"operation": "scale_end"})[:-4]],
)
def test_a_request_that_cannot_be_read_is_a_clear_error(sent: bytes) -> None:
    done = run_script(sent)
    assert (done.returncode, pickle.loads(done.stdout)) == (1, {})
    (reason,) = done.stderr.decode().splitlines()
    assert "standard input: expected a pickled dict" in reason


NOISY = """
import os, subprocess, sys, types
def work(script, output):
    print("printed")
    os.write(1, b"written")
    subprocess.run(["echo", "from a child"], check=True)
    output["vnf_instance"] = {"id": "instance-1"}
    {then}
noisy = types.ModuleType("container_update.drivers.v2_records")
noisy.update_instance = work
sys.modules[noisy.__name__] = noisy
from container_update.drivers.v2_process import main
main()
"""


@pytest.mark.parametrize(("then", "status"), [("pass", 0), ("raise RuntimeError('why')", 1)])
def test_whatever_is_printed_standard_output_holds_the_answer_alone(then: str, status: int) -> None:
    code = NOISY.replace("{then}", then)
    done = run_script(script_of("modify_information_end"), "-c", code)
    assert (done.returncode, pickle.loads(done.stdout)) == (
        status,
        {"vnf_instance": {"id": "instance-1"}},
    )
    for noise in (b"printed", b"written", b"from a child"):
        assert noise in done.stderr


QUOTES = r"""Deployment web: pod 'web-1': pulling image "a/b:1": cannot resolve \"b:1\" now"""


def test_the_reason_of_a_failure_reads_well_where_tacker_quotes_it_as_bytes() -> None:
    raised = f"from container_update import ClusterError; raise ClusterError({QUOTES!r})"
    done = run_script(script_of("modify_information_end"), "-c", NOISY.replace("{then}", raised))
    # what the script has printed may be written behind it
    reason = next(line for line in done.stderr.splitlines() if line.startswith(b"Deployment"))
    said = f"modify_information_end failed: {reason!r}"
    assert "pod 'web-1': pulling image 'a/b:1': cannot resolve 'b:1' now." in said
    assert "\\" not in said
    assert b".\n" not in done.stderr, "Tacker would show the end of the line as \\n"


def test_an_operation_with_nothing_to_do_loads_none_of_the_heavy_libraries() -> None:
    code = (
        "import io, pickle, sys; from container_update.drivers import v2_process;"
        "v2_process.answer(io.BytesIO(pickle.dumps({'operation': 'modify_information_start'})));"
        "heavy = ('kubernetes', 'toscaparser', 'yaml', 'oslo_config', 'logging', 'dataclasses');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_without_the_package_the_script_says_what_to_install(tmp_path: Path) -> None:
    script = tmp_path / "container_update_mgmt_v2.py"
    script.write_bytes(SCRIPT.read_bytes())
    done = run_script({}, "-S", "-I", str(script))
    assert done.returncode == 1
    assert b"was expected to have the Python package container-update" in done.stderr
    assert b"Traceback" not in done.stderr


def test_an_error_that_is_not_ours_is_told_by_kind_and_place_only(engine: SimpleNamespace) -> None:
    engine.error = KeyError(SECRET_VALUE)
    _, reason = answer(script_of("modify_information_end"))
    assert reason.startswith("KeyError in test_tacker_v2.py, line ")
    assert SECRET_VALUE not in reason


def test_the_log_goes_to_the_file_that_the_conductors_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import logging; from container_update.drivers import v2_process as p; p._start_log();"
        "logging.getLogger('container_update').info('rolled %s', 'web')"
    )
    for target in ("", str(tmp_path / "log")):
        monkeypatch.setenv("CONTAINER_UPDATE_LOG", target)
        done = run_script(b"", "-c", code)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "INFO container_update: rolled web" in (tmp_path / "log").read_text()


WISH = "configmap_secret_paths"


def wished(paths: object) -> dict[str, Any]:
    """A request with these paths."""
    return {"vnfdId": "new", "metadata": {WISH: paths}}


def made_of(def_files: object) -> dict[str, Any]:
    """An instance with these def-files."""
    metadata = {"lcm-kubernetes-def-files": def_files}
    return instance(instantiatedVnfInfo={"flavourId": "simple", "metadata": metadata})


# --- the update ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"request": 5}, "request: expected a mapping, found a number"),
        ({"request": {"vnfdId": "new", "metadata": []}}, "request.metadata: expected a mapping"),
        ({"request": wished(5)}, f"metadata.{WISH}: expected a list, found a number"),
        ({"request": wished("a.yaml")}, f"metadata.{WISH}: expected a list, found text"),
        ({"request": wished([[]])}, f"metadata.{WISH}[0]: expected text in one line"),
        ({"request": wished([5])}, f"metadata.{WISH}[0]: expected text in one line"),
        ({"vnf_instance": made_of(5)}, "def-files: expected a list, found a number"),
        ({"vnf_instance": made_of([{}])}, "def-files[0]: expected text in one line"),
        ({"vnf_instance": instance(vimConnectionInfo=5)}, "vimConnectionInfo: expected"),
        ({"vnf_instance": instance(vimConnectionInfo={"v": 5})}, "vimConnectionInfo.v: expected"),
        ({"vnf_instance": instance(vimConnectionInfo={"v": {**VIM, "interfaceInfo": 5}})},
         "vimConnectionInfo.interfaceInfo: expected a mapping, found a number"),
        ({"vnf_instance": instance(vimConnectionInfo={"v": {**VIM, "accessInfo": [5]}})},
         "vimConnectionInfo.accessInfo: expected a mapping, found a list"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_an_error_that_names_the_place(
    fields: dict[str, Any], found: str, engine: SimpleNamespace
) -> None:
    reason = answer(script_of("modify_information_end", **fields))[1]
    assert found in reason
    assert "defect" not in reason
    assert engine.requests == []


@pytest.mark.parametrize("metadata", [None, {}, {"lcm-kubernetes-def-files": []}])
def test_an_instance_that_has_no_def_files_is_refused(
    metadata: Any, engine: SimpleNamespace
) -> None:
    info = {"flavourId": "simple", "metadata": metadata}
    script = script_of("modify_information_end", vnf_instance=instance(instantiatedVnfInfo=info))
    output, reason = answer(script)
    assert "instance-1: expected lcm-kubernetes-def-files" in reason
    assert "vnf_instance" not in output
    assert engine.requests == []


def test_the_live_pods_are_recorded_under_their_names() -> None:
    after = Records.of_update(outcome_of("web-new", "web-kept")).apply_to(instance())
    info = after["instantiatedVnfInfo"]
    assert info["vnfcResourceInfo"] == [
        {
            "id": pod,
            "vduId": "VDU1",
            "computeResource": {"resourceId": pod, "vimLevelResourceType": "Deployment"},
            "metadata": {},
        }
        for pod in ("web-new", "web-kept")
    ]
    new, kept = info["vnfcInfo"]
    assert new == {
        "id": "VDU1-web-new",
        "vduId": "VDU1",
        "vnfcResourceInfoId": "web-new",
        "vnfcState": "STARTED",
    }
    assert kept["vnfcConfigurableProperties"] == {"colour": "blue"}


def test_the_recorded_workloads_get_the_new_images_and_keep_all_else() -> None:
    before = instance()
    metadata = Records.of_update(outcome_of()).apply_to(before)["instantiatedVnfInfo"]["metadata"]
    assert metadata["vdu_reses"] == {"VDU1": deployment("web:2")}
    assert metadata["lcm-kubernetes-def-files"] == ["Files/web.yaml", "Files/cm_2.yaml"]
    assert metadata["tenant"] == "cnf"
    assert before == instance(), "what came in is not changed"


def test_a_recorded_workload_of_another_kind_or_name_keeps_its_images() -> None:
    before = instance()
    other = {**deployment("web:1"), "kind": "DaemonSet"}
    before["instantiatedVnfInfo"]["metadata"]["vdu_reses"] = {"VDU2": other}
    after = Records.of_update(outcome_of()).apply_to(before)
    assert after["instantiatedVnfInfo"]["metadata"]["vdu_reses"] == {"VDU2": other}


def test_an_instance_without_recorded_workloads_gets_its_other_records() -> None:
    before = instance()
    del before["instantiatedVnfInfo"]["metadata"]["vdu_reses"]
    after = Records.of_update(outcome_of("web-new")).apply_to(before)["instantiatedVnfInfo"]
    assert [entry["id"] for entry in after["vnfcResourceInfo"]] == ["web-new"]
    assert "vdu_reses" not in after["metadata"]


@pytest.mark.parametrize("text", [None, "[container_update]\ntimeout = soon\n", "timeout"])
def test_a_file_of_options_that_cannot_be_read_is_named(text: str | None, tmp_path: Path) -> None:
    file = tmp_path / "options.conf"
    if text is not None:
        file.write_text(text)
    with pytest.raises(PackageError, match=rf"CONTAINER_UPDATE_CONFIG={file}: "):
        v2_records.read_options(str(file))


# --- the VIM ------------------------------------------------------------------------------------

TOKEN = {"bearer_token": "t"}
LOGIN = {"username": "u", "password": "p"}
OIDC = {"client_id": "c", "client_secret": "s", **LOGIN}
WAYS_IN = {
    "a token": (TOKEN, TOKEN),
    "user and password": (LOGIN, LOGIN),
    "v1's word for nothing": ({"username": "None", "password": None, **TOKEN}, TOKEN),
    "an OpenID provider": (
        {"oidc_token_url": "https://idp", **OIDC},
        {"oidc": {"token_url": "https://idp", **OIDC}},
    ),
    "an OpenID provider without a client secret": (
        {"oidc_token_url": "https://idp", "client_id": "c", "client_secret": "", **LOGIN},
        {"oidc": {"token_url": "https://idp", "client_id": "c", **LOGIN}},
    ),
}


@pytest.mark.parametrize("case", WAYS_IN.values(), ids=WAYS_IN.keys())
@pytest.mark.parametrize(("ca", "given_ca"), [("PEM", "PEM"), ("None", None), (None, None)])
def test_a_cluster_is_connected_with_what_the_vim_has(
    case: tuple[dict[str, Any], dict[str, Any]],
    ca: str | None,
    given_ca: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    access, expected = case
    monkeypatch.setitem(
        sys.modules,
        "container_update.cluster.client",
        module("cluster", connect_vim=lambda endpoint, **given: (endpoint, given)),
    )
    interface = {"endpoint": "https://k8s", "ssl_ca_cert": ca}
    found = vim.connect_to({"interfaceInfo": interface, "accessInfo": access}, Options())
    wanted = {**expected, "ca_text": given_ca, "options": Options()}
    assert found == ("https://k8s", wanted)  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("vim_type", ["kubernetes", "ETSINFV.KUBERNETES.V_1"])
def test_the_kubernetes_vim_is_found_among_others(vim_type: str) -> None:
    openstack = {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}
    wanted = {"vimType": vim_type}
    assert vim.kubernetes_vim({"vim1": openstack, "vim2": wanted}) is wanted


@pytest.mark.parametrize(
    ("connections", "found"),
    [({}, "found none"), ({"vim1": {"vimType": "openstack"}}, "found openstack")],
)
def test_an_instance_without_a_kubernetes_vim_is_refused(
    connections: dict[str, Any], found: str
) -> None:
    with pytest.raises(PackageError, match=found):
        vim.kubernetes_vim(connections)


# --- failure and rollback -----------------------------------------------------------------------

FAILED = Outcome(plan_of())
FAILURES: list[tuple[ContainerUpdateError, dict[str, Any]]] = [
    (PackageError("no such file"), {"state": "untouched"}),
    (ChangeNeededError("is no update"), {"state": "untouched"}),
    (PlanError("is paused"), {"state": "untouched"}),
    (UpdateInProgressError("another runs"), {"state": "untouched"}),
    (ClusterError("refused the token", status=401), {"state": "untouched"}),
    (ContainerUpdateError("of a later version"), {"state": "unknown"}),
    (UpdateFailedError(FAILED, "web: ImagePullBackOff"), {"state": "undone"}),
    (UpdateInterruptedError(FAILED, "stopped"), {"state": "unknown"}),
    (UndoIncompleteError(FAILED, "web is lost"), {"state": "undo incomplete"}),
]


@pytest.mark.parametrize(("error", "kept"), FAILURES, ids=lambda value: type(value).__name__)
def test_a_failed_update_gives_its_reason_and_what_a_rollback_needs(
    error: ContainerUpdateError, kept: dict[str, Any], engine: SimpleNamespace
) -> None:
    engine.error = error
    output, reason = answer(script_of("modify_information_end"))
    assert reason == with_advice(error, sol003_advice(error.next_step))
    assert output == {"user_script_err_handling_data": {"container_update": kept}}
    assert engine.closed == 1


@pytest.mark.parametrize(
    ("before", "error", "after"),
    [
        ("unknown", ClusterError("refused the token", status=401), "unknown"),
        ("updated", PackageError("no such file"), "updated"),
        ("untouched", PackageError("no such file"), "untouched"),
        ("unknown", UpdateFailedError(FAILED, "web: crashes"), "undone"),
        ("undone", None, "updated"),
    ],
)
def test_a_retry_does_not_forget_what_the_try_before_wrote(
    before: str, error: ContainerUpdateError | None, after: str, engine: SimpleNamespace
) -> None:
    engine.error = error
    script = script_of(
        "modify_information_end",
        user_script_err_handling_data={"container_update": {"state": before}},
    )
    output, _ = answer(script)
    assert v2_memory.recall(output) == {"state": after}


def test_a_retry_that_finds_everything_done_keeps_that_it_was_the_try_before(
    engine: SimpleNamespace,
) -> None:
    engine.outcome = replace(outcome_of("web-new"), results=())
    kept = {"container_update": {"state": "updated"}}
    script = script_of("modify_information_end", user_script_err_handling_data=kept)
    assert v2_memory.recall(answer(script)[0]) == {"state": "updated"}
    assert v2_memory.recall(answer(script_of("modify_information_end"))[0]) == {
        "state": "untouched"
    }, "there is nothing to roll back"


def test_a_reason_is_one_paragraph(engine: SimpleNamespace) -> None:
    engine.error = PlanError("first line\n  second line\n")
    assert answer(script_of("modify_information_end"))[1] == (
        "first line second line. Fix this, then try again: openstack vnflcm op retry OPERATION_ID "
        "--os-tacker-api-version 2."
    )


# --- a change of the package --------------------------------------------------------------------

PASSWORD = "sesame-open"
CHANGE = {
    "vnfdId": "new",
    "metadata": {
        "upgrade_type": "Blue-Green",
        "vdu_params": [
            {
                "vdu_id": "VDU1",
                "new_vnfc_param": {"cp_name": "CP1", "username": "u", "password": PASSWORD},
            }
        ],
        "colour": "blue",
    },
}


@pytest.fixture
def changes(engine: SimpleNamespace) -> SimpleNamespace:
    """The change of a package."""
    vnfcs = engine.outcome.vnfcs
    engine.records = lambda _: Records(vnfd_id="new", vnfcs=vnfcs, new_vnfc_ids=True)
    return engine


def change_script(operation: str = "modify_information_end", **fields: Any) -> dict[str, Any]:
    """Tacker has merged the request's metadata into the instance's."""
    merged = instance(metadata=CHANGE["metadata"])
    return script_of(operation, **{"request": CHANGE, "vnf_instance": merged, **fields})


def test_an_upgrade_type_in_the_metadata_changes_the_package_and_does_not_stay_there(
    engine: SimpleNamespace, changes: SimpleNamespace
) -> None:
    output, reason = answer(change_script())
    assert (reason, engine.requests) == ("", [])
    after = output["vnf_instance"]
    assert after["metadata"] == {"colour": "blue"}
    assert [entry["id"] for entry in after["instantiatedVnfInfo"]["vnfcResourceInfo"]] == [
        "web-new"
    ], "in Tacker's v2 API the id is the pod's name"
    assert "vnfdId" not in after, "that is Tacker's to write"
    assert v2_memory.recall(output) == {"state": "updated"}
    ((_, _, shown),) = changes.changes
    assert PASSWORD not in str(output) + str(shown)
    assert "vimConnectionInfo" not in shown, "the journal keeps it"


def test_a_misspelt_parameter_is_refused_before_anything_is_done(
    engine: SimpleNamespace, changes: SimpleNamespace
) -> None:
    request = {"vnfdId": "new", "metadata": {"upgrade_typ": "Blue-Green"}}
    output, reason = answer(script_of("modify_information_end", request=request))
    assert reason.startswith(
        "metadata.upgrade_typ: expected a name that is known (did you mean upgrade_type?)"
    )
    assert v2_memory.recall(output) == {"state": "untouched"}
    assert (engine.requests, changes.changes) == ([], [])
