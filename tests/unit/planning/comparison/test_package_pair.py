# SPDX-License-Identifier: Apache-2.0
"""What of two packages is applied, what stays, and what is described nowhere; no cluster."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.planning.comparison.match import ByPath
from container_update.planning.comparison.package_pair import Packages, pair
from tests.unit.planning.test_change import config, deployment, service

VDUS = {"VDU1": "web", "VDU2": "other"}


def files(**bodies: Json | list[Json]) -> ByPath:
    """Def-files by their names, each with one manifest or several."""
    return {
        path: tuple(
            Manifest(ObjectKey.of(body, "n"), body, Source(path, 1))
            for body in (found if isinstance(found, list) else [found])
        )
        for path, found in bodies.items()
    }


def packages(
    old: ByPath, listed: ByPath, others: ByPath, new_vdus: Mapping[str, str] = VDUS, *chosen: str
) -> Packages:
    """The packages of a change."""
    return pair(
        old,
        listed,
        others,
        old_vdus=VDUS,
        new_vdus=new_vdus,
        vnfd_id="v2",
        chosen=frozenset(chosen) or None,
    )


def names(objects: Mapping[ObjectKey, Manifest]) -> list[str]:
    """Kind and name of each."""
    return [f"{key.kind} {key.name}" for key in objects]


OLD = files(d=deployment(), s=service(), c=config(a="1"))


@pytest.mark.parametrize(
    ("listed", "others", "applied", "kept", "def_files"),
    [
        (
            files(d=deployment(image="a:2")),
            files(s=service(), c=config(a="2")),
            ["Deployment web"],
            ["Service web", "ConfigMap cm"],
            ("d", "s", "c"),
        ),
        (
            files(moved=deployment(image="a:2")),
            files(all=[service(), config(a="2"), config("unknown")]),
            ["Deployment web"],
            ["Service web", "ConfigMap cm"],
            ("moved", "all"),
        ),
        (
            files(d=deployment(image="a:2"), new=config("new")),
            files(s=service()),
            ["Deployment web", "ConfigMap new"],
            ["Service web"],
            ("d", "s", "new"),
        ),
        (
            files(d=deployment(image="a:2")),
            files(elsewhere=service("web", app="x"), s=service(), c=config(a="1")),
            ["Deployment web"],
            ["Service web", "ConfigMap cm"],
            ("d", "s", "c"),
        ),
        (files(d=[deployment(), service(), config()]), {},
         ["Deployment web", "Service web", "ConfigMap cm"], [], ("d",)),
    ],
    ids=[
        "an object in another file stays",
        "its new file joins the list, without strangers in it",
        "an object described nowhere is neither",
        "of two files with an object the one of the old path counts",
        "all of it is listed",
    ],
)  # fmt: skip
def test_a_file_that_is_not_listed_keeps_its_objects(
    listed: ByPath, others: ByPath, applied: list[str], kept: list[str], def_files: tuple[str, ...]
) -> None:
    made = packages(OLD, listed, others)
    assert (names(made.new), names(made.kept)) == (applied, kept)
    assert made.def_files == def_files
    assert made.kept.keys() <= made.old.keys()


def test_what_only_other_vdus_use_is_not_applied() -> None:
    web, other = deployment(), deployment("other", app="other")
    for body, name in ((web, "of-web"), (other, "of-other")):
        body["spec"]["template"]["spec"]["volumes"] = [
            {"name": "v", "configMap": {"name": name}},
            {"name": "s", "secret": {"secretName": "shared"}},
        ]
    secret = {**config("shared"), "kind": "Secret"}
    whole = [web, other, config("of-web"), config("of-other"), secret, service(app="other")]
    made = packages(files(f=whole), files(f=[*whole, config("free")]), {}, VDUS, "VDU1")
    assert names(made.kept) == names(made.out_of_scope) == ["ConfigMap of-other", "Service web"]
    assert "ConfigMap free" in names(made.new)
    assert "Secret shared" in names(made.new)


@pytest.mark.parametrize(
    ("new_vdus", "chosen", "vdus"),
    [
        (VDUS, (), VDUS),
        ({"VDU1": "web"}, ("VDU1",), VDUS),
        ({"VDU1": "web", "VDU2": "renamed"}, ("VDU1",), VDUS),
        ({"VDU1": "web2", "VDU2": "other"}, (), {"VDU1": "web2", "VDU2": "other"}),
        ({"VDU1": "web2", "VDU2": "renamed"}, (), {"VDU1": "web2", "VDU2": "other"}),
    ],
    ids=[
        "the same",
        "one that the new package does not have, and that does not change",
        "one that another workload would run",
        "another workload runs it",
        "its other workload is in no listed file",
    ],
)
def test_a_vdu_that_does_not_change_keeps_its_workload(
    new_vdus: dict[str, str], chosen: tuple[str, ...], vdus: dict[str, str]
) -> None:
    old = files(d=deployment(), o=deployment("other", app="other"))
    listed = files(d=deployment(new_vdus["VDU1"], image="a:2"))
    assert packages(old, listed, {}, new_vdus, *chosen).vdus == vdus
