"""`modelyard model`: what is known of the models' checkpoints, kept beside the model files."""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from modelyard.checkpoints import Architecture
from modelyard.checkpoints.stored import weight_counts
from modelyard.cli.added_model import AddedModel, show
from modelyard.cli.commands import show_help
from modelyard.cli.completion import accelerator_names, checkpoints
from modelyard.cli.connections import ProfileOption, opened
from modelyard.cli.hub import repository_of
from modelyard.cli.record_changes import changes
from modelyard.cli.workspace import CommandError, ModelsOption, Output, OutputOption
from modelyard.hardware import accelerators
from modelyard.live.checkpoints.bucket import BucketFolder
from modelyard.live.checkpoints.folder import Folder
from modelyard.live.checkpoints.reading import (
    Asked,
    NoConfigFile,
    described,
    read_checkpoint,
)
from modelyard.live.checkpoints.source import Facts, Source
from modelyard.memory.published import parameter_findings
from modelyard.project import MODELS
from modelyard.reading import CHECKPOINT, NotJson, parse_json, suggestion
from modelyard.spec import Model
from modelyard.spec.checkpoint import CheckpointRecord
from modelyard.spec.checkpoint_files import read_record, record_path, record_text
from modelyard.spec.folders import SUFFIXES
from modelyard.spec.weights import Weights
from modelyard.writing import write_file

_HELP = """Record what is known of a model's checkpoint, so that everything afterwards is offline and reviewed.

\b
  modelyard model add hf://Qwen/Qwen3-8B
  modelyard model add hf://Qwen/Qwen3-8B --accelerator l40s       and write models/qwen3-8b.yaml
"""
_ADD_HELP = """Read a checkpoint's config.json, the type and shape of each tensor, licence and gating, pinned to a commit, and
write them to checkpoints/ORG--NAME.json beside the model files. No weights are downloaded.

\b
  modelyard model add hf://Qwen/Qwen3-8B
  modelyard model add hf://Qwen/Qwen3-8B --revision v1.1 --accelerator l40s
  modelyard model add hf://unsloth/Qwen3-8B-GGUF --file Qwen3-8B-Q4_K_M.gguf
  modelyard model add s3://acme-weights/chat-7b --region us-east-2
  modelyard model add ./chat-7b --uri efs://chat-7b

Commit the record. A model file that states no revision serves the recorded commit. Adding a model again refreshes its record and
says what changed. HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE apply. A model file is written with --name or --accelerator, never
over one that is there.
"""
_REGION = "us-east-1"
_COMMIT = re.compile(r"^[0-9a-f]{40}$")


def register(app: typer.Typer) -> None:
    group = typer.Typer(help=_HELP, callback=show_help, invoke_without_command=True, rich_markup_mode=None)
    group.command("add", help=_ADD_HELP)(add)
    app.add_typer(group, name="model")


def add(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="hf://ORG/NAME, s3://BUCKET/PREFIX, or a folder.")
    ],
    uri: Annotated[
        str | None, typer.Option(metavar="URI", help="Where model files find what lies in the folder.")
    ] = None,
    revision: Annotated[
        str | None, typer.Option(metavar="REVISION", help="Branch, tag or commit on the Hub; default: main.")
    ] = None,
    file: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="GGUF file; repeat it for several.")
    ] = None,
    architecture: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Known model with the same layout, for want of a config.",
            autocompletion=checkpoints,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Write models/NAME.yaml; default: the repository's name."),
    ] = None,
    accelerator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Accelerator of the model file, such as l40s:4 or auto.",
            autocompletion=accelerator_names,
        ),
    ] = None,
    models: ModelsOption = MODELS,
    region: Annotated[
        str | None, typer.Option(metavar="REGION", help="Region of the bucket; default: AWS_REGION.")
    ] = None,
    profile: ProfileOption = None,
    output: OutputOption = Output.table,
) -> int:
    found, named = _opened(source, uri, revision, region, profile)
    path = record_path(models, named)
    before = read_record(path)[0] if path.exists() else None  # a broken one is written anew
    kept = before if before is not None and before.uri == named else None
    files = tuple(dict.fromkeys((*(file or ()), *(kept.files if kept and not file else ()))))
    written = _model_file(models, named, name, accelerator) if name or accelerator else None
    try:
        record = read_checkpoint(found, Asked(named, files, architecture), date.today())
    except NoConfigFile as why:
        known = "name a known model with the same layout: --architecture ID (`modelyard catalog models`)"
        raise CommandError(f"{why}; {known}") from None
    arch = described(record, named.partition("://")[2])
    if kept is not None and kept.revision == record.revision:  # files of the same commit stay true
        record = record.model_copy(update={"files": {**kept.files, **record.files}})
    differs = None if kept is None else changes(kept, record)
    if kept is not None and not differs:
        record = kept
    text = _readable(record)
    if differs != []:
        write_file(path, text)
    there = None if written is None else _existing(written[0])
    if written is not None and there is None:
        chosen = file or list(record.files) if record.tensors is None or file else []
        write_file(written[0], _model_text(written[1], arch, chosen[0] if chosen else None))
    added = AddedModel(
        record, arch, path, differs, there or (written[0] if written else None), there is not None
    )
    show(added, models, parameter_findings(arch, weight_counts(record.tensor_list), exact=True), output)
    return 0


