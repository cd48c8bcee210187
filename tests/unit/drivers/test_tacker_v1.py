# SPDX-License-Identifier: Apache-2.0
"""The v1 driver against a stand-in for Tacker: its classes, its records, its VIM."""

from __future__ import annotations

import abc
import copy
import importlib
import json
import subprocess
import sys
import types
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import sqlalchemy.orm

from container_update import ChangePackageRequest
from container_update.cluster import client
from container_update.drivers import change_by_modify, v1_records
from container_update.engine.goals.change import PackageChange
from container_update.engine.goals.update import Update
from container_update.model.errors import ContainerUpdateError, PackageError, PlanError
from container_update.model.objects import Manifest, ObjectKey, Source
from container_update.model.outcome import Outcome, Vnfc
from container_update.model.plan import Plan
from container_update.package.tools.build import driver_file
from container_update.records.vnf_records import Records
from tests import mutations

OPERATIONS = [
    f"{operation}_{point}"
    for operation in (
        "instantiate",
        "terminate",
        "scale",
        "heal",
        "change_external_connectivity",
        "modify_information",
    )
    for point in ("start", "end")
]
IDLE = [operation for operation in OPERATIONS if operation != "modify_information_end"]
PUBLISHED = "75095ac2b50638d5f00868f1ea8355046a3e16959e4cc8e59f3e32085d2af004"
ACCESS = {"auth_url": "https://k8s.example:6443", "bearer_token": "t", "ssl_ca_cert": "None"}


DEMANDED = [*OPERATIONS, "get_type", "get_name", "get_description"]
Base = abc.ABCMeta("Base", (), {name: abc.abstractmethod(lambda self: None) for name in DEMANDED})
"""What Tacker's base class demands."""


class Record(SimpleNamespace):
    """Any of Tacker's objects: named fields."""


def module(name: str, **content: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(content)
    return made


@pytest.fixture(autouse=True)
def tacker(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stands in for the tacker package; remembers what was asked of it."""
    host = SimpleNamespace(paths={"new": "/packages/new", "old": "/packages/old"}, access=ACCESS)
    host.created = []

    class Resource(Record):
        def create(self) -> None:
            host.created.append((self.resource_type, self.resource_name))

    known = [Resource(resource_type="apps/v1,Deployment", resource_name="web")]
    listing = Record(get_by_vnf_instance_id=lambda context, instance_id: known)
    utils = module(
        "tacker.vnflcm.utils",
        get_vnf_package_path=lambda context, vnfd_id: host.paths.get(vnfd_id, "/packages/other"),
        get_vim=lambda context, connections: {"access_info": host.access},
    )
    objects = module(
        "tacker.objects",
        VnfcResourceInfo=Record,
        ResourceHandle=Record,
        VnfResource=Resource,
        VnfResourceList=listing,
    )
    base = module("tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver", VnflcmMgmtAbstractDriver=Base)
    for made in (
        module("tacker", objects=objects),
        module("tacker.vnflcm", utils=utils),
        utils,
        objects,
        module("tacker.vnfm"),
        module("tacker.vnfm.mgmt_drivers"),
        base,
    ):
        monkeypatch.setitem(sys.modules, made.__name__, made)
    return host


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stands in for the update and the cluster it is given."""
    seen = SimpleNamespace(
        requests=[], changes=[], records=None, vims=[], closed=0, outcome=outcome(), error=None
    )

    def close() -> None:
        seen.closed += 1

    def connect(endpoint: str, **given: Any) -> SimpleNamespace:
        seen.vims.append((endpoint, given["bearer_token"], given["ca_text"]))
        return SimpleNamespace(close=close)

    def goal_of(request: Any, _: Any, __: Any, connection: Any, instance: Any) -> Any:
        if not isinstance(request, ChangePackageRequest):
            seen.requests.append(request)
            return Mock(spec=Update)
        seen.changes.append((request.body, connection, instance))
        return Mock(spec=PackageChange, records=seen.records or Records.of_update)

    def run(*_: Any) -> Outcome:
        if seen.error:
            raise seen.error
        return seen.outcome

    monkeypatch.setattr(client, "connect_vim", connect)
    monkeypatch.setattr(change_by_modify, "goal_of", goal_of)
    monkeypatch.setattr(change_by_modify, "run", run)
    return seen


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delitem(sys.modules, "container_update.drivers.tacker_v1", raising=False)
    loaded = importlib.import_module("container_update.drivers.tacker_v1")
    monkeypatch.setitem(sys.modules, loaded.__name__, loaded)
    return loaded.ContainerUpdateMgmtDriver()


def record(id_: str, vdu: str, pod: str, kind: str = "Deployment") -> Record:
    return Record(
        id=id_,
        vdu_id=vdu,
        compute_resource=Record(resource_id=pod, vim_level_resource_type=kind),
        metadata={kind: f'{{"name": "of {vdu}"}}'},
    )


def instance(*records: Record, **fields: Any) -> Record:
    """A VNF instance that counts how often it is saved, and with which pods."""
    saves: list[list[str]] = []
    made = Record(
        id="instance-1",
        vnfd_id="new",
        vim_connection_info=["vim"],
        tenant_id="tenant",
        vnf_metadata={"namespace": "cnf"},
        instantiated_vnf_info=Record(
            flavour_id="simple",
            additional_params={"lcm-kubernetes-def-files": ["a.yaml", "cm_1.yaml"], "other": 1},
            vnfc_resource_info=list(records),
        ),
        saves=saves,
    )
    vars(made).update(fields)
    made.save = lambda: saves.append(pods_of(made))
    return made


def pods_of(vnf_instance: Record) -> list[str]:
    info = vnf_instance.instantiated_vnf_info
    return [kept.compute_resource.resource_id for kept in info.vnfc_resource_info]


def outcome(*vnfcs: Vnfc) -> Outcome:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "solo"}, "spec": {}}
    manifests = tuple(
        Manifest(ObjectKey.of(body, "cnf"), body, Source("a.yaml", 1)) for body in (deployment, pod)
    )
    plan = Plan("cnf", "instance-1", (), def_files=("a.yaml", "cm_2.yaml"), manifests=manifests)
    return Outcome(plan, vnfcs=vnfcs)


