# SPDX-License-Identifier: Apache-2.0
"""The table of requests, and how a server answers them.

``requests/*.yaml`` has the requests: a file a subject, each played in order in a namespace of its
own. ``answers/*.json`` has what a Kubernetes 1.36 answered; ``python -m tests.emulator.record``
makes it anew.

A row has a sentence as its ``name`` and one request: its method as the key, the path as the value.

=============  ===============================================================================
``body``       the object that is sent
``with``       a merge patch that is applied to the body first
``type``       the subtype of a PATCH: merge-patch, strategic-merge-patch, json-patch, apply-patch
``as``         the service account whose token is sent; the administrator's without it
``remember``   a name for the answer: ``{name.metadata.uid}`` in a later row is that text, and a
               text that is nothing else is the value itself
``until``      fields of the answer, by path, that the request is repeated for; ``code`` is its
               status
``events``     of a WATCH, how many of them are read
``differs``    why the embedded cluster answers otherwise
=============  ===============================================================================

``{ns}`` is the namespace. A row that has ``circle`` instead stands for the rows of :data:`CIRCLE`.
"""

from __future__ import annotations

import copy
import functools
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.emulator.client import Answer, Api, eventually
from tests.emulator.sameness import ANY_TEXT, LEFT_OUT, RANDOM, TIME

REQUESTS = Path(__file__).parent / "requests"
ANSWERS = Path(__file__).parent / "answers"
SUBJECTS = sorted(path.stem for path in REQUESTS.glob("*.yaml"))
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "WATCH")
_UNKNOWN_UID = "00000000-0000-4000-8000-000000000000"

CIRCLE: list[dict[str, Any]] = [
    {"name": "does not exist at first", "GET": "{item}"},
    {"name": "is created in a dry run", "POST": "{all}?dryRun=All", "body": "{body}"},
    {"name": "does not exist after the dry run", "GET": "{item}"},
    {"name": "is created", "POST": "{all}", "body": "{body}", "remember": "live"},
    {"name": "cannot be created twice", "POST": "{all}", "body": "{body}"},
    {"name": "cannot be created twice in a dry run", "POST": "{all}?dryRun=All", "body": "{body}"},
    {"name": "cannot have another apiVersion", "POST": "{all}", "body": "{body}",
     "with": {"apiVersion": "other.example/v1"}},
    {"name": "cannot have an unknown field under Strict",
     "POST": "{all}?dryRun=All&fieldValidation=Strict", "body": "{body}",
     "with": {"metadata": {"name": "strict"}, "unknownField": 1}},
    {"name": "is read", "GET": "{item}"},
    {"name": "cannot be replaced in an old version", "PUT": "{item}", "body": "{body}",
     "with": {"metadata": {"resourceVersion": "1"}}},
    {"name": "cannot be replaced as another object", "PUT": "{item}", "body": "{body}",
     "with": {"metadata": {"uid": _UNKNOWN_UID}}},
    {"name": "cannot be replaced under another name", "PUT": "{item}", "body": "{body}",
     "with": {"metadata": {"name": "other"}}},
    {"name": "is replaced in a dry run", "PUT": "{item}?dryRun=All", "body": "{body}",
     "with": {"metadata": {"labels": {"changed": "yes"}}}},
    {"name": "is replaced", "PUT": "{item}", "body": "{body}",
     "with": {"metadata": {"annotations": {"changed": "yes"}}}},
    {"name": "is patched", "PATCH": "{item}", "type": "merge-patch",
     "body": {"metadata": {"labels": {"patched": "yes"}}}},
    {"name": "cannot be deleted as another object", "DELETE": "{item}",
     "body": {"preconditions": {"uid": _UNKNOWN_UID}}},
    {"name": "cannot be deleted in an old version", "DELETE": "{item}",
     "body": {"preconditions": {"resourceVersion": "1"}}},
    {"name": "stays after a dry run of its deletion", "DELETE": "{item}?dryRun=All"},
    {"name": "is still there", "GET": "{item}"},
    {"name": "is deleted though the query beside a body says dryRun",
     "DELETE": "{item}?dryRun=All", "body": {"propagationPolicy": "Background"}},
    {"name": "is gone in the end", "GET": "{item}", "until": {"code": 404}},
]  # fmt: skip
"""What each kind is asked in ``circle`` rows; ``all`` is the path of the collection."""


@dataclass(frozen=True)
class Row:
    """A request of the table."""

    name: str
    method: str
    path: str
    body: Any = None
    change: Any = None
    type: str = "merge-patch"
    account: str = ""
    remember: str = ""
    until: dict[str, Any] = field(default_factory=dict)
    events: int = 0
    differs: str = ""


def rows(subject: str) -> list[Row]:
    """Return the requests of a subject, in order; each has a name of its own."""
    text = (REQUESTS / f"{subject}.yaml").read_text()
    found = [row for entry in yaml.safe_load(text) for row in _expanded(entry)]
    names = [row.name for row in found]
    assert len(set(names)) == len(names), f"{subject}: {[n for n in names if names.count(n) > 1]}"
    return found


