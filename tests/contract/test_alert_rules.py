"""Every rule of every environment is valid for Prometheus' own tool; every alert fires when it must, and only
then."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.contract.alert_cases import CASES, HEALTHY_GPU, MODEL, NAMESPACE, POD, Case, Series
from tests.contract.conftest import ROOT, Tree

DELIVERY = "modelyard.delivery"
RUNBOOKS = ROOT / "docs" / "runbooks"


def promtool() -> str:
    found = shutil.which("promtool") or next(iter((ROOT / ".tools").glob("promtool")), None)
    if found is None:
        pytest.skip("rules are not tried: there is no promtool (python3 .ci/install_promtool.py)")
    return str(found)


def groups(tree: Tree) -> list[dict[str, Any]]:
    return [group for item in tree.of("PrometheusRule") for group in item["spec"]["groups"]]


def alerts(tree: Tree) -> list[dict[str, Any]]:
    return [rule for group in groups(tree) for rule in group["rules"] if "alert" in rule]


def write_rules(folder: Path, wanted: list[dict[str, Any]]) -> Path:
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": wanted}), encoding="utf-8")
    return path


def run_promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([promtool(), *arguments], capture_output=True, text=True, check=False)


def unit_test(
    series: Series, minute: int, alert: str, *, fires: bool, severity: str = ".+"
) -> dict[str, Any]:
    # promtool starts in 1970: moments in the series are seconds from there.
    which = f'alertname="{alert}", alertstate="firing", severity=~"{severity}"'
    query = f"count(ALERTS{{{which}}}) > bool 0"
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": query,
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }


def try_rules(rules: Path, tests: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    path = rules.with_name("tests.yaml")
    document = {"rule_files": [rules.name], "evaluation_interval": "1m", "tests": tests}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return run_promtool("test", "rules", str(path))


@pytest.fixture(scope="session")
def full(tree: Callable[[str], Tree], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules of one model, of the platform, and of a delivery by Flux."""
    wanted = [g for g in groups(tree("argocd")) if g["name"].startswith((f"{MODEL}.", "modelyard."))]
    wanted = [g for g in wanted if g["name"] != DELIVERY]
    wanted += [g for g in groups(tree("prod")) if g["name"] == DELIVERY]
    return write_rules(tmp_path_factory.mktemp("rules"), wanted)


def test_prometheus_reads_every_rule(each: Tree, tmp_path: Path) -> None:
    checked = run_promtool("check", "rules", str(write_rules(tmp_path, groups(each))))

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert re.search(r"SUCCESS: [1-9]\d* rules found", checked.stdout)


def test_a_rule_that_prometheus_cannot_read_is_refused(full: Path, tmp_path: Path) -> None:
    broken = tmp_path / "rules.yaml"
    broken.write_text(full.read_text("utf-8").replace("absent(", "absence(", 1), encoding="utf-8")

    assert run_promtool("check", "rules", str(broken)).returncode != 0


def rules_of(alert: str, full: Path) -> list[dict[str, Any]]:
    """The groups with this alert alone, and with what records the series that it asks for: the others take
    their time."""
    groups = yaml.load(full.read_text("utf-8"), Loader=yaml.CSafeLoader)["groups"]
    every = [rule for group in groups for rule in group["rules"]]
    kept = [rule for rule in every if rule.get("alert") == alert]
    for rule in kept:  # which grows meanwhile
        asked = set(re.findall(r"[\w:]+", rule["expr"]))
        kept += [each for each in every if each.get("record") in asked and each not in kept]
    return [
        {**group, "rules": rules} for group in groups if (rules := [r for r in group["rules"] if r in kept])
    ]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.alert}: {case.what}" for case in CASES])
def test_an_alert_fires_when_it_must_and_only_then(full: Path, case: Case, tmp_path: Path) -> None:
    tried = try_rules(
        write_rules(tmp_path, rules_of(case.alert, full)),
        [
            unit_test(case.firing, case.minute, case.alert, fires=True, severity=case.severity),
            unit_test(case.silent, case.minute, case.alert, fires=False, severity=case.severity),
        ],
    )

    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_a_healthy_gpu_alarms_nobody(full: Path) -> None:
    names = {
        rule["alert"]
        for group in yaml.safe_load(full.read_text("utf-8"))["groups"]
        for rule in group["rules"]
        if "alert" in rule and "DCGM" in rule["expr"]
    }

    assert names == {"GpuXidError", "GpuMemoryFault", "GpuMetricsMissing"}
    tried = try_rules(full, [unit_test(HEALTHY_GPU, 90, name, fires=False) for name in sorted(names)])
    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_a_wrong_expectation_is_noticed(full: Path) -> None:
    case = CASES[0]

    assert try_rules(full, [unit_test(case.firing, case.minute, case.alert, fires=False)]).returncode != 0


