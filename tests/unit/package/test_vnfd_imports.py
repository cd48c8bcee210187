# SPDX-License-Identifier: Apache-2.0
"""Imports by URL, as ETSI's type files have them: read from the package, never from the network."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from container_update.model.errors import PackageError
from container_update.package import csar, fetch
from container_update.package.findings import Finding, Severity
from container_update.package.tools import samples
from container_update.package.tools.check import check
from tests.packages import TYPES, flavour, with_vnfd, write_folder

COMMON, VNFD = samples.TYPE_FILES
ETSI = "https://forge.etsi.org/rep/nfv/SOL001/raw/v2.6.1/" + COMMON
IMPORTS = {
    "Tacker's samples/vnf_packages, 2.6.1": f"imports:\n  - {ETSI}\n",
    "Tacker's samples/practical_vnf_package, 2.7.1": (
        f"imports:\n  - https://forge.etsi.org/rep/nfv/SOL001/raw/v2.7.1/{COMMON}\n"
    ),
    "ETSI's later versions": (
        f"imports:\n  - https://forge.etsi.org/rep/nfv/SOL001/-/raw/v3.3.1/{COMMON}\n"
    ),
    "a name for the import": f"imports:\n- common: {ETSI}\n",
    "a mapping": f"imports:\n- file: {ETSI}\n",
    "a mapping with a name": f"imports:\n- common:\n    file: {ETSI}\n",
    "a query and a fragment": f'imports: ["{ETSI}?ref_type=tags#top"]\n',
    "a host without encryption": f"imports: ['http://forge.etsi.org/{COMMON}']\n",
}


@pytest.fixture(autouse=True)
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be fetched."""

    def refuse(url: str, *_: object) -> bytes:
        raise AssertionError(f"{url} is fetched")

    monkeypatch.setattr(fetch, "fetch", refuse)


def package(folder: Path, imports: str, *common: str, importing: str = VNFD) -> str:
    """Write a package whose types are in files like ETSI's; its path."""
    head, _, types = TYPES.partition("\n")
    vnfd = with_vnfd({"df.yaml": flavour("simple", {"VDU1": "web"})})
    files = {name: text.replace("types.yaml", importing) for name, text in vnfd.items()}
    del files["TOSCA-Metadata/TOSCA.meta"], files["Definitions/types.yaml"]
    files[f"Definitions/{importing}"] = f"{head}\n{imports}"
    files |= dict.fromkeys(common, f"{head}\n{types}")
    entry = "Entry-Definitions: Definitions/top.vnfd.yaml\n"
    return write_folder(folder / "p", {"TOSCA-Metadata/TOSCA.meta": entry, **files})


def read_from(source: str) -> list[str]:
    """Return the files that stand for URLs."""
    with csar.open_package(source) as opened:
        assert opened.vdus() == {"VDU1": "web"}
        return [each.path for each in opened.definitions.imports if each.is_by_url]


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS)
def test_the_packages_file_of_that_name_is_read(imports: str, tmp_path: Path) -> None:
    path = f"Definitions/{COMMON}"
    assert read_from(package(tmp_path, imports, path)) == [path]


PLACES = {
    "the only one below Definitions": (VNFD, ["Definitions/types/etsi/"], 0),
    "another folder, and one outside": (VNFD, ["Definitions/etsi/", "Files/"], 0),
    "beside the importing file": (f"etsi/{VNFD}", ["Definitions/", "Definitions/etsi/"], 1),
    "above the importing file": (f"etsi/{VNFD}", ["Definitions/"], 0),
}


@pytest.mark.parametrize(("importing", "folders", "expected"), PLACES.values(), ids=PLACES)
def test_which_file_of_that_name_is_read(
    importing: str, folders: list[str], expected: int, tmp_path: Path
) -> None:
    paths = [folder + COMMON for folder in folders]
    source = package(tmp_path, IMPORTS["a mapping"], *paths, importing=importing)
    assert read_from(source) == [paths[expected]]


IN_VNFD = f"Definitions/{VNFD}:3: imports"
REFUSED = {
    "it is not there": (
        ETSI, (), f"{IN_VNFD} {ETSI}, which is never fetched, and {COMMON} is not in the package: "
        "put that file into Definitions/, once, and build the package again",
    ),
    "it is elsewhere": (ETSI, ("Files/",), f"{COMMON} is not in the package"),
    "it is there twice": (
        ETSI, ("Definitions/a/", "Definitions/b/"),
        f"{COMMON} is in the package as Definitions/a/{COMMON} and as Definitions/b/{COMMON}: put",
    ),
    "a part of the name": (ETSI.replace("etsi_nfv_", ""), ("Definitions/",), "is not in the pack"),
    "a folder": ("https://forge.etsi.org/", ("Definitions/",), "its file is not in the package"),
    "the file's name in the query": (
        f"https://forge.etsi.org/a?{COMMON}", ("Definitions/",), "and a is not in the package",
    ),
    "a file of the host": ("file:///etc/passwd", ("Definitions/",), "and passwd is not in the"),
}  # fmt: skip


