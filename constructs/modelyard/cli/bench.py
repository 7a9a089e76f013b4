"""`modelyard bench`: throughput and latency of an endpoint under load, compared with its plan."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from modelyard.cli.endpoints import (
    API_KEY,
    KeyOption,
    ModelArgument,
    TimeoutOption,
    UrlOption,
    planned_model,
    target,
)
from modelyard.cli.extras import needed_for
from modelyard.cli.printing import console, print_json, table
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    EnvOption,
    ModelsOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.endpoint_tests import report
from modelyard.endpoint_tests.bench import CONCURRENCY, MAX_ERROR_RATE, run_bench
from modelyard.endpoint_tests.endpoint import wait_until_up
from modelyard.endpoint_tests.load import RequestedLoad
from modelyard.endpoint_tests.measurement import METRICS, BenchResult, ConcurrencyLevel, Objective
from modelyard.endpoint_tests.promises import bounds, expectations
from modelyard.findings import Finding
from modelyard.memory.throughput import ROOFLINE
from modelyard.project import ENVIRONMENTS, MODELS
from modelyard.reading import RECORD, NotJson, parse_json, read_file
from modelyard.secret_values import shown
from modelyard.writing import write_file

_HELP = """Put load on a running endpoint and measure throughput, TTFT, ITL and E2E by concurrency.

\b
  modelyard bench qwen3-32b-fp8 --url http://127.0.0.1:8000/v1 --out bench
  modelyard bench qwen3-32b-fp8 --url http://127.0.0.1:8000/v1 --concurrency 1,8,32 --duration 60
  modelyard bench qwen3-32b-fp8 --url http://127.0.0.1:8000/v1 --slo ttft-p95=800ms --slo itl-p99=60ms