def vnfc(vdu: str, pod: str, kind: str = "Deployment", name: str = "web") -> Vnfc:
    return Vnfc(vdu, pod, "cnf", kind, name)


def modify(driver: Any, vnf_instance: Record, **kwargs: Any) -> None:
    """As Tacker's conductor calls it."""
    arguments = {"old_vnf_package_path": "/packages/old", "configmap_secret_paths": []}
    driver.modify_information_end(
        context=SimpleNamespace(session=sqlalchemy.orm.Session()),
        modify_vnf_request=None,
        vnf_instance=vnf_instance,
        **{**arguments, **kwargs},
    )


# --- the class ----------------------------------------------------------------------------------


def test_the_driver_answers_to_the_word_that_its_entry_point_has(driver: Any) -> None:
    assert driver.get_type() == driver.get_name() == "mgmt-container-update"
    assert "CNF" in driver.get_description()


@pytest.mark.parametrize("operation", IDLE)
def test_an_operation_that_is_not_ours_touches_nothing(
    operation: str, driver: Any, engine: SimpleNamespace
) -> None:
    vnf_instance = instance(record("1", "VDU1", "web-1"))
    assert getattr(driver, operation)(context=None, vnf_instance=vnf_instance, grant=None) is None
    assert getattr(driver, operation)(None, vnf_instance, None, None, None) is None
    assert (engine.requests, vnf_instance.saves) == ([], [])


def test_the_drivers_file_is_the_one_that_packages_in_use_carry() -> None:
    """Another hash here means that every package has to be built anew: say so in a release note."""
    text = driver_file("v1").read_bytes()
    assert sha256(text).hexdigest() == PUBLISHED