@pytest.mark.parametrize(("url", "folders", "message"), REFUSED.values(), ids=REFUSED)
def test_a_url_whose_file_is_not_in_the_package_is_refused(
    url: str, folders: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    source = package(tmp_path, f"imports:\n- {url}\n", *(f"{each}{COMMON}" for each in folders))
    with pytest.raises(PackageError) as caught, csar.open_package(source) as opened:
        opened.vdus()
    assert f"{IN_VNFD} {url}" in str(caught.value)
    assert message in str(caught.value)


def findings(source: str) -> list[Finding]:
    return [finding for finding in check(source) if "https://" in finding.message]


def test_the_check_finds_a_url_whose_file_is_missing(tmp_path: Path) -> None:
    (error,) = findings(package(tmp_path, IMPORTS["a mapping"]))
    assert (error.severity, error.file, error.line) == (
        Severity.ERROR, f"Definitions/{VNFD}", 3,
    )  # fmt: skip
    assert "put that file into Definitions/" in error.message


def test_the_check_notes_which_file_is_read_for_a_url(tmp_path: Path) -> None:
    (note,) = findings(package(tmp_path, IMPORTS["a mapping"], f"Definitions/{COMMON}"))
    assert (note.severity, note.file, note.line) == (Severity.NOTE, f"Definitions/{VNFD}", 3)
    assert f"an update reads Definitions/{COMMON} instead" in note.message


REPEATED = {
    "a path": "{importing}",
    "a path that is spelt in many ways": "./{importing}",
    "a URL": "https://example.com/{importing}",
}


@pytest.mark.parametrize("name", REPEATED.values(), ids=REPEATED)
def test_the_imports_of_a_vnfd_are_counted(name: str, tmp_path: Path) -> None:
    """Each is looked for in its file, and in the package."""
    imports = [name.format(importing="types.yaml")] * 20_000
    text = flavour("simple", {"VDU1": "web"}).replace("- file: types.yaml\n", "")
    text = text.replace("imports:\n", "imports: [" + ", ".join(imports) + "]\n")
    source = write_folder(tmp_path, with_vnfd({"df.yaml": text}))
    started = time.process_time()
    with pytest.raises(PackageError) as caught, csar.open_package(source) as opened:
        opened.vdus()
    assert str(caught.value) == (
        "Definitions/df.yaml:2: the VNFD has more than 200 imports: join its files"
    )
    assert time.process_time() - started < 4


def test_types_that_derive_from_each_other_in_a_long_chain_take_linear_time(tmp_path: Path) -> None:
    chain = "".join(f"  t{n}: {{derived_from: t{n + 1}}}\n" for n in range(5_000))
    text = flavour("simple", {"VDU1": "web"}).replace("topology_", f"node_types:\n{chain}topology_")
    source = write_folder(tmp_path, with_vnfd({"df.yaml": text}))
    started = time.process_time()
    with csar.open_package(source) as opened:
        assert opened.vdus() == {"VDU1": "web"}
    assert time.process_time() - started < 15


@pytest.mark.parametrize("imported", [True, False])
def test_a_flavour_that_is_only_in_the_folder_is_one_by_its_id(
    imported: bool, tmp_path: Path
) -> None:
    """Tacker's test_change_vnf_pkg_with_new_volume: the entry file imports one of its two."""
    files = with_vnfd({"df.yaml": flavour("simple", {"VDU1": "web"})})
    files["Definitions/df_volume.yaml"] = flavour("volume", {"VDU1": "disk"})
    if not imported:
        entry = files["Definitions/top.vnfd.yaml"]
        files["Definitions/top.vnfd.yaml"] = entry.replace("- file: df.yaml\n", "")
        files["Definitions/top.vnfd.yaml"] = files["Definitions/top.vnfd.yaml"].replace(
            "- df.yaml\n", "- types.yaml\n"
        )
    del files["TOSCA-Metadata/TOSCA.meta"]
    meta = {"TOSCA-Metadata/TOSCA.meta": "Entry-Definitions: Definitions/top.vnfd.yaml\n"}
    with csar.open_package(write_folder(tmp_path / "p", {**files, **meta})) as opened:
        assert {each.id for each in opened.flavours} == {"simple", "volume"}
        assert opened.vdus("volume") == {"VDU1": "disk"}
        if imported:
            assert opened.vdus() == {"VDU1": "web"}, "what is imported stands for the VNF"