def test_what_people_read_names_the_model_and_the_page(full: Path) -> None:
    case = CASES[0]
    test = unit_test(case.firing, case.minute, case.alert, fires=True)
    test["alert_rule_test"] = [
        {
            "eval_time": f"{case.minute}m",
            "alertname": "ModelGone",
            "exp_alerts": [
                {
                    "exp_labels": {
                        "severity": "critical",
                        "model": MODEL,
                        "namespace": NAMESPACE,
                        "team": "support",
                    },
                    "exp_annotations": {
                        "summary": f"{MODEL}: no replica answers",
                        "runbook_url": "https://git.example.org/models/docs/runbooks/ModelGone.md",
                    },
                }
            ],
        }
    ]

    tried = try_rules(full, [test])
    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_cost_follows_price_and_accelerators(full: Path) -> None:
    pod = f'namespace="{NAMESPACE}", pod="{POD}", container="server", node="a"'
    held = f'kube_pod_container_resource_requests{{{pod}, resource="nvidia_com_gpu"}}'
    tokens = f'vllm:generation_tokens_total{{namespace="{NAMESPACE}", model="{MODEL}"}}'
    test = unit_test({held: "2x100", tokens: "0+60000x100"}, 90, "ModelGone", fires=False)
    labels = f'{{model="{MODEL}", namespace="{NAMESPACE}"'
    # 2 GPUs at $0.90, 1000 tokens a second: 1.8 / 3.6 dollars a million.
    test["promql_expr_test"] = [
        {
            "expr": f"round(model:cost:{name}{{model='{MODEL}'}}, 0.001)",
            "eval_time": "90m",
            "exp_samples": [{"labels": f"{labels}{more}}}", "value": value}],
        }
        for name, more, value in (
            ("usd_per_hour", ', nodepool="bottle"', 1.8),
            ("usd_per_million_tokens", "", 0.5),
        )
    ]

    tried = try_rules(full, [test])
    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_every_alert_has_a_case(each: Tree) -> None:
    known = {case.alert for case in CASES}

    assert {rule["alert"] for rule in alerts(each)} <= known


def test_every_case_is_of_an_alert(full: Path) -> None:
    every = [rule for group in yaml.safe_load(full.read_text("utf-8"))["groups"] for rule in group["rules"]]

    assert {rule["alert"] for rule in every if "alert" in rule} == {case.alert for case in CASES}


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    index = (RUNBOOKS / "README.md").read_text("utf-8")

    assert {case.alert for case in CASES} == pages
    assert set(re.findall(r"\]\((\w+)\.md\)", index)) == pages


def test_every_alert_says_what_happened_and_where_to_read_on(each: Tree) -> None:
    assert alerts(each)
    for rule in alerts(each):
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["runbook_url"].endswith(f"docs/runbooks/{rule['alert']}.md")


def test_the_alert_of_failed_downloads_names_the_jobs_that_are_rendered(tree: Callable[[str], Tree]) -> None:
    """Jobs belong to repositories, which models share; adapters and drafts have their own."""
    serving = tree("serving")
    fetches = {j["metadata"]["name"] for j in serving.of("Job") if "-fetch-" in j["metadata"]["name"]}
    asked = {
        rule["labels"]["model"]: re.search(r'job_name=~"([^"]+)"', rule["expr"])
        for rule in alerts(serving)
        if rule["alert"] == "WeightsFetchFailed"
    }
    found = {
        model: {name for name in fetches if match and re.fullmatch(match[1], name)}
        for model, match in asked.items()
    }

    assert len(fetches) > 10
    assert set().union(*found.values()) == fetches
    assert len(found["lora"]) == 3
    assert all(found.values())
    assert "streamed" not in found