def test_loading_the_records_module_loads_none_of_the_heavy_libraries() -> None:
    code = (
        "import sys, container_update.drivers.v1_records as r; r.run('scale_end', None, None);"
        "print([m for m in ('kubernetes', 'toscaparser', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


# --- wrong types --------------------------------------------------------------------------------

WRONG: tuple[Any, ...] = (
    None, 5, 2.5, True, "text", "", b"bytes", [], [5], [[]], [None], [""], {}, {"a": 5}, {5: "a"},
    Record(), [Record()], mutations.VALUES["depth"](), "\x1b[2J", "a\0b", "x" * 100_000, 10**30,
)  # fmt: skip
"""What may be in the place of anything."""
PARAMETERS = ("instantiated_vnf_info", "additional_params", "lcm-kubernetes-def-files")
GIVEN = (
    *(("vnf_metadata", name) for name in ("namespace", v1_records.RUNS_FROM)),
    *(PARAMETERS, (*PARAMETERS, 0)),
)
"""What users have a say in, of what is read of an instance."""


def put(value: Any, path: tuple[Any, ...], wrong: Any) -> None:
    """Put something else into one place."""
    *holders, last = path
    for name in holders:
        value = getattr(value, name) if isinstance(value, Record) else value[name]
    value[last] = wrong


def whole() -> Record:
    """An instance with everything that the driver reads."""
    made = instance(record("1", "VDU1", "web-1"), record("2", "VDU2", "solo", "Pod"))
    made.vnf_metadata |= {v1_records.RUNS_FROM: "", "other": "1"}
    made.save = lambda: None
    return made


@pytest.mark.parametrize("is_change", [False, True])
@pytest.mark.parametrize("path", GIVEN, ids=lambda path: ".".join(map(str, path)))
def test_a_wrong_type_in_what_users_have_given_is_an_error_that_names_it(
    path: tuple[Any, ...], is_change: bool, driver: Any, engine: SimpleNamespace
) -> None:
    """Nothing was written then: afterwards the records could not follow."""
    for wrong in WRONG:
        vnf_instance = whole()
        if is_change:
            vnf_instance.vnf_metadata["upgrade_type"] = "Blue-Green"
        put(vnf_instance, path, copy.deepcopy(wrong))
        engine.requests.clear()
        error = error_of(driver, vnf_instance)
        if error is not None:
            assert any(str(name) in str(error) for name in path), f"{wrong!r}: {error}"
            assert engine.requests == []


def error_of(driver: Any, vnf_instance: Record) -> ContainerUpdateError | None:
    """Modify an instance and return the error that was expected, if one was raised."""
    try:
        modify(driver, vnf_instance)
    except ContainerUpdateError as error:
        return error
    return None


@pytest.mark.parametrize("name", ["auth_url", "bearer_token", "ssl_ca_cert"])
@pytest.mark.parametrize("wrong", [5, [], {"a": 5}, b"bytes", Record()], ids=str)
def test_a_wrong_type_in_a_vim_is_an_error_that_names_the_place(
    name: str, wrong: Any, driver: Any, tacker: SimpleNamespace
) -> None:
    tacker.access = {**ACCESS, name: wrong}
    field = "endpoint" if name == "auth_url" else name
    with pytest.raises(ContainerUpdateError, match=f"{field}.*: expected"):
        modify(driver, instance())


@pytest.mark.parametrize("wrong", [5, "", {"a": 5}, [5], b"bytes", "a\0b", Record()], ids=repr)
def test_wrong_paths_are_an_error_that_names_them(
    wrong: Any, driver: Any, engine: SimpleNamespace
) -> None:
    with pytest.raises(PackageError, match="configmap_secret_paths"):
        modify(driver, instance(), configmap_secret_paths=wrong)
    assert engine.requests == []


# --- the request --------------------------------------------------------------------------------


def test_the_update_goes_from_the_old_package_to_the_one_on_record(
    driver: Any, engine: SimpleNamespace
) -> None:
    modify(driver, instance(), configmap_secret_paths=["cm_2.yaml"])
    (request,) = engine.requests
    assert (request.old, request.new) == ("/packages/old", "/packages/new")
    assert request.def_files == ("a.yaml", "cm_1.yaml")
    assert request.config_paths == ("cm_2.yaml",)
    assert (request.namespace, request.instance_id) == ("cnf", "instance-1")


def test_without_paths_in_the_request_the_packages_alone_decide(
    driver: Any, engine: SimpleNamespace
) -> None:
    modify(driver, instance(), configmap_secret_paths=[])
    assert engine.requests[0].config_paths == ()


@pytest.mark.parametrize(
    ("vnf_instance", "arguments"),
    [
        pytest.param(instance(), {"old_vnf_package_path": None}, id="no Kubernetes VIM"),
        pytest.param(instance(vnfd_id="old"), {}, id="the same package, no paths"),
    ],
)
def test_a_modification_that_concerns_no_package_touches_nothing(
    vnf_instance: Record, arguments: dict[str, Any], driver: Any, engine: SimpleNamespace
) -> None:
    modify(driver, vnf_instance, **arguments)
    assert (engine.requests, vnf_instance.saves) == ([], [])


def test_paths_in_the_same_package_are_an_update(driver: Any, engine: SimpleNamespace) -> None:
    modify(driver, instance(vnfd_id="old"), configmap_secret_paths=["cm_2.yaml"])
    assert engine.requests[0].new == "/packages/old"


@pytest.mark.parametrize("metadata", [None, {}, {"namespace": ""}])
def test_an_instance_without_a_namespace_is_in_default(
    metadata: Any, driver: Any, engine: SimpleNamespace
) -> None:
    modify(driver, instance(vnf_metadata=metadata))
    assert engine.requests[0].namespace == "default"


@pytest.mark.parametrize("parameters", [None, {}, {"lcm-kubernetes-def-files": []}])
def test_an_instance_that_has_no_def_files_is_refused(
    parameters: Any, driver: Any, engine: SimpleNamespace
) -> None:
    vnf_instance = instance()
    vnf_instance.instantiated_vnf_info.additional_params = parameters
    with pytest.raises(PackageError, match=r"instance-1: expected lcm-kubernetes-def-files"):
        modify(driver, vnf_instance)
    assert engine.requests == []


def test_an_instance_whose_vdus_were_mapped_in_the_request_is_refused(
    driver: Any, engine: SimpleNamespace
) -> None:
    vnf_instance = instance()
    vnf_instance.instantiated_vnf_info.additional_params["vdu_mapping"] = {"VDU1": {"name": "web"}}
    with pytest.raises(PackageError, match="instance-1: it was instantiated with a vdu_mapping"):
        modify(driver, vnf_instance)
    assert engine.requests == []


def test_the_cluster_is_the_one_of_the_instances_vim_and_is_closed(
    driver: Any, engine: SimpleNamespace
) -> None:
    modify(driver, instance())
    assert engine.vims == [("https://k8s.example:6443", "t", None)]
    assert engine.closed == 1


# --- the records --------------------------------------------------------------------------------

CASES = {
    "a pod that lives on keeps its record": (
        [("1", "VDU1", "web-a")],
        [("VDU1", "web-a")],
        [("1", "VDU1", "web-a")],
    ),
    "a new pod takes the record of the old one": (
        [("1", "VDU1", "web-a")],
        [("VDU1", "web-b")],
        [("1", "VDU1", "web-b")],
    ),
    "two new pods take two records": (
        [("1", "VDU1", "web-a"), ("2", "VDU1", "web-b")],
        [("VDU1", "web-c"), ("VDU1", "web-d")],
        [("1", "VDU1", "web-c"), ("2", "VDU1", "web-d")],
    ),
    "only records of the same VDU are taken over": (
        [("1", "VDU1", "web-a"), ("2", "VDU2", "db-a")],
        [("VDU1", "web-b"), ("VDU2", "db-b")],
        [("1", "VDU1", "web-b"), ("2", "VDU2", "db-b")],
    ),
    "an additional pod gets a new record": (
        [("1", "VDU1", "web-a")],
        [("VDU1", "web-a"), ("VDU1", "web-b")],
        [("1", "VDU1", "web-a"), ("new", "VDU1", "web-b")],
    ),
    "the record of a pod that lives is not given away": (
        [("1", "VDU1", "web-a"), ("2", "VDU1", "web-b")],
        [("VDU1", "web-c"), ("VDU1", "web-a")],
        [("2", "VDU1", "web-c"), ("1", "VDU1", "web-a")],
    ),
    "a surplus record goes": (
        [("1", "VDU1", "web-a"), ("2", "VDU1", "web-b")],
        [("VDU1", "web-c")],
        [("1", "VDU1", "web-c")],
    ),
    "a VDU without pods has no record": ([("1", "VDU1", "web-a")], [], []),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_afterwards_there_is_one_record_for_each_live_pod(
    case: tuple[list[Any], list[Any], list[Any]], driver: Any, engine: SimpleNamespace
) -> None:
    before, live, expected = case
    vnf_instance = instance(*(record(*fields) for fields in before))
    engine.outcome = outcome(*(vnfc(*fields) for fields in live))
    modify(driver, vnf_instance)
    old_ids = {id_ for id_, _, _ in before}
    found = [
        (kept.id if kept.id in old_ids else "new", kept.vdu_id, kept.compute_resource.resource_id)
        for kept in vnf_instance.instantiated_vnf_info.vnfc_resource_info
    ]
    assert found == expected
    assert vnf_instance.saves[-1] == [pod for _, _, pod in expected]


def test_two_new_records_have_two_ids(driver: Any, engine: SimpleNamespace) -> None:
    vnf_instance = instance()
    engine.outcome = outcome(vnfc("VDU1", "web-a"), vnfc("VDU1", "web-b"))
    modify(driver, vnf_instance)
    first, second = vnf_instance.instantiated_vnf_info.vnfc_resource_info
    assert first.id != second.id
    assert first.compute_resource.vim_level_resource_type == "Deployment"


def test_a_new_record_has_the_metadata_of_its_siblings(
    driver: Any, engine: SimpleNamespace
) -> None:
    vnf_instance = instance(record("1", "VDU1", "web-a"))
    engine.outcome = outcome(vnfc("VDU1", "web-a"), vnfc("VDU1", "web-b"))
    modify(driver, vnf_instance)
    first, second = vnf_instance.instantiated_vnf_info.vnfc_resource_info
    assert second.metadata == first.metadata
    assert second.metadata is not first.metadata


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (
            vnfc("VDU1", "web-a"),
            {
                "Deployment": {"name": "web", "labels": {"app": "web"}},
                "Pod": {"labels": {"app": "web"}},
            },
        ),
        (vnfc("VDU2", "solo", "Pod", "solo"), {"Pod": {"name": "solo"}}),
        (vnfc("VDU3", "odd-x", "DaemonSet", "odd"), {"DaemonSet": {"name": "odd"}}),
    ],
)
def test_the_first_record_of_a_vdu_has_the_metadata_of_its_manifest(
    pod: Vnfc, expected: dict[str, Any], driver: Any, engine: SimpleNamespace
) -> None:
    vnf_instance = instance()
    engine.outcome = outcome(pod)
    modify(driver, vnf_instance)
    (made,) = vnf_instance.instantiated_vnf_info.vnfc_resource_info
    assert {kind: json.loads(text) for kind, text in made.metadata.items()} == expected


