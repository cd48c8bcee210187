# SPDX-License-Identifier: Apache-2.0
"""Whatever is sent to the v2 script is carried out, or refused with an error that names it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from container_update.emulator.kubernetes import EmbeddedCluster
from tests import mutations
from tests.circles import Circle, in_circles
from tests.examples import examples
from tests.functional import tacker_host
from tests.functional.tacker_host import Json
from tests.internals.core import v2_memory, v2_process

OPTIONS = """\
[container_update]
lease_seconds = 3
grace_period = 1
timeout = 10
request_timeout = 2
retry_seconds = 0
"""


@dataclass(frozen=True)
class Host:
    """What Tacker sends in each operation in which the script has something to do."""

    scripts: dict[str, Json]

    def answer(self, sent: bytes) -> str:
        """Return why the operation failed; Tacker can read what is answered in any case."""
        output, reason = v2_process.answer(io.BytesIO(sent))
        assert isinstance(pickle.loads(pickle.dumps(output)), dict)
        return reason


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("host")
    options = folder / "options.conf"
    options.write_text(OPTIONS)
    with (
        pytest.MonkeyPatch.context() as patched,
        EmbeddedCluster() as embedded,
        tacker_host.running(embedded, folder) as tacker,
    ):
        patched.setattr(v2_process, "_start_log", lambda: None)
        patched.setenv("CONTAINER_UPDATE_CONFIG", str(options))
        patched.chdir(folder)
        yield Host(scripts(tacker))


def scripts(tacker: tacker_host.Tacker) -> dict[str, Json]:
    pods, old, new = tacker.pods(), *map(str, tacker.packages.values())
    info = tacker.instance["instantiatedVnfInfo"]
    info["metadata"]["lcm-kubernetes-def-files"].pop()
    records = {
        "vnfcResourceInfo": [
            {"id": pod, "vduId": "VDU1", "computeResource": {"resourceId": pod}, "metadata": {}}
            for pod in pods
        ],
        "vnfcInfo": [
            {"id": f"VDU1-{pod}", "vduId": "VDU1", "vnfcResourceInfoId": pod} for pod in pods
        ],
        "vnfVirtualLinkResourceInfo": [
            {"id": "link", "vnfVirtualLinkDescId": "x", "networkResource": {"resourceId": "y"}}
        ],
        "virtualStorageResourceInfo": [
            {"id": "storage", "virtualStorageDescId": "x", "storageResource": {"resourceId": "y"}}
        ],
    }
    kept = {"state": v2_memory.UNDONE, v2_memory.BEFORE: info}
    listed = {"configmap_secret_paths": ["Files/kubernetes/settings.yaml"]}
    change = {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": "VDU1"}]}
    rolling = tacker.rolling()
    sent = {
        "update": ("modify_information_end", {"metadata": listed}, old),
        "change": ("modify_information_end", {"metadata": change}, old),
        "rollback": ("modify_information_rollback_start", {"metadata": {}}, old),
        "start": ("change_current_package_start", rolling, new),
        "end": ("change_current_package_end", rolling, new),
        "instantiate": ("instantiate_end", {"flavourId": "simple"}, old),
        "terminate": ("terminate_start", {"terminationType": "FORCEFUL"}, old),
    }
    return {
        name: {
            "operation": operation,
            "request": {"vnfdId": tacker.vnfd_ids["2.0"], **request},
            "vnf_instance": {**tacker.instance, "instantiatedVnfInfo": {**info, **records}},
            "grant_request": None,
            "grant_response": None,
            "tmp_csar_dir": package,
            "user_script_err_handling_data": {v2_memory.OURS: kept},
            **({"new_csar_dir": new} if operation == "modify_information_end" else {}),
        }
        for name, (operation, request, package) in sent.items()
    }


NAMES = ["update", "change", "rollback", "start", "end", "instantiate", "terminate"]


@pytest.mark.parametrize("name", NAMES)
def test_what_the_others_are_made_of_is_carried_out(name: str, host: Host) -> None:
    assert host.answer(pickle.dumps(host.scripts[name])) == ""


@pytest.mark.parametrize("case", mutations.stored("scripts.jsonl"), ids=str)
def test_a_script_that_once_went_wrong_is_no_defect_of_ours(case: list[Any], host: Host) -> None:
    name, *changes = case
    sent = mutations.mutated(host.scripts[name], *changes)
    assert "defect" not in host.answer(pickle.dumps(sent))


@pytest.mark.parametrize("name", NAMES)
@in_circles(*Circle)
def test_a_script_with_something_wrong_in_it_is_no_defect_of_ours(
    name: str, host: Host, circle: Circle
) -> None:
    script = host.scripts[name]

    @examples(16, circle)
    @given(changes=mutations.mutations(script, mutations.PYTHONS))
    def is_no_defect(changes: list[mutations.Mutation]) -> None:
        assert "defect" not in host.answer(pickle.dumps(mutations.mutated(script, *changes)))

    is_no_defect()


@in_circles(*Circle)
def test_damaged_bytes_are_no_defect_of_ours(host: Host, circle: Circle) -> None:
    good = pickle.dumps(host.scripts["rollback"])
    places = st.integers(0, len(good) - 1)

    @examples(100, circle)
    @given(damage=st.dictionaries(places, st.integers(0, 255), min_size=1))
    def is_no_defect(damage: dict[int, int]) -> None:
        sent = bytearray(good)
        for place, value in damage.items():
            sent[place] = value
        assert "defect" not in host.answer(bytes(sent))

    is_no_defect()


@pytest.mark.parametrize("sent", mutations.stored("pickles.jsonl"))
def test_bytes_that_once_went_wrong_are_no_defect_of_ours(sent: str, host: Host) -> None:
    assert "standard input: expected a pickled dict" in host.answer(bytes.fromhex(sent))
