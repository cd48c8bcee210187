# SPDX-License-Identifier: Apache-2.0
"""A Pod of its own of which only labels, annotations and images change is written in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from container_update import UpdateFailedError, change_package
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.manifests import workload
from tests.internals.core import Json

POD = """apiVersion: v1
kind: Pod
metadata: {{name: lone, labels: {labels}, annotations: {annotations}}}
spec:
  containers: [{{name: main, image: "{image}"}}]
  tolerations: [{{key: own, operator: Exists}}]
"""
METADATA: dict[str, tuple[Json, Json]] = {
    "a label": ({"app": "lone", "chart": "2"}, {"note": "1"}),
    "an annotation": ({"app": "lone", "chart": "1"}, {"note": "2"}),
    "a label that goes": ({"app": "lone"}, {"note": "1"}),
    "all of them": ({"app": "lone", "more": "x"}, {"other": "1"}),
}
OLD: tuple[Json, Json] = ({"app": "lone", "chart": "1"}, {"note": "1"})


def pod(metadata: tuple[Json, Json], image: str = IMAGES[0]) -> str:
    return POD.format(labels=_flow(metadata[0]), annotations=_flow(metadata[1]), image=image)


def _flow(values: Json) -> str:
    return "{" + ", ".join(f"{name}: '{value}'" for name, value in values.items()) + "}"


def change(cnf: Cnf, **files: str) -> Any:
    new = cnf.package({f"{name}.yaml": text for name, text in files.items()})
    parameters = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    return change_package(parameters, cnf.admin, cnf.options, old=cnf.old, new=new, **cnf.where)


def own(cnf: Cnf) -> tuple[Json, Json]:
    """Return the labels and annotations that the tests' manifests may have."""
    metadata = cnf.get("Pod", "lone")["metadata"]
    names = {name for both in (OLD, *METADATA.values()) for each in both for name in each}
    labels, annotations = (
        {name: value for name, value in metadata.get(field, {}).items() if name in names}
        for field in ("labels", "annotations")
    )
    return labels, annotations


@pytest.mark.parametrize("image", IMAGES[:2])
@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
def test_a_pod_keeps_running_where_its_metadata_alone_changes(
    cnf: Cnf, metadata: tuple[Json, Json], image: str
) -> None:
    """With another image its container restarts, and no more than that."""
    cnf.instantiate(p=pod(OLD))
    before = cnf.get("Pod", "lone")["metadata"]["uid"]
    change(cnf, p=pod(metadata, image))
    assert own(cnf) == metadata
    now = cnf.get("Pod", "lone")
    assert now["metadata"]["uid"] == before
    assert now["spec"]["containers"][0]["image"] == image
    assert now["status"]["containerStatuses"][0]["restartCount"] == IMAGES.index(image)


@pytest.mark.parametrize("image", IMAGES[:2])
def test_an_undo_writes_it_back_in_place(cnf: Cnf, image: str) -> None:
    cnf.instantiate(p=pod(OLD), w=workload("Deployment"))
    before = cnf.get("Pod", "lone")["metadata"]["uid"]
    files = {"p": pod(METADATA["all of them"], image), "w": workload("Deployment", image=BAD_IMAGE)}
    with pytest.raises(UpdateFailedError):
        change(cnf, **files)
    assert own(cnf) == OLD
    assert cnf.get("Pod", "lone")["spec"]["containers"][0]["image"] == IMAGES[0]
    assert cnf.get("Pod", "lone")["metadata"]["uid"] == before


def test_a_pod_whose_spec_changes_too_is_created_again(cnf: Cnf) -> None:
    cnf.instantiate(p=pod(OLD))
    before = cnf.get("Pod", "lone")["metadata"]["uid"]
    change(cnf, p=pod(METADATA["a label"]).replace("key: own", "key: other"))
    assert cnf.get("Pod", "lone")["metadata"]["uid"] != before


TELLS = """\
import pathlib, pickle, sys
values = pickle.load(sys.stdin.buffer)["coordination"]
told = [*values["new_pods"], *filter(None, values["pod_ips"].values())]
pathlib.Path({log!r}).write_text(" ".join(told))
"""


def test_a_coordination_script_gets_its_name_and_address(cnf: Cnf, tmp_path: Path) -> None:
    cnf.instantiate(p=pod(OLD))
    log = tmp_path / "told"
    new = Path(cnf.package({"p.yaml": pod(OLD, IMAGES[1])}))
    (new / "Files/script.py").write_text(TELLS.format(log=str(log)))
    parameters = {"upgrade_type": "RollingUpdate"}
    parameters["lcm-operation-coordinate-new-vnf"] = "Files/script.py"
    request = {"vnfdId": "unknown", "additionalParams": parameters}
    change_package(request, cnf.admin, cnf.options, old=cnf.old, new=str(new), **cnf.where)
    assert log.read_text().split() == ["lone", cnf.get("Pod", "lone")["status"]["podIP"]]