def test_the_def_files_are_those_after_the_update_and_other_parameters_stay(
    driver: Any, engine: SimpleNamespace
) -> None:
    vnf_instance = instance()
    before = vnf_instance.instantiated_vnf_info.additional_params
    modify(driver, vnf_instance)
    after = vnf_instance.instantiated_vnf_info.additional_params
    assert after == {"lcm-kubernetes-def-files": ["a.yaml", "cm_2.yaml"], "other": 1}
    assert after is not before, "Tacker saves a field that was set, not one changed in place"


def test_a_failed_update_leaves_the_records_alone_and_raises(
    driver: Any, engine: SimpleNamespace
) -> None:
    vnf_instance = instance(record("1", "VDU1", "web-a"))
    engine.error = PlanError("the Deployment is paused")
    said = r"paused\. Fix this, then send the same request again: openstack vnflcm modify\.$"
    with pytest.raises(PlanError, match=said):
        modify(driver, vnf_instance)
    assert (pods_of(vnf_instance), vnf_instance.saves) == (["web-a"], [["web-a"]])
    assert vnf_instance.vnf_metadata == {"namespace": "cnf", v1_records.RUNS_FROM: "/packages/old"}
    assert engine.closed == 1


# --- what runs after a failure ------------------------------------------------------------------


