# SPDX-License-Identifier: Apache-2.0
"""Which claims a StatefulSet takes along, and how they are kept: tables."""

from __future__ import annotations

import pytest

from container_update.model.objects import Json
from container_update.workloads.claim_retention import (
    WHEN_DELETED,
    WHEN_SCALED,
    deletes_claims,
    is_owned,
    keeping_claims,
    with_policy_of,
    without_owner,
)


def stateful_set(deleted: str = "", scaled: str = "", *, templates: bool = True) -> Json:
    policy = {n: v for n, v in ((WHEN_DELETED, deleted), (WHEN_SCALED, scaled)) if v}
    spec: Json = {"persistentVolumeClaimRetentionPolicy": policy} if policy else {}
    return {"spec": {**spec, "volumeClaimTemplates": [{}] if templates else None}}


@pytest.mark.parametrize(
    ("body", "when", "deletes"),
    [
        (stateful_set("Delete"), WHEN_DELETED, True),
        (stateful_set("Delete", "Retain"), WHEN_SCALED, False),
        (stateful_set("Retain", "Delete"), WHEN_SCALED, True),
        (stateful_set("Retain", "Delete"), WHEN_DELETED, False),
        (stateful_set("Delete", templates=False), WHEN_DELETED, False),
        (stateful_set(), WHEN_DELETED, False),
        ({}, WHEN_DELETED, False),
    ],
)
def test_claims_go_where_there_are_any_and_the_policy_says_so(
    body: Json, when: str, deletes: bool
) -> None:
    assert deletes_claims(body, when) is deletes
    assert not deletes_claims(keeping_claims(body, when), when)


def test_the_other_half_of_the_policy_stays_and_all_of_it_comes_back() -> None:
    before = stateful_set("Delete", "Delete")
    kept = keeping_claims(before, WHEN_SCALED)
    assert kept == stateful_set("Delete", "Retain")
    assert keeping_claims(kept, WHEN_SCALED) is kept
    assert with_policy_of(kept, before) == before
    assert with_policy_of(before, before) is before
    assert with_policy_of(before, stateful_set()) is before


def test_a_claim_is_released_of_one_owner_alone() -> None:
    claim: Json = {"metadata": {"name": "d", "ownerReferences": [{"uid": "a"}, {"uid": "b"}]}}
    left = without_owner(claim, "a")
    assert is_owned(claim, "a")
    assert left["metadata"]["ownerReferences"] == [{"uid": "b"}]
    assert without_owner(left, "a") is left
