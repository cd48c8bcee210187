# SPDX-License-Identifier: Apache-2.0
"""Packages: what is read out of folders and zips, and what is refused with which words."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.package import archive, csar, csar_metadata, fetch
from container_update.package.tools.build import write_metadata
from container_update.package.vnfd import InterfaceScript
from tests.packages import (
    CONFIG_MAP,
    META,
    TYPES,
    block,
    flavour,
    listing,
    with_vnfd,
    write_folder,
    write_zip,
)

A, B = "Files/kubernetes/a.yaml", "Files/kubernetes/b.yaml"
LISTED = {META: listing({A: CONFIG_MAP, B: "b"}), A: CONFIG_MAP, B: "b"}


@pytest.fixture(params=["folder", "zip"])
def pack(request, tmp_path):
    """Writes a package either way and gives its path."""
    if request.param == "folder":
        return lambda files: write_folder(tmp_path / "package", files)
    return lambda files: write_zip(tmp_path / "package.zip", files)


def refusal(source: str, use=lambda package: None, **options) -> str:
    with (
        pytest.raises(PackageError) as caught,
        csar.open_package(source, options=Options(**options)) as package,
    ):
        use(package)
    return str(caught.value)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc: not Linux")
def test_a_package_that_was_read_is_not_open_any_more(pack):
    path = os.path.realpath(pack(LISTED))

    def descriptors() -> list[str]:
        here = Path("/proc/self/fd")
        links = (os.readlink(each) for each in here.iterdir() if each.is_symlink())
        return [link for link in links if link.startswith(path)]

    with csar.open_package(path) as package:
        package.read(A)
        opened = descriptors()
    assert package.source
    assert descriptors() == []
    assert bool(opened) is path.endswith(".zip")


# --- what is read -----------------------------------------------------------------------------


def test_a_listed_file_is_read(pack):
    with csar.open_package(pack(LISTED)) as package:
        assert package.read(A) == CONFIG_MAP.encode()
        assert package.read("./Files//kubernetes/../kubernetes/a.yaml") == CONFIG_MAP.encode()


def test_has_knows_files_and_takes_urls_to_exist(pack):
    with csar.open_package(pack(LISTED)) as package:
        assert package.has(A)
        assert not package.has("Files/kubernetes")
        assert not package.has("Files/kubernetes/missing.yaml")
        assert package.has("https://example.com/a.yaml")


def test_a_package_that_verifies(pack):
    with csar.open_package(pack(LISTED)) as package:
        package.verify()


def test_a_file_without_a_hash_verifies_however_big_it_is(pack):
    files = {META: "Name: Files/images/a.tar\n", "Files/images/a.tar": "x" * 200}
    with csar.open_package(pack(files), options=Options(def_file_bytes=100)) as package:
        package.verify()


def test_a_file_that_is_not_listed_can_be_read(pack):
    with csar.open_package(pack({**LISTED, "Files/other.yaml": "x"})) as package:
        assert package.read("Files/other.yaml") == b"x"


def test_the_manifest_that_tosca_meta_names_lists_files_too(pack):
    files = {
        META: "ETSI-Entry-Manifest: vnf.mf\n\n" + block(A, CONFIG_MAP),
        "vnf.mf": "metadata:\n  vnf_product_name: x\n\n" + block(B, "b", name="Source"),
        A: CONFIG_MAP,
        B: "b",
    }
    with csar.open_package(pack(files)) as package:
        assert [artifact.path for artifact in package.artifacts] == [B, A]
        package.verify()


def test_a_package_without_tosca_metadata_has_its_vnfd_and_manifest_at_the_root(pack):
    vnfd = flavour("simple", {"VDU1": "web"}).replace("types.yaml", "Definitions/types.yaml")
    files = {
        "vnf.yaml": vnfd,
        "Definitions/types.yaml": TYPES,
        "vnf.mf": block("vnf.yaml", vnfd, name="Source") + block(A, CONFIG_MAP, name="Source"),
        A: CONFIG_MAP,
    }
    with csar.open_package(pack(files)) as package:
        assert package.entry_definitions == "vnf.yaml"
        assert package.vdus() == {"VDU1": "web"}
        assert list(package.manifest_files()) == [A]


MANIFEST_FILES = {
    "listed YAML and JSON, in listed order": (
        listing(dict.fromkeys(["Files/b.yml", "Files/a.yaml", "Files/c.json"], "")),
        ["Files/b.yml", "Files/a.yaml", "Files/c.json"],
    ),
    "neither metadata nor definitions nor scripts": (
        listing(
            dict.fromkeys(["Definitions/d.yaml", META, "Scripts/s.yaml", "BaseHOT/h.yaml"], "")
        ),
        [],
    ),
    "folders of that name elsewhere": (
        listing(dict.fromkeys(["Files/Scripts/s.yaml", "Files/BaseHOT/h.yaml"], "")),
        ["Files/Scripts/s.yaml", "Files/BaseHOT/h.yaml"],
    ),
    "no file of a chart": (
        listing(dict.fromkeys(["Files/c/Chart.yaml", "Files/c/t/a.yaml", "Files/cc/b.yaml"], "")),
        ["Files/cc/b.yaml"],
    ),
    "nothing beside the VNFD": (
        listing({"Defs/types.yaml": "", "Files/a.yaml": ""}, "Entry-Definitions: Defs/top.yaml\n"),
        ["Files/a.yaml"],
    ),
    "no other file": (listing({"Files/image.qcow2": "", "Files/x.yaml.txt": ""}), []),
    "URLs of YAML": (
        listing({"https://example.com/a.yaml?x=1": "", "https://example.com/image": ""}),
        ["https://example.com/a.yaml?x=1"],
    ),
    "where nothing is listed, the YAML below Files": ("", ["Files/a.yaml", "Files/b.yml"]),
}


FLAT = {
    "YAML and JSON of all folders": (
        ["b.yml", "a.json", "c/d.yaml"],
        ["a.json", "b.yml", "c/d.yaml"],
    ),
    "nothing hidden": (["a.yaml", ".git/b.yaml", ".gitlab-ci.yml", "c/.d.yaml"], ["a.yaml"]),
    "no other file": (["README.md", "a.yaml", "a.yaml.orig"], ["a.yaml"]),
    "no file of a chart": (["Chart.yaml", "templates/a.yaml"], []),
    "no definitions and no scripts": (
        ["Definitions/v.yaml", "Scripts/s.yaml", "k/a.yaml"],
        ["k/a.yaml"],
    ),
    "nothing of a package in a folder": (["p/TOSCA-Metadata/TOSCA.meta", "p/Files/a.yaml"], []),
    "nothing of a package without TOSCA-Metadata": (["p/v.mf", "p/v.yaml", "p/k/a.yaml"], []),
    "all beside what is hidden": (["__MACOSX/Files/._a.yaml", "a.yaml"], ["a.yaml"]),
    "nothing beside a package": (["v1/Files/a.yaml", "v2/Files/a.yaml", "b.yaml"], []),
    "nothing beside Files": (["Files/a.yaml", "b.yaml"], ["Files/a.yaml"]),
}


@pytest.mark.parametrize(("names", "expected"), FLAT.values(), ids=FLAT)
def test_manifest_files_of_a_folder_without_metadata_are(pack, names, expected):
    with csar.open_package(pack(dict.fromkeys(names, ""))) as package:
        assert list(package.manifest_files()) == expected


@pytest.mark.parametrize("name", ["web.yaml", "web.yml", "web.json"])
def test_one_file_is_a_package(tmp_path, name):
    (tmp_path / name).write_text(CONFIG_MAP)
    with csar.open_package(str(tmp_path / name)) as package:
        assert list(package.manifest_files()) == [name]
        (manifest,) = package.manifests(name, "vnf")
        assert str(manifest.source) == f"{name}:1"
        assert (package.vdus(), package.vnfd_id) == ({}, "")
        assert not package.has("other.yaml")
        with pytest.raises(PackageError, match=r"other\.yaml in .* cannot be read: no such file"):
            package.read("other.yaml")


def test_one_file_keeps_the_limits(tmp_path):
    (tmp_path / "a.yaml").write_text(CONFIG_MAP)
    message = refusal(str(tmp_path / "a.yaml"), lambda p: p.read("a.yaml"), def_file_bytes=20)
    assert "expected at most 20 bytes (option def_file_bytes), found 64" in message


@pytest.fixture
def standard_input(monkeypatch):
    """Sets what comes on standard input."""

    def become(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return become


def test_standard_input_is_a_package_that_can_be_opened_again(standard_input):
    for text in (CONFIG_MAP, CONFIG_MAP + "---\n" + CONFIG_MAP.replace("name: c", "name: d")):
        standard_input(text.encode())
        for _ in range(2):
            with csar.open_package("-") as package:
                (path,) = package.manifest_files()
                assert package.read(path) == text.encode()
                assert str(package.manifests(path, "vnf")[-1].source).startswith("stdin.yaml:")


class Slow(io.BytesIO):
    """Content that a second reader would find read."""

    both = threading.Barrier(2)

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        with contextlib.suppress(threading.BrokenBarrierError):
            self.both.wait(0.5)
        return content


def test_threads_open_standard_input_at_the_same_time(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Slow(CONFIG_MAP.encode())))

    def read(_: int) -> bytes:
        with csar.open_package("-") as package:
            return package.read("stdin.yaml")

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(read, range(2))) == [CONFIG_MAP.encode()] * 2


def test_standard_input_keeps_the_limit(standard_input):
    standard_input(b"x" * 21)
    assert refusal("-", def_file_bytes=20) == (
        "standard input: expected at most 20 bytes (option def_file_bytes), found more: write it "
        "to several files of a folder"
    )


def test_a_process_may_have_no_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert refusal("-") == "this process has no standard input: name a file, not -"


@pytest.mark.parametrize(("meta", "expected"), MANIFEST_FILES.values(), ids=MANIFEST_FILES)
def test_manifest_files_are(pack, meta, expected):
    names = ("Files/b.yml", "Files/a.yaml", "Files/t.txt", "Files/c/Chart.yaml", "o.yaml")
    files = {META: meta, **dict.fromkeys(names, "")}
    with csar.open_package(pack(files)) as package:
        assert list(package.manifest_files()) == expected


# --- metadata ---------------------------------------------------------------------------------

SHA = hashlib.sha256(b"x").hexdigest()
SHA512 = hashlib.sha512(b"x").hexdigest()
METADATA = {
    "blocks between blank lines": f"Name: a\nAlgorithm: SHA-256\nHash: {SHA}\n\n\n",
    "CRLF": f"Name: a\r\nAlgorithm: SHA-256\r\nHash: {SHA}\r\n",
    "no blank line before it": f"CSAR-Version: 1.1\nName: a\nAlgorithm: SHA-256\nHash: {SHA}",
    "keys in another order": f"Name: a\nHash: {SHA}\nAlgorithm: SHA-256\n",
    "a value continued on the next line": (
        f"Name: a\nAlgorithm: SHA-256\nHash: {SHA[:40]}\n {SHA[40:]}"
    ),
    "another spelling of the algorithm": f"Name: a\nAlgorithm: sha256\nHash: {SHA}\n",
    "a hash in capitals": f"Name: a\nAlgorithm: SHA256\nHash: {SHA.upper()}\n",
    "quoted values": f"Name: 'a'\nAlgorithm: \"SHA-256\"\nHash: {SHA}\n",
    "a manifest": f"metadata:\n  vnf_product_name: y\nSource: a\nAlgorithm: SHA-256\nHash: {SHA}\n",
    "a signature after it": (
        f"Source: a\nAlgorithm: SHA-256\nHash: {SHA}\n-----BEGIN CMS-----\nName: z\n"
    ),
    "listed twice": f"Name: a\n\nName: a\nAlgorithm: SHA-256\nHash: {SHA}\n\nName: a\n",
    "keys in another case": f"source: a\nALGORITHM: SHA-256\nhash: {SHA}\nContent-type: x\n",
    "a byte order mark": f"\ufeffName: a\nAlgorithm: SHA-256\nHash: {SHA}\n",
}


@pytest.mark.parametrize("text", METADATA.values(), ids=METADATA)
def test_metadata_lists_a_file_with_its_hash(text):
    (artifact,) = csar_metadata.parse(text.encode(), META).artifacts
    assert (artifact.path, artifact.algorithm, artifact.hash) == ("a", "sha256", SHA)


def test_metadata_names_the_vnfd_the_manifest_and_content_types():
    text = "Entry-Definitions: d.yaml\nETSI-Entry-Manifest: m.mf\n\nName: a\nContent-Type: t/x\n"
    metadata = csar_metadata.parse(text.encode(), META)
    assert (metadata.entry_definitions, metadata.entry_manifest) == ("d.yaml", "m.mf")
    assert metadata.artifacts == (csar_metadata.Artifact("a", "t/x"),)


def test_names_in_metadata_have_the_spaces_of_their_script():
    text = "Created-By: 日本\u3000電気\nCompany: A\u00a0B\nEntry-Definitions: 定義\u3000一.yaml\n"
    assert csar_metadata.parse(text.encode(), META).entry_definitions == "定義\u3000一.yaml"


def test_a_file_has_a_name_with_a_wide_space(pack):
    name = "Files/設定\u3000一.yaml"
    with csar.open_package(pack({META: f"Name: {name}\n", name: CONFIG_MAP})) as package:
        assert package.manifest_files() == (name,)
        assert package.read(name).decode() == CONFIG_MAP


def test_headers_of_metadata_are_read_in_any_case():
    text = "entry-definitions: d.yaml\nEtsi-entry-manifest: m.mf\n"
    metadata = csar_metadata.parse(text.encode(), META)
    assert (metadata.entry_definitions, metadata.entry_manifest) == ("d.yaml", "m.mf")


BAD_METADATA = {
    "an unknown algorithm": (
        f"CSAR-Version: 1.1\n\nName: a\nAlgorithm: MD5\nHash: {SHA}\n",
        f'{META}:3: expected SHA-256 or SHA-512 as Algorithm of a, found "MD5"',
    ),
    "a hash of another length": (
        f"Name: a\nAlgorithm: SHA-512\nHash: {SHA}\n",
        f"{META}:1: expected 128 hexadecimal digits as Hash of a, found 64 characters",
    ),
    "a hash that is none": (
        f"Name: a\nAlgorithm: SHA-256\nHash: {'g' * 64}\n",
        f"{META}:1: expected 64 hexadecimal digits as Hash of a, found 64 characters",
    ),
    "an algorithm alone": (
        "Name: a\nAlgorithm: SHA-256\n",
        f"{META}:1: a has Algorithm without Hash: add it",
    ),
    "a hash alone": (f"Name: a\nHash: {SHA}\n", f"{META}:1: a has Hash without Algorithm: add it"),
    "no path": ("\nName:\n", f"{META}:2: expected the path of a file, found nothing"),
    "a hash alone, its key in another case": (
        "Name: a\nhash: x\n",
        f"{META}:1: a has Hash without Algorithm: add it",
    ),
    "two hashes for one file": (
        f"Name: a\nAlgorithm: SHA-256\nHash: {SHA}\nName: a\nAlgorithm: SHA-512\nHash: {SHA512}\n",
        "a is listed twice, with different hashes: list it once",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_METADATA.values(), ids=BAD_METADATA)
def test_wrong_metadata_is_refused_when_the_package_is_opened(pack, text, message):
    assert refusal(pack({META: text})) == message


def test_metadata_that_is_no_text_is_refused(tmp_path):
    write_folder(tmp_path, {META: ""})
    (tmp_path / META).write_bytes(b"Name: \xff\xfe")
    assert refusal(str(tmp_path)) == f"{META}: expected text in UTF-8"


# --- what is refused --------------------------------------------------------------------------


def test_a_hash_that_does_not_match_names_the_file(pack):
    source = pack({**LISTED, A: CONFIG_MAP + "#"})
    expected = hashlib.sha256(CONFIG_MAP.encode()).hexdigest()
    found = hashlib.sha256(CONFIG_MAP.encode() + b"#").hexdigest()
    message = (
        f"{A} in {source}: expected the sha256 hash {expected} of {META}:5, found {found}: the "
        "file was changed after the package was built; build the package again, or write the found "
        "hash there if the change is meant"
    )
    assert refusal(source, lambda package: package.read(A)) == message
    assert refusal(source, csar.Csar.verify) == message


def test_a_hash_is_not_bypassed_by_spelling_the_path_otherwise(pack):
    source = pack({**LISTED, A: "changed"})
    use = lambda package: package.read("Files/./kubernetes/a.yaml")  # noqa: E731
    assert "found" in refusal(source, use)
    source = pack({META: "Name: ./x//y.yaml\nAlgorithm: SHA-256\nHash: " + SHA, "x/y.yaml": "z"})
    assert "expected the sha256" in refusal(source, lambda package: package.read("x/y.yaml"))


def test_verify_finds_a_listed_file_that_is_missing(pack):
    files = {META: "Name: Files/x.bin\nContent-Type: application/octet-stream\n"}
    assert "Files/x.bin" in refusal(pack(files), csar.Csar.verify)


def test_a_file_that_is_missing_is_named(pack):
    source = pack(LISTED)
    message = refusal(source, lambda package: package.read("Files/none.yaml"))
    assert message.startswith(f"Files/none.yaml in {source} cannot be read: ")
    assert "no such file" in message.lower()


def test_a_manifest_that_is_missing_is_named(pack):
    source = pack({META: "ETSI-Entry-Manifest: vnf.mf\n"})
    assert refusal(source) == f"{META} in {source} names vnf.mf: no such file"


@pytest.mark.parametrize(
    "path", ["../secret", "a/../../secret", "/etc/passwd", "..", ".", "", "a\0b", "./.."]
)
def test_a_path_that_leaves_the_package_is_refused(pack, path):
    source = pack(LISTED)
    for use in (csar.Csar.read, csar.Csar.has):
        message = refusal(source, lambda package, use=use: use(package, path))
        assert "is not a path in the package" in message


def test_no_such_package(tmp_path):
    source = str(tmp_path / "none.zip")
    assert refusal(source) == f"the package {source} cannot be opened: No such file or directory"


def test_a_file_that_is_no_zip(tmp_path):
    (tmp_path / "x.zip").write_text("PK, it says")
    message = refusal(str(tmp_path / "x.zip"))
    assert message.startswith(f"the package {tmp_path}/x.zip is neither a folder nor a zip file: ")


def test_a_device_is_no_package():
    assert refusal("/dev/null") == (
        "the package /dev/null is neither a folder nor a file: - stands for standard input"
    )


def test_two_manifests_at_the_root_are_refused(pack):
    source = pack({"a.mf": "", "b.mf": ""})
    assert refusal(source) == f"{source}: expected one manifest at the root, found a.mf, b.mf"


def test_a_manifest_at_the_root_without_its_vnfd_is_refused(pack):
    source = pack({"a.mf": "", "b.yaml": ""})
    assert refusal(source) == f"{source}: expected the VNFD a.yaml beside a.mf"


def test_a_link_within_a_folder_is_followed(tmp_path):
    source = write_folder(tmp_path / "p", LISTED)
    (tmp_path / "p/Files/link.yaml").symlink_to("kubernetes/b.yaml")
    with csar.open_package(source) as package:
        assert package.read("Files/link.yaml") == b"b"


@pytest.mark.parametrize("target", ["../../outside", "{tmp}/outside"])
def test_a_link_out_of_a_folder_is_refused(tmp_path, target):
    (tmp_path / "outside").write_text("secret")
    source = write_folder(tmp_path / "p", LISTED)
    (tmp_path / "p/Files/link.yaml").symlink_to(target.format(tmp=tmp_path))
    for use in (csar.Csar.read, csar.Csar.has):
        message = refusal(source, lambda package, use=use: use(package, "Files/link.yaml"))
        assert "is a link that leads out of the package" in message


def test_a_file_below_a_linked_folder_is_refused(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.yaml").write_text("secret")
    source = write_folder(tmp_path / "p", LISTED)
    (tmp_path / "p/Files/out").symlink_to("../../outside")
    message = refusal(source, lambda package: package.read("Files/out/a.yaml"))
    assert "is a link that leads out of the package" in message


def test_a_link_to_itself_is_refused(tmp_path):
    source = write_folder(tmp_path / "p", LISTED)
    (tmp_path / "p/Files/loop").symlink_to("loop")
    assert "Files/loop" in refusal(source, lambda package: package.read("Files/loop"))


def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(tmp_path):
    source = write_folder(tmp_path / "p", LISTED)
    os.mkfifo(tmp_path / "p/Files/pipe.yaml")
    message = refusal(source, lambda package: package.read("Files/pipe.yaml"))
    assert message == f"Files/pipe.yaml in {source} is not a regular file: replace it with one"


def zip_of(path, *names, mode=0, text=b"x"):
    with zipfile.ZipFile(path, "w") as packed:
        for name in names:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            packed.writestr(info, text)
    return str(path)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x"])
def test_a_zip_with_a_path_that_leaves_it_is_refused(tmp_path, name):
    assert refusal(zip_of(tmp_path / "z.zip", "ok", name)) == (
        f'"{name}" is not a path in the package: expected a path relative to its root'
    )


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFBLK])
def test_a_zip_with_a_link_or_device_is_refused(tmp_path, kind):
    source = zip_of(tmp_path / "z.zip", "Files/link.yaml", mode=kind | 0o777, text=b"/etc/passwd")
    assert refusal(source) == (
        f"Files/link.yaml in {source} is not a regular file: replace it with one"
    )


def test_a_zip_with_a_file_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        source = zip_of(tmp_path / "z.zip", "a", "a")
    assert refusal(source) == f"a is in {source} twice: keep one of them"
    source = zip_of(tmp_path / "y.zip", "a/b", "a//b")
    assert refusal(source) == f"a/b is in {source} twice: keep one of them"


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_file_in_a_zip_is_refused(tmp_path, method):
    source = tmp_path / "z.zip"
    with zipfile.ZipFile(source, "w", method) as packed:
        packed.writestr("a.txt", "0123456789" * 20)
    damaged = bytearray(source.read_bytes())
    damaged[45] ^= 0xFF
    source.write_bytes(damaged)
    message = refusal(str(source), lambda package: package.read("a.txt"))
    assert message.startswith(f"a.txt in {source} cannot be read: ")


def test_an_encrypted_file_in_a_zip_is_refused(tmp_path):
    source = tmp_path / "z.zip"
    write_zip(source, {"a.txt": "x"})
    content = bytearray(source.read_bytes())
    content[6] |= 1  # the flag in the file's own header and in the directory's
    content[content.index(b"PK\x01\x02") + 8] |= 1
    source.write_bytes(content)
    assert "encrypted" in refusal(str(source), lambda package: package.read("a.txt"))


LIMITS = {
    "too many files": (
        {"package_files": 2},
        "(option package_files), found 3",
    ),
    "too much in all": (
        {"package_bytes": 60},
        "expected at most 60 bytes in all files (option package_bytes)",
    ),
    "too big a file to read": ({"def_file_bytes": 50}, f"{A} in "),
}


@pytest.mark.parametrize(("options", "message"), LIMITS.values(), ids=LIMITS)
def test_what_goes_over_a_limit_is_refused(pack, options, message):
    files = {A: CONFIG_MAP, B: "b" * 20, "c": ""}
    assert message in refusal(pack(files), lambda package: package.read(A), **options)


@pytest.mark.parametrize(("option", "each"), [("yaml_values", 13), ("yaml_characters", 44)])
def test_the_files_of_a_package_share_the_limits_on_their_values(pack, option, each):
    """Hundreds of small files with a few long texts each would hold gigabytes together."""
    source = pack({A: CONFIG_MAP, B: CONFIG_MAP})

    def both(package: csar.Csar) -> None:
        for path in (A, A, A, B):
            package.manifests(path, "ns")

    assert refusal(source, both, **{option: 2 * each - 1}).startswith(f"{source}: {B}:")
    with csar.open_package(source, options=Options(**{option: 2 * each})) as package:
        both(package)


def test_the_urls_that_a_package_lists_are_counted(pack):
    urls = "".join(f"Name: http://example.com/{number}\n" for number in range(3))
    source = pack({META: urls + "Name: http://example.com/1\n"})
    assert refusal(source, package_urls=2) == (
        f"{source}: expected at most 2 URLs in its metadata (option package_urls), found 3: put "
        "the files into the package"
    )
    with csar.open_package(source, options=Options(package_urls=3)) as package:
        assert len(package.artifacts) == 3


def test_a_file_is_hashed_once_however_it_is_spelled(pack, monkeypatch):
    digests = []
    digest = fetch.digest_of

    def counted(file, algorithm):
        digests.append(algorithm)
        return digest(file, algorithm)

    monkeypatch.setattr(fetch, "digest_of", counted)
    spellings = ["./" * number + A for number in range(200)]
    meta = "".join(block(spelling, CONFIG_MAP) for spelling in spellings)
    with csar.open_package(pack({META: meta, A: CONFIG_MAP})) as package:
        package.verify()
        assert list(package.manifest_files()) == [A]
        assert digests == ["sha256"]
    two = meta + block(f".//{A}", "another")
    assert "is listed twice, with different hashes" in refusal(pack({META: two, A: CONFIG_MAP}))


class Growing:
    """Counts the objects of a zip's entries."""

    def __init__(self, monkeypatch):
        self.entries = 0
        init = zipfile.ZipInfo.__init__

        def counted(info, *args, **kwargs):
            self.entries += 1
            init(info, *args, **kwargs)

        monkeypatch.setattr(zipfile.ZipInfo, "__init__", counted)