def test_after_a_failure_the_next_update_begins_at_the_package_that_runs(
    driver: Any, engine: SimpleNamespace, tmp_path: Path
) -> None:
    """Tacker passes the package on record, which is the one that failed."""
    metadata = {"namespace": "cnf", v1_records.RUNS_FROM: str(tmp_path)}
    vnf_instance = instance(vnf_metadata=metadata)
    modify(driver, vnf_instance, old_vnf_package_path="/packages/new")
    (request,) = engine.requests
    assert (request.old, request.new) == (str(tmp_path), "/packages/new")
    assert vnf_instance.vnf_metadata == {"namespace": "cnf"}


def test_a_package_that_is_deleted_meanwhile_is_not_used(
    driver: Any, engine: SimpleNamespace, tmp_path: Path
) -> None:
    metadata = {v1_records.RUNS_FROM: str(tmp_path / "deleted")}
    modify(driver, instance(vnf_metadata=metadata))
    assert engine.requests[0].old == "/packages/old"


# --- a change of the package --------------------------------------------------------------------

PASSWORD = "sesame-open"
PARAMETERS = {
    "upgrade_type": "Blue-Green",
    "vdu_params": json.dumps(
        [
            {
                "vdu_id": "VDU1",
                "new_vnfc_param": {"cp_name": "CP1", "username": "u", "password": PASSWORD},
            }
        ]
    ),
}