DIR gets results.json, results.md and plot.svg. The exit code is 1 where a gate failed or a level got no answer.
"""


def register(app: typer.Typer) -> None:
    app.command(name="bench", help=_HELP)(bench)


def bench(
    model: ModelArgument,
    env: EnvOption = "local",
    url: UrlOption = None,
    api_key_env: KeyOption = API_KEY,
    timeout: TimeoutOption = 300,
    concurrency: Annotated[
        str, typer.Option(metavar="N,N,…", help="Clients that ask at once, level by level.")
    ] = ",".join(map(str, CONCURRENCY)),
    requests: Annotated[
        int | None, typer.Option(metavar="N", help="Requests at each level; default 32.", min=1)
    ] = None,
    duration: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Ask for so long instead.", min=1)
    ] = None,
    prompt_tokens: Annotated[int, typer.Option(metavar="TOKENS", help="About so many.", min=1)] = 256,
    output_tokens: Annotated[int, typer.Option(metavar="TOKENS", min=1)] = 64,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.", file_okay=False)] = Path(
        "bench"
    ),
    max_error_rate: Annotated[
        float, typer.Option(metavar="SHARE", help="Errors that a level may have.", min=0, max=1)
    ] = MAX_ERROR_RATE,
    slo: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC-STATISTIC=TIME", help="Latency that every level must keep."),
    ] = None,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    if requests and duration:
        raise typer.BadParameter("--requests and --duration exclude each other")
    levels = _levels(concurrency)
    try:
        objectives = [Objective.parse(text) for text in slo or ()]
    except ValueError as problem:
        raise typer.BadParameter(f"--slo {problem}") from None
    _refuse_foreign(out)
    plan = planned_model(model, models, environments, env)
    if prompt_tokens + output_tokens > plan.serving.max_model_len:
        raise typer.BadParameter(
            f"{prompt_tokens} + {output_tokens} tokens exceed the {plan.serving.max_model_len} of {model}"
        )
    namespace = readable_environment(environments, env).namespace
    asked = target(plan, namespace, url=url, key_variable=api_key_env, timeout=timeout)
    with needed_for("modelyard bench", "bench"):
        import llmeter  # type: ignore[import-untyped]  # noqa: F401
        import matplotlib  # noqa: F401
        import openai  # noqa: F401
    if reason := wait_until_up(asked, 0):
        raise CommandError(reason)
    workload = RequestedLoad(prompt_tokens, output_tokens, requests or RequestedLoad.requests, duration)
    result = run_bench(
        expectations(plan),
        asked,
        workload=workload,
        concurrency=levels,
        max_error_rate=max_error_rate,
        objectives=objectives,
        bounds=bounds(plan, prompt_tokens, output_tokens, levels),
        statement=ROOFLINE,
        told=_tell,
    )
    write(result, out)
    if output is Output.json:
        document = report.document(result)
        print_json(document.pop("kind"), **{k: v for k, v in document.items() if k != "schemaVersion"})
    else:
        _print(result, out)
    return 0 if result.passed else 1


_DOCUMENT, _PAGE, _PLOT = "results.json", "results.md", "plot.svg"


def write(result: BenchResult, out: Path) -> None:
    """The three files of a result. The document comes last, so once it is new, all are."""
    with TemporaryDirectory() as scratch:
        report.plot(result, Path(scratch) / _PLOT)
        picture = (Path(scratch) / _PLOT).read_bytes()
    write_file(out / _PLOT, picture)
    write_file(out / _PAGE, report.markdown(result))
    write_file(out / _DOCUMENT, report.to_json(report.document(result)))


def _refuse_foreign(out: Path) -> None:
    """Runs before the load, which takes minutes.

    Raises:
        CommandError: `out` has files of these names that are not from an earlier run.
    """
    there = [str(out / name) for name in (_PAGE, _PLOT, _DOCUMENT) if (out / name).exists()]
    if there and not _is_result(out / _DOCUMENT):
        raise CommandError(
            f"nothing was measured: {', '.join(there)} is not of an earlier run and would be lost; name another folder with --out"
        )


def _is_result(path: Path) -> bool:
    text = read_file(path, RECORD)
    if isinstance(text, Finding):
        return False
    try:
        document = parse_json(text)
    except NotJson:
        return False
    return isinstance(document, dict) and document.get("kind") == "Bench"


def _levels(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise typer.BadParameter(f"--concurrency takes numbers above 0 such as 1,4,16, got {shown(text)}")
    return sorted({int(part) for part in parts})


def _tell(level: ConcurrencyLevel) -> None:
    console(stderr=True).print(
        f"concurrency {level.concurrency}: {len(level.answered)} of {len(level.requests)} answered in "
        f"{level.seconds:.1f} s"
    )


# A subset for the terminal; the page also has the means.
_COLUMNS = (
    "clients",
    "requests",
    "errors",
    "req/s",
    "output tok/s",
    "bound",
    "share",
    *(f"{name} p50/p90/p99 ms" for name in METRICS.values()),
)


def _row(level: ConcurrencyLevel) -> tuple[str, ...]:
    share = level.share_of_bound
    spreads = [level.spread(metric) for metric in METRICS]
    return (
        str(level.concurrency),
        str(len(level.requests)),
        str(len(level.errors)),
        f"{level.per_second(len(level.answered)):.1f}",
        f"{level.output_per_second:,.0f}",
        f"{level.bound:,.0f}" if level.bound else "-",
        f"{share:.0%}" if share is not None else "-",
        *("/".join(f"{s * 1000:,.0f}" for s in (d.p50, d.p90, d.p99)) if d else "-" for d in spreads),
    )


def _print(result: BenchResult, out: Path) -> None:
    shown = console()
    rows = map(_row, result.levels)
    shown.print(table(f"{result.model} at {result.url}", _COLUMNS, rows, right=_COLUMNS))
    shown.print(report.verdict(result), soft_wrap=True)
    shown.print(f"{out}: results.json, results.md, plot.svg", soft_wrap=True)
