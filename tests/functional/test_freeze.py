# SPDX-License-Identifier: Apache-2.0
"""``freeze``: no operation of an instance begins; what is under way can be ended."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from container_update import (
    NextStep,
    PlanError,
    StepResult,
    UpdateRequest,
    freeze,
    install,
    status,
    undo,
    unfreeze,
    update,
)
from tests.functional.cnf import Cnf
from tests.functional.manifests import workload
from tests.functional.real import one_of
from tests.functional.reference_update import Lab
from tests.functional.verbs import OPTIONS, RECOVERIES, VERBS, Site, Verb
from tests.internals.core import ObjectKey, main, name_of

WHY = "the night of the final"
ENDING = {"resume", "rollback", "promote", "abort", "the same update"}
"""They end what is under way."""


@pytest.fixture
def site(lab: Lab) -> Site:
    return Site(lab)


def lease_of(site: Site) -> dict[str, Any] | None:
    name = name_of(site.where["instance_id"])
    return site.lab.cluster.get(ObjectKey("coordination.k8s.io", "Lease", site.namespace, name))


def lift(site: Site) -> None:
    assert unfreeze(site.lab.cluster, OPTIONS, **site.where)
    assert lease_of(site) is None


@pytest.mark.parametrize(
    "verb", one_of(4, [*VERBS, *RECOVERIES], everywhere=True), ids=lambda verb: verb.name
)
def test_a_frozen_instance_lets_no_operation_begin_and_each_one_that_is_under_way_end(
    verb: Verb, site: Site
) -> None:
    verb.arrange(site)
    assert site.checker, "what is there is remembered"
    before = [] if verb.name in ENDING else site.differences(verb.old)
    freeze(site.lab.cluster, OPTIONS, **site.where, why=WHY)
    if verb.name in ENDING:
        assert verb.act(site, site.lab.cluster)
        assert site.differences(verb.new, *verb.resumed) == []
    else:
        with pytest.raises(PlanError, match=WHY) as refused:
            verb.act(site, site.lab.cluster)
        assert refused.value.next_step is NextStep.UNFREEZE
        assert site.differences(verb.old) == before
    assert status(site.lab.cluster, OPTIONS, **site.where).frozen, "it is frozen still"
    lift(site)
    if verb.name not in ENDING:
        assert verb.act(site, site.lab.cluster)
        assert site.differences(verb.new, *verb.resumed) == []
    assert lease_of(site) is None


# --- how it is set and shown ---------------------------------------------------------------------


@pytest.fixture
def where(cnf: Cnf) -> dict[str, Any]:
    """An instance that is installed, as the library names it."""
    package = cnf.package({"w.yaml": workload("Deployment", "a")})
    where = {"namespace": cnf.namespace, "instance_id": "one", "options": cnf.options}
    install(package, cnf.admin, **where)
    return where


def said(cnf: Cnf, kubeconfig: str, *words: str, status: int = 0) -> str:
    """Return what a command about the namespace writes; it ends with this exit status."""
    out = io.StringIO()
    assert main([*words, "--kubeconfig", kubeconfig, "-n", cnf.namespace], out) == status
    return out.getvalue()


def request_of(cnf: Cnf, package: str) -> UpdateRequest:
    return UpdateRequest("", package, namespace=cnf.namespace, instance_id="one")


def newer(cnf: Cnf) -> str:
    return cnf.package({"w.yaml": workload("Deployment", "a", image="nginx:1.28-alpine")})


def test_the_commands_set_show_and_lift_it_and_a_refusal_names_who_until_when_why_and_the_command(
    cnf: Cnf,
    where: dict[str, Any],
    admin_kubeconfig: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = said(cnf, admin_kubeconfig, "freeze", "--until", "8h", "-m", WHY)
    frozen = status(cnf.admin, **where).frozen
    assert frozen
    assert f"{frozen}" in told
    until = datetime.fromisoformat(frozen.until) - datetime.fromisoformat(frozen.since)
    assert timedelta(hours=7.9) < until <= timedelta(hours=8)
    for words in (("status",), ("list",)):
        shown = said(cnf, admin_kubeconfig, *words, status=0 if words[0] == "list" else 2)
        assert str(frozen) in shown
    document = json.loads(said(cnf, admin_kubeconfig, "status", "-o", "json", status=2))
    assert document["frozen"]["why"] == WHY
    capsys.readouterr()
    said(cnf, admin_kubeconfig, "apply", newer(cnf), status=5)
    assert said(cnf, admin_kubeconfig, "plan", newer(cnf), status=3)
    refusal = capsys.readouterr().err
    when = f"until {frozen.until[:10]} {frozen.until[11:19]} UTC ({WHY}), so no operation"
    for part in (frozen.who, when, "container-update unfreeze --"):
        assert part in refusal
    said(cnf, admin_kubeconfig, "doctor", status=5)
    said(cnf, admin_kubeconfig, "freeze", status=5)
    assert WHY in said(cnf, admin_kubeconfig, "unfreeze")
    assert said(cnf, admin_kubeconfig, "unfreeze", status=2)
    said(cnf, admin_kubeconfig, "apply", newer(cnf))


@pytest.mark.parametrize("until", ["soon", "-1h", "0", "2020-01-01T00:00Z", "1e99"])
def test_a_time_that_has_passed_or_is_none_is_wrong_usage(
    until: str, cnf: Cnf, admin_kubeconfig: str
) -> None:
    with pytest.raises(SystemExit, match="64"):
        said(cnf, admin_kubeconfig, "freeze", f"--until={until}")


def test_an_instance_that_is_not_there_cannot_be_frozen(cnf: Cnf, where: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="another is not known"):
        freeze(cnf.admin, **{**where, "instance_id": "another"})


def test_of_two_that_freeze_at_once_one_does_and_the_other_is_told_by_which(
    cnf: Cnf, where: dict[str, Any]
) -> None:
    def write(why: str) -> str:
        try:
            return freeze(cnf.admin, **where, why=why).why
        except PlanError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        told = sorted(pool.map(write, "abcd"))
    frozen = status(cnf.admin, **where).frozen
    assert frozen
    assert [text for text in told if str(frozen) not in text] == [frozen.why]


def test_one_that_comes_while_an_operation_runs_lets_that_end_and_no_other_begin(
    cnf: Cnf, where: dict[str, Any]
) -> None:
    def stop_others(event: object) -> None:
        if isinstance(event, StepResult):
            freeze(cnf.admin, **where, why=WHY)

    package = cnf.package({"w.yaml": workload("Deployment", "a", image="nginx:1.26")})
    assert update(request_of(cnf, package), cnf.admin, cnf.options, progress=stop_others).results
    with pytest.raises(PlanError, match=WHY):
        undo(cnf.admin, **where)
    assert unfreeze(cnf.admin, **where)
    assert undo(cnf.admin, **where)


def test_one_whose_time_has_passed_is_none_and_one_that_cannot_be_read_is_in_force(
    cnf: Cnf, where: dict[str, Any]
) -> None:
    freeze(cnf.admin, **where, until=datetime.now(timezone.utc) + timedelta(hours=1))
    key = ObjectKey("coordination.k8s.io", "Lease", cnf.namespace, name_of("one"))
    lease = cnf.admin.get(key)
    assert lease
    (name,) = lease["metadata"]["annotations"]
    written = json.loads(lease["metadata"]["annotations"][name])
    for text, is_frozen in (
        ({**written, "until": "2020-01-01T00:00:00+00:00"}, False),
        ({**written, "until": "2020-01-01T00:00:00"}, True),
        ({**written, "until": "for ever"}, True),
        ({**written, "why": "two\nlines"}, True),
        ({**written, "why": "x" * 301}, True),
        ([[]], True),
    ):
        lease["metadata"]["annotations"][name] = json.dumps(text)
        lease = cnf.admin.replace(lease)
        found = status(cnf.admin, **where).frozen
        assert (found is not None, str(found).count("\n")) == (is_frozen, 0), text
    with pytest.raises(PlanError, match="frozen by another client"):
        update(request_of(cnf, newer(cnf)), cnf.admin, cnf.options)
    assert unfreeze(cnf.admin, **where)
    assert cnf.admin.get(key) is None
