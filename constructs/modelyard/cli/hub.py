"""`--hub`: facts of models that neither a record nor the table has, asked of Hugging Face for one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import typer

from modelyard.checkpoints import architectures
from modelyard.checkpoints.stored import weight_counts
from modelyard.cli.extras import needed_for
from modelyard.cli.printing import console
from modelyard.cli.workspace import CommandError
from modelyard.live.checkpoints.hub import HubRepository, Unreached
from modelyard.live.checkpoints.reading import Asked, json_object, read_checkpoint
from modelyard.live.checkpoints.source import NotRead
from modelyard.spec import Catalogue, Model
from modelyard.spec.checkpoint import CheckpointRecord
from modelyard.spec.weights import DraftModel, Weights

W = TypeVar("W", Weights, DraftModel)

HubOption = Annotated[
    bool,
    typer.Option(
        "--hub", help="Ask Hugging Face about models that neither a record nor the table has; write nothing."
    ),
]


@dataclass(frozen=True)
class HubModel:
    """`config`: the repository's config.json; `parameters`: stored weights by safetensors type, empty if
    the Hub has none."""

    config: dict[str, Any]
    parameters: Mapping[str, int]


def repository_of(uri: str, revision: str, *, needed_by: str) -> HubRepository:
    """The repository of `uri`, `hf://ORG/NAME`.

    Raises:
        CommandError: huggingface_hub is not installed.
    """
    with needed_for(needed_by, "hub"):
        found = HubRepository(uri.removeprefix("hf://"), revision)
    return found


def ask(uri: str, revision: str = "main", file: str | None = None) -> CheckpointRecord:
    """The record of `uri` as the Hub answers now.

    Raises:
        CommandError: huggingface_hub is not installed.
        NotRead: the Hub does not answer, or does not describe the model.
    """
    source = repository_of(uri, revision, needed_by="--hub")
    return read_checkpoint(source, Asked(uri, (file,) if file else ()), date.today())


def fetch(repository: str) -> HubModel:
    """What the Hub knows of `repository`, or its config.json in huggingface_hub's cache without a connection.

    Raises:
        CommandError: neither has it.
    """
    way_out = f"give --config DIR with the config.json of {repository}"
    try:
        source = repository_of(f"hf://{repository}", "main", needed_by="--hub")
    except CommandError as missing:
        raise CommandError(f"{missing}; or {way_out}") from None
    try:
        record = read_checkpoint(source, Asked(f"hf://{repository}"), date.today())
        return HubModel(record.config, weight_counts(record.tensor_list))
    except Unreached as why:
        if (cached := source.cached_config()) is None:
            raise CommandError(f"{why}; or {way_out}") from None
        return HubModel(json_object(source, "config.json", cached), {})
    except NotRead as why:
        raise CommandError(f"{why}; or {way_out}") from None


def with_hub(catalogue: Catalogue) -> Catalogue:
    """`catalogue` with what the Hub says of models without facts; standard error says of which, and how to
    keep it.

    Raises:
        CommandError: huggingface_hub is not installed.
    """
    said: dict[str, CheckpointRecord | None] = {}

    def asked(part: W) -> W:
        if not _unknown(part):
            return part
        key = f"{part.uri}@{part.revision}"
        if key not in said:
            said[key] = _told(part)
        record = said[key]
        return part if record is None else part.recorded(record)

    models = {}
    for name, model in catalogue.models.items():
        changed: dict[str, Any] = {"model": asked(model.model)}
        drafts = model.speculative_decoding
        if drafts is not None and drafts.model is not None and drafts.method == "draft":
            changed["speculative_decoding"] = drafts.model_copy(update={"model": asked(drafts.model)})
        models[name] = model.model_copy(update=changed)
    return Catalogue(MappingProxyType(models), catalogue.sources)


def asked_model(model: Model) -> Model:
    """`model` with what the Hub says of it, if nothing else is known."""
    found = with_hub(Catalogue(MappingProxyType({model.name: model})))
    return found.models[model.name]


def _unknown(part: Weights | DraftModel) -> bool:
    return (
        part.uri.startswith("hf://")
        and part.record is None
        and part.config is None
        and part.architecture is None
        and part.repository not in architectures()
    )


def _told(part: Weights | DraftModel) -> CheckpointRecord | None:
    """The record of `part`, with a line on standard error; None where the Hub has no answer."""
    err = console(stderr=True)
    file = part.file if isinstance(part, Weights) else None
    try:
        record = ask(part.uri, part.revision, file)
    except NotRead as why:
        err.print(f"--hub: {part.uri}: {why}", soft_wrap=True, markup=False)
        return None
    again = f"modelyard model add {part.uri}"
    again += f" --revision {part.revision}" if part.revision != "main" else ""
    again += f" --file {file}" if file else ""
    commit = (record.revision or "")[:12]
    err.print(
        f"--hub: {part.uri} at {commit}, for this run; to keep it: {again}", soft_wrap=True, markup=False
    )
    return record