@pytest.mark.parametrize("name", ["f{}", "folder{}/"])
def test_the_entries_of_a_zip_are_counted_before_they_become_objects(tmp_path, monkeypatch, name):
    source = write_zip(tmp_path / "z.zip", {name.format(number): "" for number in range(101)})
    growing = Growing(monkeypatch)
    message = refusal(source, package_files=100)
    assert "expected at most 100 files and folders (option package_files), found 101" in message
    assert growing.entries == 0
    with csar.open_package(source, options=Options(package_files=101)):
        assert growing.entries == 101


def test_a_directory_that_is_too_big_is_not_read(tmp_path):
    name = "x" * 200 + "/" + "y" * 200
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w") as packed:
        info = zipfile.ZipInfo(name)
        info.comment = bytes(4096)
        packed.writestr(info, b"")
    assert "found a directory of" in refusal(str(path), package_files=1)
    with csar.open_package(str(path), options=Options(package_files=3)) as package:
        assert package.names() == [name]


def test_signatures_in_a_files_content_are_no_entries(tmp_path):
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("inner.zip", b"PK\x01\x02" * 5000)
    with csar.open_package(str(path), options=Options(package_files=1)) as package:
        assert package.read("inner.zip") == b"PK\x01\x02" * 5000


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b/c", "a.txt", "a-b", "a")])
def test_a_file_in_a_zip_that_is_a_folder_too_is_refused(tmp_path, names):
    source = write_zip(tmp_path / "z.zip", dict.fromkeys(names, ""))
    below = max(names, key=lambda name: name.count("/"))
    assert refusal(source) == f"a in {source} is a file, and the folder of {below}: rename one"


