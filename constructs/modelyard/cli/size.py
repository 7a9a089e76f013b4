"""`modelyard size`: every accelerator that can hold a model, cheapest first, with the memory ledger of
each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from modelyard.checkpoints import Architecture, UnreadableConfig, architectures, read_config
from modelyard.cli.completion import environment_names, models_and_checkpoints
from modelyard.cli.hub import HubOption, asked_model
from modelyard.cli.ledger_bar import (
    has_colours,
    ledger_bar,
    ledger_json,
    legend,
    terminal_bar_width,
)
from modelyard.cli.prices import price_date
from modelyard.cli.printing import console, dollars, finding_json, print_findings, print_json, table
from modelyard.cli.tables import Cell
from modelyard.cli.workspace import (
    EnvironmentsOption,
    ModelsOption,
    Output,
    OutputOption,
    prices_of,
    read_config_file,
    readable_environment,
)
from modelyard.findings import Finding, Severity
from modelyard.hardware import Prices, instance_types
from modelyard.memory.loaded_model import known_architecture
from modelyard.planning.anywhere import USUAL_REGION
from modelyard.planning.sizing import Size, Sizing, size_model
from modelyard.project import ENVIRONMENTS, MODELS
from modelyard.reading import closest
from modelyard.secret_values import shown
from modelyard.spec import Model, load_catalogue
from modelyard.spec.checkpoint_files import read_record, record_path
from modelyard.spec.engine import LEAST_MAX_MODEL_LEN

_REPOSITORY = re.compile(r"(?:hf://)?[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")

_HELP = """List the accelerators that can hold a model, cheapest first, with the memory of one GPU drawn.

\b
  modelyard size qwen3-32b-fp8 --env prod
  modelyard size meta-llama/Llama-3.3-70B-Instruct --length 32768 --concurrency 8
  modelyard size ./my-model/config.json --all --output json

