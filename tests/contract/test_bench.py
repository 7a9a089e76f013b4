"""The load test, with the real load generator, against working, broken and missing endpoints."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from modelyard.cli.bench import write
from modelyard.endpoint_tests import load
from modelyard.endpoint_tests.bench import run_bench, settings_json
from modelyard.endpoint_tests.endpoint import EndpointAddress, Expectations
from modelyard.endpoint_tests.load import RequestedLoad
from modelyard.endpoint_tests.measurement import BenchResult, ConcurrencyLevel, Objective
from tests.contract.fake_openai import KEY, FakeOpenAI, serving

EXPECTED = Expectations(model="tiny", names=("tiny",), needs_key=True)
DELAY = 0.02  # seconds between two pieces


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("modelyard"), "bench", *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )


def test_results_of_somebody_else_are_not_lost_and_nobody_waits_for_the_load_to_hear_so(
    tmp_path: Path,
) -> None:
    (tmp_path / "results.md").write_text("mine", encoding="utf-8")

    answer = bench("qwen3-32b-fp8", "--url", "http://127.0.0.1:9/v1", "--out", str(tmp_path))

    assert answer.returncode == 1
    assert f"nothing was measured: {tmp_path}/results.md is not of an earlier run" in answer.stderr
    (tmp_path / "results.json").write_text('{"kind": "Bench"}', encoding="utf-8")
    again = bench("qwen3-32b-fp8", "--url", "http://127.0.0.1:9/v1", "--out", str(tmp_path))
    assert "not of an earlier run" not in again.stderr


def measured(
    server: FakeOpenAI,
    *,
    concurrency: Sequence[int] = (1, 3),
    slo: str | None = None,
    told: Callable[[ConcurrencyLevel], None] = lambda level: None,
    **workload: float,
) -> BenchResult:
    asked = {"prompt_tokens": 20, "output_tokens": 5, "requests": 6} | workload
    return run_bench(
        EXPECTED,
        EndpointAddress(server.url, KEY, timeout=60),
        workload=RequestedLoad(**asked),  # type: ignore[arg-type]
        concurrency=concurrency,
        objectives=[Objective.parse(slo)] if slo else [],
        bounds=dict.fromkeys(concurrency, 1000.0),
        told=told,
    )


def test_every_level_has_its_clients_and_its_requests() -> None:
    with serving(delay=DELAY) as server:

        def crowded(_: ConcurrencyLevel) -> None:
            server.together = 3  # at the second level; otherwise a slow machine has two clients running

        result = measured(server, told=crowded)

    assert [(level.concurrency, len(level.requests), level.errors) for level in result.levels] == [
        (1, 6, []),
        (3, 6, []),
    ]
    assert server.most_running == 3
    assert result.passed


def test_times_are_those_of_the_pieces() -> None:
    """Five pieces with a pause before each: the first after one pause at least, the last after five."""
    with serving(delay=DELAY) as server:
        [level] = measured(server, concurrency=[1]).levels

    first, gap, whole = (level.spread(metric) for metric in ("ttft", "itl", "e2e"))
    assert first is not None
    assert gap is not None
    assert whole is not None
    assert first.p50 >= DELAY
    assert gap.mean > 0
    assert whole.p50 >= 5 * DELAY
    for request in level.requests:
        assert request.first is not None
        assert len(request.gaps) == 4
        assert 5 * DELAY <= request.first + sum(request.gaps) <= request.ended - request.started
    assert level.output_per_second == pytest.approx(6 * 5 / level.seconds)
    assert level.share_of_bound == pytest.approx(level.output_per_second / 1000)


def test_a_piece_counts_from_when_it_comes_and_what_carries_nothing_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a clock that nobody else moves: what the test above can only bound from below."""

    def piece(**delta: str) -> SimpleNamespace:
        return SimpleNamespace(
            choices=[SimpleNamespace(delta=SimpleNamespace(**delta), finish_reason=None)], usage=None
        )

    usage = SimpleNamespace(prompt_tokens=20, completion_tokens=3)
    end = SimpleNamespace(
        choices=[SimpleNamespace(delta=SimpleNamespace(role="assistant"), finish_reason="length")],
        usage=usage,
    )
    pieces = [piece(role="assistant"), piece(content="a"), piece(reasoning="b"), piece(content=""), end]
    clock = iter([10.25, 10.5, 11.0, 12.0])
    monkeypatch.setattr(load, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    response = SimpleNamespace(annotations={}, error=None)

    load._endpoint_class().process_raw_response(None, pieces, 10.0, response)
    request = load._request(response)

    assert (request.first, request.gaps) == (0.25, (0.25, 0.5))
    assert (request.started, request.ended) == (10.0, 12.0)
    assert (request.prompt_tokens, request.output_tokens) == (20, 3)


def test_prompts_have_about_the_length_asked_for_and_none_comes_twice() -> None:
    with serving() as server:
        [level] = measured(server, concurrency=[2], prompt_tokens=50).levels
        prompts = [body["messages"][0]["content"] for _, body in server.asked]

    assert {request.prompt_tokens for request in level.requests} == {50}
    assert len(set(prompts)) == len(prompts)
    assert len({prompt.split()[0] for prompt in prompts}) == len(prompts)


def test_a_level_may_last_for_a_time_instead() -> None:
    began = time.monotonic()
    with serving() as server:
        [level] = measured(server, concurrency=[2], seconds=1.0).levels
    took = time.monotonic() - began

    assert took >= 1.0
    assert 0 < level.seconds <= took
    assert len(level.requests) > 2  # more than the clients that ask at once


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("500 everywhere", "EngineCore encountered an issue"),
        ("cut off", "without a finish reason"),
        ("no usage in stream", "reports no usage"),
    ],
)
def test_requests_that_all_failed_are_no_success_and_no_division_by_zero(
    broken: str, says: str, tmp_path: Path
) -> None:
    with serving(broken=broken) as server:
        result = measured(server, slo="ttft-p95=10s")
    write(result, tmp_path)

    assert not result.passed
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["passed"] is False
    assert [level["errorRate"] for level in document["levels"]] == [1, 1]
    assert says in document["levels"][0]["firstError"]
    assert document["levels"][0]["outputTokensPerSecond"] == 0
    assert document["levels"][0]["ttftSeconds"] is None
    assert "100.0% errors at concurrency 1" in (tmp_path / "results.md").read_text()


