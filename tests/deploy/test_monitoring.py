# SPDX-License-Identifier: Apache-2.0
"""The alert rules for Prometheus and the dashboard for Grafana: of metrics that there are."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.deploy.manifests import ROOT
from tests.internals.service import Database, Gauges, Instance, Metrics, OperationRow, Package, now

promql = pytest.importorskip(
    "promql_parser", reason="no promql-parser: pip install promql-parser, on Linux"
)

Json = dict[str, Any]
RULES: Json = yaml.safe_load((ROOT / "deploy/prometheus/container-update.rules.yaml").read_text())
DASHBOARD: Json = json.loads((ROOT / "deploy/grafana/container-update.json").read_text())
ALERTS: list[Json] = [rule for group in RULES["groups"] for rule in group["rules"]]
PANELS: list[Json] = DASHBOARD["panels"]
OF_PROMETHEUS = {"up": {"job", "instance"}}
"""A metric that Prometheus makes of each scrape, and its labels."""
OF_TARGET = {"job", "instance"}
"""The labels that Prometheus adds to every metric."""
VARIABLES = {"$job": "x", "$__rate_interval": "5m"}
"""What Grafana puts in the place of a variable, for example."""
WIDTH = 24


def names(family: Any) -> Iterator[str]:
    """Yield the names by which a metric is asked for."""
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    for suffix in suffixes.get(family.type, ("",)):
        yield family.name + suffix


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, set[str]]:
    """The labels of every metric, by its name, once something of each kind was counted."""
    folder = tmp_path_factory.mktemp("metrics")
    database = Database(f"sqlite:///{folder / 'vnfm.sqlite'}")
    database.upgrade()
    moment = now()
    with database.writing() as session:
        package = Package(
            id="a", created=moment, onboarding_state="ONBOARDED", operational_state="ENABLED",
            vnfd_id="v", user_data={}, body={},
        )  # fmt: skip
        operation = OperationRow(
            id="b", api="v2", instance_id="c", operation="HEAL", state="COMPLETED",
            started=moment, entered=moment, params={}, sealed="",
        )  # fmt: skip
        session.add_all([package, operation])
        session.flush()
        session.add(
            Instance(id="c", created=moment, api="v2", vnfd_id="v", instantiated=True, body={})
        )
    metrics = Metrics()
    metrics.count_state("HEAL", "COMPLETED", 1.0)
    metrics.count_answer("GET", "/", 200, 0.1)
    metrics.registry.register(Gauges(database, lambda: 0, 1))
    found: defaultdict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families(metrics_text(metrics)):
        for sample in family.samples:
            found[sample.name] |= sample.labels.keys()
        for name in names(family):
            assert name in found, f"nothing is counted of {name}"
    database.close()
    return found


def metrics_text(metrics: Metrics) -> str:
    from prometheus_client import generate_latest  # noqa: PLC0415

    return generate_latest(metrics.registry).decode()


def expressions() -> Iterator[tuple[str, str]]:
    """Yield every query, after the title of what has it."""
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            text = target["expr"]
            for variable, value in VARIABLES.items():
                text = text.replace(variable, value)
            yield panel["title"], text


def selectors(expression: Any) -> list[Any]:
    """Return the selectors of a query."""
    found: list[Any] = []

    def visit(each: Any) -> None:
        if isinstance(each, promql.VectorSelector):
            found.append(each)
        elif isinstance(each, promql.MatrixSelector):
            found.append(each.vector_selector)

    promql.walk(expression, visit)
    return found


@pytest.mark.parametrize(("title", "text"), list(expressions()))
def test_every_query_is_valid_and_of_metrics_and_labels_that_there_are(
    title: str, text: str, exposed: Mapping[str, set[str]]
) -> None:
    known = {**exposed, **OF_PROMETHEUS}
    query = promql.parse(text)  # refuses what Prometheus would refuse, wrong types too
    for selector in selectors(query):
        assert selector.name in known, title
        matched = {matcher.name for matcher in selector.matchers.matchers}
        assert matched <= known[selector.name] | OF_TARGET, (title, selector.name)
    labels = set().union(*(known[selector.name] for selector in selectors(query))) | OF_TARGET
    grouped = {name.strip() for by in re.findall(r"by \(([^)]*)\)", text) for name in by.split(",")}
    assert grouped <= labels, title


def test_the_dashboard_shows_every_metric(exposed: Mapping[str, set[str]]) -> None:
    shown = " ".join(target["expr"] for panel in PANELS for target in panel["targets"])
    ours = {name for name in exposed if not name.endswith(("_created", "_sum", "_count"))}
    assert [name for name in sorted(ours) if name not in shown] == []


# --- Prometheus -----------------------------------------------------------------------------------


def test_the_rules_have_the_structure_that_prometheus_reads() -> None:
    assert RULES.keys() == {"groups"}
    for group in RULES["groups"]:
        assert group.keys() == {"name", "rules"}
    alerts = [rule["alert"] for rule in ALERTS]
    assert len(alerts) == len(set(alerts)) > 5


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_happened_and_what_to_do(rule: Json) -> None:
    assert {"alert", "expr", "labels", "annotations"} <= rule.keys()
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"ContainerUpdate[A-Za-z]+", rule["alert"])
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"].keys() == {"summary", "description"}
    assert all(isinstance(text, str) and text for text in rule["annotations"].values())


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_names_only_labels_that_its_query_leaves(rule: Json) -> None:
    texts = " ".join(rule["annotations"].values())
    values = re.findall(r"{{ (.*?) }}", texts)
    assert texts.count("{{") == len(values)
    grouped = re.match(r"\w+ by \(([^)]*)\)", rule["expr"])
    left = {name.strip() for name in grouped[1].split(",")} if grouped else OF_TARGET
    assert {value.removeprefix("$labels.") for value in values} - {"$value"} <= left


# --- Grafana --------------------------------------------------------------------------------------


def test_the_dashboard_can_be_imported_beside_others() -> None:
    assert (DASHBOARD["uid"], "id" in DASHBOARD) == ("container-update", False)
    assert isinstance(DASHBOARD["schemaVersion"], int)
    assert DASHBOARD["title"]
    ids = [panel["id"] for panel in PANELS]
    assert len(ids) == len(set(ids)) == len({panel["title"] for panel in PANELS})
    assert "__inputs" not in DASHBOARD, "provisioning knows no inputs"


def test_the_panels_fit_beside_each_other() -> None:
    places = [panel["gridPos"] for panel in PANELS]
    assert all(place["x"] + place["w"] <= WIDTH for place in places)
    for one, other in itertools.combinations(places, 2):
        is_beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        is_below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert is_beside or is_below, (one, other)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_has_queries_of_the_chosen_source(panel: Json) -> None:
    assert panel["type"] in ("stat", "timeseries")
    assert panel["description"].endswith(".")
    assert [target["refId"] for target in panel["targets"]] == ["A", "B"][: len(panel["targets"])]
    for part in (panel, *panel["targets"]):
        assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for target in panel["targets"]:
        assert target["expr"].count("{") == target["expr"].count('{job=~"$job"')
        legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        by = re.search(r"by \(([^)]*)\)", target["expr"])
        assert legend <= {name.strip() for name in by[1].split(",")} if by else not legend


def test_every_variable_of_the_dashboard_is_used() -> None:
    variables = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert variables == ["datasource", "job"]
    assert DASHBOARD["templating"]["list"][1]["query"]["query"].startswith("label_values(")
    text = json.dumps(PANELS)
    assert all(re.search(rf"\$\{{?{name}", text) for name in variables)


@pytest.mark.parametrize("name", ["grafana/container-update.json",
                                  "prometheus/container-update.rules.yaml"])  # fmt: skip
def test_the_documentation_names_the_files(name: str) -> None:
    page = Path(ROOT / "doc/source/vnfm.rst").read_text(encoding="utf-8")
    assert f"deploy/{name}" in page
