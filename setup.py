# SPDX-License-Identifier: Apache-2.0
"""The one thing that pyproject.toml cannot say: ``samples`` is a package beside those it finds."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["container_update*"]), "container_update.samples"],
    package_dir={"container_update.samples": "samples"},
)
