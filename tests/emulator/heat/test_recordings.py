# SPDX-License-Identifier: Apache-2.0
"""The requests that a real Heat 2025.1 was sent get the same answers here.

Compared are status, keys, types and values; of the resources and events of a stack, which there
are, in which states, one after the other. Not compared are ids, times, random names and free text.
"""

import pytest

from tests.emulator.heat.replay import RECORDINGS, entries_of, results

EXCEPTIONS = {"039-update-preview": "there is no preview of updates"}
"""The recordings that are answered in another way here, each with the reason."""

EVERY = [
    pytest.param(path.stem, entry["name"], id=entry["name"])
    for path in sorted(RECORDINGS.glob("*.json"))
    for entry in entries_of(path.stem)
]


@pytest.mark.parametrize(("scenario", "name"), EVERY)
def test_a_recorded_request_is_answered_as_recorded(scenario: str, name: str) -> None:
    problems = results(scenario)[name]
    if name in EXCEPTIONS:
        assert problems, f"{name} is answered as recorded: it is no exception any more"
    else:
        assert not problems, "\n".join(problems)


def test_there_is_a_recording_for_every_exception() -> None:
    assert set(EXCEPTIONS) <= {parameters.values[1] for parameters in EVERY}
