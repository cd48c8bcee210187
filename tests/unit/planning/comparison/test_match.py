# SPDX-License-Identifier: Apache-2.0
"""Which manifest of the new package stands for which old object, and what the def-files become."""

from __future__ import annotations

import pytest

from container_update.model.errors import PackageError
from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.planning.comparison import match as matching
from tests.unit.build import config_map, manifests, secret, workload

Files = dict[str, list[Json]]

DEPLOYMENT = workload("Deployment", "containers: [{name: c, image: app:1}]", "d")
CM, SECRET = config_map("x"), secret("x")


def read(files: Files) -> matching.ByPath:
    return {path: manifests(path, *bodies) for path, bodies in files.items()}


def match(
    old: Files,
    *,
    listed: Files | None = None,
    kept: Files | None = None,
    others: Files | None = None,
) -> matching.Matching:
    return matching.match(read(old), read(listed or {}), read(kept or {}), read(others or {}))


def places(found: tuple[Manifest, ...]) -> list[str]:
    return [f"{manifest.key} at {manifest.source}" for manifest in found]


WHICH = {
    "the def-file of the same path": (
        {"kept": {"f": [CM]}, "others": {"o": [CM]}}, "f:1",
    ),
    "a listed file before the def-file of the same path": (
        {"listed": {"l": [CM]}, "kept": {"f": [CM]}, "others": {"o": [CM]}}, "l:1",
    ),
    "the same path before another old path": ({"kept": {"f": [CM], "g": []}}, "f:1"),
    "another def-file that kept its path": ({"kept": {"f": [], "g": [CM]}}, "g:1"),
    "any def-file where the others do not have it": (
        {"kept": {"f": [SECRET]}, "others": {"o": [SECRET, CM]}}, "o:11",
    ),
    "none where the new package does not have it": ({"kept": {"f": [SECRET]}}, None),
    "a Secret of the same name is another object": (
        {"listed": {"l": [SECRET, CM]}, "kept": {"f": [SECRET]}}, "l:11",
    ),
    "another namespace is another object": (
        {"kept": {"f": [], "g": [config_map("x", metadata={"namespace": "other"})]}}, None,
    ),
    "the VNF's namespace written out is the same object": (
        {"kept": {"f": [config_map("x", metadata={"namespace": "ns"})]}}, "f:1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("new", "where"), WHICH.values(), ids=WHICH.keys())
def test_an_old_object_gets_its_new_manifest_from(new: dict[str, Files], where: str | None) -> None:
    found = match({"f": [CM, SECRET], "g": []}, **new)
    (old, chosen), *_ = found.pairs
    assert old.key == ObjectKey("", "ConfigMap", "ns", "x")
    assert (str(chosen.source) if chosen else None) == where


def test_the_pairs_keep_the_order_of_the_old_package() -> None:
    found = match({"b": [SECRET, DEPLOYMENT], "a": [CM]}, kept={"a": [CM], "b": [DEPLOYMENT]})
    assert [(str(old.key), new is not None) for old, new in found.pairs] == [
        ("Secret ns/x", False),
        ("Deployment ns/d", True),
        ("ConfigMap ns/x", True),
    ]


SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
KEPT = {"f": [CM, secret("kept"), SERVICE, config_map("listed")]}


def test_what_is_new_in_kept_files_is_added_if_it_is_configuration() -> None:
    found = match({"f": [CM]}, kept=KEPT, others={"o": [config_map("elsewhere")]})
    assert sorted(places(found.added)) == ["ConfigMap ns/listed at f:31", "Secret ns/kept at f:11"]
    assert places(found.not_added) == ["Service ns/s at f:21"]
    assert not found.unlisted


def test_where_files_are_listed_the_configuration_of_others_is_neither_added_nor_written() -> None:
    found = match({"f": [CM]}, listed={"l": [config_map("listed")]}, kept=KEPT)
    assert places(found.added) == ["ConfigMap ns/listed at l:1"]
    assert sorted(places(found.not_added)) == ["Secret ns/kept at f:11", "Service ns/s at f:21"]
    assert {str(key) for key in found.unlisted} == {"ConfigMap ns/x", "Secret ns/kept"}


def user(*names: str) -> Json:
    """A Deployment that refers to these ConfigMaps."""
    sources = ", ".join(f"{{configMapRef: {{name: {name}}}}}" for name in names)
    return workload(
        "Deployment", f"containers: [{{name: c, image: i, envFrom: [{sources}]}}]", "user"
    )


DEF_FILES: dict[str, tuple[Files, dict[str, Files], list[str]]] = {
    "the same files": (
        {"f": [CM], "g": [SECRET]}, {"kept": {"f": [CM], "g": [SECRET]}}, ["f", "g"],
    ),
    "the same files, one of them without an object": (
        {"f": [CM], "g": []}, {"kept": {"f": [CM], "g": []}}, ["f", "g"],
    ),
    "an empty file that is gone": ({"f": [CM], "g": []}, {"kept": {"f": [CM]}}, ["f"]),
    "a listed file replaces the file whose only object it has": (
        {"f": [CM], "g": [DEPLOYMENT]},
        {"listed": {"l": [CM]}, "kept": {"f": [CM], "g": [DEPLOYMENT]}},
        ["l", "g"],
    ),
    "a listed file replaces a file that is gone": (
        {"f": [CM], "g": [DEPLOYMENT]},
        {"listed": {"l": [CM]}, "kept": {"g": [DEPLOYMENT]}},
        ["l", "g"],
    ),
    "two listed files replace one": (
        {"f": [CM, SECRET]}, {"listed": {"l": [CM], "m": [SECRET]}}, ["l", "m"],
    ),
    "one listed file replaces two": (
        {"f": [CM], "g": [SECRET]}, {"listed": {"l": [SECRET, CM]}}, ["l"],
    ),
    "a file that holds other objects too stays": (
        {"f": [CM, DEPLOYMENT], "g": [SECRET]},
        {"listed": {"l": [CM]}, "kept": {"f": [CM, DEPLOYMENT], "g": [SECRET]}},
        ["f", "l", "g"],
    ),
    "a file with an object that is nowhere stays": (
        {"f": [CM, SECRET]}, {"listed": {"l": [SECRET]}, "kept": {"f": [SECRET]}}, ["f", "l"],
    ),
    "a file in which something is new stays": (
        {"f": [CM]}, {"listed": {"l": [CM]}, "kept": {"f": [CM, config_map("new")]}}, ["f", "l"],
    ),
    "an object that moved to any other file brings that file": (
        {"f": [CM, DEPLOYMENT]}, {"kept": {"f": [CM]}, "others": {"o": [DEPLOYMENT]}}, ["f", "o"],
    ),
    "a listed path that is an old one": (
        {"f": [CM], "g": [SECRET]}, {"listed": {"f": [CM]}, "kept": {"g": [SECRET]}}, ["f", "g"],
    ),
    "a listed path that is an old one, with an object that is nowhere": (
        {"f": [CM, DEPLOYMENT]}, {"listed": {"f": [CM]}}, ["f"],
    ),
    "a listed file with nothing of the old package": (
        {"f": [CM]}, {"listed": {"l": [secret("new")]}, "kept": {"f": [CM]}}, ["f", "l"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "after"), DEF_FILES.values(), ids=DEF_FILES.keys())
def test_no_object_drops_out_of_the_def_files(
    old: Files, new: dict[str, Files], after: list[str]
) -> None:
    assert list(match(old, **new).def_files) == after


REFUSED: dict[str, tuple[Files, dict[str, Files], list[str]]] = {
    "an object that is twice in the old package": (
        {"f": [CM], "g": [CM]}, {"kept": {"f": [CM]}},
        ["g:1: ConfigMap ns/x is there twice, first at f:1"],
    ),
    "an object that is twice in a file": (
        {"f": [CM]}, {"kept": {"f": [CM, CM]}},
        ["f:11: ConfigMap ns/x is there twice, first at f:1"],
    ),
    "an object that is twice in listed files": (
        {"f": [CM]}, {"listed": {"l": [CM], "m": [SECRET, CM]}},
        ["m:11: ConfigMap ns/x is there twice, first at l:1"],
    ),
    "an object that is needed and twice in other files": (
        {"f": [CM]}, {"kept": {"f": []}, "others": {"o": [CM], "p": [CM]}},
        ["p:1: ConfigMap ns/x is there twice, first at o:1"],
    ),
    "a listed object of another kind than configuration that is not the CNF's": (
        {"f": [CM]}, {"listed": {"l": [CM, DEPLOYMENT]}},
        ["l:11: Deployment ns/d is no object of the CNF", "remove the file"],
    ),
    "a listed object under another name": (
        {"f": [CM]}, {"listed": {"l": [config_map("y")]}, "kept": {"f": []}},
        ["l:1: ConfigMap ns/y is no object of the CNF", "ConfigMap ns/x (f:1) is nowhere",
         "keep its name"],
    ),
    "a listed object of another kind": (
        {"f": [CM]}, {"listed": {"l": [SECRET]}, "kept": {"f": []}},
        ["l:1: Secret ns/x is no object of the CNF", "ConfigMap ns/x (f:1) is nowhere"],
    ),
    "a listed object in another namespace": (
        {"f": [CM]},
        {"listed": {"l": [config_map("x", metadata={"namespace": "other"})]}, "kept": {"f": [CM]}},
        ["l:1: ConfigMap other/x is in a namespace where the CNF has no objects",
         "(it has some in ns)"],
    ),
    "a ConfigMap that is renamed in a kept file": (
        {"f": [CM]}, {"kept": {"f": [config_map("y")]}},
        ["f:1: ConfigMap ns/y is no object of the CNF", "ConfigMap ns/x (f:1) is nowhere",
         "keep its name"],
    ),
    "a Secret that moves to another namespace in a kept file": (
        {"f": [CM, SECRET]},
        {"kept": {"f": [CM, secret("x", metadata={"namespace": "other"})]}},
        ["f:11: Secret other/x is no object of the CNF", "Secret ns/x (f:11) is nowhere"],
    ),
    "a ConfigMap that becomes a Secret in a kept file": (
        {"f": [CM]}, {"kept": {"f": [SECRET]}},
        ["f:1: Secret ns/x is no object of the CNF", "ConfigMap ns/x (f:1) is nowhere"],
    ),
    "a def-file that is gone with an object that is nowhere": (
        {"f": [CM], "g": [SECRET, DEPLOYMENT]},
        {"listed": {"l": [CM]}, "others": {"o": [SECRET]}},
        ["g: the new package does not have this def-file", "Deployment ns/d"],
    ),
    "a def-file that is gone after one that is there": (
        {"f": [CM], "g": [DEPLOYMENT]}, {"kept": {"f": [CM]}},
        ["g: the new package does not have this def-file", "Deployment ns/d"],
    ),
    "a ConfigMap with another hash, in another kept file": (
        {"f": [user("x-1"), config_map("x-1")], "g": [DEPLOYMENT]},
        {"kept": {"f": [user("x-2")], "g": [DEPLOYMENT, config_map("x-2")]}},
        ["f:1: Deployment ns/user refers to ConfigMap ns/x-2 in place of ConfigMap ns/x-1 (f:11)",
         "change the package"],
    ),
    "a ConfigMap with another hash, in a new file": (
        {"f": [user("x-1"), config_map("x-1")]},
        {"kept": {"f": [user("x-2")]}, "others": {"o": [config_map("x-2")]}},
        ["refers to ConfigMap ns/x-2 in place of ConfigMap ns/x-1 (f:11)", "change the package"],
    ),
    "a ConfigMap with another hash, in files with its name": (
        {"f": [user("x-1")], "x-1": [config_map("x-1")]},
        {"kept": {"f": [user("x-2")]}, "others": {"x-2": [config_map("x-2")]}},
        ["refers to ConfigMap ns/x-2 in place of ConfigMap ns/x-1 (x-1:1)", "change the package"],
    ),
    "a ConfigMap with another hash, in its file": (
        {"f": [user("x-1"), config_map("x-1")]},
        {"kept": {"f": [user("x-2"), config_map("x-2")]}}, ["change the package"],
    ),
    "a listed ConfigMap with another hash": (
        {"f": [user("x-1"), config_map("x-1")]},
        {"kept": {"f": [user("x-2")]}, "listed": {"l": [config_map("x-2")]}},
        ["change the package"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_a_package_is_refused_for(old: Files, new: dict[str, Files], words: list[str]) -> None:
    with pytest.raises(PackageError) as caught:
        match(old, **new)
    for word in words:
        assert word in str(caught.value)


ACCEPTED: dict[str, tuple[Files, dict[str, Files]]] = {
    "a workload that refers to another one beside the old one": (
        {"f": [user("x-1"), config_map("x-1")]},
        {"kept": {"f": [user("x-2"), config_map("x-1"), config_map("x-2")]}},
    ),
    "a workload that refers no more to one that is gone": (
        {"f": [user("x-1"), config_map("x-1")]}, {"kept": {"f": [user()]}},
    ),
    "a workload that refers to another one of others": (
        {"f": [user("theirs-1")]}, {"kept": {"f": [user("theirs-2")]}},
    ),
    "an additional ConfigMap in a listed file": (
        {"f": [CM]}, {"listed": {"l": [config_map("y")]}, "kept": {"f": [CM]}},
    ),
    "an additional ConfigMap although a workload is nowhere": (
        {"f": [DEPLOYMENT]}, {"listed": {"l": [config_map("y")]}, "kept": {"f": []}},
    ),
    "a listed file with a workload of the CNF": (
        {"f": [CM, DEPLOYMENT]}, {"listed": {"l": [CM, DEPLOYMENT]}},
    ),
    "another def-file that has what nobody needs twice": (
        {"f": [CM]}, {"kept": {"f": [CM]}, "others": {"o": [CM, CM]}},
    ),
    "another def-file that has twice what a listed file has": (
        {"f": [CM]}, {"listed": {"l": [CM]}, "others": {"o": [CM, CM]}},
    ),
    "a def-file that is gone whose objects are all elsewhere": (
        {"f": [CM, DEPLOYMENT]}, {"listed": {"l": [CM]}, "others": {"o": [DEPLOYMENT]}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_package_is_accepted_with(old: Files, new: dict[str, Files]) -> None:
    assert len(match(old, **new).pairs) == sum(map(len, old.values()))


def test_only_what_no_listed_and_no_kept_file_has_makes_the_other_files_be_read() -> None:
    old, listed, kept = (
        read({"f": [CM, SECRET, DEPLOYMENT]}),
        read({"l": [CM]}),
        read({"f": [SECRET]}),
    )
    assert {str(key) for key in matching.unmatched_keys(old, listed, kept)} == {"Deployment ns/d"}
    assert matching.unmatched_keys(old, read({"l": [CM, DEPLOYMENT]}), kept) == frozenset()
