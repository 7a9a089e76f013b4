"""A checkpoint's facts from Hugging Face, for models that the bundled table does not have. Only on
request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelyard.cli.workspace import CommandError, read_config_file
from modelyard.findings import Finding


@dataclass(frozen=True)
class HubModel:
    """`config`: the repository's config.json; `parameters`: parameter counts by safetensors dtype, empty if
    the Hub has none."""

    config: dict[str, Any]
    parameters: Mapping[str, int]


def fetch(repository: str) -> HubModel:
    """Download from the Hub (`HF_ENDPOINT`, `HF_TOKEN`, and the cache of huggingface_hub apply).

    Raises:
        CommandError: the Hub cannot be reached, or does not have the repository.
    """
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise CommandError(
            "--hub needs huggingface_hub: pip install 'modelyard[hub]', or give --config DIR with the config.json"
        ) from None
    way_out = f"give --config DIR with the config.json of {repository}"
    try:
        # First, because it fails at once without a connection; a download retries for half a minute.
        published, reached = _parameters(repository), True
    except errors.RepositoryNotFoundError as problem:
        raise CommandError(_refusal(repository, problem, way_out)) from None
    except Exception:  # noqa: BLE001 - offline, in one of many ways: use the cache
        published, reached = {}, False
    try:
        path = huggingface_hub.hf_hub_download(repository, "config.json", local_files_only=not reached)
    except Exception as problem:  # noqa: BLE001 - errors of the Hub, the network or a file
        raise CommandError(_refusal(repository, problem, way_out)) from None
    config = read_config_file(Path(path))
    if isinstance(config, Finding):
        raise CommandError(f"the config.json of {repository} cannot be read: {config.message}; {way_out}")
    return HubModel(config, published)


def _parameters(repository: str) -> dict[str, int]:
    from huggingface_hub import HfApi

    found = HfApi().model_info(repository, expand=["safetensors"]).safetensors
    return dict(found.parameters) if found else {}


def _refusal(repository: str, problem: Exception, way_out: str) -> str:
    from huggingface_hub import errors

    if isinstance(problem, errors.GatedRepoError):
        return f"{repository} is gated: accept its licence and set HF_TOKEN, or {way_out}"
    if isinstance(problem, errors.RepositoryNotFoundError):
        return f"the Hub has no {repository}, or not for you: check the id, set HF_TOKEN, or {way_out}"
    if isinstance(problem, errors.LocalEntryNotFoundError):
        return f"the Hub cannot be reached (or HF_HUB_OFFLINE is set): {way_out}"
    if isinstance(problem, errors.EntryNotFoundError):
        return f"{repository} has no config.json: {way_out} of the model that it derives from"
    return f"the config.json of {repository} cannot be had: {_first_line(problem)}; {way_out}"


def _first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]
