"""`modelyard smoke` and `modelyard bench`, run as commands against a real vLLM server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modelyard.endpoint_tests.endpoint import EndpointAddress
from modelyard.endpoint_tests.promises import expectations
from modelyard.endpoint_tests.smoke import run_checks
from tests.endpoint_examples import answers
from tests.engine.installed import ROOT, require
from tests.engine.live_server import ENVIRONMENT, KEY, PLAN, Server

require()

MODELYARD = Path(sys.executable).with_name("modelyard")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the model and the environment that the server was planned from."""
    folder = tmp_path_factory.mktemp("workspace")
    for name, document in (("models", PLAN.model), ("environments", ENVIRONMENT)):
        (folder / name).mkdir()
        fields = document.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"name"})
        (folder / name / f"{document.name}.yaml").write_text(json.dumps(fields))
    return folder


def modelyard(
    command: str, server: Server, workspace: Path, *options: str, key: str = KEY
) -> subprocess.CompletedProcess[str]:
    folders = ("--models", str(workspace / "models"), "--environments", str(workspace / "environments"))
    return subprocess.run(
        [MODELYARD, command, PLAN.name, "--env", ENVIRONMENT.name, *folders, "--url", server.url, *options],
        cwd=ROOT,
        env={**os.environ, "MODELYARD_API_KEY": key},
        capture_output=True,
        text=True,
        check=False,
    )


def test_smoke_finds_nothing_wrong_with_a_server_of_its_plan(server: Server, workspace: Path) -> None:
    run = modelyard("smoke", server, workspace, "--output", "json")

    assert run.returncode == 0, run.stdout + run.stderr
    checks: dict[str, Any] = {check["name"]: check["outcome"] for check in json.loads(run.stdout)["checks"]}
    assert {name for name, outcome in checks.items() if outcome == "skipped"} == set()
    assert {"tool-call", "structured-output", "streaming", "authentication", "context-limit"} <= set(checks)


def test_smoke_with_a_wrong_key_fails_and_says_why(server: Server, workspace: Path) -> None:
    run = modelyard("smoke", server, workspace, key="another")

    assert run.returncode == 1
    assert "AuthenticationError" in run.stdout
    assert "Traceback" not in run.stderr


def test_smoke_notices_a_server_that_is_not_the_planned_one(server: Server) -> None:
    """The real answers, and expectations of another model."""
    other = replace(expectations(PLAN), max_model_len=8192, adapters=("medical",))

    result = run_checks(other, EndpointAddress(server.url, KEY))

    failed = {each.name: each.reason for each in result.results if each.outcome == "failed"}
    assert set(failed) == {"models", "adapters"}
    assert "medical" in failed["models"]


def test_the_first_request_works_as_it_is_printed(server: Server) -> None:
    by_curl, by_python = answers(PLAN, ENVIRONMENT, server.url, KEY)

    assert json.loads(by_curl)["model"] == PLAN.served_names[0]
    assert by_python.strip()


def test_bench_measures_every_level_and_doubts_more_than_the_bound(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    load = ("--concurrency", "1,4", "--requests", "8", "--prompt-tokens", "100", "--output-tokens", "24")

    run = modelyard("bench", server, workspace, *load, "--out", str(tmp_path))

    assert run.returncode == 0, run.stdout + run.stderr
    document = json.loads((tmp_path / "results.json").read_text())
    assert [level["concurrency"] for level in document["levels"]] == [1, 4]
    for level in document["levels"]:
        assert (level["requests"], level["errors"]) == (8, 0)
        assert level["meanOutputTokens"] == 24
        assert 70 <= level["meanPromptTokens"] <= 130
        assert 0 < level["ttftSeconds"]["p50"] < level["e2eSeconds"]["p50"]
        assert level["itlSeconds"]["p50"] > 0
    # The plan is of eight billion parameters, the server has some thousands: the page must not pass over
    # that. A machine that is slow enough stays below the bound all the same; tests/unit/test_measurement.py
    # has both for sure.
    too_much = any(level["shareOfBound"] > 1 for level in document["levels"])
    assert ("this is not the planned model" in document["verdict"]) is too_much
    assert (tmp_path / "plot.svg").stat().st_size > 5000


def test_bench_fails_on_an_objective_that_no_cpu_keeps(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    load = ("--concurrency", "1", "--requests", "2", "--output-tokens", "8", "--slo", "ttft-p50=0.01ms")

    run = modelyard("bench", server, workspace, *load, "--out", str(tmp_path))

    assert run.returncode == 1
    assert "failed: ttft-p50" in run.stdout
