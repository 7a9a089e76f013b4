"""What `modelyard model add` says: the facts of a checkpoint, what was written, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelyard.checkpoints import Architecture
from modelyard.cli.printing import console, finding_json, print_findings, print_json
from modelyard.cli.workspace import Output
from modelyard.findings import Finding
from modelyard.live.checkpoints.reading import engines_that_serve
from modelyard.memory.loaded_model import gguf_type
from modelyard.memory.weights import parameters
from modelyard.project import MODELS
from modelyard.spec.checkpoint import CheckpointRecord


@dataclass(frozen=True)
class AddedModel:
    """A record with what was done with it. `changes`: None for a new record; `model_file`: written, or found
    and kept."""

    record: CheckpointRecord
    arch: Architecture
    path: Path
    changes: Sequence[str] | None
    model_file: Path | None
    model_file_kept: bool


def show(added: AddedModel, models: Path, findings: Sequence[Finding], output: Output) -> None:
    """Print it; `models`: the folder of the model files."""
    following = _next(added, models)
    if output is Output.json:
        _print_json(added, following, findings)
        return
    out = console()
    for label, text in _lines(added):
        out.print(f"{label:<16} {text}", soft_wrap=True, markup=False)
    if added.changes is None:
        out.print(f"wrote {added.path}", soft_wrap=True, markup=False)
    elif added.changes:
        out.print(f"wrote {added.path}; what changed:", soft_wrap=True, markup=False)
        for line in added.changes:
            out.print(f"  {line}", soft_wrap=True, markup=False)
    else:
        out.print(f"{added.path} is up to date", soft_wrap=True, markup=False)
    if added.model_file is not None:
        did = "left alone, it was there:" if added.model_file_kept else "wrote"
        out.print(f"{did} {added.model_file}", soft_wrap=True, markup=False)
    print_findings(findings)
    out.print(f"next: {following}", soft_wrap=True, markup=False)


def _print_json(added: AddedModel, following: str, findings: Sequence[Finding]) -> None:
    """Sizes in bytes, of all tensors."""
    record = added.record
    print_json(
        "Checkpoint",
        uri=record.uri,
        revision=record.revision,
        license=record.license,
        gated=record.gated,
        architecture=added.arch.architecture,
        parameters=parameters(added.arch),
        weightsBytes=record.total_bytes if record.tensors else None,
        fileBytes=_file_bytes(record),
        maxPosition=added.arch.max_position,
        engines=list(engines_that_serve(record)),
        record=str(added.path),
        recordIs="new" if added.changes is None else "changed" if added.changes else "unchanged",
        changes=list(added.changes or ()),
        modelFile=str(added.model_file) if added.model_file else None,
        next=following,
        findings=[finding_json(finding) for finding in findings],
    )


def _file_bytes(record: CheckpointRecord) -> dict[str, Any]:
    return {name: sum(each.bytes for each in file.tensor_list) for name, file in record.files.items()}


def _lines(added: AddedModel) -> list[tuple[str, str]]:
    """The facts for people."""
    record, arch = added.record, added.arch
    at = f" at {record.revision[:12]}" if record.revision else ""
    sizes = [("weights", record.total_bytes)] if record.tensors else []
    sizes += [(f"- {gguf_type(name)}", size) for name, size in _file_bytes(record).items()]
    gated = "needs an accepted licence and a token (secret hf-token)" if record.gated else "no"
    return [
        ("checkpoint", f"{record.uri}{at}"),
        ("architecture", f"{arch.architecture}, {parameters(arch) / 1e9:.2f} billion parameters"),
        *((label, f"{size / (1 << 30):.2f} GiB, {size:,} bytes") for label, size in sizes),
        *([] if sizes else [("weights", "no safetensors or GGUF files: computed from the config")]),
        ("licence", record.license or "none stated"),
        ("gated", gated),
        ("longest length", f"{arch.max_position:,} tokens"),
        ("served by", ", ".join(engines_that_serve(record)) or "no engine's newest release by this class"),
    ]


def _next(added: AddedModel, models: Path) -> str:
    there = "" if models == MODELS else f" --models {models}"
    if added.model_file is not None:
        return f"modelyard explain {added.model_file.stem}{there} --env ENV"
    return f"modelyard size {added.record.uri}{there}"