def test_a_file_that_is_too_big_for_any_package_is_refused(pack, monkeypatch):
    monkeypatch.setattr(archive, "_LARGEST_FILE", 50)
    assert f"{A} in " in refusal(pack({A: CONFIG_MAP}), lambda package: package.read(A))


def test_a_zip_bomb_is_refused(tmp_path):
    source = tmp_path / "z.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_BZIP2) as packed:
        packed.writestr("bomb.yaml", bytes(8 * 1024 * 1024))
    assert "it looks like a zip bomb" in refusal(str(source))


# --- the VNFD ---------------------------------------------------------------------------------

SCRIPTS = """\
      interfaces:
        Vnflcm:
          instantiate: []
          modify_information_start: {implementation: driver}
          modify_information_end: {implementation: other}
      artifacts:
        driver: {type: tosca.artifacts.Implementation.Python, file: Scripts/driver.py}
"""
SIMPLE = flavour("simple", {"VDU1": "web", "VDU2": "db"}, SCRIPTS)


def test_the_vnfd_names_vdus_flavours_and_scripts(pack):
    with csar.open_package(pack(with_vnfd({"df_simple.yaml": SIMPLE}))) as package:
        assert package.vnfd_id == "the-vnfd"
        assert package.vdus() == {"VDU1": "web", "VDU2": "db"}
        assert [found.id for found in package.flavours] == ["simple"]
        assert package.interface_scripts() == {
            "modify_information_start": InterfaceScript(
                "modify_information_start", "driver", "Scripts/driver.py"
            ),
            "modify_information_end": InterfaceScript("modify_information_end", "other", None),
        }


