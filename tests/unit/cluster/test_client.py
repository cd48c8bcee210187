# SPDX-License-Identifier: Apache-2.0
"""The API server's client: requests as they go out, answers as they come in, over a mocked pool."""

from __future__ import annotations

import base64
import io
import json
import os
import ssl
import tempfile
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme
import urllib3

from container_update.cluster import kubeconfig
from container_update.cluster.client import KubernetesCluster, connect, connect_vim
from container_update.cluster.credentials import pem
from container_update.model.cluster import ClusterContext, Right
from container_update.model.errors import AdmissionError, ClusterError, NextStep, NoDryRunError
from container_update.model.objects import Collection, ObjectKey
from container_update.model.options import Options

POD = ObjectKey("", "Pod", "ns", "p")
DEPLOYMENTS = Collection("apps", "Deployment", "ns")
CERTIFICATE = trustme.CA().cert_pem.bytes().decode()


class Answer:
    """What urllib3 returns."""

    def __init__(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = headers or {}
        self._rest = io.BytesIO(self.data)

    def read(self, amt: int, decode_content: bool) -> bytes:
        return self._rest.read(amt)

    def stream(self, amt: int, decode_content: bool) -> Any:
        yield from (self.data[i : i + 7] for i in range(0, len(self.data), 7))

    def close(self) -> None:
        self.closed = True


class Pool:
    """A connection pool with prepared answers; keeps what was sent."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str, Any, dict[str, str]]] = []

    def request(self, method: str, url: str, **rest: Any) -> Answer:
        body = None if rest["body"] is None else json.loads(rest["body"])
        self.sent.append((method, url, body, rest["headers"]))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def clear(self) -> None:
        self.cleared = True


OIDC_LOGIN = {"token_url": "https://oidc/token", "client_id": "c", "username": "u"}


def cluster_of(*answers: Answer | Exception, **vim: Any) -> tuple[KubernetesCluster, Pool]:
    vim = vim or {"bearer_token": "t0ken"}
    cluster = connect_vim("https://vim:6443/", options=Options(page_size=2), **vim)
    return cluster, through(cluster, *answers)


def through(cluster: KubernetesCluster, *answers: Answer | Exception) -> Pool:
    """Let the requests of a cluster go through a prepared pool."""
    pool = Pool(*answers)
    cluster._logins.current = replace(cluster._logins.current, pool=pool)
    return pool


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": "u", "resourceVersion": "1"}}


def status(code: int, reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": message, **more}


def test_a_list_goes_through_its_pages_and_its_items_say_what_they_are() -> None:
    cluster, pool = cluster_of(
        Answer(
            200,
            {
                "metadata": {"resourceVersion": "7", "continue": "c1"},
                "items": [named("1")],
            },
        ),
        Answer(200, {"metadata": {"resourceVersion": "7"}, "items": [named("2")]}),
    )
    listing = cluster.list(DEPLOYMENTS)
    assert listing.resource_version == "7"
    assert listing.items == (
        {**named("1"), "apiVersion": "apps/v1", "kind": "Deployment"},
        {**named("2"), "apiVersion": "apps/v1", "kind": "Deployment"},
    )
    urls = [urlsplit(url) for _, url, _, _ in pool.sent]
    assert {url.path for url in urls} == {"/apis/apps/v1/namespaces/ns/deployments"}
    assert [parse_qs(url.query) for url in urls] == [
        {"limit": ["2"]},
        {"limit": ["2"], "continue": ["c1"]},
    ]
    assert cluster.requests == 2


def test_a_list_whose_pages_expired_begins_again() -> None:
    cluster, _ = cluster_of(
        Answer(
            200,
            {
                "metadata": {"resourceVersion": "7", "continue": "c1"},
                "items": [named("1")],
            },
        ),
        Answer(410, status(410, "Expired")),
        Answer(200, {"metadata": {"resourceVersion": "9"}, "items": [named("3")]}),
    )
    listing = cluster.list(DEPLOYMENTS)
    assert [item["metadata"]["name"] for item in listing.items] == ["3"]


def test_an_object_that_is_not_there_is_none() -> None:
    cluster, _ = cluster_of(Answer(404, status(404, "NotFound")))
    assert cluster.get(POD) is None


def test_deleting_or_evicting_what_is_gone_is_no_error() -> None:
    cluster, pool = cluster_of(Answer(404, status(404, "NotFound")), Answer(404, {}))
    cluster.delete(POD, uid="u1")
    cluster.evict(POD, uid="u1")
    (_, delete_url, delete, _), (_, evict_url, evict, _) = pool.sent
    assert delete_url.endswith("/api/v1/namespaces/ns/pods/p")
    assert delete["preconditions"] == {"uid": "u1"}
    assert evict_url.endswith("/api/v1/namespaces/ns/pods/p/eviction")
    assert evict["deleteOptions"] == {"preconditions": {"uid": "u1"}}


def test_a_watch_yields_events_however_they_are_cut_into_pieces() -> None:
    events = [
        {"type": "ADDED", "object": {**named("d"), "spec": {"a": "ä"}}},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}},
    ]
    cluster, pool = cluster_of(Answer(200, "\n".join(map(json.dumps, events)).encode() + b"\n"))
    seen = list(cluster.watch(DEPLOYMENTS, "5", 60))
    assert [event.type for event in seen] == ["ADDED", "BOOKMARK"]
    assert seen[0].object["kind"] == "Deployment"
    query = parse_qs(urlsplit(pool.sent[0][1]).query)
    assert query["resourceVersion"] == ["5"]
    assert query["timeoutSeconds"] == ["60"]


def test_a_watch_that_is_too_old_raises_410_whether_by_status_or_by_event() -> None:
    error = {"type": "ERROR", "object": status(410, "Expired", "too old resource version")}
    for answer in (
        Answer(410, status(410, "Expired")),
        Answer(200, json.dumps(error).encode() + b"\n"),
    ):
        cluster, _ = cluster_of(answer)
        with pytest.raises(ClusterError) as raised:
            list(cluster.watch(DEPLOYMENTS, "1", 60))
        assert raised.value.status == 410


UNREACHABLE = urllib3.exceptions.NewConnectionError(None, "Connection refused")
UNTRUSTED = urllib3.exceptions.SSLError(ssl.SSLCertVerificationError("certificate verify failed"))
CUT_OFF = urllib3.exceptions.SSLError(ssl.SSLEOFError(8, "EOF occurred in violation of protocol"))


@pytest.mark.parametrize(
    ("answer", "expected", "code"),
    [
        pytest.param(
            Answer(401, status(401, "Unauthorized", "Unauthorized")),
            "the API server does not accept the credentials: check the token",
            401,
            id="a refused token",
        ),
        pytest.param(
            Answer(403, status(403, "Forbidden", "pods is forbidden")),
            "a permission is missing, or admission refuses it",
            403,
            id="a refused verb",
        ),
        *(
            pytest.param(
                Answer(code, status(code, reason, said)),
                f"replace Pod ns/p: the API server answered {code} {reason}: {said}{advice}",
                code,
                id=said[:40],
            )
            for code, reason, said, advice in (
                (403, "Forbidden", 'admission webhook "a.b" denied the request: team x only', ""),
                (
                    500,
                    "InternalError",
                    'Internal error occurred: failed calling webhook "a.b": service "s" not found',
                    ": it has to answer, or its configuration has to go",
                ),
            )
        ),
        pytest.param(
            Answer(409, status(409, "Conflict", "modified")),
            "replace Pod ns/p: the API server answered 409 Conflict: modified",
            409,
            id="a conflict",
        ),
        pytest.param(Answer(502, b"<html>"), "answered 502", 502, id="a proxy's page"),
        pytest.param(Answer(200, b"<html>"), "expected a JSON object", 200, id="another server"),
        pytest.param(
            urllib3.exceptions.MaxRetryError(None, "/", UNREACHABLE),
            "cannot reach https://vim:6443: Connection refused",
            None,
            id="nobody listens",
        ),
    ],
)
def test_a_refusal_is_told_with_what_to_do_next(
    answer: Any, expected: str, code: int | None
) -> None:
    cluster, _ = cluster_of(answer)
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}}
    with pytest.raises(ClusterError, match=r"\S") as raised:
        cluster.replace(body)
    assert expected in str(raised.value)
    assert raised.value.status == code
    may_not = "a permission is missing" in expected
    assert (raised.value.next_step is NextStep.GRANT_RIGHTS) == may_not


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        (400, 'admission webhook "a.b" does not support dry run', NoDryRunError),
        (400, 'admission webhook "a.b" denied the request: no', AdmissionError),
        (403, 'admission webhook "a.b" denied the request without explanation', AdmissionError),
        (500, 'Internal error occurred: failed calling webhook "a.b": EOF', AdmissionError),
        (422, "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no", AdmissionError),
        (400, "Deployment in version v1 cannot be handled as a Deployment", ClusterError),
    ],
)
@pytest.mark.parametrize("of", ["Pod", "Secret"])
def test_the_class_of_an_error_tells_what_admission_answers(
    of: str, code: int, said: str, kind: type[ClusterError]
) -> None:
    cluster, _ = cluster_of(Answer(code, status(code, "", said)))
    with pytest.raises(ClusterError, match=str(code)) as raised:
        cluster.create({"apiVersion": "v1", "kind": of, "metadata": {"name": "p"}})
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'Internal error occurred: failed calling webhook "a.b": Post "https://s/": pl4nted',
            'failed calling webhook "a.b": it has to answer, or its configuration has to go',
        ),
        (
            'admission webhook "a.b" denied the request: pl4nted',
            'admission webhook "a.b" denied the request',
        ),
        (
            "secrets \"p\" is forbidden: ValidatingAdmissionPolicy 'a.b' with binding 'c' denied "
            "request: pl4nted",
            "ValidatingAdmissionPolicy 'a.b' with binding 'c' denied request",
        ),
    ],
)
def test_of_admission_that_refuses_a_secret_only_its_name_is_told(said: str, told: str) -> None:
    causes = {"causes": [{"message": "pl4nted"}]}
    cluster, _ = cluster_of(Answer(500, status(500, "InternalError", said, details=causes)))
    with pytest.raises(ClusterError) as raised:
        cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "p"}})
    assert str(raised.value).endswith(f"answered 500 InternalError: {told}")


@pytest.mark.parametrize(
    ("answer", "is_transient"),
    [
        *((Answer(code, b"{}"), True) for code in (429, 500, 502, 503, 504)),
        *((Answer(code, b"{}"), False) for code in (400, 403, 409, 501)),
        (urllib3.exceptions.MaxRetryError(None, "/", UNREACHABLE), True),
        (urllib3.exceptions.MaxRetryError(None, "/", UNTRUSTED), False),
        (UNTRUSTED, False),
        (CUT_OFF, True),
    ],
)
def test_only_what_may_pass_by_itself_is_transient(answer: Any, is_transient: bool) -> None:
    cluster, _ = cluster_of(answer)
    with pytest.raises(ClusterError) as raised:
        cluster.evict(POD)
    assert raised.value.transient is is_transient


def test_the_wait_that_the_server_asks_for_is_kept() -> None:
    cluster, _ = cluster_of(Answer(429, status(429, "TooManyRequests"), {"Retry-After": "3"}))
    with pytest.raises(ClusterError) as raised:
        cluster.evict(POD)
    assert raised.value.retry_after == 3.0


@pytest.mark.parametrize("verb", ["replace", "dry_run"])
def test_who_wrote_which_field_is_not_sent(verb: str) -> None:
    body = {**named("web"), "apiVersion": "apps/v1", "kind": "Deployment"}
    cluster, pool = cluster_of(Answer(200, named("web")))
    written = {**body, "metadata": {**body["metadata"], "managedFields": [{"manager": "kubectl"}]}}
    cluster.replace(written) if verb == "replace" else cluster.dry_run("replace", written)
    assert [sent for _, _, sent, _ in pool.sent] == [body]


def test_a_field_selector_holds_for_every_page() -> None:
    cluster, pool = cluster_of(
        Answer(200, {"metadata": {"resourceVersion": "7", "continue": "c1"}, "items": []}),
        Answer(200, {"metadata": {"resourceVersion": "7"}, "items": []}),
    )
    cluster.list(Collection("", "Event", "ns", "reason=Failed"))
    queries = [parse_qs(urlsplit(url).query) for _, url, _, _ in pool.sent]
    assert [query["fieldSelector"] for query in queries] == [["reason=Failed"]] * 2
    assert [query.get("continue") for query in queries] == [None, ["c1"]]


def test_a_page_of_another_server_is_no_deletion() -> None:
    cluster, _ = cluster_of(Answer(200, b"<html>"), Answer(404, status(404, "NotFound")))
    with pytest.raises(ClusterError, match="delete Pod ns/p: expected a JSON object"):
        cluster.delete(ObjectKey("", "Pod", "ns", "p"))
    cluster.delete(ObjectKey("", "Pod", "ns", "p"))


@pytest.mark.parametrize(("fields", "sent"), [("", None), ("metadata.name=a", ["metadata.name=a"])])
def test_a_field_selector_holds_for_a_watch(fields: str, sent: list[str] | None) -> None:
    cluster, pool = cluster_of(Answer(200, b""))
    list(cluster.watch(Collection("", "Secret", "ns", fields), "7", 60))
    assert parse_qs(urlsplit(pool.sent[0][1]).query).get("fieldSelector") == sent


def test_a_dry_run_is_asked_for_in_the_query() -> None:
    cluster, pool = cluster_of(Answer(200, named("p")), Answer(200, named("p")))
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}}
    cluster.replace(body)
    cluster.dry_run("replace", body)
    strict = "dryRun=All&fieldValidation=Strict"
    assert [urlsplit(url).query for _, url, _, _ in pool.sent] == ["", strict]


def test_the_warnings_of_a_dry_run_are_returned() -> None:
    header = '299 - "unknown field \\"spec.a\\"", 299 k "b, \\\\c"'
    cluster, _ = cluster_of(Answer(200, named("p"), {"Warning": header}))
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}}
    assert cluster.dry_run("create", body).warnings == ('unknown field "spec.a"', "b, \\c")


def test_a_message_about_a_secret_never_repeats_its_value() -> None:
    answer = status(
        422,
        "Invalid",
        'Secret "s" is invalid: data.password: Invalid value: "pl4nted"',
        details={"causes": [{"field": "data.password", "reason": "FieldValueInvalid"}]},
    )
    cluster, _ = cluster_of(Answer(422, answer))
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}}
    with pytest.raises(ClusterError) as raised:
        cluster.create(body)
    assert "pl4nted" not in str(raised.value)
    assert "data.password: FieldValueInvalid" in str(raised.value)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("exceeded quota: q.1, requested: secrets=1, used: secrets=5, limited: secrets=5", True),
        ('admission webhook "w" denied the request: data.password is pl4nted', False),
        ("exceeded quota: q, requested: pl4nted", False),
    ],
)
def test_a_quota_that_refuses_a_secret_is_told_and_nothing_else_is(
    message: str, told: bool
) -> None:
    answer = status(403, "Forbidden", f'secrets "s" is forbidden: {message}')
    cluster, _ = cluster_of(Answer(403, answer))
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}}
    with pytest.raises(ClusterError) as raised:
        cluster.create(body)
    assert (message in str(raised.value)) is told
    assert ("ResourceQuota" in str(raised.value)) is told
    assert "pl4nted" not in str(raised.value)


def test_a_kind_that_is_not_built_in_is_looked_up_once() -> None:
    resources = {
        "resources": [
            {"name": "widgets/status", "kind": "Widget"},
            {"name": "widgets", "kind": "Widget"},
        ]
    }
    cluster, pool = cluster_of(
        Answer(200, {"preferredVersion": {"groupVersion": "example.com/v2"}}),
        Answer(200, resources),
        Answer(200, named("w")),
        Answer(404, {}),
    )
    key = ObjectKey("example.com", "Widget", "ns", "w")
    cluster.get(key)
    assert cluster.get(key) is None
    assert pool.sent[-1][1] == "https://vim:6443/apis/example.com/v2/namespaces/ns/widgets/w"
    assert len(pool.sent) == 4


def test_a_kind_that_is_not_in_the_preferred_version_of_its_group_is_found() -> None:
    versions = [{"groupVersion": f"example.com/{version}"} for version in ("v1", "v1alpha2")]
    cluster, pool = cluster_of(
        Answer(200, {"preferredVersion": versions[0], "versions": versions}),
        Answer(200, {"resources": [{"name": "gates", "kind": "Gate"}]}),
        Answer(200, {"resources": [{"name": "widgets", "kind": "Widget"}]}),
        Answer(200, named("w")),
    )
    cluster.get(ObjectKey("example.com", "Widget", "ns", "w"))
    assert pool.sent[-1][1] == "https://vim:6443/apis/example.com/v1alpha2/namespaces/ns/widgets/w"
    assert len(pool.sent) == 4


# --- credentials --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vim", "header"),
    [
        pytest.param({"bearer_token": " t0ken\n"}, "Bearer t0ken", id="a bearer token"),
        pytest.param({"username": "u", "password": "p"}, "Basic dTpw", id="a user and a password"),
    ],
)
def test_the_credentials_of_a_vim_connection_go_with_every_request(
    vim: dict[str, str], header: str
) -> None:
    cluster, pool = cluster_of(Answer(404, {}), **vim)
    cluster.get(POD)
    assert pool.sent[0][3]["authorization"] == header


def test_a_vim_connection_without_credentials_is_refused_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ClusterError, match="has no credentials"):
        connect_vim("https://vim:6443", ca_text=CERTIFICATE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "vim",
    [
        {"bearer_token": "pl4nted\nX: y"},
        {"bearer_token": "pl4nted\u0142"},
        {"bearer_token": "pl4nted\xe4"},
        {"bearer_token": ["pl4nted"]},
        {"bearer_token": 5},
    ],
    ids=["line break", "other letters", "umlaut", "a list", "a number"],
)
def test_a_token_that_fits_into_no_header_is_refused_and_not_told(vim: dict[str, Any]) -> None:
    with pytest.raises(ClusterError, match="fit into an HTTP header") as raised:
        connect_vim("https://127.0.0.1:1", **vim).get(POD)
    shown = "".join(traceback.format_exception(raised.value))
    assert "pl4nted" not in shown
    assert raised.value.status is None
    assert not raised.value.transient


def test_a_token_of_a_kubeconfig_that_fits_into_no_header_is_not_told(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.replace('"kt"', '"pl4nted\\nkt"'))
    with connect(str(file)) as cluster, pytest.raises(ClusterError, match="HTTP head") as raised:
        cluster.get(POD)
    assert "pl4nted" not in "".join(traceback.format_exception(raised.value))


def test_a_user_and_a_password_may_have_any_letters() -> None:
    cluster, pool = cluster_of(Answer(404, {}), username="\u0142", password="\xe4\n")
    cluster.get(POD)
    encoded = base64.b64encode("\u0142:\xe4\n".encode()).decode()
    assert pool.sent[0][3]["authorization"] == f"Basic {encoded}"


ENDPOINTS = [
    "https://user:pl4nted@vim:6443",
    "https://pl4nted@vim",
    "vim:6443",
    "ftp://vim",
    "https://",
    "https://vim:port",
    "https://vim:6443\n",
    "",
    None,
    ["https://vim:6443"],
    6443,
]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=repr)
def test_an_endpoint_is_the_url_of_a_host_and_is_not_told_with_a_password(
    endpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ClusterError, match="expected http://HOST or https://HOST") as raised:
        connect_vim(endpoint, bearer_token="t", ca_text=CERTIFICATE)
    assert "pl4nted" not in "".join(traceback.format_exception(raised.value))
    assert not list(tmp_path.iterdir())


def test_the_server_of_a_kubeconfig_is_told_without_a_password(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.replace("https://k8s", "https://user:pl4nted@k8s"))
    with pytest.raises(ClusterError, match="expected http://HOST or https://HOST") as raised:
        connect(str(file))
    assert "pl4nted" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("ca_text", [5, ["x"], "\ud800"], ids=repr)
def test_a_certificate_that_is_no_text_is_refused(ca_text: Any) -> None:
    with pytest.raises(ClusterError, match="ssl_ca_cert: expected a certificate"):
        connect_vim("https://vim:6443", bearer_token="t", ca_text=ca_text)


def test_tls_is_verified_unless_the_options_say_otherwise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    verified = connect_vim("https://vim:6443", bearer_token="t")
    assert caplog.text == ""
    careless = connect_vim(
        "https://vim:6443", bearer_token="t", options=Options(insecure_skip_tls_verify=True)
    )
    assert verified._logins.current.pool.connection_pool_kw["cert_reqs"] == "CERT_REQUIRED"
    assert careless._logins.current.pool.connection_pool_kw["cert_reqs"] == "CERT_NONE"
    assert "the certificate of https://vim:6443 is not verified" in caplog.text


def test_no_file_with_a_certificate_is_left_once_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed process would leave behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with connect_vim("https://vim:6443", bearer_token="t", ca_text=CERTIFICATE) as cluster:
        pool = cluster._logins.current.pool
        assert len(pool.connection_pool_kw["ssl_context"].get_ca_certs()) == 1
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(ClusterError, match="expected certificates of authorities"):
        connect_vim("https://vim:6443", bearer_token="t", ca_text="none")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CERTIFICATE, id="as it is"),
        pytest.param(CERTIFICATE.replace("\n", " "), id="line breaks became spaces"),
        pytest.param(CERTIFICATE.replace("\n", "\r\n"), id="line breaks of another system"),
    ],
)
def test_a_certificate_is_read_however_its_lines_are_broken(text: str) -> None:
    assert pem(text) == CERTIFICATE
    assert pem(text + text) == CERTIFICATE * 2


KUBECONFIG = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://k8s:6443"}}],
        "users": [{"name": "u", "user": {"token": "kt"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
)


def test_a_kubeconfig_names_server_and_token(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    cluster = connect(str(file))
    pool = through(cluster, Answer(404, {}))
    cluster.get(POD)
    _, url, _, headers = pool.sent[0]
    assert url.startswith("https://k8s:6443/")
    assert headers["authorization"] == "Bearer kt"


@pytest.mark.parametrize(
    ("context", "expected"), [(None, {}), ("x", {"context": "x"})], ids=["current", "named"]
)
def test_a_script_reaches_a_cluster_by_the_same_kubeconfig(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    context: str | None,
    expected: dict[str, str],
) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    monkeypatch.chdir(tmp_path)
    assert connect("config", context).access == {"kubeconfig": str(file), **expected}
    monkeypatch.setenv("KUBECONFIG", f"{file}{os.pathsep}{tmp_path / 'none'}")
    assert connect(context=context).access == {"kubeconfig": str(file), **expected}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('"token": {"token": "kt"}', r"users\[0\].user: expected a mapping, found nothing"),
        ('"user": {"client-certificate": "no", "x": "kt"}', "no usable configuration"),
    ],
)
def test_a_credential_of_a_kubeconfig_that_is_refused_is_not_told(
    wrong: str, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.replace('"user": {"token": "kt"}', wrong))
    with pytest.raises(ClusterError, match=told) as raised:
        connect(str(file))
    assert '"kt"' in file.read_text()
    assert "kt'" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("no/file", "no kubeconfig no/file, which .KUBECONFIG names"),
        ("", r"~/\.kube/config"),
    ],
)
def test_where_no_kubeconfig_is_it_is_told_where_one_was_looked_for(
    variable: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", variable)
    with pytest.raises(ClusterError, match=told):
        connect()


def test_the_first_file_that_names_a_current_context_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(KUBECONFIG)
    names = KUBECONFIG.replace('"x"', '"y"').replace('"c"', '"d"')
    second.write_text(names.replace("k8s:", "other:"))
    monkeypatch.setenv(
        "KUBECONFIG", os.pathsep.join([str(tmp_path / "none"), "", *map(str, (first, second))])
    )
    cluster = connect()
    assert cluster.context == ClusterContext("https://k8s:6443", "x", "c", "u", "default")
    assert cluster.access == {"kubeconfig": f"{first}{os.pathsep}{second}", "context": "x"}
    with connect(**cluster.access) as again:
        assert again.context == cluster.context


def test_inside_a_cluster_the_service_account_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("sa-token")
    ca.write_text(CERTIFICATE)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    (tmp_path / "namespace").write_text("cnf\n")
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    cluster = connect()
    assert cluster.context == ClusterContext("https://10.96.0.1:443", namespace="cnf")
    pool = through(cluster, Answer(404, {}))
    cluster.get(POD)
    _, url, _, headers = pool.sent[0]
    assert url.startswith("https://10.96.0.1:443/")
    assert headers["authorization"].lower() == "bearer sa-token"
    assert cluster.access == {}


READ = Right("ns", "", "Pod", "get", "p")
WRITE = Right("ns", "", "Pod", "update", "p")
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def review(**status: Any) -> Answer:
    return Answer(201, {"kind": "SelfSubjectRulesReview", "status": status})


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        (review(resourceRules=[RULE], incomplete=False), (WRITE,)),
        (review(resourceRules=None, incomplete=False), (READ, WRITE)),
        (review(resourceRules=[RULE], incomplete=True), ()),
        (Answer(403, status(403, "Forbidden")), ()),
        (Answer(404, status(404, "NotFound")), ()),
    ],
    ids=["told", "none", "not all is known", "may not ask", "cannot be asked"],
)
def test_rights_are_asked_once_for_a_namespace(answer: Answer, refused: tuple[Right, ...]) -> None:
    cluster, pool = cluster_of(answer)
    assert cluster.missing_rights([READ, WRITE]) == refused
    ((method, url, body, _),) = pool.sent
    assert (method, urlsplit(url).path) == (
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    )
    assert body["spec"] == {"namespace": "ns"}


def test_a_server_that_is_away_is_no_answer_about_rights() -> None:
    cluster, _ = cluster_of(Answer(503, status(503, "ServiceUnavailable")))
    with pytest.raises(ClusterError, match="ask for the rights in namespace ns"):
        cluster.missing_rights([READ])


def test_the_end_of_a_log_is_text() -> None:
    cluster, pool = cluster_of(
        Answer(200, "one\ntwo ä\n".encode()), Answer(200, b"\xff cut in the middle of ")
    )
    assert cluster.log(POD, "main", previous=False, lines=5, limit=100) == "one\ntwo ä\n"
    assert cluster.log(POD, "main", previous=True, lines=2, limit=5) == "\ufffd cut"
    paths = [urlsplit(url) for _, url, _, _ in pool.sent]
    assert {path.path for path in paths} == {"/api/v1/namespaces/ns/pods/p/log"}
    assert [path.query for path in paths] == [
        "container=main&tailLines=5&limitBytes=100",
        "container=main&tailLines=2&limitBytes=5&previous=true",
    ]


def test_a_log_that_does_not_exist_is_an_error_with_its_status() -> None:
    message = 'previous terminated container "main" in pod "p" not found'
    cluster, _ = cluster_of(Answer(400, status(400, "BadRequest", message)))
    with pytest.raises(ClusterError, match="read the log of Pod ns/p, container main") as raised:
        cluster.log(POD, "main", previous=True, lines=5, limit=100)
    assert raised.value.status == 400


@pytest.mark.parametrize(
    ("login", "signs"),
    [
        ({"bearer_token": "t"}, True),
        ({"username": "u", "password": "p"}, True),
        ({"oidc": {**OIDC_LOGIN, "password": "p"}}, True),
        ({"oidc": {**OIDC_LOGIN, "client_secret": "s"}}, True),
        ({"username": "u"}, False),
        ({"oidc": OIDC_LOGIN}, False),
    ],
)
def test_a_vim_signs_by_what_is_secret_of_its_login_and_by_nothing_else(
    login: dict[str, Any], signs: bool
) -> None:
    with connect_vim("https://vim:6443", **login) as cluster:
        assert bool(cluster.journal_key) is signs
