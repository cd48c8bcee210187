# SPDX-License-Identifier: Apache-2.0
"""Packages in an OCI registry: ``oci://HOST/NAME:TAG``, as ``oras push`` puts a file there.

The requests go through :mod:`container_update.package.fetch`, with its limits on host, address,
time and size; the clients on PyPI have none of these, and compare no digest. Who asks is what
``docker login`` has written down.

Sources: the OCI Distribution Specification 1.1; Docker's token authentication.
"""

from __future__ import annotations

import base64
import io
import json
import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which
from typing import IO, Any, BinaryIO
from urllib.parse import urlencode

from container_update.model import programs
from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.model.schema import MAPPING, TEXT, Fields, ListOf
from container_update.package import fetch, signature

SCHEME = "oci://"
_REFERENCE = re.compile(
    r"oci://(?P<host>[a-z0-9.-]+|\[[0-9a-f:]+\])(?P<port>:\d+)?/(?P<name>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json, "
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json"
)
"""Lists of manifests too: a registry says that it has none, or chooses for whom does not ask."""
_CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_TITLE = "org.opencontainers.image.title"
"""The annotation with the name of a file."""
_DIGEST = re.compile(r"(sha256|sha512):([0-9a-f]{64,128})")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""Registries that may speak plain HTTP, as to Docker."""
_NAME = re.compile(r"[\w.][\w. ()+@-]{0,199}(?<!\.)")
_MOST_FILES = 10
_MIB = 1024**2
_LARGEST_MANIFEST = 4 * _MIB
"""In bytes; the specification lets a registry refuse more."""
_HELPER_SECONDS = 30.0
_NO_DOCUMENT = (ValueError, RecursionError, AttributeError, KeyError, TypeError)
"""The errors of reading a JSON document that another program wrote."""
_FILE = Fields({"digest": TEXT, "annotations": MAPPING}, frozenset({"digest"}))
_MANIFEST = Fields({"layers": ListOf(_FILE)}, frozenset({"layers"}))
_INDEX = Fields({"manifests": ListOf(_FILE)}, frozenset({"manifests"}))


@dataclass(frozen=True)
class _Repository:
    """A repository of a registry, with the credentials for it."""

    source: str
    host: str
    address: str
    """The URL before ``/manifests`` and ``/blobs``."""
    options: Options

    def read(self, path: str, limit: int) -> bytes:
        """Return a document of at most so many bytes."""
        content = io.BytesIO()
        self.read_into(content, path, limit)
        return content.getvalue()

    def read_into(self, target: BinaryIO, path: str, limit: int) -> None:
        """Write a document to a file; log in if the registry asks for that."""
        url, options = f"{self.address}/{path}", replace(self.options, url_bytes=limit)
        headers = {"Accept": f"{_MANIFESTS}, */*"}
        try:
            fetch.fetch_into(target, url, options, headers, elsewhere=True)
        except fetch.UnauthorizedError as error:
            headers["Authorization"] = self._login(error)
            try:
                fetch.fetch_into(target, url, options, headers, elsewhere=True)
            except fetch.UnauthorizedError as refused:
                raise self._no_login(refused) from refused

    def _login(self, error: fetch.UnauthorizedError) -> str:
        """Return the header that the registry asks for in its refusal."""
        user = credentials(self.host)
        kind, _, rest = error.challenge.partition(" ")
        if kind.lower() == "basic" and user:
            return user
        asked = dict(_CHALLENGE.findall(rest))
        realm = asked.pop("realm", "")
        is_safe = realm.startswith(("https://", self.address.partition("/v2/")[0] + "/"))
        if kind.lower() != "bearer" or not is_safe:
            raise self._no_login(error)
        query = urlencode({name: asked[name] for name in ("service", "scope") if name in asked})
        options, content = replace(self.options, url_bytes=_LARGEST_MANIFEST), io.BytesIO()
        headers = {"Authorization": user} if user else fetch.NO_HEADERS
        try:
            fetch.fetch_into(content, f"{realm}?{query}", options, headers)
            answer = json.loads(content.getvalue())
            token = answer.get("token") or answer["access_token"]
        except (fetch.UnauthorizedError, *_NO_DOCUMENT) as refused:
            raise self._no_login(refused) from refused
        return f"Bearer {token}"

    def _no_login(self, error: Exception) -> PackageError:
        return PackageError(
            f"{self.source} cannot be fetched: the registry wants another login than the file "
            f"{_docker_config()} has for {self.host}: docker login {self.host} writes it ({error})"
        )


def pull(source: str, folder: Path, options: Options) -> Path:
    """Fetch the files of an artifact into a folder; return the package among them.

    :param source: ``oci://HOST/NAME:TAG`` or ``oci://HOST/NAME@sha256:...``.
    :raises PackageError: it cannot be fetched, has not one package, or has another digest.
    """
    match = _REFERENCE.fullmatch(source)
    if match is None or not (match["tag"] or match["digest"]):
        raise PackageError(
            f"{source!a}: expected oci://HOST/NAME:TAG or oci://HOST/NAME@sha256:DIGEST"
        )
    host = f"{match['host']}{match['port'] or ''}"
    scheme = "http" if match["host"] in _LOOPBACK else "https"
    repository = _Repository(source, host, f"{scheme}://{host}/v2/{match['name']}", options)
    try:
        content = repository.read(f"manifests/{match['digest'] or match['tag']}", _LARGEST_MANIFEST)
    except fetch.NotFoundError as error:
        raise PackageError(
            f"{source}: expected an artifact, found none of this name, tag or digest ({error}): "
            f"name one that is there: oras repo tags {host}/{match['name']}"
        ) from error
    if match["digest"]:
        _compare(source, match["digest"], io.BytesIO(content))
    files = _files(source, content)
    left = options.package_bytes
    for name, digest in files.items():
        with (folder / name).open("w+b") as file:
            repository.read_into(file, f"blobs/{digest}", left)
            left -= file.tell()
            file.seek(0)
            _compare(source, digest, file)
    # signatures lie beside the package
    packages = [name for name in files if not name.endswith(signature.ENDINGS)]
    if len(packages) != 1:
        raise PackageError(
            f"{source}: expected an artifact with one file, the package, found "
            f"{', '.join(packages) or 'none'}: oras push {source.removeprefix(SCHEME)} FILE.zip"
        )
    return folder / packages[0]


def _files(source: str, content: bytes) -> Mapping[str, str]:
    """Return the digest of each file of a manifest, by the file's name."""
    try:
        manifest: Any = json.loads(content)
    except (ValueError, RecursionError):
        manifest = None
    if _INDEX.first_violation(manifest) is None:
        raise PackageError(
            f"{source}: expected one artifact, found a list of {len(manifest['manifests'])}: name "
            f"the digest of one, as oras manifest fetch {source.removeprefix(SCHEME)} shows them"
        )
    wrong = _MANIFEST.first_violation(manifest)
    if wrong is not None:
        raise PackageError(f"{source}: expected the manifest of an artifact with files: {wrong}")
    files: dict[str, str] = {}
    for layer in manifest["layers"]:
        title, kind = (layer.get("annotations") or {}).get(_TITLE), layer.get("mediaType")
        name, digest = posixpath.basename(str(title or "package.zip")), layer["digest"]
        if kind == _CHART:
            raise PackageError(
                f"{source}: expected a package, found a Helm chart: fetch it with helm pull "
                f"{source}, unpack it, then name its folder"
            )
        if not _NAME.fullmatch(name) or name in files or len(files) == _MOST_FILES:
            raise PackageError(
                f"{source}: expected at most {_MOST_FILES} files, each with a name of its own, "
                f"found {str(title or kind)[:80]!a}"
            )
        if not _DIGEST.fullmatch(digest):
            raise PackageError(f"{source}: expected a digest of {name}, found {digest[:80]!a}")
        files[name] = digest
    return files