def test_the_substitution_mappings_name_the_vnfd_first(pack):
    text = SIMPLE.replace("{flavour_id: simple}", "{flavour_id: simple, descriptor_id: mapped}")
    with csar.open_package(pack(with_vnfd({"df_simple.yaml": text}))) as package:
        assert package.vnfd_id == "mapped"


def test_a_package_without_a_vnfd_has_no_vdus(pack):
    with csar.open_package(pack(LISTED)) as package:
        assert (package.vdus(), package.flavours, package.vnfd_id) == ({}, (), "")
        assert package.vdus("simple") == {}
        assert package.interface_scripts() == {}


def test_each_flavour_has_its_vdus(pack):
    files = with_vnfd({"s.yaml": SIMPLE, "c.yaml": flavour("complex", {"VDU3": "cache"})})
    with csar.open_package(pack(files)) as package:
        assert package.vdus("simple") == {"VDU1": "web", "VDU2": "db"}
        assert package.vdus("complex") == {"VDU3": "cache"}
        assert package.vdus() == {"VDU1": "web", "VDU2": "db", "VDU3": "cache"}
        assert package.interface_scripts("complex") == {}


def test_the_flavours_beside_a_vnfd_are_found_however_its_path_is_spelled(pack):
    files = with_vnfd({"s.yaml": SIMPLE}, {"Definitions/c.yaml": flavour("complex", {"V": "x"})})
    files[META] = files[META].replace(": Definitions/top", ": ./Definitions//top")
    with csar.open_package(pack(files)) as package:
        assert package.vdus("complex") == {"V": "x"}


