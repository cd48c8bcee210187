# SPDX-License-Identifier: Apache-2.0
"""The embedded cluster answers the table of requests as Kubernetes 1.36 did."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from container_update.emulator.kubernetes.resources import BUILT_IN
from tests.emulator import table
from tests.emulator.client import Api
from tests.emulator.sameness import Pairs, differences

SECONDS = 10.0
NOT_OF_PACKAGES = {
    "CertificateSigningRequest", "CSINode", "CSIStorageCapacity", "IPAddress", "Node",
    "ResourceSlice", "ServiceCIDR", "VolumeAttachment", "VolumeAttributesClass",
}  # fmt: skip
"""What kubelets, drivers and administrators write; nothing of the tests does."""


@pytest.fixture(scope="module")
def server() -> Iterator[Api]:
    """A cluster for all subjects, each of which has a namespace of its own."""
    quick = Behaviour(start_seconds=0.01, stop_seconds=0.01)
    with EmbeddedCluster(behaviour=quick, nodes=2) as cluster:
        api = Api(cluster)
        yield api
        api.close()


@pytest.mark.parametrize("subject", table.SUBJECTS)
def test_each_request_is_answered_as_kubernetes_answered_it(server: Api, subject: str) -> None:
    player, recorded = table.Player(subject, server, SECONDS), table.answers(subject)
    ours = player.play()
    assert list(ours) == [row.name for row in table.rows(subject)]
    assert sorted(ours) == sorted(recorded), "record the answers anew"
    problems = list(player.unmet)
    for row in table.rows(subject):
        found = differences(recorded[row.name], ours[row.name], Pairs())
        if found and not row.differs:
            problems.append(f"{row.name}:\n  " + "\n  ".join(found))
        if row.differs and not found:
            problems.append(f"{row.name}: it no longer differs, so remove: {row.differs}")
    assert not problems, f"{len(problems)} rows differ:\n" + "\n".join(problems)


def test_each_kind_that_a_package_may_have_is_created() -> None:
    requests = (row for subject in table.SUBJECTS for row in table.rows(subject))
    paths = (urlsplit(row.path).path for row in requests if row.method == "POST")
    created = {path.rpartition("/")[2] for path in paths}
    kinds = [each for each in BUILT_IN if each.is_stored and "create" in each.verbs]
    assert {each.kind for each in kinds if each.plural not in created} == NOT_OF_PACKAGES


def test_the_table_has_at_least_300_requests() -> None:
    assert sum(len(table.rows(subject)) for subject in table.SUBJECTS) >= 300
