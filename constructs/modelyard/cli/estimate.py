"""`modelyard estimate`: the memory that an engine takes of one accelerator, for one question or a file of
questions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from modelyard.checkpoints import architectures
from modelyard.cli import hub
from modelyard.cli.answers import Answer, answer, answer_line, answer_row, print_answer
from modelyard.cli.completion import accelerator_names, checkpoints
from modelyard.cli.printing import console, print_findings
from modelyard.cli.workspace import CommandError, Output, OutputOption, read_config_file
from modelyard.findings import Finding
from modelyard.memory.published import parameter_findings
from modelyard.spec.question import Question, read_question, read_questions

_HELP = """Estimate the memory of one GPU: weights, activation, overhead, and the KV cache that is left.

\b
  modelyard estimate --model Qwen/Qwen3-32B-FP8 --accelerator l40s --max-model-len 32768
  modelyard estimate --config config.json --accelerator-memory-gib 44.4 --compute-capability 8.9
  modelyard estimate --batch questions.jsonl --output json

What is left out has the engine's own default. json is one line an answer, and with --batch it comes as it is computed.
The exit code is 1 where the model does not fit; for a batch it is 0 once every line is answered.
"""

_Word = Annotated[str | None, typer.Option(metavar="NAME")]


def register(app: typer.Typer) -> None:
    app.command(name="estimate", help=_HELP)(estimate_command)


def estimate_command(
    config: Annotated[
        Path | None, typer.Option(metavar="PATH", exists=True, help="A config.json, or the folder with one.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="ID", help="A model of `modelyard catalog models`.", autocompletion=checkpoints),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Questions, one JSON object a line; - is standard input."),
    ] = None,
    from_hub: Annotated[
        bool, typer.Option("--hub", help="Ask Hugging Face about a --model that the table does not have.")
    ] = False,
    accelerator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="One of `modelyard catalog accelerators`.", autocompletion=accelerator_names
        ),
    ] = None,
    accelerator_memory_gib: Annotated[
        float | None, typer.Option(metavar="GIB", help="Memory that the framework sees of another GPU.")
    ] = None,
    compute_capability: Annotated[str | None, typer.Option(metavar="X.Y", help="Of that GPU.")] = None,
    tensor_parallel: Annotated[
        int | None, typer.Option(metavar="N", help="GPUs over which each matrix is split.")
    ] = None,
    pipeline_parallel: Annotated[int | None, typer.Option(metavar="N", help="Stages of layers.")] = None,
    data_parallel: Annotated[
        int | None, typer.Option(metavar="N", help="Copies of the attention layers.")
    ] = None,
    expert_parallel: Annotated[bool, typer.Option("--expert-parallel", help="Whole experts a rank.")] = False,
    gpu_memory_utilization: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Such as 0.9.")
    ] = None,
    max_model_len: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="Longest prompt and answer together.")
    ] = None,
    max_num_seqs: Annotated[int | None, typer.Option(metavar="N", help="Most sequences in a batch.")] = None,
    max_num_batched_tokens: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="Most tokens in a batch.")
    ] = None,
    kv_cache_dtype: Annotated[str | None, typer.Option(metavar="NAME", help="Such as fp8.")] = None,
    quantization: Annotated[str | None, typer.Option(metavar="NAME", help="Such as awq.")] = None,
    dtype: Annotated[str | None, typer.Option(metavar="NAME", help="Such as bfloat16.")] = None,
    enforce_eager: Annotated[bool, typer.Option("--enforce-eager", help="Without CUDA graphs.")] = False,
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="vllm, vllm-neuron or llama-server.")
    ] = None,
    engine_version: Annotated[str | None, typer.Option(metavar="X.Y.Z", help="Such as 0.19.0.")] = None,
    n_gpu_layers: Annotated[
        int | None, typer.Option(metavar="N", help="llama-server: layers on the GPU.")
    ] = None,
    output: OutputOption = Output.table,
) -> int:
    stated: dict[str, Any] = {
        "accelerator": accelerator,
        "acceleratorMemoryGiB": accelerator_memory_gib,
        "computeCapability": compute_capability,
        "tensorParallel": tensor_parallel,
        "pipelineParallel": pipeline_parallel,
        "dataParallel": data_parallel,
        "expertParallel": expert_parallel or None,
        "gpuMemoryUtilization": gpu_memory_utilization,
        "maxModelLen": max_model_len,
        "maxNumSeqs": max_num_seqs,
        "maxNumBatchedTokens": max_num_batched_tokens,
        "kvCacheDtype": kv_cache_dtype,
        "quantization": quantization,
        "dtype": dtype,
        "enforceEager": enforce_eager or None,
        "engine": engine,
        "engineVersion": engine_version,
        "nGpuLayers": n_gpu_layers,
    }
    asked = {key: value for key, value in stated.items() if value is not None}
    if batch is not None:
        if asked or config or model or from_hub:
            raise typer.BadParameter("--batch takes everything from its file; only --output goes with it")
        return _batch(batch, output)
    if (config is None) == (model is None):
        raise typer.BadParameter("give one of --config, --model and --batch")
    if from_hub and model is None:
        raise typer.BadParameter("--hub goes with --model")
    published: Mapping[str, int] = {}
    if config is not None:
        asked["config"] = _config(config)
        if isinstance(asked["config"], Finding):
            return _show(Answer(None, None, (asked["config"],)), str(config), output)
    elif from_hub and architectures().called(str(model)) is None:
        found = hub.fetch(str(model))
        asked["config"], published = found.config, found.parameters
    else:
        asked["model"] = model
    question = read_question(asked)
    if question.request is None:
        raise typer.BadParameter("; ".join(finding.message for finding in question.findings))
    return _show(_answer(question, published), str(model or config), output)


def _config(path: Path) -> dict[str, Any] | Finding:
    """Content of `path`, or of the config.json in it."""
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        raise typer.BadParameter(f"{path} holds no config.json")
    return read_config_file(file)


def _answer(question: Question, published: Mapping[str, int]) -> Answer:
    found = answer(question)
    if not published or found.estimate is None or found.ledger is None:
        return found
    warnings = parameter_findings(found.ledger.request.arch, published)
    return Answer(found.id, found.estimate, (*found.findings, *warnings))


def _show(found: Answer, title: str, output: Output) -> int:
    if output is Output.json:
        sys.stdout.write(answer_line(found))
    else:
        if found.estimate is not None and found.ledger is not None:
            print_answer(console(), title, found.estimate, found.ledger)
        print_findings(found.findings)
    return 0 if found.fits else 1


def _batch(file: str, output: Output) -> int:
    with ExitStack() as stack:
        try:
            lines = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        except OSError as error:
            raise typer.BadParameter(f"{file} cannot be read: {error.strerror}") from None
        try:
            for position, question in enumerate(read_questions(lines), start=1):
                found = answer(question)
                sys.stdout.write(
                    answer_line(found) if output is Output.json else f"{answer_row(found, position)}\n"
                )
                sys.stdout.flush()
        except OSError as error:
            raise CommandError(f"the batch ended early: {error.strerror}") from None
    return 0
