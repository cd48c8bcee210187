# SPDX-License-Identifier: Apache-2.0
"""Packages in a real OCI registry, CNCF's distribution: what the command prints of them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.emulator.test_helm import layer
from tests.functional.cnf import Cnf
from tests.functional.conftest import until
from tests.functional.manifests import config_map
from tests.internals.core import main
from tests.needs import REGISTRY
from tests.packages import write_zip

pytestmark = REGISTRY
HERE = "127.0.0.1"
ELSEWHERE = "127.0.0.2"
"""Also on this machine, and not among the addresses that are asked by plain HTTP."""
LOGIN = base64.b64encode(b"ops:secret-Zq7").decode()
HTPASSWD = "ops:$2b$04$uUYFKPDVp2u14POedqNVp.GsTPPOVJRo2t/WHc.4G/SfX9n28u9zO\n"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
Start = Callable[..., str]
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a registry, of which all have the same content; where it listens."""
    started: list[subprocess.Popen[bytes]] = []

    def start(address: str = HERE, **more: Any) -> str:
        name = f"registry-{len(started)}"
        http = {"addr": f"{address}:0", **more.pop("http", {})}
        storage = {"filesystem": {"rootdirectory": str(tmp_path / "stored")}}
        config, log = tmp_path / f"{name}.json", tmp_path / f"{name}.log"
        config.write_text(json.dumps({"version": 0.1, "storage": storage, "http": http, **more}))
        with log.open("wb") as file:
            command = ["docker-registry", "serve", str(config)]
            started.append(subprocess.Popen(command, stderr=file, stdout=file))

        def listens() -> re.Match[str] | None:
            assert started[-1].poll() is None, log.read_text()
            return re.search(r'listening on ([\d.:]+)[",]', log.read_text())

        until(lambda: listens() is not None)
        found = listens()
        assert found is not None
        return found[1]

    yield start
    for process in started:
        process.terminate()
        process.wait()


@pytest.fixture
def host(start: Start) -> str:
    """A registry that everybody may read and write, by plain HTTP."""
    return start()


@pytest.fixture
def run(cnf: Cnf, admin_kubeconfig: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))

    def run(command: str, *words: str) -> tuple[int, str]:
        out = io.StringIO()
        hosts = ("--url-hosts", f"{HERE},{ELSEWHERE}")
        where = ("-n", cnf.namespace, "--kubeconfig", admin_kubeconfig)
        return main([command, *words, *hosts, *where], out), out.getvalue()

    return run


def send(method: str, url: str, body: bytes, kind: str = "application/octet-stream") -> str:
    """Send a request; return where what it made is."""
    request = urllib.request.Request(url, body, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return str(response.headers["Location"])


def push_manifest(host: str, tag: str, kind: str, **body: Any) -> dict[str, Any]:
    """Store a manifest; return what a list of manifests says of it."""
    content = json.dumps({"schemaVersion": 2, "mediaType": kind, **body}).encode()
    send("PUT", f"http://{host}/v2/core/upf/manifests/{tag}", content, kind)
    platform = {"architecture": "amd64", "os": "linux"}
    return {**described(content, kind), "platform": platform}


def described(content: bytes, kind: str) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return {"mediaType": kind, "digest": digest, "size": len(content)}


def push(host: str, tag: str, *files: tuple[str, bytes]) -> dict[str, Any]:
    """Store an artifact, as oras push does; return what a list of manifests says of it."""
    layers = []
    for title, content in (("", b"{}"), *files):
        layers.append(
            {
                **described(content, "application/vnd.oci.image.layer.v1.tar"),
                **({"annotations": {"org.opencontainers.image.title": title}} if title else {}),
            }
        )
        place = send("POST", f"http://{host}/v2/core/upf/blobs/uploads/", b"")
        send("PUT", f"{place}&digest={layers[-1]['digest']}", content)
    return push_manifest(host, tag, MANIFEST, config=layers[0], layers=layers[1:])


def package(folder: Path, setting: str) -> tuple[str, bytes]:
    path = Path(
        write_zip(folder / f"{setting}.zip", {"Files/cm.yaml": config_map(setting=setting)})
    )
    return path.name, path.read_bytes()


def test_a_package_is_installed_by_its_tag_and_updated_by_its_digest(
    host: str, run: Run, cnf: Cnf, tmp_path: Path
) -> None:
    push(host, "1.0", package(tmp_path, "old"))
    digest = push(host, "2.0", package(tmp_path, "new"))["digest"]
    assert run("install", f"oci://{host}/core/upf:1.0")[0] == 0
    for name in (":2.0", f"@{digest}", f":2.0@{digest}"):
        status, text = run("plan", f"oci://{host}/core/upf{name}")
        assert (status, "ConfigMap" in text) == (3, True), name
    assert run("apply", f"oci://{host}/core/upf@{digest}")[0] == 0
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "new"}


