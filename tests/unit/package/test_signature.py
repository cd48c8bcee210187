# SPDX-License-Identifier: Apache-2.0
"""Signatures of packages (SOL004): what is accepted, and what was changed or signed by others."""

from __future__ import annotations

import datetime
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs7,
)
from cryptography.x509.oid import NameOID

from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.package import csar
from container_update.package.signature import _parts as values_of
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
    bits: int = 2048

    @cached_property
    def key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(65537, self.bits)

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
    return Options(signature_ca=str(tmp_path / "authorities.pem"))


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
        assert any("no trusted CA is configured" in finding.message for finding in package.findings)


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


def test_a_key_that_can_be_broken_is_not_trusted(tmp_path: Path, trusted: Options) -> None:
    source = beside(tmp_path, Party("weak", AUTHORITY, bits=1024))
    assert "certificate verify error" in refusal(source, trusted)


def test_a_certificate_that_has_ended_is_not_trusted(tmp_path: Path, trusted: Options) -> None:
    ended = Party("ended", AUTHORITY, days=-1)
    assert "expected the signature" in refusal(beside(tmp_path, ended), trusted)


def sign_with(digest: str, folder: Path, form: str = "DER") -> bytes:
    """Return what the vendor signs upf.zip with, by a digest that may be broken."""
    key = VENDOR.key.private_bytes(PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    (folder / "vendor.pem").write_text(VENDOR.pem + key)
    words = f"cms -sign -binary -in upf.zip -signer vendor.pem -md {digest} -outform {form}"
    made = subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
    return made.stdout


@pytest.mark.parametrize("form", ["DER", "PEM"])
@pytest.mark.parametrize("digest", ["md5", "sha1", "ripemd160", "sha256", "sha512", "sha3-256"])
def test_a_signature_of_a_broken_digest_is_refused(
    digest: str, form: str, tmp_path: Path, trusted: Options
) -> None:
    source = beside(tmp_path)
    (tmp_path / "upf.p7s").write_bytes(sign_with(digest, tmp_path, form))
    for options in (trusted, Options()):
        if digest.startswith(("sha2", "sha5", "sha3")):
            assert read(source, options) == ["ConfigMap core/c"]
        else:
            assert "a digest of SHA-2 or SHA-3" in refusal(source, options)


def der(tag: int, *parts: tuple[int, bytes]) -> tuple[int, bytes]:
    """Return a constructed value of ASN.1 (X.690, 8.1.3: lengths of two bytes are enough here)."""
    values = (bytes([name, 0x82]) + len(each).to_bytes(2, "big") + each for name, each in parts)
    return tag, b"".join(values)


def test_a_strong_digest_that_a_signature_only_names_does_not_help_a_broken_one(
    tmp_path: Path, trusted: Options
) -> None:
    source = beside(tmp_path)
    broken, strong = (
        values_of(values_of(values_of(sign_with(name, tmp_path))[0][1])[1][1])[0][1]
        for name in ("sha1", "sha256")
    )
    version, (tag, digests), *others = values_of(broken)
    both = der(tag, *values_of(digests), *values_of(values_of(strong)[1][1]))
    kind, _ = values_of(values_of(sign_with("sha1", tmp_path))[0][1])
    signed = der(0x30, kind, der(0xA0, der(0x30, version, both, *others)))
    (tmp_path / "upf.p7s").write_bytes(der(0, signed)[1])
    assert "a digest of SHA-2 or SHA-3" in refusal(source, trusted)


def test_a_signature_of_more_than_a_mebibyte_is_none(tmp_path: Path, trusted: Options) -> None:
    source = beside(tmp_path, form=PEM)
    signature = (tmp_path / "upf.p7s").read_bytes()
    (tmp_path / "upf.p7s").write_bytes(signature.ljust(1024**2, b"\n"))
    assert read(source, trusted)
    (tmp_path / "upf.p7s").write_bytes(signature.ljust(1024**2 + 1, b"\n"))
    assert "expected a signed package" in refusal(source, trusted)


def test_the_authorities_of_the_system_are_none_of_signatures(
    tmp_path: Path, trusted: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their certificates are for web servers, and anybody gets one of them."""
    store = tmp_path / "store"
    store.mkdir()
    (store / "stranger.pem").write_text(STRANGER.pem)
    subprocess.run(["openssl", "rehash", str(store)], check=True)
    monkeypatch.setenv("SSL_CERT_DIR", str(store))
    monkeypatch.setenv("SSL_CERT_FILE", str(store / "stranger.pem"))
    customer = Party("customer", STRANGER)
    assert "expected the signature" in refusal(beside(tmp_path, customer), trusted)


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
    assert read(source, Options())
    assert "expected a signed package" in refusal(
        source, Options(signature_ca=trusted.signature_ca)
    )
    assert "expected a signed package (option signature_ca)" in refusal(source, trusted)
    with pytest.raises(ValueError, match="signature_ca"):
        Options(require_signature=True)


def test_authorities_that_are_not_there_are_named(tmp_path: Path) -> None:
    source = beside(tmp_path)
    told = refusal(source, Options(signature_ca=str(tmp_path / "none.pem")))
    assert "option signature_ca: expected a file" in told
    assert "none.pem" in told


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


def test_a_signed_manifest_is_found_however_its_path_is_spelled(
    tmp_path: Path, trusted: Options
) -> None:
    source = in_manifest(tmp_path)
    meta = Path(source, "TOSCA-Metadata/TOSCA.meta")
    meta.write_text(meta.read_text().replace(": upf.mf", ": ./upf.mf"))
    assert read(source, trusted) == ["ConfigMap core/c"]


REMOTE = "https://files.example.org/a.yaml"


@pytest.mark.parametrize("is_whole", [True, False], ids=["the zip is signed", "its manifest is"])
@pytest.mark.parametrize("listed", ["", f"Source: {REMOTE}\n"], ids=["not listed", "listed"])
def test_the_content_of_a_url_is_refused_without_a_hash_in_what_is_signed(
    is_whole: bool, listed: str, tmp_path: Path, trusted: Options
) -> None:
    """It is refused before it is fetched: another host may be there by now."""
    said = block(A, CONFIG_MAP, name="Source") + listed
    meta = "TOSCA-Meta-File-Version: 1.0\nETSI-Entry-Manifest: upf.mf\n"
    files = {"TOSCA-Metadata/TOSCA.meta": meta, A: CONFIG_MAP}
    if is_whole:
        source = write_zip(tmp_path / "upf.zip", {**files, "upf.mf": said})
        (tmp_path / "upf.p7s").write_bytes(VENDOR.sign(Path(source).read_bytes()))
    else:
        signed = VENDOR.sign(said.encode(), PEM).decode()
        source = write_folder(tmp_path / "unpacked", {**files, "upf.mf": said + signed})
    with (
        pytest.raises(PackageError, match=f"{REMOTE} of .*expected its hash in what is"),
        csar.open_package(source, options=trusted) as package,
    ):
        package.read(REMOTE)


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_vnfd_is_chosen_by_what_is_signed(
    is_listed: bool, tmp_path: Path, trusted: Options
) -> None:
    """Who may choose another file of the package may have objects left out."""
    meta = "ETSI-Entry-Manifest: upf.mf\nEntry-Definitions: Files/vnfd.yaml\n"
    files = {"TOSCA-Metadata/TOSCA.meta": meta, A: CONFIG_MAP, "Files/vnfd.yaml": "{}"}
    listed = [name for name in files if is_listed or name in (A, "Files/vnfd.yaml")]
    said = "".join(block(name, files[name], name="Source") for name in listed)
    signed = VENDOR.sign(said.encode(), PEM).decode()
    source = write_folder(tmp_path / "unpacked", {**files, "upf.mf": said + signed})
    if is_listed:
        assert read(source, trusted) == []
    else:
        assert "TOSCA.meta in" in refusal(source, trusted)


@pytest.mark.parametrize("name", ["Files/b.yaml", "Files/Chart.yaml"])
def test_no_certificate_is_a_file_of_another_kind(
    name: str, tmp_path: Path, trusted: Options
) -> None:
    """Who may add a Chart.yaml has the manifests beside it left out."""
    own = f"ETSI-Entry-Certificate: {name}\n"
    source = in_manifest(tmp_path, VENDOR, {name: f"{CONFIG_MAP}# {VENDOR.pem}\n{VENDOR.pem}"}, own)
    assert f"{name} in" in refusal(source, trusted)


def test_a_file_that_is_not_what_the_signed_manifest_says_is_refused(
    tmp_path: Path, trusted: Options
) -> None:
    source = in_manifest(tmp_path, VENDOR, {A: CONFIG_MAP + "\n"})
    assert "expected the sha256 hash" in refusal(source, trusted)


# --- files that have a signature of their own ---------------------------------------------------


def with_files(folder: Path, more: str, files: dict[str, bytes], hashed: str = CONFIG_MAP) -> str:
    """Write a package whose signed manifest says more of its def-file."""
    said = block(A, hashed, name="Source") + more
    meta = "TOSCA-Meta-File-Version: 1.0\nETSI-Entry-Manifest: upf.mf\n"
    signed = VENDOR.sign(said.encode(), PEM).decode()
    text = {"TOSCA-Metadata/TOSCA.meta": meta, "upf.mf": said + signed, A: CONFIG_MAP}
    source = write_folder(folder / "unpacked", text)
    for name, content in files.items():
        (Path(source) / name).write_bytes(content)
    return source


def own(signer: Party = VENDOR, form: Encoding = PEM, text: str = CONFIG_MAP) -> dict[str, bytes]:
    """Return the files with a signature and its certificate."""
    signed = signer.sign(text.encode(), form, names=False)
    return {"Files/a.sig": signed, "Files/a.cert": signer.pem.encode()}


BOTH = "Signature: Files/a.sig\nCertificate: Files/a.cert\n"
SIGNATURE = {"Files/a.sig": own()["Files/a.sig"]}
ALONE = "signature: ./Files/a.sig\n"
OF_FILES: dict[str, tuple[str, dict[str, bytes]]] = {
    "a signature and a certificate": (BOTH, own()),
    "the same in binary": (BOTH, own(form=DER)),
    "a signature with its certificate": (
        ALONE,
        {"Files/a.sig": VENDOR.sign(CONFIG_MAP.encode())},
    ),
    "an entry more, with the signature": (f"Source: {A}\n{BOTH}", own()),
}


@pytest.mark.parametrize("name", OF_FILES)
def test_a_file_that_a_trusted_party_signed_is_read(
    name: str, tmp_path: Path, trusted: Options
) -> None:
    source = with_files(tmp_path, *OF_FILES[name])
    assert read(source, trusted) == read(source, Options()) == ["ConfigMap core/c"]


WRONG_FILES: dict[str, tuple[str, dict[str, bytes], str]] = {
    "made of something else": (BOTH, own(text="other"), "expected the signature of these files"),
    "made by a stranger": (BOTH, own(STRANGER), "expected the signature of these files"),
    "no signature": (BOTH, {**own(), "Files/a.sig": b"junk"}, "expected the signature"),
    "without its certificate": (ALONE, SIGNATURE, "expected the signature of these files"),
    "not there": (BOTH, {}, "Files/a.sig in"),
    "with a certificate that is not there": (BOTH, SIGNATURE, "Files/a.cert in"),
    "outside the package": ("Signature: ../a.sig\n", {}, "../a.sig"),
    "without a name": ("Signature:\n", {}, f"expected the Signature of {A}, found nothing"),
    "a certificate alone": (
        "Certificate: Files/a.cert\n",
        own(),
        f"{A} has Certificate without Signature: add it",
    ),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_the_signature_of_a_file_is_refused_that_is(
    name: str, tmp_path: Path, trusted: Options
) -> None:
    more, files, expected = WRONG_FILES[name]
    source = with_files(tmp_path, more, files)
    error = refusal(source, trusted)
    assert error.startswith("upf.mf:4: ")
    assert expected in error
    with (
        pytest.raises(PackageError, match=r"upf\.mf:4"),
        csar.open_package(
            source, options=Options(signature_ca=trusted.signature_ca), check_hashes=False
        ) as package,
    ):
        package.verify()


def test_two_signatures_of_a_file_are_refused(tmp_path: Path, trusted: Options) -> None:
    more = f"{BOTH}Source: ./{A}\nSignature: Files/b.sig\n"
    assert "with different signatures" in refusal(with_files(tmp_path, more, own()), trusted)


def test_a_file_with_a_signature_needs_no_hash(tmp_path: Path, trusted: Options) -> None:
    more = f"Source: Files/b.yaml\n{BOTH}"
    other = CONFIG_MAP.replace("name: c", "name: d")
    source = with_files(tmp_path, more, {"Files/b.yaml": other.encode(), **own(text=other)})
    assert read(source, trusted) == ["ConfigMap core/c", "ConfigMap core/d"]
    (Path(source) / "Files/b.yaml").write_text(CONFIG_MAP)
    assert "Files/b.yaml" in refusal(source, trusted)


def test_the_files_with_a_signature_are_counted(tmp_path: Path) -> None:
    more = "".join(f"Source: {number}\nSignature: s\n" for number in range(1001))
    error = refusal(with_files(tmp_path, more, {}), Options())
    assert "expected at most 1000 files with a signature of their own, found 1001" in error


def test_a_signature_of_a_file_is_told_where_nobody_is_trusted(tmp_path: Path) -> None:
    files = {"upf.mf": block(A, CONFIG_MAP, name="Source") + BOTH, "upf.yaml": "{}", A: CONFIG_MAP}
    source = write_folder(tmp_path / "unpacked", files)
    for name, content in own().items():
        (Path(source) / name).write_bytes(content)
    with csar.open_package(source) as package:
        assert any("no trusted CA is configured" in finding.message for finding in package.findings)
