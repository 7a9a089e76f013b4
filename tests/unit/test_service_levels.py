"""Service levels and traces in model and environment files."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from modelyard.project import load_project
from modelyard.spec import Model
from tests.unit.test_metrics import EVERYTHING


def model(**observability: Any) -> Model:
    return Model.model_validate(
        {
            "name": "chat",
            "model": "hf://Qwen/Qwen3-8B",
            "accelerator": "l40s",
            "replicas": 1,
            "observability": observability,
        }
    )


def test_levels_are_short_strings_with_units() -> None:
    levels = model(slo={"ttftP95": "800ms", "e2eP95": "1.5s", "errorRate": "0.5%"}).observability.slo

    assert (levels.ttft_p95, levels.itl_p95, levels.e2e_p95, levels.error_rate) == (0.8, None, 1.5, 0.005)


@pytest.mark.parametrize(
    ("slo", "message"),
    [
        ({"ttftP95": "800"}, "must be a number with a unit, such as 800ms or 1.5s"),
        ({"itlP95": "0ms"}, "greater than 0"),
        ({"e2eP95": "20m"}, "such as 800ms or 1.5s"),
        ({"errorRate": "0.5"}, "must be a percentage, such as 0.5%"),
        ({"errorRate": "20%"}, "less than or equal to 0.05"),
        ({"p99": "1s"}, "Extra inputs are not permitted"),
    ],
)
def test_a_level_that_means_nothing_is_refused(slo: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        model(slo=slo)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("from-cache.yaml", "", "observability: {tracing: true}\n"), "sends no traces"),
        (("argocd.yaml", "  otlpEndpoint: http://collector.watch:4317\n", ""), "names no collector"),
    ],
)
def test_traces_that_would_go_nowhere_are_a_finding(
    tmp_path: Any, change: tuple[str, str, str], message: str
) -> None:
    import shutil

    shutil.copytree(EVERYTHING, tmp_path / "all")
    name, old, new = change
    [path] = (tmp_path / "all").rglob(name)
    text = path.read_text("utf-8")
    path.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")

    plan = load_project("argocd", tmp_path / "all" / "models", tmp_path / "all" / "environments").plan()

    assert plan is not None
    assert [message in f.message for f in plan.findings if f.code == "OTEL001"] == [True]