def push_all(host: str, folder: Path) -> None:
    """Store what is no package, each under the tag that the table below has."""
    listed = push(host, "1.0", package(folder, "a"))
    push_manifest(host, "index", INDEX, manifests=[listed])
    push_manifest(host, "list", DOCKER_LIST, manifests=[listed, listed])
    push(host, "two", package(folder, "b"), ("readme.txt", b"read me"))
    push(host, "image", ("", b"layer 1"), ("", b"layer 2"))
    push(host, "junk", ("upf.zip", b"junk"))


REFUSED = {
    ":3.0": "expected an artifact, found none of this name, tag or digest",
    f"@sha256:{'0' * 64}": "name one that is there: oras repo tags",
    "/other:1.0": "expected an artifact, found none of this name, tag or digest",
    ":index": "expected one artifact, found a list of 1: name the digest of one",
    ":list": "expected one artifact, found a list of 2: name the digest of one",
    ":two": "expected an artifact with one file, the package, found b.zip, readme.txt",
    ":image": "each with a name of its own, found 'application/vnd.oci.image.layer.v1.tar'",
    ":junk": "is neither a folder nor a zip file",
    "": "expected oci://HOST/NAME:TAG or oci://HOST/NAME@sha256:DIGEST",
}


def test_what_is_no_package_is_refused_with_what_to_do(
    host: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    push_all(host, tmp_path)
    for name, told in REFUSED.items():
        assert run("install", source := f"oci://{host}/core/upf{name}")[0] == 4, name
        error = capsys.readouterr().err
        assert source in error, name
        assert told in error, name


def test_a_helm_chart_is_refused_with_what_pulls_it(
    host: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with layer() as programs:
        helm = Path(programs.extract("helm/helm", tmp_path))
    helm.chmod(0o755)
    (tmp_path / "upf").mkdir()
    (tmp_path / "upf/Chart.yaml").write_text("{apiVersion: v2, name: upf, version: 1.0.0}")

    def call(*words: str) -> None:
        environment = {"HOME": str(tmp_path), "PATH": ""}
        command = [str(helm), *words]
        subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True)

    call("package", "upf")
    call("push", "upf-1.0.0.tgz", f"oci://{host}/charts", "--plain-http")
    assert run("install", f"oci://{host}/charts/upf:1.0.0")[0] == 4
    (told,) = re.findall(r"fetch it with helm (pull [^,]+), unpack it", capsys.readouterr().err)
    call(*told.split(), "--plain-http", "--untar", "--untardir", "pulled")
    assert (tmp_path / "pulled/upf/Chart.yaml").is_file()


def test_a_registry_with_passwords_gets_that_of_docker_login(
    host: str, start: Start, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    push(host, "1.0", package(tmp_path, "a"))
    (tmp_path / "htpasswd").write_text(HTPASSWD)
    closed = start(auth={"htpasswd": {"realm": "here", "path": str(tmp_path / "htpasswd")}})
    source = f"oci://{closed}/core/upf:1.0"
    for login in ("", base64.b64encode(b"ops:wrong-Zq7").decode()):
        (tmp_path / "config.json").write_text(json.dumps({"auths": {closed: {"auth": login}}}))
        assert run("install", source)[0] == 4
        error = capsys.readouterr().err
        assert f"docker login {closed}" in error
        assert "Zq7" not in error
    (tmp_path / "config.json").write_text(json.dumps({"auths": {closed: {"auth": LOGIN}}}))
    assert run("install", source)[0] == 0


def test_elsewhere_a_registry_is_asked_by_tls_alone_and_has_to_be_trusted(
    host: str,
    start: Start,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    push(host, "1.0", package(tmp_path, "a"))
    authority = trustme.CA()
    issued, pem = authority.issue_cert(ELSEWHERE), str(tmp_path / "server.pem")
    issued.private_key_and_cert_chain_pem.write_to_path(pem)
    authority.cert_pem.write_to_path(str(tmp_path / "authorities.pem"))
    source = (
        f"oci://{start(ELSEWHERE, http={'tls': {'certificate': pem, 'key': pem}})}/core/upf:1.0"
    )
    assert run("install", source)[0] == 4
    assert "SSL_CERT_FILE" in capsys.readouterr().err
    assert run("install", f"oci://{start(ELSEWHERE)}/core/upf:1.0")[0] == 4
    assert "does the server speak plain HTTP alone?" in capsys.readouterr().err
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authorities.pem"))
    assert run("install", source)[0] == 0
