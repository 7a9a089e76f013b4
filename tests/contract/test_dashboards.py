"""Dashboards: every query has a source, and panels do not overlap."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from modelyard.engines import metrics_of_exporter
from modelyard.observability import model_groups, platform_groups
from modelyard.observability.contract import Contract, contract
from modelyard.observability.selection import metrics_for
from modelyard.project import load_project
from tests.contract.conftest import Tree, folders_of
from tests.contract.test_alert_rules import promtool
from tests.contract.test_joins import servers

Board = dict[str, Any]
_MOST_BYTES = 200_000  # of the mebibyte that a ConfigMap holds


def boards(tree: Tree) -> dict[str, Board]:
    maps = [m for m in tree.of("ConfigMap") if m["metadata"]["labels"].get("grafana_dashboard") == "1"]
    return {name: json.loads(text) for m in maps for name, text in m["data"].items()}


def queries(board: Board) -> list[str]:
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]


def contract_of(tree: Tree) -> Contract:
    plan = load_project(tree.name, *folders_of(tree.name)).plan()
    assert plan is not None
    namespace = plan.environment.namespace
    of_models = [group for model in plan.models for group in model_groups(model, namespace)]
    return contract([metrics_for(model) for model in plan.models], [*platform_groups(plan), *of_models])


def test_there_are_dashboards_of_fleet_pools_cost_and_each_model(each: Tree) -> None:
    models = {item["metadata"]["name"] for item in servers(each)}
    names = {name.removeprefix(f"modelyard-{each.name}-").removesuffix(".json") for name in boards(each)}

    assert names == {"fleet", "pools", "cost", *(f"model-{name}" for name in models)}


def test_every_query_of_dashboards_and_scalers_meets_the_metric_contract(each: Tree) -> None:
    offered = contract_of(each)
    triggers = [t for s in each.of("ScaledObject") for t in s["spec"]["triggers"]]
    scalers = [t["metadata"]["query"] for t in triggers if t["type"] == "prometheus"]

    asked = [*scalers, *(query for board in boards(each).values() for query in queries(board))]
    assert len(asked) > 20
    assert [complaint for query in asked for complaint in offered.complaints(query)] == []


def test_prometheus_reads_every_query(each: Tree, tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{name}:{position}", "expr": query.replace("$__rate_interval", "5m")}
        for name, board in enumerate(boards(each).values())
        for position, query in enumerate(queries(board))
    ]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}), encoding="utf-8")

    checked = subprocess.run(
        [promtool(), "check", "rules", str(path)], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"SUCCESS: {len(rules)} rules found" in checked.stdout


def test_every_metric_on_the_pages_of_runbooks_exists(tree: Callable[[str], Tree]) -> None:
    offered = contract_of(tree("prod"))
    pages = (Path(__file__).parents[2] / "docs" / "runbooks").glob("*.md")
    blocks = [
        block.split("```")[0] for page in pages for block in page.read_text("utf-8").split("```promql\n")[1:]
    ]
    lines = [line for block in blocks for line in block.splitlines() if line]

    assert len(lines) > 20
    assert [complaint for line in lines for complaint in offered.complaints(line)] == []


def test_panels_do_not_overlap_and_stay_on_the_grid(each: Tree) -> None:
    for name, board in boards(each).items():
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            x, y = at.get("x", 0), at.get("y", 0)
            cells = {(column, line) for column in range(x, x + at["w"]) for line in range(y, y + at["h"])}
            assert not cells & taken, (name, panel["title"])
            assert x + at["w"] <= 24, (name, panel["title"])
            taken |= cells


def test_dashboards_have_stable_distinct_ids_and_no_fixed_data_source(each: Tree) -> None:
    found = boards(each)

    assert len({board["uid"] for board in found.values()}) == len(found)
    for board in found.values():
        assert len(board["uid"]) <= 40
        assert board["templating"]["list"][0]["name"] == "datasource"
        for panel in board["panels"]:
            if panel["type"] != "row":
                assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
                assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_a_dashboard_draws_the_line_at_which_its_alert_fires(tree: Callable[[str], Tree]) -> None:
    board = boards(tree("argocd"))["modelyard-argocd-model-support-chat.json"]
    limits = {
        panel["title"]: panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"]
        for panel in board["panels"]
        if panel["type"] != "row" and panel["fieldConfig"]["defaults"].get("thresholds")
    }

    assert limits["Time to first token"] == 0.8
    assert limits["KV cache in use"] == 0.95
    assert limits["Requests waiting a replica"] == 32


def test_a_config_map_stays_far_below_its_limit(each: Tree) -> None:
    for item in each.of("ConfigMap"):
        assert len(json.dumps(item)) < _MOST_BYTES, item["metadata"]["name"]


def test_the_gpu_exporter_collects_what_rules_ask_for(tree: Callable[[str], Tree]) -> None:
    values = tree("prod").only("HelmRelease", "dcgm-exporter")["spec"]["values"]
    collected = {line.split(",")[0] for line in values["customMetrics"].splitlines()}

    assert collected == metrics_of_exporter("dcgm-exporter").names
    assert all(len(line.split(",")) == 3 for line in values["customMetrics"].splitlines())


@pytest.mark.parametrize("kind", ["PrometheusRule", "PodMonitor", "ServiceMonitor"])
def test_prometheus_selects_every_rule_and_monitor(each: Tree, kind: str) -> None:
    labels = {"release": "yes" if each.name == "argocd" else "kube-prometheus-stack"}

    assert each.of(kind)
    for item in each.of(kind):
        assert labels.items() <= item["metadata"]["labels"].items()


def test_a_scrape_carries_the_name_of_its_model(each: Tree) -> None:
    label = "app.kubernetes.io/instance"
    for monitor in each.of("ServiceMonitor"):
        if "modelyard.dev/model" not in monitor["metadata"]["labels"]:
            continue
        instance = monitor["metadata"]["labels"][label]
        [service] = [
            s
            for s in each.of("Service")
            if monitor["spec"]["selector"]["matchLabels"].items() <= s["metadata"]["labels"].items()
        ]
        [relabeling] = monitor["spec"]["endpoints"][0]["relabelings"]
        source = "__meta_kubernetes_service_label_" + label.replace(".", "_").replace("/", "_")
        assert relabeling["sourceLabels"] == [source]
        assert relabeling["targetLabel"] == "model"
        assert service["metadata"]["labels"][label] == instance


def test_the_pod_monitor_of_neuron_finds_its_pods(tree: Callable[[str], Tree]) -> None:
    prod = tree("prod")
    monitor = prod.only("PodMonitor", "neuron-monitor")["spec"]
    daemons = prod.only("DaemonSet", "neuron-monitor")
    template = daemons["spec"]["template"]

    assert monitor["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert monitor["namespaceSelector"]["matchNames"] == [daemons["metadata"]["namespace"]]
    [port] = template["spec"]["containers"][0]["ports"]
    assert monitor["podMetricsEndpoints"][0]["portNumber"] == port["containerPort"]
    taints = {t["key"] for t in prod.only("NodePool", "trn2")["spec"]["template"]["spec"]["taints"]}
    assert taints <= {t["key"] for t in template["spec"]["tolerations"]}


def test_traces_have_a_flag_and_a_way_out_of_the_pod(tree: Callable[[str], Tree]) -> None:
    rendered = tree("argocd")
    server = rendered.only("Deployment", "support-chat")["spec"]["template"]["spec"]["containers"][0]
    policy = rendered.only("NetworkPolicy", "support-chat")["spec"]["egress"][-1]

    assert "--otlp-traces-endpoint=http://collector.watch:4317" in server["args"]
    assert policy["to"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "watch"}
    assert policy["ports"] == [{"port": 4317, "protocol": "TCP"}]
    other = rendered.only("Deployment", "vision")["spec"]["template"]["spec"]["containers"][0]
    assert not any("otlp" in arg for arg in other["args"])
