# SPDX-License-Identifier: Apache-2.0
"""Which parts of a request are shown, and which are hidden."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.vnfm.problems import HIDDEN, without_credentials

CASES: dict[str, tuple[Any, Any]] = {
    "access to a VIM": (
        {"vimConnectionInfo": {"vim1": {"vimId": "x", "accessInfo": {"bearer_token": "t"}}}},
        {"vimConnectionInfo": {"vim1": {"vimId": "x", "accessInfo": {"bearer_token": HIDDEN}}}},
    ),
    "every value below accessInfo": (
        {"accessInfo": {"username": "u", "more": [{"deep": 1}]}},
        {"accessInfo": {"username": HIDDEN, "more": [{"deep": HIDDEN}]}},
    ),
    "a VNFC's password": (
        {"vdu_params": [{"new_vnfc_param": {"username": "u", "password": "p"}}]},
        {"vdu_params": [{"new_vnfc_param": {"username": "u", "password": HIDDEN}}]},
    ),
    "a password in a text that is JSON, as v1 has lists and objects in metadata": (
        {"metadata": {"vdu_params": ' [{"vdu_id": "a", "old_vnfc_param": {"password": "p"}}]'}},
        {
            "metadata": {
                "vdu_params": f'[{{"vdu_id": "a", "old_vnfc_param": {{"password": "{HIDDEN}"}}}}]'
            }
        },
    ),
    "a text that is JSON without any stays as it was written": ({"a": "[1,2]"}, {"a": "[1,2]"}),
    "a text that only begins like JSON": ({"a": "{password}"}, {"a": "{password}"}),
    "a text with more levels than can be read": ({"a": "[" * 10**5}, {"a": HIDDEN}),
    "what the caller says is one": ({"a": {"greeting": "x"}}, {"a": {"greeting": HIDDEN}}),
    "a path with the word secret in its name stays": (
        {"metadata": {"configmap_secret_paths": ["Files/secret.yaml"]}},
        {"metadata": {"configmap_secret_paths": ["Files/secret.yaml"]}},
    ),
    "what is not there stays so": ({"password": None}, {"password": None}),
}


@pytest.mark.parametrize("name", CASES)
def test_credentials_are_hidden_and_nothing_else(name: str) -> None:
    given, expected = CASES[name]
    assert without_credentials(given, {"greeting"}) == expected