def _readable(record: CheckpointRecord) -> str:
    """The text of the record, which a later command will be able to read.

    Raises:
        CommandError: its config is so large or deep that the record is beyond a limit.
    """
    text = record_text(record)
    if len(text) > CHECKPOINT.most_bytes:  # all of it is ASCII
        raise CommandError(
            f"nothing was written: the record of {record.uri} would have {len(text) >> 20} MiB"
        )
    try:
        parse_json(text)
    except NotJson as problem:
        raise CommandError(
            f"nothing was written: the record of {record.uri} is beyond a limit: {problem}"
        ) from None
    return text


def _opened(
    source: str, uri: str | None, revision: str | None, region: str | None, profile: str | None
) -> tuple[Source, str]:
    """The place to read from, and the URI under which model files name it."""
    scheme = source.partition("://")[0] if "://" in source else ""
    if revision is not None and scheme != "hf" and not (uri or "").startswith("hf://"):
        raise typer.BadParameter("--revision goes with hf://")
    if scheme in ("hf", "s3"):
        if uri is not None:
            raise typer.BadParameter("--uri goes with a folder")
        _checked(source, revision)
        if scheme == "hf":
            return repository_of(source, revision or "main", needed_by="modelyard model add"), source
        where = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or _REGION
        return BucketFolder(source, opened(where, profile, "model add").ask), source
    if scheme:
        raise typer.BadParameter(
            f"{scheme}:// cannot be read from here: give the folder, and --uri {source}"
            if scheme == "efs"
            else f"'{source}' is none of hf://ORG/NAME, s3://BUCKET/PREFIX and a folder"
        )
    if not Path(source).is_dir():
        near = f"; hf://{source} is the one on the Hub" if re.fullmatch(r"[\w.-]+/[\w.-]+", source) else ""
        raise typer.BadParameter(f"there is no folder '{source}'{near}")
    if uri is None:
        raise typer.BadParameter(
            f"a folder needs --uri: where model files find {source}, such as efs://{Path(source).name}"
        )
    _checked(uri, revision)
    folder = Folder(Path(source))
    if revision is not None:
        if not _COMMIT.match(revision):
            raise typer.BadParameter("--revision of a folder is the 40-digit commit that it holds")
        folder.facts = Facts(revision=revision)
    return folder, uri


def _checked(uri: str, revision: str | None) -> None:
    """Refuse what a model file could not name."""
    try:
        Weights.model_validate({"uri": uri, **({"revision": revision} if revision else {})})
    except ValidationError as error:
        raise typer.BadParameter(f"{uri}: {_reason(error)}") from None


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    at = ".".join(str(part) for part in first["loc"])
    return f"{at}: {str(first['msg']).removeprefix('Value error, ')}"


def _model_file(
    models: Path, uri: str, name: str | None, accelerator: str | None
) -> tuple[Path, dict[str, Any]]:
    """Path and content of a three-line model file, which is valid.

    Raises:
        typer.BadParameter: the name or the accelerator is not.
    """
    called = name or _name(uri)
    kind = (accelerator or "auto").partition(":")[0]
    if kind not in (known := ("auto", "none", *accelerators())):
        raise typer.BadParameter(
            f"accelerator '{kind}': {suggestion(kind, known)}it is one of {', '.join(known)}"
        )
    lines = {"model": uri, "accelerator": accelerator or "auto", "replicas": 2}
    try:
        Model.model_validate({"name": called, **lines})
    except ValidationError as error:
        raise typer.BadParameter(_reason(error)) from None
    return models / f"{called}.yaml", lines


def _name(uri: str) -> str:
    """The last part of the URI as the name of a model file."""
    words = re.sub(r"[^a-z0-9]+", "-", uri.rpartition("/")[2].lower()).strip("-")
    return re.sub(r"^[^a-z]+", "", words)[:40].rstrip("-") or "model"


def _existing(path: Path) -> Path | None:
    return next((file for suffix in SUFFIXES if (file := path.with_suffix(suffix)).exists()), None)


def _model_text(lines: dict[str, Any], arch: Architecture, file: str | None) -> str:
    """The text of a model file; `file`: the GGUF file to serve."""
    weights = lines["model"] if file is None else f'{{uri: "{lines["model"]}", file: {file}}}'
    task = ""
    if arch.encoder:
        task = f"task: {'rerank' if arch.architecture.endswith('ForSequenceClassification') else 'embed'}\n"
    return f"model: {weights}\n{task}accelerator: {lines['accelerator']}\nreplicas: {lines['replicas']}\n"