def test_a_vnfd_in_one_file_has_one_flavour_without_a_name(pack):
    text = (
        TYPES
        + """\
topology_template:
  node_templates:
    VDU1: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: web}}
"""
    )
    files = {META: "Entry-Definitions: vnfd.yaml\n", "vnfd.yaml": text}
    with csar.open_package(pack(files)) as package:
        assert package.vdus() == {"VDU1": "web"}
        assert [found.id for found in package.flavours] == [""]


def test_a_flavour_that_the_vnfd_lacks_is_refused(pack):
    source = pack(with_vnfd({"df_simple.yaml": SIMPLE}))
    message = refusal(source, lambda package: package.vdus("huge"))
    assert message == f'{source}: expected one of the flavours simple, found "huge"'


def test_flavours_that_disagree_have_to_be_told_apart(pack):
    source = pack(with_vnfd({"s.yaml": SIMPLE, "c.yaml": flavour("complex", {"VDU1": "other"})}))
    assert refusal(source, csar.Csar.vdus) == (
        f"{source}: VDU1 has the name web in one flavour and other in the flavour complex: "
        "specify the flavour"
    )


def changed(old: str, new: str) -> dict[str, str]:
    return {"df_simple.yaml": SIMPLE.replace(old, new)}


BAD_VNFDS = {
    "an import that is missing": (
        changed("file: types.yaml", "file: etsi.yaml"),
        "Definitions/df_simple.yaml:3: the VNFD cannot be read: it names Definitions/etsi.yaml: ",
    ),
    "an import that leaves the package": (
        changed("file: types.yaml", "file: ../../types.yaml"),
        "is not a path in the package",
    ),
    "an import from the network": (
        changed("file: types.yaml", "file: https://example.com/etsi.yaml"),
        "df_simple.yaml:3: imports https://example.com/etsi.yaml, which is never fetched",
    ),
    "an import of this host": (
        changed("file: types.yaml", "file: file:///etc/passwd"),
        "passwd is not in the package",
    ),
    "an import from a repository": (
        changed("file: types.yaml", "file: types.yaml\n  repository: r"),
        "is in a repository outside the package",
    ),
    "an import without a name": (
        changed("file: types.yaml", "file: [x]"),
        "expected the name of a file under imports",
    ),
    "imports that are no list": (
        changed("imports:\n- file: types.yaml", "imports: 3"),
        "expected a list of files under imports",
    ),
    "two documents": (
        changed("imports:", "--- {}\nimports:"),
        "invalid YAML",
    ),
    "a list": (
        {"df_simple.yaml": "[]"},
        "Definitions/df_simple.yaml: expected one YAML document with TOSCA",
    ),
    "types that are no mapping": (
        changed("topology_template:", "node_types: [x]\ntopology_template:"),
        "Definitions/df_simple.yaml: expected a mapping under node_types",
    ),
    "an unknown type": (
        changed("type: test.VNF", "type: other.VNF"),
        "Definitions/df_simple.yaml: toscaparser does not accept the VNFD: ",
    ),
    "a topology that is no such thing": (
        changed("node_templates:", "node_templates: 3\n  other:"),
        "Definitions/df_simple.yaml:11: expected a mapping as topology_template.node_templates, "
        "found a number",
    ),
    "a VDU without a name": (
        changed("properties: {name: web}", "properties: {}"),
        "toscaparser does not accept the VNFD: ",
    ),
    "a VDU whose name is empty": (
        changed("{name: web}", "{name: ''}"),
        "expected the name of a workload as properties.name of VDU1",
    ),
}


