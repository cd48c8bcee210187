# SPDX-License-Identifier: Apache-2.0
"""A VNF package (CSAR, ETSI GS NFV-SOL 004): a folder, a zip, or what Tacker unpacked.

A flat folder of YAML files, or one such file, is read as a package without VNFD and metadata.

Tacker passes a package as a folder: its store of onboarded packages in the v1 API, a temporary copy
in v2. The hash of a file is checked when the file is read, because gigabytes of container images
may be beside the few kilobytes that an update reads. :meth:`Csar.verify` checks all hashes.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import IO

from container_update.model import context_threads
from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.model.objects import Manifest
from container_update.model.options import DEFAULTS, Options, size_text
from container_update.model.requests import PackageIdentity
from container_update.package import archive, csar_metadata, fetch, manifests, signature, vnfd
from container_update.package.csar_metadata import Artifact
from container_update.package.findings import Finding, Reading
from container_update.package.manifests import ReadDocuments
from container_update.package.vnfd import Definitions, Flavour, InterfaceScript

_MOST_SIGNED = 1000
"""Files with a signature of their own, each of which takes a process."""
_LAYOUT = re.compile(r"((?:[^/]+/)*?)(?:(?:TOSCA-Metadata|Files)/|[^/]+\.mf\Z)")
"""A path that only a package has, after the folder in which that is."""
_TEMPLATES = "BaseHOT/"
NO_MANIFESTS = ("Definitions/", "TOSCA-Metadata/", _TEMPLATES, "UserData/", "Scripts/")
"""The folders that only a package has at its root, and that have no manifests."""
_CHART = "Chart.yaml"
"""In the folder of a Helm chart, whose files are no manifests before Helm has rendered them."""


@contextmanager
def open_package(
    source: str, *, options: Options = DEFAULTS, check_hashes: bool = True
) -> Iterator[Csar]:
    """Open a package for a ``with`` block.

    :param source: the path of a folder, of a zip or of a YAML file; ``-`` for standard input.
    :param check_hashes: refuse to read a file that has another hash than the package lists.
    :raises PackageError: it does not exist, is unsafe, exceeds the limits, or its metadata is
        invalid.
    """
    with closing(archive.open_archive(source, options)) as files:
        yield Csar(source, files, options, check_hashes=check_hashes)


def may_have_vnfd(source: str) -> bool:
    """Tell, without opening a package, whether it may have a VNFD; mere manifests have none."""
    path = Path(source)
    return (
        (os.path.isfile(source) and not source.endswith(archive.MANIFEST_ENDINGS))
        or os.path.isfile(path / csar_metadata.TOSCA_META)
        or next(path.glob("*.mf"), None) is not None
    )


class Csar:
    """An opened package."""

    source: str
    """The path it was opened from."""
    entry_definitions: str
    """The path of the VNFD; '' if the package has none."""
    artifacts: tuple[Artifact, ...]
    """The files that the metadata lists, in order."""
    reading: Reading
    """What the YAML files hold that were parsed so far."""

    def __init__(
        self, source: str, files: archive.Archive, options: Options, *, check_hashes: bool = True
    ) -> None:
        self.source = source
        self._check_hashes = check_hashes
        self.options = options
        self.reading = Reading()
        self._files = files
        self._manifest = self._certificate = ""
        metadata = self._metadata()
        self.entry_definitions = metadata.entry_definitions
        self.artifacts = metadata.artifacts
        self._findings = metadata.findings
        self._check_urls()
        self._listed = {artifact.file: artifact for artifact in self.artifacts}
        signed = [each.signed for each in self.artifacts if each.signed]
        if len(signed) > _MOST_SIGNED:
            raise PackageError(
                f"{source}: expected at most {_MOST_SIGNED} files with a signature of their own, "
                f"found {len(signed)}: sign the manifest"
            )
        names = [name for each in signed for name in (each.signature, each.certificate)]
        self._of_files = {csar_metadata.shortest(name) for name in names}
        is_signed = files.is_signed or self._manifest or signed
        if is_signed and not options.signature_ca:
            message = "the package is signed, but no trusted CA is configured (signature_ca)"
            advice = "name those whose signatures are trusted, by the option signature_ca"
            self._findings += (Finding.note(self._manifest or source, message, advice),)
        if options.signature_ca and not files.is_signed:
            self._expect_signed_files()

    def _expect_signed_files(self) -> None:
        """Refuse a package of which not every file has a hash in a signed manifest."""
        if not self._manifest:
            raise PackageError(
                f"{self.source}: expected a signed package (option signature_ca), found no "
                "signature in its manifest, none beside it, and none with it in a zip"
            )
        of_metadata = {self._manifest} | self._of_files
        if self._certificate.endswith(signature.ENDINGS):  # or it might be a def-file, or a chart's
            of_metadata.add(self._certificate)
        if not self.entry_definitions:  # or it would choose the VNFD, with what that leaves out
            of_metadata.add(csar_metadata.TOSCA_META)
        for name in self.names():
            listed = self._listed.get(name)
            if name not in of_metadata and not (listed and (listed.hash or listed.signed)):
                raise PackageError(
                    f"{name} in {self.source}: expected its hash in the signed {self._manifest} "
                    "(option signature_ca), found none: list it there and sign that again"
                )
        self.verify()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is unusual in the files that were read so far."""
        return self._findings + self.reading.findings

    def names(self) -> Sequence[str]:
        """Return the paths of all files, sorted."""
        return self._names

    @cached_property
    def _names(self) -> Sequence[str]:
        return self._files.names()

    def has(self, path: str) -> bool:
        """Return whether the package has the file; a URL is assumed to exist."""
        return fetch.is_url(path) or self._files.has(path)

    def read(self, path: str) -> bytes:
        """Return the content of a file of the package, or of a URL; check its hash if listed.

        :raises PackageError: it is missing, too big, leads out of the package, or has another hash.
        """
        content = self._fetch(path).getvalue() if fetch.is_url(path) else self._read_file(path)
        if artifact := self._artifact_to_check(path):
            self._check(artifact, io.BytesIO(content))
        return content

    def _fetch(self, url: str) -> io.BytesIO:
        """Return the content of a URL; PackageError where nothing that is signed has its hash."""
        listed = self._listed.get(csar_metadata.shortest(url))
        if self.options.signature_ca and not (listed and (listed.hash or listed.signed)):
            raise PackageError(
                f"{url} of {self.source}: expected its hash in what is signed (option "
                "signature_ca), found none: a URL may have other content at any time: list it in "
                "the manifest with its hash and sign that again, or put the file into the package"
            )
        return io.BytesIO(fetch.fetch(url, self.options))

    def _artifact_to_check(self, path: str) -> Artifact | None:
        """Return the entry of a file whose hash or signature is to be checked."""
        artifact = self._listed.get(csar_metadata.shortest(path)) if self._check_hashes else None
        return artifact if artifact and (artifact.hash or artifact.signed) else None

    def verify(self) -> None:
        """Check every hash and signature that the metadata lists, those of URLs too.

        :raises PackageError: for the first file that is missing or has another one.
        """
        for artifact in self.artifacts:
            self.check_hash(artifact)

    def check_hash(self, artifact: Artifact) -> None:
        """Check that a listed file, or URL, is there and has its hash and its signature.

        :raises PackageError: it is missing, or has another one.
        """
        if fetch.is_url(artifact.path):
            self._check(artifact, self._fetch(artifact.path))
        else:
            with self._files.open(artifact.path) as file:
                self._check(artifact, file)

    def _check(self, artifact: Artifact, file: IO[bytes]) -> None:
        """Compare all of a file with its hash, and with its signature."""
        self._compare(artifact, fetch.digest_of(file, artifact.algorithm or "sha256"))
        if signed := artifact.signed:
            what = (
                f"{signed.at}: the signature {signed.signature} of {artifact.path} in {self.source}"
            )
            made, of = self._named_at(signed.at, signed.signature), signed.certificate
            by = self._named_at(signed.at, of) if of else b""
            file.seek(0)
            signature.check(what, file, made, by, self.options)

    def _named_at(self, at: str, path: str) -> bytes:
        """Return the content of a file that a line of the metadata names."""
        try:
            return self._read_file(path)
        except PackageError as error:
            raise PackageError(f"{at}: {error}") from error

    def sha256(self) -> str:
        """Return the hash of the package, in hexadecimal digits."""
        return self._files.sha256()

    def manifest_files(self) -> Sequence[str]:
        """Return the listed files that may hold Kubernetes manifests, in listed order.

        If the package lists no files: those below ``Files/``, sorted; all of a flat folder.
        """
        listed: Iterable[str] = (artifact.path for artifact in self.artifacts)
        if self.is_flat:
            listed = (name for name in self._names if not _is_hidden(name))
        elif not self.artifacts:
            listed = (name for name in self._names if name.startswith("Files/"))
        return tuple(path for path in listed if self.may_hold_manifests(path))

    @cached_property
    def is_flat(self) -> bool:
        """The package is a folder of manifests, or one file with them: nothing says more of it."""
        return not (self.artifacts or self.entry_definitions or self.packages_inside)

    @cached_property
    def packages_inside(self) -> tuple[str, ...]:
        """The folders that are laid out as a package, each with / at its end; '' is the root."""
        matches = (_LAYOUT.match(name) for name in self._names if not _is_hidden(name))
        return tuple(dict.fromkeys(match[1] for match in matches if match))

    def manifests(
        self, path: str, default_namespace: str, known: ReadDocuments | None = None
    ) -> tuple[Manifest, ...]:
        """Return the objects of a def-file, in order.

        :param known: as in :func:`~container_update.package.manifests.parse`.
        :raises PackageError: it cannot be read, or is invalid.
        """
        text = self.read(path)
        try:
            return manifests.parse(
                text,
                path,
                default_namespace,
                options=self.options,
                reading=self.reading,
                known=known,
            )
        except PackageError as error:
            if fetch.is_url(path):
                raise
            # the other package may have such a file too
            raise PackageError(f"{self.source}: {error}") from error

    def vdus(self, flavour_id: str | None = None) -> Mapping[str, str]:
        """Return the name of each VDU's workload (the node's ``properties.name``), by VDU id.

        :param flavour_id: the deployment flavour; None: all that the VNFD imports.
        :raises PackageError: toscaparser does not accept the VNFD, it has no such flavour, or two
            flavours give a VDU different names.
        """
        vdus: dict[str, str] = {}
        for flavour in self._flavours_with(flavour_id):
            for vdu_id, name in flavour.vdus.items():
                if vdus.setdefault(vdu_id, name) != name:
                    raise PackageError(
                        f"{self.source}: {vdu_id} has the name {vdus[vdu_id]} in one flavour and "
                        f"{name} in the flavour {flavour.id}: specify the flavour"
                    )
        return vdus

    @cached_property
    def flavours(self) -> tuple[Flavour, ...]:
        """The deployment flavours; empty if the package has no VNFD."""
        if not self.entry_definitions:
            return ()
        return vnfd.flavours(self.definitions, self.options)

    @property
    def imported_flavours(self) -> Sequence[Flavour]:
        """Those that the VNFD imports, if it imports any: they stand for the VNF where a request
        names no flavour. Others are only in its folder."""
        imported = [each for each in self.flavours if each.path in self.definitions.imported]
        return imported or self.flavours

    @cached_property
    def definitions(self) -> Definitions:
        """The files of the VNFD, which the package must have."""
        return vnfd.load(self.entry_definitions, self.read, self.names, self.options, self.reading)

    @property
    def vnfd_id(self) -> str:
        """The VNFD's id (``descriptor_id``); '' if the package has none."""
        return next((flavour.vnfd_id for flavour in self.flavours if flavour.vnfd_id), "")

    def interface_scripts(self, flavour_id: str | None = None) -> Mapping[str, InterfaceScript]:
        """Return each operation's script by its name; no flavour: of all that is imported."""
        flavours = self._flavours_with(flavour_id)
        return {name: script for flavour in flavours for name, script in flavour.scripts.items()}

    def _flavours_with(self, flavour_id: str | None) -> Sequence[Flavour]:
        if flavour_id is None or not self.flavours:
            return self.imported_flavours
        flavours = [flavour for flavour in self.flavours if flavour.id == flavour_id]
        if not flavours:
            known = ", ".join(flavour.id for flavour in self.flavours)
            raise PackageError(
                f'{self.source}: expected one of the flavours {known}, found "{flavour_id}"'
            )
        return flavours

    def may_hold_manifests(self, path: str) -> bool:
        """Tell by the path of a file, or by a URL, whether it may hold Kubernetes manifests."""
        if fetch.is_url(path):
            return path.partition("?")[0].endswith(archive.MANIFEST_ENDINGS)
        normal = csar_metadata.shortest(path)
        beside_vnfd = posixpath.dirname(normal) == posixpath.dirname(self.entry_definitions)
        if self.entry_definitions and beside_vnfd:
            return False
        is_elsewhere = not normal.startswith((*NO_MANIFESTS, *self.charts))
        return normal.endswith(archive.MANIFEST_ENDINGS) and is_elsewhere

    @cached_property
    def charts(self) -> tuple[str, ...]:
        """The folders of Helm charts, each with / at its end; '' is the root."""
        return tuple(
            name.removesuffix(_CHART) for name in self._names if posixpath.basename(name) == _CHART
        )

    @cached_property
    def has_templates(self) -> bool:
        """The package is for virtual machines: it has HEAT templates."""
        return any(name.startswith(_TEMPLATES) for name in self._names)

    def _read_file(self, path: str) -> bytes:
        size, limit = self._files.size(path), self.options.def_file_bytes
        if size > limit:
            raise PackageError(
                f"{path} in {self.source}: expected at most {size_text(limit)} (option "
                f"def_file_bytes), found {size_text(size)}"
            )
        with self._files.open(path) as file:
            return file.read(size + 1)

    def _compare(self, artifact: Artifact, digest: str) -> None:
        if artifact.hash and digest != artifact.hash:
            raise PackageError(
                f"{artifact.path} in {self.source}: expected the {artifact.algorithm} hash "
                f"{artifact.hash} of {artifact.hash_at}, found {digest}: the file was changed "
                "after the package was built; build the package again, or write the found hash "
                "there if the change is meant"
            )

    def _check_urls(self) -> None:
        urls = [artifact.path for artifact in self.artifacts if fetch.is_url(artifact.path)]
        limit = self.options.package_urls
        if len(urls) > limit:
            raise PackageError(
                f"{self.source}: expected at most {limit} URLs in its metadata (option "
                f"package_urls), found {len(urls)}: put the files into the package"
            )

    def _metadata(self) -> csar_metadata.Metadata:
        """Read TOSCA.meta and the manifest it names, or else the manifest at the root."""
        if not self._files.has(csar_metadata.TOSCA_META):
            return self._root_manifest()
        content = self._read_file(csar_metadata.TOSCA_META)
        metadata = csar_metadata.parse(content, csar_metadata.TOSCA_META)
        if not metadata.entry_manifest:
            return metadata
        path = metadata.entry_manifest
        if not self._files.has(path):
            raise PackageError(
                f"{csar_metadata.TOSCA_META} in {self.source} names {path}: no such file"
            )
        manifest = self._read_signed(path, metadata.entry_certificate)
        unsigned = () if self.options.signature_ca else metadata.artifacts
        return replace(
            metadata,
            artifacts=csar_metadata.merge(manifest.artifacts + unsigned),
            findings=metadata.findings + manifest.findings,
        )

    def _root_manifest(self) -> csar_metadata.Metadata:
        """Read a package without TOSCA-Metadata: a VNFD and its manifest at the root (SOL004)."""
        at_root = [name for name in self._files.names() if "/" not in name]
        manifests = [name for name in at_root if name.endswith(".mf")]
        if not manifests:
            return csar_metadata.Metadata()
        if len(manifests) > 1:
            raise PackageError(
                f"{self.source}: expected one manifest at the root, found {', '.join(manifests)}"
            )
        (path,) = manifests
        names = [path.removesuffix(".mf") + ending for ending in (".yaml", ".yml")]
        entry = next((name for name in names if name in at_root), None)
        if entry is None:
            raise PackageError(f"{self.source}: expected the VNFD {names[0]} beside {path}")
        return replace(self._read_signed(path), entry_definitions=entry)

    def _read_signed(self, path: str, certificate: str = "") -> csar_metadata.Metadata:
        """Read a manifest; check its signature, by this certificate or that of its name."""
        text = self._read_file(path)
        said, signed = csar_metadata.signature_in(text)
        if signed:
            certificate = certificate or posixpath.splitext(path)[0] + ".cert"
            beside = self._read_file(certificate) if self._files.has(certificate) else b""
            what = f"the signature in {path} of {self.source}"
            signature.check(what, io.BytesIO(said), signed, beside, self.options)
            self._manifest, self._certificate = path, certificate
        return csar_metadata.parse(said, path)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


