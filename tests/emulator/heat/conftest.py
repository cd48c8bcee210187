# SPDX-License-Identifier: Apache-2.0
"""A cloud with one stack: a group of two members, each a port and a server in a nested stack."""

from collections.abc import Iterator

import pytest

from container_update.emulator.heat import EmbeddedOpenStack
from tests.emulator.heat.lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    with EmbeddedOpenStack() as cloud:
        cloud.faults.seconds = 0.002
        yield Lab(cloud)