@pytest.mark.parametrize(("flavours", "message"), BAD_VNFDS.values(), ids=BAD_VNFDS)
def test_a_wrong_vnfd_is_refused_where_it_is_needed(pack, flavours, message):
    source = pack(with_vnfd(flavours, {A: CONFIG_MAP}))
    with csar.open_package(source) as package:
        assert list(package.manifest_files()) == [A]
    assert message in refusal(source, csar.Csar.vdus)


def test_a_vnfd_that_is_missing_is_named(pack):
    source = pack({META: "Entry-Definitions: Definitions/none.yaml\n"})
    assert refusal(source, csar.Csar.vdus).startswith(
        "Entry-Definitions: the VNFD cannot be read: it names Definitions/none.yaml: "
    )


def test_imports_may_go_in_a_circle_and_be_named(pack):
    text = SIMPLE.replace("- file: types.yaml", "- types: types.yaml\n- top: {file: top.vnfd.yaml}")
    with csar.open_package(pack(with_vnfd({"df_simple.yaml": text}))) as package:
        assert package.vdus() == {"VDU1": "web", "VDU2": "db"}


# --- building ---------------------------------------------------------------------------------


def test_written_metadata_lists_every_file_and_verifies(tmp_path):
    files = {
        **with_vnfd({"df_simple.yaml": SIMPLE}),
        A: CONFIG_MAP,
        ".git/x": "",
        "Scripts/s.py": "",
    }
    write_folder(tmp_path, files)
    write_metadata(tmp_path)
    with csar.open_package(str(tmp_path)) as package:
        package.verify()
        assert package.entry_definitions == "Definitions/top.vnfd.yaml"
        assert [artifact.path for artifact in package.artifacts] == [
            "Definitions/df_simple.yaml", "Definitions/top.vnfd.yaml", "Definitions/types.yaml",
            A, "Scripts/s.py",
        ]  # fmt: skip
        assert list(package.manifest_files()) == [A]