def answers(subject: str) -> dict[str, Any]:
    """Return the recorded answers of a subject, by the name of the row."""
    recorded: dict[str, Any] = json.loads((ANSWERS / f"{subject}.json").read_text())
    return recorded


def _expanded(entry: dict[str, Any]) -> Iterator[Row]:
    if "circle" not in entry:
        yield _row(entry)
        return
    kind, differs = entry["circle"], entry.get("differs", {})
    name = entry["body"]["metadata"]["name"]
    known = {"all": entry["all"], "item": f"{entry['all']}/{name}", "body": entry["body"]}
    for row in CIRCLE:
        asked = {key: _resolved(value, known) for key, value in row.items()}
        asked |= {"name": f"a {kind} {row['name']}", "differs": differs.get(row["name"], "")}
        yield _row(asked)


def _row(entry: dict[str, Any]) -> Row:
    given = dict(entry)
    (method,) = (key for key in _METHODS if key in given)
    options = {"with": "change", "as": "account"}
    path = given.pop(method)
    return Row(method=method, path=path, **{options.get(k, k): v for k, v in given.items()})


def _resolved(value: Any, known: dict[str, Any]) -> Any:
    """Return *value* with each ``{name.path}`` of a known name replaced."""
    if isinstance(value, dict):
        return {key: _resolved(entry, known) for key, entry in value.items()}
    if isinstance(value, list):
        return [_resolved(entry, known) for entry in value]
    if not isinstance(value, str):
        return value

    def found(match: re.Match[str]) -> Any:
        name, *steps = match[1].split(".")
        if name not in known:
            return match[0]
        return functools.reduce(_step, steps, known[name])

    pattern = re.compile(r"\{(\w+(?:\.\w+)*)\}")
    whole = pattern.fullmatch(value)
    if whole:
        return copy.deepcopy(found(whole))
    return pattern.sub(lambda match: str(found(match)), value)


def merged(body: Any, change: Any) -> Any:
    """Return *body* after a merge patch (RFC 7386)."""
    if not isinstance(change, dict):
        return change
    result = dict(body) if isinstance(body, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


# --- playing ----------------------------------------------------------------------------------


class Player:
    """Plays the requests of a subject against a server, as its administrator.

    :param seconds: the time limit of each ``until``.
    """

    def __init__(self, subject: str, api: Api, seconds: float) -> None:
        self.unmet: list[str] = []
        """The rows whose ``until`` never came."""
        self._seconds = seconds
        self.namespace = f"table-{subject}"
        self._rows = rows(subject)
        self._api = api
        self._known: dict[str, Any] = {"ns": self.namespace}
        self._tokens: dict[str, str] = {}
        self._cluster_scoped: list[str] = []

    def play(self) -> dict[str, Any]:
        """Return each row's answer by its name, without what differs between two runs."""
        self._create_namespace()
        try:
            return {row.name: self._answer(row) for row in self._rows}
        finally:
            self._clean_up()

    def _create_namespace(self) -> None:
        api = self._api
        assert api.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}}).status == 201
        # a real cluster's controllers make both after a moment, and pods need them
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            read = functools.partial(api.get, f"/api/v1/namespaces/{self.namespace}/{path}")
            eventually(read, lambda answer: answer.status == 200, path)

    def _clean_up(self) -> None:
        for path in reversed(self._cluster_scoped):
            self._api.delete(path)
        self._api.delete(f"/api/v1/namespaces/{self.namespace}")

    def _answer(self, row: Row) -> Any:
        path = _resolved(row.path, self._known)
        if row.method == "WATCH":
            return self._watched(path, row.events)
        body = _resolved(row.body, self._known)
        if row.change is not None:
            body = merged(body, _resolved(row.change, self._known))
        until = _resolved(row.until, self._known)
        answer = self._repeated(row, path, body, until)
        if row.method == "POST" and answer.status == 201 and "/namespaces/" not in path:
            name = answer.body.get("metadata", {}).get("name")
            self._cluster_scoped.append(f"{path.partition('?')[0]}/{name}")
        if row.remember:
            self._known[row.remember] = answer.body
        return {"code": answer.status} | self._plain_body(row, answer.body)

    def _repeated(self, row: Row, path: str, body: Any, until: dict[str, Any]) -> Answer:
        """Send a request until its answer is as *until* says, or the deadline is over."""
        end = time.monotonic() + self._seconds
        while True:
            answer = self._send(row, path, body)
            if all(_at(answer, steps) == value for steps, value in until.items()):
                return answer
            if time.monotonic() > end:
                self.unmet.append(f"{row.name}: not within {self._seconds} s: {until}")
                return answer
            time.sleep(0.005)

    def _send(self, row: Row, path: str, body: Any) -> Answer:
        headers = {}
        if row.method == "PATCH":
            headers["Content-Type"] = f"application/{row.type}+{_FORMATS.get(row.type, 'json')}"
        token = self._token(row.account) if row.account else None
        return self._api.request(row.method, path, body, headers, token=token)

    def _token(self, account: str) -> str:
        """Return a token of a service account of the namespace, which a row has created."""
        if account not in self._tokens:
            path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
            answer = self._api.post(path, {"spec": {"audiences": None}})
            self._tokens[account] = answer.body["status"]["token"]
        return self._tokens[account]

    def _watched(self, path: str, number: int) -> Any:
        events = []
        for event in self._api.watch(path):
            thing = event["object"]
            events.append(
                [event["type"], thing["kind"], _without_random(thing["metadata"].get("name", ""))]
                if event["type"] != "ERROR"
                else ["ERROR", thing["code"], thing["reason"]]
            )
            if len(events) == number:
                break
        return {"code": 200, "events": events}

    def _plain_body(self, row: Row, body: Any) -> dict[str, Any]:
        if not isinstance(body, dict):
            return {"text": bool(body)}
        if body.get("kind") == "Status":
            return {"body": _plain_status(body)}
        shows_status = row.method == "POST" or bool(row.until)
        shown = plain(body, shows_status=shows_status)
        if not shown.get("metadata"):
            shown.pop("metadata", None)  # of an answer that is not stored
        return {"body": shown}