def test_an_objective_that_is_missed_fails_the_run_and_is_named() -> None:
    with serving(delay=DELAY) as server:
        missed = measured(server, concurrency=[1], slo="ttft-p50=1ms")
        kept = measured(server, concurrency=[1], slo="ttft-p50=10s")

    assert not missed.passed
    assert [gate.name for gate in missed.gates if not gate.passed] == ["ttft-p50"]
    assert kept.passed


def test_results_are_a_document_a_page_and_a_picture(tmp_path: Path) -> None:
    with serving(delay=0.002) as server:
        result = measured(server)
    write(result, tmp_path)

    document = json.loads((tmp_path / "results.json").read_text())
    page = (tmp_path / "results.md").read_text()
    picture = (tmp_path / "plot.svg").read_text()
    assert (document["schemaVersion"], document["kind"], document["passed"]) == (1, "Bench", True)
    assert document["generator"]["name"] == "llmeter"
    assert document["workload"]["promptTokens"] == 20
    assert set(document["levels"][0]["ttftSeconds"]) == {"mean", "p50", "p90", "p95", "p99"}
    assert re.findall(r"^\| +(\d+) \|", page, re.MULTILINE) == ["1", "3"]
    assert "**ok: " in page
    assert all(f"{name} (ms)" in picture for name in ("TTFT", "ITL", "E2E"))


@pytest.mark.parametrize(("broken", "code"), [("", 0), ("500 everywhere", 1)])
def test_the_program_of_the_job_prints_the_page_and_the_document(broken: str, code: int) -> None:
    with serving(broken=broken) as server:
        run = subprocess.run(
            [sys.executable, "-m", "modelyard.endpoint_tests.bench"],
            env={
                "PATH": os.environ["PATH"],
                "API_KEY": KEY,
                "EXPECTATIONS": EXPECTED.to_json(),
                "SETTINGS": settings_json(RequestedLoad(20, 5, 4), {1: 100.0, 2: 200.0}, "a bound"),
                "TIMEOUT": "10",
                "URL": server.url,
                "WAIT": "5",
            },
            capture_output=True,
            text=True,
            check=False,
        )

    assert run.returncode == code, run.stderr
    document = json.loads(run.stdout.splitlines()[-1])
    assert document["passed"] == (code == 0)
    assert [level["boundOutputTokensPerSecond"] for level in document["levels"]] == [100.0, 200.0]