def test_metadata_written_twice_is_the_same(tmp_path):
    write_folder(tmp_path, {A: CONFIG_MAP})
    first = write_metadata(tmp_path).read_bytes()
    assert write_metadata(tmp_path).read_bytes() == first


def test_metadata_is_not_written_for_two_vnfds_or_no_folder(tmp_path):
    write_folder(tmp_path, {"Definitions/a.vnfd.yaml": "", "Definitions/b.vnfd.yaml": ""})
    with pytest.raises(PackageError, match=r"expected one VNFD, found Definitions/a\.vnfd"):
        write_metadata(tmp_path)
    with pytest.raises(PackageError, match="no such folder"):
        write_metadata(tmp_path / "none")


def test_metadata_is_not_written_through_a_link(tmp_path):
    write_folder(tmp_path / "p", {A: CONFIG_MAP})
    (tmp_path / "outside").mkdir()
    (tmp_path / "p/TOSCA-Metadata").symlink_to("../outside")
    with pytest.raises(PackageError, match="leads out of the package"):
        write_metadata(tmp_path / "p")
    assert not list((tmp_path / "outside").iterdir())


def test_metadata_does_not_list_a_link_that_leaves_the_folder(tmp_path):
    write_folder(tmp_path / "p", {A: CONFIG_MAP})
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "p/Files/link.yaml").symlink_to("../../outside")
    with pytest.raises(PackageError, match="leads out of the package"):
        write_metadata(tmp_path / "p")


def test_the_files_that_a_package_lists_are_counted() -> None:
    entry = "Name: Files/a.yaml\n\n"
    assert len(csar_metadata.parse((entry * 20_000).encode(), "TOSCA.meta").artifacts) == 1
    with pytest.raises(
        PackageError, match=r"^TOSCA\.meta:40001: expected at most 20000 entries: list"
    ):
        csar_metadata.parse((entry * 20_001).encode(), "TOSCA.meta")


@pytest.mark.parametrize(
    ("files", "may"),
    [
        pytest.param({"TOSCA-Metadata/TOSCA.meta": ""}, True, id="metadata"),
        pytest.param({"vnf.mf": "", "vnf.yaml": ""}, True, id="a manifest at the root"),
        pytest.param({"Files/kubernetes/a.yaml": ""}, False, id="manifests of objects"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_whether_a_package_may_have_a_vnfd_is_known_before_it_is_opened(
    tmp_path: Path, files: dict[str, str], may: bool
) -> None:
    for name, text in files.items():
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_text(text)
    assert csar.may_have_vnfd(str(tmp_path / "folder")) is may
    assert csar.may_have_vnfd(write_zip(tmp_path / "vnf.zip", files))