_FORMATS = {"apply-patch": "yaml"}

_RACES = {
    "deployment.kubernetes.io/revision", "nodeName", "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller", "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner", "volume.kubernetes.io/selected-node",
    "volumeName", "kube-root-ca.crt", "remainingItemCount", "storageVersionHash",
}  # fmt: skip
"""Fields that a controller writes at a moment of its own."""
_OF_THE_LAB = "openshift-service-ca.crt"
"""What a distribution of Kubernetes mounts into every pod beside the certificate of the cluster."""
_IDS = LEFT_OUT | _RACES | {"uid", "resourceVersion", "controller-uid"}
_UNORDERED = {"nonResourceRules", "resourceRules", "verbs"}
_PORTS = {"nodePort", "healthCheckNodePort"}
_HELD = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NODE = re.compile(r"\bnode-\d")
_VERSION = re.compile(r"(ResourceVersion in (?:the precondition|record):? \(?)\d+", re.IGNORECASE)


def plain(value: Any, *, shows_status: bool = True, key: str = "") -> Any:
    """Return an object without ids, times, versions, addresses and random names."""
    if isinstance(value, dict):
        kept = {
            name: plain(entry, shows_status=shows_status, key=name)
            for name, entry in value.items()
            if name not in _IDS and not name.endswith("controller-uid")
        }
        if kept.get("type") == "PodScheduled":
            kept.pop("observedGeneration", None)  # which kubelets do not write, as the lab's do
        if not shows_status and "metadata" in kept:
            kept.pop("status", None)
        return {name: entry for name, entry in kept.items() if entry != {} or value[name] == {}}
    if isinstance(value, list):
        kept_entries = [
            plain(entry, shows_status=shows_status, key=key)
            for entry in value
            if not _is_of_the_lab(entry)
        ]
        return sorted(kept_entries, key=json.dumps) if key in _UNORDERED else kept_entries
    if key in ANY_TEXT and value not in ("None", ""):
        return "<any>"
    if key in _PORTS:
        return "<port>"
    return _without_random(value) if isinstance(value, str) else value


def _is_of_the_lab(source: Any) -> bool:
    return isinstance(source, dict) and source.get("configMap", {}).get("name") == _OF_THE_LAB


def _plain_status(body: dict[str, Any]) -> dict[str, Any]:
    """Return what programs decide by: status, reason and causes; a message is for people."""
    kept: dict[str, Any] = {key: body[key] for key in ("status", "reason") if key in body}
    details = plain(body.get("details") or {})
    if details.get("causes"):
        causes = {json.dumps(_plain_cause(cause), sort_keys=True) for cause in details["causes"]}
        details["causes"] = [json.loads(cause) for cause in sorted(causes)]
    return kept | ({"details": details} if details else {})


def _plain_cause(cause: dict[str, Any]) -> dict[str, Any]:
    """Return a cause without the structures that its message prints as Go does."""
    first_line = cause.get("message", "").partition("\n")[0]  # what follows is a diff in Go
    return cause | {"message": _STRUCTURE.sub(r"\1 <structure>", first_line)}


_STRUCTURE = re.compile(r"^(\w+ value:) (\{.*\}|\[.*\])(?=: |$)")


def _without_random(text: str) -> str:
    text = _VERSION.sub(r"\1<version>", _HELD.sub("<uid>", TIME.sub("<time>", text)))
    text = _NODE.sub("<node>", text)
    return RANDOM.sub("-<random>", text)


def _at(answer: Answer, steps: str) -> Any:
    """Return the field of an answer at a path such as ``status.readyReplicas``."""
    if steps == "code":
        return answer.status
    return functools.reduce(_step, steps.split("."), answer.body)


def _step(value: Any, step: str) -> Any:
    if isinstance(value, list):
        return value[int(step)] if int(step) < len(value) else None
    return value.get(step) if isinstance(value, dict) else None
