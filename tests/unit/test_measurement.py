"""Aggregation of single requests, and when a load test has passed."""

from __future__ import annotations

import pytest

from modelyard.endpoint_tests.measurement import (
    BenchResult,
    ConcurrencyLevel,
    Objective,
    Request,
    Spread,
    percentile,
)
from modelyard.endpoint_tests.report import markdown, verdict


def request(started: float, ended: float, **fields: object) -> Request:
    return Request(started, ended, **({"first": ended - started, "output_tokens": 10} | fields))  # type: ignore[arg-type]


def result(*levels: ConcurrencyLevel, slo: str | None = None) -> BenchResult:
    return BenchResult("m", "http://m/v1", levels, 0.1, (Objective.parse(slo),) if slo else ())


def test_percentiles_lie_between_their_neighbours() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert percentile([1.0, 2.0], 0.99) == pytest.approx(1.99)
    assert percentile([7.0], 0.5) == 7.0
    assert Spread.of([]) is None
    found = Spread.of(range(101))
    assert found == Spread(50.0, 50.0, 90.0, 95.0, 99.0)


def test_throughput_counts_from_the_first_start_to_the_last_end() -> None:
    level = ConcurrencyLevel(2, (request(0, 2), request(1, 5, prompt_tokens=30)), bound=16.0)

    assert level.seconds == 5
    assert level.output_per_second == 4
    assert level.total_per_second == 10
    assert level.share_of_bound == 0.25


def test_failed_requests_count_as_errors_and_as_nothing_else() -> None:
    level = ConcurrencyLevel(1, (request(0, 1), Request(1, 1, error="HTTP 500")))

    assert level.error_rate == 0.5
    assert level.seconds == 1
    found = level.spread("e2e")
    assert found is not None
    assert found.mean == 1


@pytest.mark.parametrize("requests", [(), (Request(0, 0, error="refused"),)])
def test_a_level_without_an_answer_is_all_error_and_passes_nothing(requests: tuple[Request, ...]) -> None:
    level = ConcurrencyLevel(1, requests)

    assert level.error_rate == 1
    assert level.output_per_second == 0
    assert level.spread("ttft") is None
    assert not BenchResult("m", "u", (level,), max_error_rate=1.0).passed
    assert verdict(BenchResult("m", "u", (level,), max_error_rate=1.0)).startswith("failed")
    assert level.as_json()["e2eSeconds"] is None


def test_no_level_at_all_is_no_success() -> None:
    assert not result().passed


def test_every_level_must_keep_the_objective() -> None:
    fast, slow = ConcurrencyLevel(1, (request(0, 0.5),)), ConcurrencyLevel(8, (request(0, 2),))

    assert result(fast, slo="e2e-p99=1s").passed
    missed = result(fast, slow, slo="e2e-p99=1s")
    assert not missed.passed
    assert verdict(missed) == "failed: e2e-p99 2,000 ms at concurrency 8, at most 1,000 ms allowed"


def test_an_objective_over_what_nothing_measured_is_missed() -> None:
    """One piece an answer has no time between pieces."""
    missed = result(ConcurrencyLevel(1, (request(0, 1),)), slo="itl-p50=10s")

    assert not missed.passed
    assert "itl-p50 not measured" in verdict(missed)


def test_more_than_the_bound_is_doubted() -> None:
    found = result(ConcurrencyLevel(1, (request(0, 1),), bound=5.0))

    assert found.passed
    assert "200% of the plan's bound, which its hardware cannot give" in verdict(found)


def test_more_than_the_bound_is_doubted_at_every_level_and_not_at_the_fastest_alone() -> None:
    slow = ConcurrencyLevel(1, (request(0, 1),), bound=5.0)
    fast = ConcurrencyLevel(4, (request(0, 1), request(0, 1)), bound=40.0)

    said = verdict(result(slow, fast))

    assert said.startswith("ok: 20 output tokens/s at concurrency 4, 50% of the plan's bound")
    assert "bound, 200% at concurrency 1, which its hardware cannot give: this is not the planned" in said
    assert "cannot give" not in verdict(result(fast))


@pytest.mark.parametrize("text", ["ttft-p95", "ttft-p95=800", "ttft-p42=1s", "speed-p50=1s", "ttft-p95=-1s"])
def test_what_is_no_objective_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="ttft-p95=800ms"):
        Objective.parse(text)


def test_the_first_error_of_a_level_is_on_the_page() -> None:
    page = markdown(
        result(ConcurrencyLevel(1, (request(0, 1), Request(1, 1, error="HTTP 500: engine is dead"))))
    )

    assert "- concurrency 1: `HTTP 500: engine is dead`" in page
