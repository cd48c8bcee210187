# SPDX-License-Identifier: Apache-2.0
"""The library with a client of the library ``kubernetes`` that its caller has configured."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import urllib3
from kubernetes import client, config

from container_update import ClusterError, connect
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import StepState

OLD, NEW = config_map(setting="old"), config_map(setting="new")
HEADERS = {"X-Reason": "maintenance"}


@pytest.fixture
def api_client(kubeconfig: str) -> Any:
    """A client with a header of its own, and a token that a hook gives anew for each request."""
    api_client = config.new_client_from_config(kubeconfig)
    api_client.set_default_header(*next(iter(HEADERS.items())))
    yield api_client
    api_client.close()


def test_an_update_goes_through_the_connections_and_the_login_of_the_client(
    cnf: Cnf, api_client: Any
) -> None:
    cnf.instantiate(cm=OLD, web=workload("Deployment", "web", container=ENV))
    its, sent, refreshed = api_client.rest_client.pool_manager, [], []
    request = its.request
    name = "BearerToken" if "BearerToken" in api_client.configuration.api_key else "authorization"
    token = api_client.configuration.api_key.pop(name, "")
    api_client.configuration.api_key[name] = "Bearer expired" if token else ""

    def recording(*words: Any, headers: dict[str, str], **more: Any) -> Any:
        sent.append(headers)
        return request(*words, headers=headers, **more)

    def refresh(configuration: Any) -> None:
        refreshed.append(name)
        configuration.api_key[name] = token

    api_client.configuration.refresh_api_key_hook = refresh
    with (
        mock.patch.object(its, "request", recording),
        connect(api_client=api_client, options=cnf.options) as cluster,
    ):
        web = workload("Deployment", "web", image=IMAGES[1], container=ENV)
        outcome = replace(cnf, cluster=cluster).update({"cm": NEW, "web": web})
        requests = cluster.requests
    assert {result.state for result in outcome.results} == {StepState.DONE}
    assert len(sent) == len(refreshed) == requests > 0
    assert all(headers.items() >= HEADERS.items() for headers in sent)
    assert client.VersionApi(api_client).get_code().git_version, "its owner can still use it"


def test_a_mocked_client_is_enough_for_a_unit_test() -> None:
    api_client = mock.create_autospec(client.ApiClient, instance=True)
    api_client.configuration = client.Configuration(host="https://cluster.test")
    api_client.default_headers = {}
    body = json.dumps({"gitVersion": "v1.36.2"}).encode()
    answer = urllib3.HTTPResponse(body=io.BytesIO(body), status=200, preload_content=False)
    api_client.rest_client = mock.Mock(**{"pool_manager.request.return_value": answer})
    with connect(api_client=api_client) as cluster:
        assert cluster.version() == "v1.36.2"
    method, url = api_client.rest_client.pool_manager.request.call_args.args
    assert (method, url) == ("GET", "https://cluster.test/version")


def test_a_client_and_a_kubeconfig_are_refused_together(kubeconfig: str) -> None:
    with pytest.raises(ClusterError, match="found both"):
        connect(kubeconfig, api_client=client.ApiClient())
