# SPDX-License-Identifier: Apache-2.0
"""Packages in an OCI registry: a stand-in on loopback, and what is refused of what it says."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import stat
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.package import csar
from tests.packages import CONFIG_MAP

HERE = "127.0.0.1"
LOGIN = base64.b64encode(b"ops:secret-Zq7").decode()


class Registry(http.server.ThreadingHTTPServer):
    """Serves artifacts to everybody, or to who has its token or its password."""

    def __init__(self) -> None:
        super().__init__((HERE, 0), _Handler)
        self.contents: dict[str, bytes] = {}
        self.wants = ""
        self.blobs_at = self.tokens_at = ""
        self.asked: list[tuple[str, str]] = []
        self.host = f"{HERE}:{self.server_address[1]}"

    def push(self, *files: tuple[str, bytes], **wrong: Any) -> str:
        """Store an artifact, as oras push does; return its source."""
        layers = []
        for name, content in files:
            digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
            self.contents[f"/v2/core/upf/blobs/{digest}"] = content
            titled = {"annotations": {"org.opencontainers.image.title": name}} if name else {}
            layers.append({"digest": digest, "size": len(content), **titled, **wrong})
        manifest = json.dumps({"schemaVersion": 2, "layers": layers}).encode()
        self.contents["/v2/core/upf/manifests/2.0"] = manifest
        return f"oci://{self.host}/core/upf:2.0"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        path, registry = self.path.partition("?")[0], self.server
        login = self.headers.get("Authorization", "")
        registry.asked.append((self.path, login))
        if path == "/token" and login == f"Basic {LOGIN}":
            self.answer(200, b'{"token": "t0ken"}')
        elif path == "/token" or (registry.wants and login != registry.wants):
            at = registry.tokens_at or f"http://{registry.host}"
            realm = f'Bearer realm="{at}/token",service="here",scope="pull"'
            is_basic = registry.wants.startswith("Basic")
            self.answer(401, b"", {"WWW-Authenticate": "Basic realm=x" if is_basic else realm})
        elif registry.blobs_at and "/blobs/" in path:
            self.answer(307, b"", {"Location": registry.blobs_at + path})
        else:
            found = registry.contents.get(path)
            self.answer(200 if found is not None else 404, found or b"")

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Registry]:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with Registry() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def log_in(folder: Path, **config: Any) -> None:
    (folder / "config.json").write_text(json.dumps(config))


def objects(source: str, **options: Any) -> list[str]:
    with csar.open_package(source, options=Options(url_hosts=(HERE,), **options)) as package:
        files = package.manifest_files()
        return [str(each.key) for file in files for each in package.manifests(file, "core")]


def refusal(source: str, **options: Any) -> str:
    with pytest.raises(PackageError) as caught:
        objects(source, **options)
    return str(caught.value)


def test_an_artifact_is_a_package_by_its_tag_or_its_digest(registry: Registry) -> None:
    tagged = registry.push(("dist/upf.yaml", CONFIG_MAP.encode()))
    manifest = registry.contents["/v2/core/upf/manifests/2.0"]
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    registry.contents[f"/v2/core/upf/manifests/{digest}"] = manifest
    assert objects(tagged) == objects(tagged.replace(":2.0", f"@{digest}")) != []


@pytest.mark.parametrize("wants", ["Bearer t0ken", f"Basic {LOGIN}"])
@pytest.mark.parametrize("keeper", ["file", "program"])
def test_a_registry_gets_the_login_of_docker(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wants: str, keeper: str
) -> None:
    source = registry.push(("upf.yaml", CONFIG_MAP.encode()))
    registry.wants = wants
    assert f"docker login {registry.host}" in refusal(source)
    log_in(tmp_path, auths={registry.host: {"auth": LOGIN}})
    if keeper == "program":
        helper = tmp_path / "docker-credential-safe"
        helper.write_text('#!/bin/sh\necho \'{"Username": "ops", "Secret": "secret-Zq7"}\'\n')
        helper.chmod(helper.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        log_in(tmp_path, credsStore="safe")
    assert objects(source)
    log_in(tmp_path, auths={registry.host: {"auth": "b3RoZXI6d3Jvbmc="}})
    other = source.replace("2.0", "2.1")
    registry.contents["/v2/core/upf/manifests/2.1"] = b""
    assert "docker login" in refusal(other)


@pytest.mark.parametrize("wants", ["Bearer t0ken", f"Basic {LOGIN}"])
@pytest.mark.parametrize("end", ["\n", "\r\nX: y", "\N{EURO SIGN}"])
def test_a_login_that_fits_into_no_header_is_refused_unquoted(
    registry: Registry, tmp_path: Path, wants: str, end: str
) -> None:
    source = registry.push(("upf.yaml", CONFIG_MAP.encode()))
    registry.wants = wants
    log_in(tmp_path, auths={registry.host: {"auth": LOGIN + end}})
    told = refusal(source)
    assert "Authorization: expected printable ASCII characters" in told
    assert LOGIN not in told


def test_a_blob_may_be_on_another_host_which_gets_no_login(
    registry: Registry, tmp_path: Path
) -> None:
    source = registry.push(("upf.yaml", CONFIG_MAP.encode()))
    log_in(tmp_path, auths={registry.host: {"auth": LOGIN}})
    with Registry() as store:
        thread = threading.Thread(target=store.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        store.contents = registry.contents
        registry.wants = "Bearer t0ken"
        registry.blobs_at = f"http://localhost:{store.server_address[1]}"
        assert "localhost" in refusal(source)
        with csar.open_package(source, options=Options(url_hosts=(HERE, "localhost"))) as package:
            assert package.names() == ["upf.yaml"]
        store.shutdown()
        thread.join()
    assert [login for _, login in store.asked] == [""]


@pytest.mark.parametrize("wants", ["Bearer t0ken", f"Basic {LOGIN}", ""])
@pytest.mark.parametrize("thief_wants", ["", "Bearer t0ken", f"Basic {LOGIN}"])
@pytest.mark.parametrize("host", ["localhost", HERE], ids=["another host", "another port"])
def test_a_login_and_a_challenge_are_those_of_one_scheme_host_and_port(
    registry: Registry, tmp_path: Path, wants: str, thief_wants: str, host: str
) -> None:
    """The registry sends to a store that asks for a login: that is no reason to log in."""
    source = registry.push(("upf.yaml", CONFIG_MAP.encode()))
    with Registry() as store:
        log_in(tmp_path, auths={registry.host: {"auth": LOGIN}, store.host: {"auth": LOGIN}})
        thread = threading.Thread(target=store.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        store.contents, store.wants = registry.contents, thief_wants
        registry.wants, registry.blobs_at = wants, f"http://{host}:{store.server_address[1]}"
        options = Options(url_hosts=(HERE, "localhost"))
        refused = pytest.raises(PackageError, match="401") if thief_wants else nullcontext()
        try:
            with refused, csar.open_package(source, options=options) as package:
                assert package.names() == ["upf.yaml"]
        finally:
            store.shutdown()
            thread.join()
    assert {(path.partition("?")[0] == "/token", login) for path, login in store.asked} == {
        (False, "")
    }


@pytest.mark.parametrize("host", ["http://localhost:1", "http://127.0.0.1", "ftp://a", "file:///"])
def test_a_login_goes_to_no_token_server_in_plain_text(
    registry: Registry, tmp_path: Path, host: str
) -> None:
    source = registry.push(("upf.yaml", CONFIG_MAP.encode()))
    log_in(tmp_path, auths={registry.host: {"auth": LOGIN}})
    registry.wants, registry.tokens_at = "Bearer t0ken", host
    assert "docker login" in refusal(source)
    assert [path for path, _ in registry.asked] == ["/v2/core/upf/manifests/2.0"]


def test_what_has_another_digest_is_refused(registry: Registry) -> None:
    source = registry.push(("upf.yaml", CONFIG_MAP.encode()))
    (blob,) = (path for path in registry.contents if "/blobs/" in path)
    registry.contents[blob] = b"changed"
    assert "expected what has the digest sha256:" in refusal(source)
    at = f"oci://{registry.host}/core/upf@sha256:{'0' * 64}"
    registry.contents[f"/v2/core/upf/manifests/sha256:{'0' * 64}"] = b"{}"
    assert "expected what has the digest" in refusal(at)


PACKAGE = ("upf.yaml", CONFIG_MAP.encode())
WRONG = {
    "two files": ([PACKAGE, ("b.yaml", b"b")], {}, "expected an artifact with one file"),
    "no file": ([], {}, "expected an artifact with one file"),
    "one name twice": ([PACKAGE, PACKAGE], {}, "each with a name of its own"),
    "a name of a folder": ([("..", b"a")], {}, "each with a name of its own"),
    "a control character": ([("a\0b", b"a")], {}, "each with a name of its own"),
    "no digest": ([PACKAGE], {"digest": "sha256:../../token"}, "expected a digest of upf.yaml"),
    "another type": ([PACKAGE], {"digest": 7}, "layers[0].digest: expected text"),
    "no annotations": ([PACKAGE], {"annotations": []}, "annotations: expected a mapping"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_artifact_is_refused_that_has(registry: Registry, name: str) -> None:
    files, wrong, expected = WRONG[name]
    assert expected in refusal(registry.push(*files, **wrong))


@pytest.mark.parametrize("manifest", [b"", b"[" * 100_000, b"[]", b'{"layers": null}', b"\xff"])
def test_what_is_no_manifest_is_refused(registry: Registry, manifest: bytes) -> None:
    source = registry.push(PACKAGE)
    registry.contents["/v2/core/upf/manifests/2.0"] = manifest
    assert "expected the manifest of an artifact" in refusal(source)


@pytest.mark.parametrize("words", ["{host}/core/upf", "{host}/../upf:1", "{host}:1", "a@b/c:1", ""])
def test_what_names_no_artifact_is_refused_unasked(registry: Registry, words: str) -> None:
    assert "expected oci://HOST/NAME:TAG" in refusal(f"oci://{words.format(host=registry.host)}")
    assert registry.asked == []


def test_the_limits_on_packages_hold(registry: Registry) -> None:
    source = registry.push(PACKAGE)
    assert "more than 10 bytes" in refusal(source, package_bytes=10)
    both = registry.push(PACKAGE, ("upf.p7s", b"1234567"))
    room = len(PACKAGE[1]) + 6
    assert "more than 6 bytes" in refusal(both, package_bytes=room), "all files share the room"
    registry.contents.clear()
    assert "404" in refusal(source)
    with pytest.raises(PackageError, match="not a public address"):
        csar.open_package(source).__enter__()
