# SPDX-License-Identifier: Apache-2.0
"""What the tests need to run a real Tacker: fetched once, kept in a folder, installed nowhere.

``python tests/tacker/lab.py`` fetches it, in about a minute: a virtual environment with Tacker and
the ``openstack`` client from PyPI, Tacker's samples out of its source distribution, and MariaDB and
RabbitMQ out of Debian's packages, unpacked but not installed. The folder is
``$CONTAINER_UPDATE_TACKER_LAB`` or ``.tacker-lab`` in the checkout.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
VARIABLE = "CONTAINER_UPDATE_TACKER_LAB"
VERSION, OLDER = "16.0.0", "15.0.0"
"""Of Tacker: the one whose services run, and one that only loads the drivers."""
PYTHON_PACKAGES = ("kubernetes<37", "python-openstackclient", "setuptools>=77")
"""Tacker's v1 API does not work with the models of kubernetes 37."""

DEBIAN_PACKAGES = (
    "erlang-asn1",
    "erlang-base",
    "erlang-crypto",
    "erlang-eldap",
    "erlang-ftp",
    "erlang-inets",
    "erlang-mnesia",
    "erlang-os-mon",
    "erlang-parsetools",
    "erlang-public-key",
    "erlang-runtime-tools",
    "erlang-ssl",
    "erlang-syntax-tools",
    "erlang-tftp",
    "erlang-tools",
    "erlang-xmerl",
    "libaio1|libaio1t64",
    "liburing2",
    "libwrap0",
    "mariadb-client-core",
    "mariadb-server-core",
    "rabbitmq-server",
)
"""A bar separates the names that a package has in different releases."""


PLUGIN = CHECKOUT / "samples/08-custom-resource/plugin"
NO_SOURCES = (".*", "*.egg-info", "__pycache__", "build", "dist", "tests", "doc")
"""What the copy for the wheel leaves out; the build must not write into the checkout."""


class LabError(Exception):
    """The lab cannot be fetched or is not there; the text is the reason that a test skips with."""


class Lab:
    """The folder and what is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.venv = folder / "venv"
        self.pythons = {
            VERSION: self.venv / "bin/python",
            OLDER: folder / "venv-older" / "bin/python",
        }
        """The interpreter that has each version of Tacker."""
        self.root = folder / "root"
        self.complete = folder / "complete"
        self.samples = folder / "samples"
        self.types = self.samples / "vnf_packages" / "Definitions"
        """The type files that Tacker's guides copy into a package."""

    @property
    def is_fetched(self) -> bool:
        """Whether everything is there."""
        return self.complete.exists() and self.samples.exists()

    @property
    def python(self) -> Path:
        """The interpreter of the services."""
        return self.pythons[VERSION]

    def binary(self, name: str) -> str:
        """A command of the virtual environment."""
        return str(self.venv / "bin" / name)

    def unpacked(self, pattern: str) -> Path:
        """The one file out of the Debian packages that a pattern below ``usr`` names."""
        found = sorted((self.root / "usr").glob(pattern))
        if not found:
            raise LabError(f"no usr/{pattern} in {self.root}: remove the folder and fetch it again")
        return found[0]

    def libraries(self) -> str:
        """The search path of the dynamic linker."""
        folders = {str(path.parent) for path in self.root.glob("**/lib*.so*")}
        return ":".join(sorted(folders))


def find() -> Lab:
    """Return the lab, complete or not."""
    return Lab(Path(os.environ.get(VARIABLE) or CHECKOUT / ".tacker-lab").absolute())


def fetch(lab: Lab) -> None:
    """Fetch what is missing. LabError with the reason if that is not possible."""
    if not lab.complete.exists():
        _fetch_programs(lab)
    if not lab.samples.exists():
        _unpack_samples(lab)
    if not lab.pythons[OLDER].exists():
        _make_venv(lab, OLDER)


def _fetch_programs(lab: Lab) -> None:
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise LabError(f"{tool} is not there: the lab is built from Debian's packages")
    lab.folder.mkdir(parents=True, exist_ok=True)
    _unpack_debian_packages(lab)
    _relocate(lab)
    _make_venv(lab, VERSION)
    lab.complete.touch()


