# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: ``samples`` is a package beside those it finds, and the man page
is made of the parsers of the commands."""

import sys
from pathlib import Path

from setuptools import find_packages, setup  # first: it brings distutils

from distutils.command.install_data import install_data  # isort: skip

HERE = str(Path(__file__).parent)
PAGES = "share/man/man1"


class ManPages(install_data):
    """Write the man page of each program."""

    def run(self) -> None:
        """See the class."""
        sys.path.insert(0, HERE)
        from container_update.cli.man import page  # noqa: PLC0415, once the sources are there

        folder = Path(self.install_dir, PAGES)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("container-update", page()),
            ("kubectl-cnf", f".so {Path(PAGES).name}/container-update.1\n"),
        ):
            (folder / f"{name}.1").write_text(text, encoding="utf-8")
            self.outfiles.append(str(folder / f"{name}.1"))


setup(
    packages=[*find_packages(include=["container_update*"]), "container_update.samples"],
    package_dir={"container_update.samples": "samples"},
    data_files=[(PAGES, [])],
    cmdclass={"install_data": ManPages},
)
