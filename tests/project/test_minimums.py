# SPDX-License-Identifier: Apache-2.0
"""The lowest versions that are allowed have no fault that is known and touches what is used."""

from __future__ import annotations

import configparser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]

FIXED = {
    "aiohttp": {
        "3.9.2": "CVE-2024-23334, CVE-2024-23829",
        "3.10.11": "CVE-2024-52304",
        "3.12.14": "CVE-2025-53643",
        "3.13.3": "CVE-2025-69223",
    },
    "cryptography": {
        "42.0.4": "CVE-2024-26130",
        "44.0.1": "CVE-2024-12797",
        "46.0.5": "CVE-2026-26007",
    },
    "fastapi": {"0.109.1": "CVE-2024-24762"},
    "h11": {"0.16.0": "CVE-2025-43859"},
    "paramiko": {"3.4.0": "CVE-2023-48795"},
    "pydantic": {"2.4.0": "CVE-2024-3772"},
    "starlette": {"0.40.0": "CVE-2024-47874", "0.49.1": "CVE-2025-62727"},
}
"""The first version without a fault, by the name of the library."""


def minimums() -> dict[str, Version]:
    """Return the lowest version of each library that any requirement allows."""
    found: dict[str, Version] = {}
    for requirement in map(Requirement, metadata.requires("container-update") or ()):
        for specifier in requirement.specifier:
            assert specifier.operator == ">=", str(requirement)
            version = Version(specifier.version)
            found[requirement.name] = min(version, found.get(requirement.name, version))
    return found


@pytest.mark.parametrize("name", FIXED)
def test_no_version_with_a_known_fault_is_allowed(name: str) -> None:
    for fixed, fault in FIXED[name].items():
        assert minimums()[name] >= Version(fixed), fault


def test_a_job_installs_the_minimums_and_nothing_else() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    install, run = tox["testenv:minimums"]["commands"].strip().splitlines()
    assert "--resolution lowest-direct" in install
    assert run == "pytest tests/unit {posargs}"
