# SPDX-License-Identifier: Apache-2.0
"""The signature of a package (SOL004, 5.1): of its manifest (option 1), or of all of it (option 2);
and of a single file, which its manifest names.

It is CMS, which the program ``openssl`` verifies: the libraries of PyPI sign, or read the structure
and leave the comparison to their caller.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from container_update.model import programs
from container_update.model.errors import PackageError
from container_update.model.options import Options

_SIGNATURES = (".cms", ".p7s")
_CERTIFICATES = (".cert", ".cer", ".crt", ".pem")
ENDINGS = (*_SIGNATURES, *_CERTIFICATES)
"""Of files that are about a package."""
_PACKAGES = (".csar", ".zip")
_LARGEST = 1024**2
"""In bytes: of a signature, and of a certificate."""
_SECONDS = 300.0
_STRONG = re.compile(rb"\x60\x86\x48\x01\x65\x03\x04\x02[\x01-\x0a]")
"""The names of SHA-2 and SHA-3 (NIST, hashAlgs)."""
_REASON = re.compile(r":error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):")


def find_wrapped(names: Sequence[str]) -> str | None:
    """Return the package in a zip that has nothing else but its signature and certificate; None
    where the zip is another one, such as a package."""
    packages = [name for name in names if name.endswith(_PACKAGES)]
    others = [name for name in names if name.endswith(ENDINGS)]
    is_flat = len(packages) + len(others) == len(names) and not any("/" in name for name in names)
    is_signed = any(name.endswith(_SIGNATURES) for name in others)
    return packages[0] if is_flat and is_signed and len(packages) == 1 else None


def check_beside(source: str, path: Path, options: Options) -> bool:
    """Return whether a package has a signature beside it, which then is right.

    :param path: where the package is, for ``upf.zip.p7s`` or ``upf.p7s`` beside it.
    :raises PackageError: the signature is wrong.
    """
    signature = next(_beside(path, _SIGNATURES), None)
    if signature is None:
        return False
    certificate = next(_beside(path, _CERTIFICATES), None)
    try:
        parts = [each.read_bytes() for each in (signature, certificate) if each]
    except OSError as error:
        raise PackageError(f"{signature.name} beside {source}: {error.strerror}") from error
    check(f"{signature.name} beside {source}", path, parts[0], b"".join(parts[1:]), options)
    return True


def _beside(path: Path, endings: Sequence[str]) -> Iterator[Path]:
    paths = (path.with_name(f"{name}{end}") for name in (path.name, path.stem) for end in endings)
    return (each for each in paths if each.is_file() and each.stat().st_size <= _LARGEST)


def check(
    what: str, content: Path | IO[bytes], signature: bytes, certificate: bytes, options: Options
) -> None:
    """Verify a detached signature of a file.

    :param certificate: of who signed, where the signature does not have it itself; else empty.
    :raises PackageError: it was made of something else, or by a signer whom the authorities of
        ``signature_ca`` do not know.
    """
    with TemporaryDirectory(prefix="container-update-") as folder:
        if isinstance(content, Path):
            signed = content.resolve()
        else:
            signed = Path(folder, "content")
            with signed.open("wb") as file:
                shutil.copyfileobj(content, file)
        words = ["-content", str(signed), "-out", str(Path(folder, "out"))]
        if certificate:
            Path(folder, "certificate").write_bytes(certificate)
            words += ["-certfile", str(Path(folder, "certificate"))]
        if options.signature_ca:
            authorities = Path(options.signature_ca).resolve()
            if not authorities.is_file():
                raise PackageError(
                    "option signature_ca: expected a file with the certificates of those who may "
                    f"sign, found no file {authorities}: name one that exists"
                )
            words += ["-CAfile", str(authorities), "-no-CApath", "-auth_level", "2"]
            words += ["-partial_chain", "-purpose", "any"]
        else:
            words += ["-noverify"]
        form = "PEM" if signature.lstrip().startswith(b"-----BEGIN") else "DER"
        _check_digests(
            what, _openssl(what, ["-cmsout", "-inform", form, "-outform", "DER"], signature)
        )
        _openssl(what, ["-verify", "-binary", "-inform", form, *words], signature)


def _check_digests(what: str, signature: bytes) -> None:
    """Refuse a signature (DER) of a digest that is not SHA-2 or SHA-3 (RFC 5652, 5.1)."""
    try:
        _, (_, signed), *_ = _parts(_parts(signature)[0][1])
        _, (_, digests), *_ = _parts(_parts(signed)[0][1])
        names = [_parts(digest)[0][1] for _, digest in _parts(digests)]
    except (IndexError, ValueError):
        names = []
    if not names or not all(_STRONG.fullmatch(name) for name in names):
        raise PackageError(
            f"{what}: expected a signature with a digest of SHA-2 or SHA-3, found another: MD5 and "
            "SHA-1 are broken: sign it anew, openssl cms -sign -md sha256"
        )


def _parts(der: bytes) -> list[tuple[int, bytes]]:
    """Return tag and content of each value in a constructed one; IndexError for a short one."""
    parts = []
    while der:
        size, at = der[1], 2
        if size & 0x80:
            at += size & 0x7F
            size = int.from_bytes(der[2:at], "big")
        parts.append((der[0], der[at : at + size]))
        der = der[at + size :]
    return parts


def _openssl(what: str, words: Sequence[str], signature: bytes) -> bytes:
    """Return what ``openssl cms`` makes of a signature; PackageError where it refuses it."""
    program = shutil.which("openssl")
    if program is None:
        raise PackageError(f"{what} cannot be checked: install the program openssl")
    try:
        words = ["cms", *words]  # absolute paths of ours
        ran = programs.run(programs.OPENSSL, program, words, content=signature, seconds=_SECONDS)
    except (OSError, programs.SubprocessError) as error:
        raise PackageError(f"{what} cannot be checked: openssl does not work: {error}") from error
    if ran.returncode:
        reasons = dict.fromkeys(_REASON.findall(ran.stderr.decode(errors="replace")))
        raise PackageError(
            f"{what}: expected the signature of these files by a trusted signer (option "
            f"signature_ca), found another ({', '.join(reasons) or 'openssl refuses it'}): the "
            "package was changed after it was signed, or another signer signed it: get it anew"
        )
    return ran.stdout