def _make_venv(lab: Lab, version: str) -> None:
    python = lab.pythons[version]
    _run(sys.executable, "-m", "venv", str(python.parents[1]))
    _run(str(python), "-m", "pip", "install", "-q", f"tacker=={version}", *PYTHON_PACKAGES)


def _unpack_samples(lab: Lab) -> None:
    """Unpack Tacker's samples and its copy of a type file: its wheel has neither."""
    with tempfile.TemporaryDirectory(dir=lab.folder) as folder:
        pip = (lab.binary("pip"), "download", "-q", "--no-deps", "--no-build-isolation")
        _run(*pip, "--no-binary", "tacker", "-d", folder, f"tacker=={VERSION}")
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as sources:
            wanted = {"samples", "etc"}
            sources.extractall(folder, [m for m in sources if wanted & {*m.name.split("/")[1:2]}])
        (types,) = Path(folder).glob("*/etc/etsi-nfv")
        (root,) = lab.venv.glob("lib/python*/site-packages")  # to Tacker, its sources' root
        shutil.copytree(types, root / "etc" / types.name, dirs_exist_ok=True)
        (samples,) = Path(folder).glob("*/samples")
        samples.rename(lab.samples)


def _unpack_debian_packages(lab: Lab) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            _download_debian_packages(folder)
        except LabError:  # the lists of packages are missing or old
            _run("apt-get", "update", "-qq")
            _download_debian_packages(folder)
        for package in sorted(Path(folder).glob("*.deb")):
            _run("dpkg-deb", "-x", str(package), str(lab.root))


def _download_debian_packages(folder: str) -> None:
    names = [
        next(filter(_known, alternatives.split("|")), alternatives)
        for alternatives in DEBIAN_PACKAGES
    ]
    _run("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", *names, cwd=folder)


def _known(name: str) -> bool:
    result = subprocess.run(["apt-cache", "show", name], capture_output=True, check=False)
    return result.returncode == 0


def _relocate(lab: Lab) -> None:
    """Adapt the start scripts of Erlang and RabbitMQ, which expect to be below /usr."""
    erlang = lab.root / "usr/lib/erlang"
    for script in [*erlang.glob("bin/erl"), *erlang.glob("erts-*/bin/erl")]:
        _substitute(script, r"(?<==)/usr/lib/erlang", str(erlang))
    defaults = lab.unpacked("lib/rabbitmq/bin/rabbitmq-defaults")
    _substitute(defaults, r"(?m)^SYS_PREFIX=.*$", f"SYS_PREFIX={lab.root}")


def _substitute(file: Path, pattern: str, replacement: str) -> None:
    file.write_text(re.sub(pattern, replacement, file.read_text()))


def install_checkout(lab: Lab) -> None:
    """Install the checkout's wheel and the sample's plugin beside Tacker, unless this state is
    already installed."""
    code = [*CHECKOUT.glob("container_update/**/*.py"), *PLUGIN.glob("*.py")]
    sources = [CHECKOUT / "pyproject.toml", *sorted(code)]
    state = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    marks = {python: python.parents[1] / "installed" for python in lab.pythons.values()}
    behind = [
        python
        for python, mark in marks.items()
        if python.exists() and not (mark.exists() and mark.read_text() == state)
    ]
    if not behind:
        return
    with tempfile.TemporaryDirectory() as folder:
        pip = ("-m", "pip", "-q", "--disable-pip-version-check")
        build = ("wheel", "--no-deps", "--no-build-isolation", "-w", folder)
        for source in (CHECKOUT, PLUGIN):
            copy = Path(folder, source.name)
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns(*NO_SOURCES))
            _run(str(lab.python), *pip, *build, str(copy))
        wheels = [*map(str, Path(folder).glob("*.whl"))]
        for python in behind:
            _run(str(python), *pip, "install", "--no-deps", "--force-reinstall", *wheels)
            marks[python].write_text(state)


def _run(*command: str, cwd: str | None = None) -> None:
    completed = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if completed.returncode:
        last = (completed.stderr or completed.stdout).strip().splitlines()[-3:]
        raise LabError(f"{' '.join(command[:3])} failed: {' / '.join(last)}")


if __name__ == "__main__":
    try:
        fetch(find())
    except LabError as error:
        sys.exit(f"no lab for Tacker: {error}")