def _compare(source: str, expected: str, file: IO[bytes]) -> None:
    algorithm = expected.partition(":")[0]
    if expected != (digest := f"{algorithm}:{fetch.digest_of(file, algorithm)}"):
        raise PackageError(f"{source}: expected what has the digest {expected}, found {digest}")


# --- credentials --------------------------------------------------------------------------------


def credentials(host: str) -> str:
    """Return the header with what ``docker login`` has written down for a registry; '' for none.

    :raises PackageError: the file, or the program that it names, is of no use.
    """
    path = _docker_config()
    try:
        config = json.loads(path.read_bytes())
        helper = config.get("credHelpers", {}).get(host) or config.get("credsStore")
        pair = config.get("auths", {}).get(host, {}).get("auth")
    except FileNotFoundError:
        return ""
    except (OSError, *_NO_DOCUMENT) as error:
        problem = f"expected the JSON that docker login writes: {type(error).__name__}"
        raise PackageError(f"{path}: {problem}") from error
    if helper and not pair:
        pair = _from_helper(f"docker-credential-{helper}", host)
    return f"Basic {pair}" if pair else ""


def _docker_config() -> Path:
    return Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"


def _from_helper(program: str, host: str) -> str:
    """Return what a program of Docker's keeps; '' where it has nothing for this registry."""
    path = which(program)
    if path is None:
        raise PackageError(
            f"{_docker_config()}: expected the program {program} in PATH, found none"
        )
    try:
        ran = programs.run(
            programs.DOCKER_CREDENTIAL,
            path,
            ["get"],
            content=host.encode(),
            seconds=_HELPER_SECONDS,
        )
        if ran.returncode:
            return ""  # so it says that it has none
        login = json.loads(ran.stdout)
        pair = f"{login['Username']}:{login['Secret']}"
    except (OSError, programs.SubprocessError, *_NO_DOCUMENT) as error:
        raise PackageError(f"{program} does not work: {type(error).__name__}") from error
    return base64.b64encode(pair.encode()).decode()
