"""The metric tables, and their contract with every query."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from modelyard.engines import EXPORTERS, metrics_of, metrics_of_exporter, releases
from modelyard.engines.metrics_page import read_page, table
from modelyard.observability import Recording, RuleGroup, model_groups, platform_groups
from modelyard.observability.contract import Contract, broken_rules, contract
from modelyard.observability.selection import Selection, metrics_for
from modelyard.observability.service_levels import slow_share
from modelyard.planning import Plan
from modelyard.project import load_project

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "tests" / "fixtures" / "vllm_metrics.txt"
TABLE = ROOT / "constructs" / "modelyard" / "engines" / "vllm" / "metrics.json"
EVERYTHING = ROOT / "tests" / "fixtures" / "everything"


@cache
def plan() -> Plan:
    found = load_project("argocd", EVERYTHING / "models", EVERYTHING / "environments").plan()
    assert found is not None
    return found


@cache
def groups() -> tuple[RuleGroup, ...]:
    of_models = (group for model in plan().models for group in model_groups(model, "llm"))
    return (*platform_groups(plan()), *of_models)


@cache
def offered() -> Contract:
    return contract([metrics_for(model) for model in plan().models], groups())


def test_the_table_of_vllm_is_the_page_that_a_real_server_gave() -> None:
    written = table(
        PAGE.read_text("utf-8"), engine="vllm", version="0.32.0", since="0.32.0", recorded="2026-11-21"
    )

    assert TABLE.read_text("utf-8") == written


def test_a_page_is_read_with_types_labels_values_and_bounds() -> None:
    page = """\
# TYPE a:done_total counter
a:done_total{engine="0",finished_reason="stop"} 1.0
a:done_total{engine="0",finished_reason="error"} 0.0
# TYPE a:done_created gauge
a:done_created{engine="0"} 1.7e+09
# TYPE a:tokens_total histogram
a:tokens_total_bucket{engine="0",le="0.5"} 1.0
a:tokens_total_bucket{engine="0",le="+Inf"} 1.0
a:tokens_total_count{engine="0"} 1.0
a:tokens_total_sum{engine="0"} 0.2
"""
    assert read_page(page) == {
        "a:done_total": {
            "type": "counter",
            "labels": ["engine", "finished_reason"],
            "values": {"finished_reason": ["error", "stop"]},
        },
        "a:tokens_total": {"type": "histogram", "labels": ["engine"], "bounds": ["0.5", "+Inf"]},
    }


@pytest.mark.parametrize("engine", ["vllm", "vllm-neuron", "llama-server", "sglang", "triton"])
def test_every_signal_is_a_metric_of_its_engine(engine: str) -> None:
    metrics = metrics_of(engine, "99999")

    for signal, metric in vars(metrics.signals).items():
        if metric is not None:
            assert metric.partition("{")[0] in metrics.families, (engine, signal)
    assert metrics.recorded
    assert metrics.source


def test_every_release_that_can_be_planned_has_a_table() -> None:
    for release in releases():
        found = metrics_of(release.engine, release.version)
        assert found.signals.waiting is not None


def test_an_engine_or_release_without_a_table_is_an_error() -> None:
    with pytest.raises(KeyError, match="ollama"):
        metrics_of("ollama", "1.0")
    with pytest.raises(KeyError, match=r"vllm 0\.9\.0"):
        metrics_of("vllm", "0.9.0")
    with pytest.raises(KeyError, match="node-exporter"):
        metrics_of_exporter("node-exporter")


def test_every_exporter_has_a_dated_table() -> None:
    for name in EXPORTERS:
        assert metrics_of_exporter(name).names
        assert metrics_of_exporter(name).recorded


def test_every_rule_asks_for_what_there_is() -> None:
    assert broken_rules(groups(), offered()) == []


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ('vllm:gpu_cache_usage_perc{model="a"}', "no /metrics page has vllm:gpu_cache_usage_perc"),
        ("rate(vllm:num_preemptions[5m])", "no /metrics page has vllm:num_preemptions"),
        ("model:requests_pending:sum", "no /metrics page has model:requests_pending:sum"),
        ('vllm:num_requests_waiting{modle="a"}', "vllm:num_requests_waiting has no label modle"),
        ('model:kv_cache_usage:max{pod="a"}', "model:kv_cache_usage:max has no label pod"),
        (
            'vllm:request_success_total{finished_reason="failed"}',
            "finished_reason of vllm:request_success_total is never failed",
        ),
        (
            'kube_pod_status_phase{phase=~"Pending|Waiting"}',
            "phase of kube_pod_status_phase is never Waiting",
        ),
        (
            'vllm:time_to_first_token_seconds_bucket{le="0.8"}',
            "le of vllm:time_to_first_token_seconds_bucket is never 0.8",
        ),
        ("sum by (modle) (vllm:num_requests_waiting)", "no metric in it has label modle"),
        ("up * on (hostname) up", "no metric in it has label hostname"),
        ("sum(up", "sum(up"),
    ],
)
def test_a_planted_mistake_is_caught(query: str, complaint: str) -> None:
    found = offered().complaints(query)

    assert len(found) == 1
    assert complaint in found[0]


def test_a_recording_that_nobody_made_is_missed() -> None:
    without = contract([metrics_for(model) for model in plan().models])

    assert any("model:requests_waiting:sum" in complaint for complaint in broken_rules(groups(), without))


def test_variables_of_grafana_stand_for_any_value() -> None:
    query = 'sum by (model) (rate(vllm:prompt_tokens_total{model=~"$model"}[$__rate_interval]))'

    assert offered().complaints(query) == []


def test_a_recording_offers_its_labels_and_no_others() -> None:
    ours = contract([], [RuleGroup("g", (Recording("a:b:c", "up", by=("pod",), labels={"x": "1"}),))])

    assert ours.complaints('a:b:c{pod="p", x="1"}') == []
    assert len(ours.complaints('a:b:c{y="1"}')) == 1


def test_a_target_between_two_bounds_is_interpolated() -> None:
    metrics = metrics_of("vllm", "0.33.0")
    share = slow_share(Selection("m", "n"), metrics, "vllm:time_to_first_token_seconds", 0.8)

    assert (
        '0.8 * sum(rate(vllm:time_to_first_token_seconds_bucket{namespace="n", model="m", le="0.75"}' in share
    )
    assert (
        '0.2 * sum(rate(vllm:time_to_first_token_seconds_bucket{namespace="n", model="m", le="1.0"}' in share
    )


def test_a_target_on_a_bound_needs_one_bucket() -> None:
    metrics = metrics_of("vllm", "0.33.0")
    share = slow_share(Selection("m", "n"), metrics, "vllm:inter_token_latency_seconds", 0.05)

    assert share.count("_bucket") == 1
    assert 'le="0.05"' in share


def test_without_service_levels_nothing_alerts_on_latency() -> None:
    names = {group.name for group in groups()}

    assert "support-chat.service-levels" in names
    assert "vision.service-levels" not in names


def test_pods_of_a_model_are_not_those_of_one_with_a_longer_name() -> None:
    import re

    selector = Selection("qwen", "n").pods("kube_pod_created")
    pattern = re.search(r'pod=~"([^"]+)"', selector)

    assert pattern
    assert re.fullmatch(pattern[1], "qwen-7d9f8b6c5d-x2x4z")
    assert not re.fullmatch(pattern[1], "qwen-8b-7d9f8b6c5d-x2x4z")
