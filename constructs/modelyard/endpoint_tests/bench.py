"""The load test of an endpoint: level after level of concurrency, and gates over what was measured."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from modelyard.endpoint_tests import outcome, report
from modelyard.endpoint_tests.endpoint import EndpointAddress, Expectations, wait_until_up
from modelyard.endpoint_tests.load import Load, RequestedLoad, generator
from modelyard.endpoint_tests.measurement import BenchResult, ConcurrencyLevel, Objective

CONCURRENCY = (1, 4, 16)
MAX_ERROR_RATE = 0.01


def run_bench(
    expected: Expectations,
    target: EndpointAddress,
    *,
    workload: RequestedLoad,
    concurrency: Sequence[int] = CONCURRENCY,
    max_error_rate: float = MAX_ERROR_RATE,
    objectives: Sequence[Objective] = (),
    bounds: Mapping[int, float] | None = None,  # output tokens a second of the whole endpoint, by concurrency
    statement: str | None = None,  # what the bounds are
    told: Callable[[ConcurrencyLevel], None] = lambda level: None,  # called after each level
) -> BenchResult:
    """Measure `concurrency` levels in turn."""
    load = Load(target, expected.names[0], workload)
    levels = []
    for clients in concurrency:
        level = ConcurrencyLevel(clients, load.level(clients), (bounds or {}).get(clients))
        levels.append(level)
        told(level)
    about: dict[str, Any] = {
        "generator": generator(),
        "workload": {
            "promptTokens": workload.prompt_tokens,
            "outputTokens": workload.output_tokens,
            "requests": None if workload.seconds else workload.requests,
            "seconds": workload.seconds,
            "seed": workload.seed,
        },
    }
    if statement:
        about["bound"] = {"statement": statement}
    return BenchResult(expected.model, target.url, tuple(levels), max_error_rate, tuple(objectives), about)


def settings_json(workload: RequestedLoad, bounds: Mapping[int, float], statement: str) -> str:
    """What `main` reads from SETTINGS: the levels are those of `bounds`."""
    return json.dumps(
        {"workload": asdict(workload), "bounds": bounds, "statement": statement}, sort_keys=True
    )


def main() -> int:
    """What the job runs: settings from its environment, the page for people, the document last and in the
    bucket."""
    expected = Expectations.from_json(os.environ["EXPECTATIONS"])
    target = EndpointAddress(os.environ["URL"], os.environ.get("API_KEY"), float(os.environ["TIMEOUT"]))
    settings = json.loads(os.environ["SETTINGS"])
    if reason := wait_until_up(target, float(os.environ["WAIT"])):
        print(reason, file=sys.stderr)
        outcome.publish(report.unreachable(expected.model, target.url, reason))
        return 1
    bounds = {int(level): bound for level, bound in settings["bounds"].items()}
    result = run_bench(
        expected,
        target,
        workload=RequestedLoad(**settings["workload"]),
        concurrency=sorted(bounds),
        bounds=bounds,
        statement=settings["statement"],
    )
    print(report.markdown(result))
    document = report.document(result)
    print(json.dumps(document), flush=True)
    outcome.publish(document)
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main())
