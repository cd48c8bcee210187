# SPDX-License-Identifier: Apache-2.0
"""The reference CNF in an embedded cluster of its own, to inspect and to disturb."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.promise import Checker
from tests.functional.reference_update import OLD_FILES, Lab


@pytest.fixture
def namespace(lab: Lab) -> Iterator[str]:
    """The namespace of the reference CNF."""
    name = lab.deploy(OLD_FILES)
    yield name
    lab.remove(name)


@pytest.fixture
def checker(lab: Lab, namespace: str) -> Checker:
    return Checker(lab.server, namespace)