# --- what identifies a package for people: product, version, hash -------------------------------


def identity_of(package: Csar) -> PackageIdentity:
    """Return what identifies an opened package; PackageError where a file of it cannot be read."""
    try:
        product = next((dict(f.product) for f in package.flavours if f.product), {})
    except PackageError:
        product = {}  # an old package may be one that would not be accepted today
    version = product.get("software_version") or product.get("descriptor_version", "")
    name = product.get("product_name", "")
    return PackageIdentity(package.source, name, version, package.sha256())


def identities_of(
    old: Csar | PackageIdentity | None, new: Csar, after: Callable[[], object] = lambda: None
) -> Callable[[], tuple[PackageIdentity, ...]]:
    """Begin to read what identifies two opened packages; return what waits for it.

    It is read beside everything else: most of the time a process parses the VNFD.

    :param old: the old package, or which it was; None: that is not known.
    :param after: waits until another thread has read the VNFD of the new one.
    :returns: a function that returns both; () where one of them cannot be read, which the operation
        says in its own words.
    """

    def read() -> tuple[PackageIdentity, ...]:
        before = identity_of(old) if isinstance(old, Csar) else old
        after()
        return (before, identity_of(new)) if before else ()

    reading = context_threads.in_background(read)

    def result() -> tuple[PackageIdentity, ...]:
        try:
            return reading()
        except (ContainerUpdateError, OSError):
            return ()

    return result
