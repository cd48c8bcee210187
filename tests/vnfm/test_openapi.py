# SPDX-License-Identifier: Apache-2.0
"""Generated requests that the OpenAPI document allows, and many that it does not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings

from container_update import Options
from tests import mutations
from tests.internals.core import samples
from tests.internals.service import Service, Settings, Subscription, now, read_tokens
from tests.vnfm.waiting import until

schemathesis = pytest.importorskip("schemathesis")
checks = pytest.importorskip("schemathesis.checks")
FailureGroup = pytest.importorskip("schemathesis.core.failures").FailureGroup
checks.load_all_checks()

SAMPLES = samples.root()
VNFD = "b1bb0ce7-ebca-4fa7-95ed-4840d70a7774"
NOWHERE = "https://127.0.0.1:9"


@schemathesis.serializer("application/zip")
def _as_it_is(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


CHECKS = [
    checks.CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "ignored_auth",
    )
]
EXAMPLES = 6
"""For each operation of the document."""
LONGEST = 255
"""Of generated texts: for a pattern of 65536 characters the generator takes a gigabyte."""


class Known:
    """A service with one resource of each kind."""

    def __init__(self, folder: Path) -> None:
        configured = Settings(
            state_dir=str(folder / "state"),
            endpoint="http://testserver",
            request_bytes=16 * 1024,
            callback_hosts=("127.0.0.1",),
            callback_seconds=0.5,
        )
        self.service = Service(configured, Options(retry_seconds=0, request_timeout=1))
        self.headers = {"X-Auth-Token": read_tokens(configured.token_path)["admin"].value}
        self.client = TestClient(self.service.app, headers={**self.headers, "Version": "2.0.0"})
        self.ids: dict[str, str] = {}

    def fill(self, folder: Path) -> None:
        """Create the resources."""
        self.ids["package_id"] = self._package(folder)
        self.ids["vnfd_id"] = VNFD
        self.ids["vim_id"] = self._post("/v1.0/vims", vim=self._vim())["vim"]["id"]
        for api in ("v1", "v2"):
            root = f"/vnflcm/{api}/vnf_instances"
            instance = self._post(root, vnfdId=VNFD, vnfInstanceName="one")["id"]
            change = {"vnfInstanceDescription": "changed"}
            modified = self.client.patch(f"{root}/{instance}", json=change)
            assert modified.status_code == 202, modified.text
            self.ids[f"{api} instance_id"] = instance
            self.ids[f"{api} operation_id"] = modified.headers["Location"].rpartition("/")[2]
            self.ids[f"{api} subscription_id"] = self._subscribe(api)
            self.ids[f"{api} batch_id"] = self._post(
                f"/vnflcm/{api}/batches",
                operation="MODIFY_INFO",
                request=change,
                vnfInstanceIds=[instance],
                waveSize=1,
                maxFailures=0,
            )["id"]

    def _post(self, path: str, **body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def _vim(self) -> Any:
        return {"name": "nowhere", "type": "kubernetes", "auth_url": NOWHERE}

    def _package(self, folder: Path) -> str:
        path = "/vnfpkgm/v1/vnf_packages"
        package_id = str(self._post(path)["id"])
        source = SAMPLES / "01-user-guide" / "v1" / "before"
        zipped = Path(shutil.make_archive(str(folder / "package"), "zip", source))
        content = zipped.read_bytes()
        # smaller than what the middleware lets through elsewhere: the limit of uploads is its own
        uploaded = self.client.put(
            f"{path}/{package_id}/package_content",
            content=content,
            headers={"Content-Type": "application/zip"},
        )
        assert uploaded.status_code == 202, uploaded.text

        def onboarded() -> bool:
            return bool(
                self.client.get(f"{path}/{package_id}").json()["onboardingState"] == "ONBOARDED"
            )

        until(onboarded, "the package to be onboarded")
        return package_id

    def _subscribe(self, api: str) -> str:
        """Store a subscription directly, since no consumer answers."""
        subscription_id = f"00000000-0000-4000-8000-00000000000{api[1]}"
        with self.service.context.database.writing() as session:
            session.add(
                Subscription(
                    id=subscription_id,
                    created=now(),
                    api=api,
                    callback_uri=NOWHERE,
                    filter=None,
                    sealed=None,
                )
            )
        return subscription_id

    def use_existing_ids(self, case: Any) -> None:
        """Give every other request the id of an existing resource."""
        api = "v2" if "/v2/" in case.path else "v1"
        for name, value in dict(case.path_parameters or {}).items():
            known = self.ids.get(name) or self.ids.get(f"{api} {name}")
            if known and len(str(value)) % 2:
                case.path_parameters[name] = known


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    folder = tmp_path_factory.mktemp("openapi")
    service = Known(folder)
    with service.client:
        service.fill(folder)
        yield service


@pytest.fixture(scope="module")
def document(known: Known) -> Any:
    async def running(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"  # it is started already: no lifespan
        await known.service.app(scope, receive, send)

    read = schemathesis.openapi.from_asgi("/openapi.json", running, headers=known.headers)
    lowered = lower_max_lengths(read.raw_schema)
    assert lowered > 10
    return read


def lower_max_lengths(document: Any) -> int:
    """Let no text of the document be longer than the longest; return how many were."""
    if isinstance(document, list):
        return sum(map(lower_max_lengths, document))
    if not isinstance(document, dict):
        return 0
    is_long = isinstance(longest := document.get("maxLength"), int) and longest > LONGEST
    if is_long:
        document["maxLength"] = LONGEST
    return is_long + sum(map(lower_max_lengths, document.values()))


@pytest.mark.parametrize("mode", schemathesis.GenerationMode, ids=lambda mode: mode.value)
def test_every_answer_is_as_documented_and_none_is_a_failure(
    mode: Any, document: Any, known: Known
) -> None:
    operations = [result.ok() for result in document.get_all_operations()]
    assert len(operations) > 50
    errors = [
        errors_of(operation.as_strategy(generation_mode=mode), known)
        for operation in operations
        if mode is schemathesis.GenerationMode.POSITIVE or can_be_wrong(operation)
    ]
    assert len(errors) > 40
    assert "".join(errors) == ""


def can_be_wrong(operation: Any) -> bool:
    """Return whether the operation's requests have anything that could violate the document."""
    return bool(list(operation.path_parameters) + list(operation.query) + list(operation.body))


def errors_of(cases: Any, known: Known) -> str:
    """Send some of an operation's requests and return what is wrong with the responses."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def each(case: Any) -> None:
        known.use_existing_ids(case)
        headers = {**known.headers, **({"Version": "2.0.0"} if "/v2/" in case.path else {})}
        case.validate_response(case.call(headers=headers), checks=CHECKS)

    try:
        each()
    except FailureGroup as wrong:
        return str(wrong)
    return ""


@pytest.mark.parametrize("request_", mutations.stored("requests.jsonl"), ids=str)
def test_a_request_that_once_went_wrong_is_no_failure(request_: Any, known: Known) -> None:
    path = request_.pop("path").format_map({k.replace(" ", "_"): v for k, v in known.ids.items()})
    headers = {**known.headers, **({"Version": "2.0.0"} if "/v2/" in path else {})}
    answer = known.client.request(url=path, headers=headers, **request_)
    assert answer.status_code < 500, answer.text