MODEL is a file of --models (its settings apply), a checkpoint of `modelyard model add`, an id of `modelyard catalog models`, or
a config.json.
"""


@dataclass(frozen=True)
class _Subject:
    """The model to size, and its architecture."""

    title: str
    model: Model
    arch: Architecture


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(size)


def size(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Name, id, or path of a config.json.", autocompletion=models_and_checkpoints
        ),
    ],
    length: Annotated[
        int | None, typer.Option(metavar="TOKENS", min=LEAST_MAX_MODEL_LEN, help="Length that has to fit.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Requests of that length that have to fit at once.")
    ] = None,
    gpu_memory_utilization: Annotated[
        float | None, typer.Option(metavar="SHARE", min=0.3, max=0.95, help="Share for the engine.")
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--env",
            "-e",
            metavar="NAME",
            envvar="MODELYARD_ENV",
            help="Take the region from it.",
            autocompletion=environment_names,
        ),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(metavar="REGION", help=f"Region of prices; default: --env's, or {USUAL_REGION}."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every count, not the fewest of each kind.")
    ] = False,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    hub: HubOption = False,
    output: OutputOption = Output.table,
) -> int:
    where = region or (readable_environment(environments, env).region if env else USUAL_REGION)
    if not any(where in instance.offered_regions for instance in instance_types().values()):
        raise typer.BadParameter(f"no prices are known of region '{where}'")
    prices = prices_of(environments, where)
    subject = _subject(model, models, hub=hub)
    if not isinstance(subject, _Subject):
        return _refused(model, subject, output)
    asked = {
        "max_model_len": length,
        "concurrency": concurrency,
        "gpu_memory_utilization": gpu_memory_utilization,
    }
    settings = subject.model.engine.model_copy(update={k: v for k, v in asked.items() if v is not None})
    wanted = subject.model.model_copy(update={"engine": settings})
    limit = subject.arch.max_position
    if settings.max_model_len and settings.max_model_len > limit:
        long = f"maxModelLen {settings.max_model_len} exceeds the {limit} tokens of {subject.title}"
        return _refused(model, [Finding("LEN001", long, f"use {limit} or less", subject=model)], output)
    sizing = size_model(wanted, prices, subject.arch)
    if output is Output.json:
        print_json("Sizing", **_sizing_json(subject.title, where, sizing))
    else:
        _print(subject.title, prices, sizing, sizing.sizes if every else sizing.smallest)
    return 0 if sizing.sizes else 1


def _subject(name: str, folder: Path, *, hub: bool) -> _Subject | list[Finding]:
    """Resolves `name`: a model file, a recorded checkpoint, an id of the table, a config.json, or with `hub`
    a repository."""
    catalogue, problems = load_catalogue(folder) if folder.is_dir() else (None, [])
    if catalogue and name in catalogue.models:
        model = catalogue.models[name]
        model = asked_model(model) if hub else model
        file = catalogue.sources[name].file
        broken = [f for f in problems if f.location and f.location.file == file and f.level is Severity.ERROR]
        arch = known_architecture(model)
        found = [*broken, *([arch] if isinstance(arch, Finding) else [])]
        return found if found or isinstance(arch, Finding) else _Subject(name, model, arch)
    if (recorded := _recorded(name, folder)) is not None:
        return recorded
    if table_id := architectures().called(name):
        asked = _model(table_id)
        facts = known_architecture(asked)
        return [facts] if isinstance(facts, Finding) else _Subject(table_id, asked, facts)
    path = Path(name) / "config.json" if Path(name).is_dir() else Path(name)
    if path.is_file():
        return _from_config(path)
    if hub and _REPOSITORY.fullmatch(name):
        return _of_model(name, asked_model(_model(name.removeprefix("hf://"))))
    known = [*(catalogue.models if catalogue else ()), *architectures()]
    close = closest(name, known, count=3)
    way_out = "; --hub asks Hugging Face about it" if _REPOSITORY.fullmatch(name) and not hub else ""
    raise typer.BadParameter(
        f"{shown(name)} is no model of {folder}, no id of `modelyard catalog models`, and no config.json"
        + (f"; did you mean {' or '.join(close)}?" if close else "")
        + way_out
    )


def _recorded(name: str, folder: Path) -> _Subject | list[Finding] | None:
    """The checkpoint `name`, by URI or id, if `folder` has its record."""
    uri = name if "://" in name else f"hf://{name}"
    path = record_path(folder, uri)
    if not path.is_file():
        return None
    record, problems = read_record(path)
    if record is None:
        return problems
    files = [*record.files]
    weights: Any = {"uri": record.uri, "file": files[0]} if files and record.tensors is None else record.uri
    model = _model(weights)
    return _of_model(name, model.model_copy(update={"model": model.model.recorded(record)}))


def _of_model(title: str, model: Model) -> _Subject | list[Finding]:
    arch = known_architecture(model)
    return [arch] if isinstance(arch, Finding) else _Subject(title, model, arch)


def _from_config(path: Path) -> _Subject | list[Finding]:
    config = read_config_file(path)
    if isinstance(config, Finding):
        return [replace(config, subject=str(path))]
    try:
        arch = read_config(config)
    except UnreadableConfig as problem:
        return [
            Finding("MODEL002", str(problem), "give the checkpoint's whole config.json", subject=str(path))
        ]
    return _Subject(str(path), _model("local/config"), replace(arch, model_id=arch.model_id or "the model"))


def _model(weights: Any) -> Model:
    """A model file with only the three required lines; the accelerator is replaced. `weights`: as in the
    file, or the id of a repository."""
    stated = f"hf://{weights}" if isinstance(weights, str) and "://" not in weights else weights
    lines = {"name": "model", "model": stated, "accelerator": "auto", "replicas": 1}
    return Model.model_validate(lines)


def _refused(name: str, findings: list[Finding], output: Output) -> int:
    if output is Output.json:
        print_json("Sizing", model=name, options=[], findings=[finding_json(finding) for finding in findings])
    else:
        print_findings(findings)
    return 1


def _sizing_json(title: str, region: str, sizing: Sizing) -> dict[str, Any]:
    """Memory in bytes of one GPU or logical core, which adds up to `total`; money in US dollars per hour."""
    return {
        "model": title,
        "region": region,
        "options": [_size_json(size) for size in sizing.sizes],
        "rejected": [
            {"accelerator": r.accelerator.name, "count": r.count or None, "code": r.code, "reason": r.reason}
            for r in sizing.rejected
        ],
        "findings": [],
    }


def _size_json(size: Size) -> dict[str, Any]:
    serving, ledger = size.serving, size.serving.ledger
    length = serving.max_model_len
    return {
        "accelerator": serving.accelerator.name,
        "count": serving.count,
        "engine": serving.release.engine,
        "engineVersion": serving.release.version,
        "tensorParallel": serving.tensor_parallel,
        "gpuMemoryUtilization": ledger.request.gpu_memory_utilization,
        "maxModelLen": length,
        "longestLen": size.longest,
        "concurrency": round(ledger.concurrency(length), 2),
        "kvCacheTokens": ledger.kv_tokens(length),
        "maxNumSeqs": serving.max_num_seqs,
        "maxNumBatchedTokens": serving.max_num_batched_tokens,
        "instanceType": size.instance.name if size.instance else None,
        "usdPerHour": None if size.share_price is None else round(size.share_price, 4),
        "instanceUsdPerHour": size.instance_price,
        "memoryBytes": ledger_json(ledger),
    }


def _print(title: str, prices: Prices, sizing: Sizing, shown: tuple[Size, ...]) -> None:
    out = console()
    colours = has_colours(out)
    if shown:
        columns = (
            "RUNS ON",
            "INSTANCE",
            "$/h",
            "NODE $/h",
            "MAX LEN",
            "LONGEST",
            "AT ONCE",
            "KV TOKENS",
            "GiB",
        )
        width = terminal_bar_width(beside=100)
        bars = [ledger_bar(each.serving.ledger, width, colours=colours) for each in shown]
        rows: list[tuple[Cell, ...]] = [
            (*_cells(each, prices.region), bar) for each, bar in zip(shown, bars, strict=True)
        ]
        heading = f"{title} in {prices.region}, on demand, {price_date(prices)}"
        out.print(table(heading, (*columns, "MEMORY OF ONE"), rows, right=columns[2:]))
        out.print(legend([each.serving.ledger for each in shown], colours=colours), soft_wrap=True)
        out.print(
            "$/h is the share of the instance that the accelerators are; NODE $/h is what one replica alone pays. GiB is "
            "the memory of\none GPU or NeuronCore; AT ONCE is how many requests of MAX LEN the cache holds.\n"
        )
    for no in sizing.rejected:
        label = f"{no.accelerator.name}:{no.count}" if no.count else no.accelerator.name
        out.print(f"{label:<16} {no.code} {no.reason}", soft_wrap=True)


def _cells(size: Size, region: str) -> tuple[str, ...]:
    serving, ledger = size.serving, size.serving.ledger
    return (
        size.label,
        size.instance.name if size.instance else f"not in {region}",
        dollars(size.share_price),
        dollars(size.instance_price),
        str(serving.max_model_len),
        str(size.longest),
        f"{ledger.concurrency(serving.max_model_len):.1f}",
        f"{ledger.kv_tokens(serving.max_model_len):,}",
        f"{ledger.total.in_gib:.1f}",
    )
