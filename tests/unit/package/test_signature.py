# SPDX-License-Identifier: Apache-2.0
"""Signatures of packages (SOL004): what is accepted, and what was changed or signed by others."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7
from cryptography.x509.oid import NameOID

from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.package import csar
from tests.needs import OPENSSL
from tests.packages import CONFIG_MAP, block, write_folder, write_zip

pytestmark = OPENSSL
A = "Files/a.yaml"
DER, PEM = Encoding.DER, Encoding.PEM


@dataclass(frozen=True)
class Party:
    """Somebody who signs packages, and vouches for who does."""

    name: str
    issuer: Party | None = None
    days: int = 1

    @cached_property
    def key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(65537, 2048)

    @cached_property
    def certificate(self) -> x509.Certificate:
        named = [
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each.name)])
            for each in (self, self.issuer or self)
        ]
        now = datetime.datetime.now(datetime.timezone.utc)
        made = x509.CertificateBuilder(
            named[1], named[0], self.key.public_key(), 7 + len(self.name)
        )
        ends = now + datetime.timedelta(days=self.days)
        made = made.not_valid_before(now - datetime.timedelta(days=9)).not_valid_after(ends)
        made = made.add_extension(x509.BasicConstraints(self.issuer is None, None), critical=True)
        return made.sign((self.issuer or self).key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(PEM).decode()

    def sign(self, content: bytes, form: Encoding = DER, *, names: bool = True) -> bytes:
        """Return a detached signature."""
        options = [pkcs7.PKCS7Options.DetachedSignature, pkcs7.PKCS7Options.Binary]
        options += [] if names else [pkcs7.PKCS7Options.NoCerts]
        builder = pkcs7.PKCS7SignatureBuilder().set_data(content)
        return builder.add_signer(self.certificate, self.key, hashes.SHA256()).sign(form, options)


AUTHORITY = Party("authority")
VENDOR, STRANGER = Party("vendor", AUTHORITY), Party("stranger")


@pytest.fixture
def trusted(tmp_path: Path) -> Options:
    (tmp_path / "authorities.pem").write_text(AUTHORITY.pem)
    return Options(signature_ca=str(tmp_path / "authorities.pem"), require_signature=True)


def read(source: str, options: Options) -> list[str]:
    with csar.open_package(source, options=options) as package:
        files = package.manifest_files()
        return [str(each.key) for file in files for each in package.manifests(file, "core")]


def refusal(source: str, options: Options) -> str:
    with pytest.raises(PackageError) as caught:
        read(source, options)
    return str(caught.value)


# --- each way to sign ---------------------------------------------------------------------------


def beside(
    folder: Path, signer: Party = VENDOR, form: Encoding = DER, name: str = "upf.p7s"
) -> str:
    source = write_zip(folder / "upf.zip", {A: CONFIG_MAP})
    (folder / name).write_bytes(signer.sign(Path(source).read_bytes(), form))
    return source


def file_beside(folder: Path, signer: Party = VENDOR) -> str:
    source = write_folder(folder, {"upf.yaml": CONFIG_MAP}) + "/upf.yaml"
    (folder / "upf.yaml.cms").write_bytes(signer.sign(CONFIG_MAP.encode(), PEM))
    return source


def in_zip(folder: Path, signer: Party = VENDOR) -> str:
    inner = Path(write_zip(folder / "upf.csar", {A: CONFIG_MAP}))
    signed = signer.sign(inner.read_bytes(), PEM, names=False).decode()

    outer = folder / "outer.zip"
    with zipfile.ZipFile(outer, "w") as packed:
        packed.write(inner, "upf.csar")
        packed.writestr("upf.cms", signed)
        packed.writestr("upf.cert", signer.pem)
    inner.unlink()
    return str(outer)


def in_manifest(
    folder: Path, signer: Party = VENDOR, files: dict[str, str] | None = None, own: str = ""
) -> str:
    said = f"metadata:\n  vnf_product_name: upf\n{block(A, CONFIG_MAP, name='Source')}"
    signed = signer.sign(said.encode(), PEM).decode()
    meta = "TOSCA-Meta-File-Version: 1.0\nETSI-Entry-Manifest: upf.mf\n" + own
    all_files = {"TOSCA-Metadata/TOSCA.meta": meta, "upf.mf": said + signed, A: CONFIG_MAP}
    return write_folder(folder / "unpacked", {**all_files, **(files or {})})


WAYS: dict[str, Callable[..., str]] = {
    "a file beside the zip": beside,
    "a file beside the YAML file": file_beside,
    "a zip with both": in_zip,
    "the manifest": in_manifest,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_package_that_a_trusted_party_signed_is_read(
    way: str, tmp_path: Path, trusted: Options
) -> None:
    source = WAYS[way](tmp_path)
    assert read(source, trusted) == read(source, Options()) == ["ConfigMap core/c"]


@pytest.mark.parametrize("way", WAYS)
def test_a_signature_of_a_stranger_counts_only_where_nobody_is_trusted(
    way: str, tmp_path: Path, trusted: Options
) -> None:
    source = WAYS[way](tmp_path, STRANGER)
    assert "expected the signature" in refusal(source, trusted)
    with csar.open_package(source) as package:
        assert any("nobody says whose" in finding.message for finding in package.findings)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_changed_after_it_was_signed_is_refused_by_everybody(
    way: str, tmp_path: Path
) -> None:
    source = Path(WAYS[way](tmp_path))
    if way == "a zip with both":
        write_zip(tmp_path / "upf.csar", {A: CONFIG_MAP.replace("v}", "x}")})
        content = (tmp_path / "upf.csar").read_bytes()

        with zipfile.ZipFile(source) as packed:
            others = {name: packed.read(name) for name in ("upf.cms", "upf.cert")}
        with zipfile.ZipFile(source, "w") as packed:
            for name, body in {**others, "upf.csar": content}.items():
                packed.writestr(name, body)
    elif way == "the manifest":
        manifest = source / "upf.mf"
        manifest.write_bytes(manifest.read_bytes().replace(b": upf", b": amf", 1))
    else:
        source.write_bytes(source.read_bytes().replace(b"Files", b"Filez") + b"\n")
    said = refusal(str(source), Options())
    assert "expected the signature" in said
    assert Path(source).name in said


@pytest.mark.parametrize(("form", "name"), [(PEM, "upf.zip.cms"), (DER, "upf.cms")])
def test_a_signature_has_either_form_and_either_name(
    form: Encoding, name: str, tmp_path: Path, trusted: Options
) -> None:
    assert read(beside(tmp_path, VENDOR, form, name), trusted)


def test_a_certificate_that_has_ended_is_not_trusted(tmp_path: Path, trusted: Options) -> None:
    ended = Party("ended", AUTHORITY, days=-1)
    assert "expected the signature" in refusal(beside(tmp_path, ended), trusted)


@pytest.mark.parametrize("signature", [b"", b"junk", b"-----BEGIN CMS-----\njunk\n", b"\0" * 999])
def test_what_is_no_signature_is_refused(signature: bytes, tmp_path: Path) -> None:
    source = beside(tmp_path)
    (tmp_path / "upf.p7s").write_bytes(signature)
    assert "upf.p7s beside" in refusal(source, Options())


# --- packages that have to be signed ------------------------------------------------------------


def test_an_unsigned_package_is_refused_where_that_is_asked_for(
    tmp_path: Path, trusted: Options
) -> None:
    source = write_zip(tmp_path / "upf.zip", {A: CONFIG_MAP})
    assert read(source, Options(signature_ca=trusted.signature_ca))
    assert "expected a signed package (option require_signature)" in refusal(source, trusted)
    with pytest.raises(ValueError, match="signature_ca"):
        Options(require_signature=True)


OTHER = {"Files/b.yaml": CONFIG_MAP}
UNLISTED = {
    "a file that nobody lists": (OTHER, ""),
    "a file that only TOSCA.meta lists": (OTHER, block("Files/b.yaml", CONFIG_MAP)),
}


@pytest.mark.parametrize("name", UNLISTED)
def test_with_a_signed_manifest_is_refused(name: str, tmp_path: Path, trusted: Options) -> None:
    source = in_manifest(tmp_path, VENDOR, *UNLISTED[name])
    assert "Files/b.yaml in" in refusal(source, trusted)
    assert read(source, Options())


def test_a_file_that_is_not_what_the_signed_manifest_says_is_refused(
    tmp_path: Path, trusted: Options
) -> None:
    source = in_manifest(tmp_path, VENDOR, {A: CONFIG_MAP + "\n"})
    assert "expected the sha256 hash" in refusal(source, trusted)