@pytest.fixture
def changes(engine: SimpleNamespace) -> SimpleNamespace:
    """The change of a package, which renames a workload."""
    vnfcs = (vnfc("VDU1", "web-2-b", name="web-2"),)
    done = outcome(*vnfcs)
    renamed = replace(done.plan.manifests[0], key=ObjectKey("apps", "Deployment", "cnf", "web-2"))
    engine.outcome = replace(done, plan=replace(done.plan, manifests=(renamed,)))
    records = Records(vnfcs=vnfcs, resource_names={"web": "web-2"}, def_files=("a.yaml",))
    engine.records = lambda _: records
    return engine


def test_an_upgrade_type_in_the_metadata_changes_the_package_and_does_not_stay_there(
    driver: Any, changes: SimpleNamespace, engine: SimpleNamespace, tacker: SimpleNamespace
) -> None:
    vnf_instance = instance(
        record("1", "VDU1", "web-a"), vnf_metadata={"namespace": "cnf", "a": "b", **PARAMETERS}
    )
    modify(driver, vnf_instance)
    ((body, connection, _),) = changes.changes
    assert (body["vnfdId"], engine.requests) == ("new", [])
    assert connection["interfaceInfo"]["endpoint"] == "https://k8s.example:6443"
    assert vnf_instance.vnf_metadata == {"namespace": "cnf", "a": "b"}
    (kept,) = vnf_instance.instantiated_vnf_info.vnfc_resource_info
    assert (kept.id, kept.compute_resource.resource_id) == ("1", "web-2-b")
    assert json.loads(kept.metadata["Deployment"])["name"] == "web-2", "heal looks for it by that"
    assert tacker.created == [("apps/v1,Deployment", "web-2")], "terminate deletes it by that"


def test_the_parameters_do_not_stay_after_a_failure_either(
    driver: Any, changes: SimpleNamespace
) -> None:
    vnf_instance = instance(vnf_metadata={"namespace": "cnf", **PARAMETERS})
    changes.error = PlanError("the Deployment is paused")
    with pytest.raises(PlanError):
        modify(driver, vnf_instance)
    assert vnf_instance.vnf_metadata == {"namespace": "cnf", v1_records.RUNS_FROM: "/packages/old"}
    assert PASSWORD not in str(vnf_instance)
    assert len(vnf_instance.saves) == 1
