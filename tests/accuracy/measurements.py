"""Start-up logs of real engines as questions to the memory model, with what the engine printed."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).parent
_INFERRED = re.compile(r"MODEL INFERRED as ([\w./-]+)")
_LAST_V0 = "0.7.3"
STARTED, FAILED = "started", ("oom", "max_len_too_big", "no_kv_memory")


@dataclass(frozen=True)
class Measurement:
    """One log. Memory in GiB of one GPU; None where the log does not say. `complete`: GPU, tensor parallelism
    and utilization are stated, so that the KV cache follows."""

    id: str
    question: dict[str, Any]
    family: str
    outcome: str
    complete: bool
    weights: float | None
    activation: float | None
    non_torch: float | None
    graphs: float | None
    kv_cache: float | None
    kv_tokens: int | None
    tokens_are_logged: bool
    block_size: int
    notes: str

    @property
    def held_out(self) -> bool:
        """Whether no constant may come from this log."""
        return "HELD OUT" in self.notes

    @property
    def sorts(self) -> bool:
        """Whether PyTorch sorted where the version's image samples with FlashInfer."""
        return "NO FLASHINFER" in self.notes

    @property
    def total(self) -> float:
        return float(self.question["acceleratorMemoryGiB"])


@cache
def measurements() -> tuple[Measurement, ...]:
    """The logs that count and whose model is known."""
    with (HERE / "measurements.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "EXCLUDE" not in row["notes"]]
    return tuple(found for row in rows if (found := _read(row)) is not None)


def _read(row: dict[str, str]) -> Measurement | None:
    inferred = _INFERRED.search(row["notes"])
    model = inferred[1].rstrip(".:") if inferred else row["model_id"]
    gpu = _gpu(row["gpu"])
    memory = _number(row["gpu_total_gib"]) or (gpu or {}).get("memoryGib")
    if memory is None or not model:
        return None
    question = {
        "id": row["id"],
        "model": model,
        "acceleratorMemoryGiB": memory,
        "computeCapability": (gpu or {}).get("computeCapability"),
        "tensorParallel": _integer(row["tp"]) or 1,
        "pipelineParallel": _integer(row["pp"]) or 1,
        "expertParallel": True if "EP" in row["dp_or_ep"] else None,
        "gpuMemoryUtilization": _number(row["gpu_memory_utilization"]),
        "maxModelLen": _integer(row["max_model_len"]),
        "maxNumSeqs": _integer(row["max_num_seqs"]),
        "maxNumBatchedTokens": _integer(row["max_num_batched_tokens"]),
        "kvCacheDtype": row["kv_cache_dtype"] or None,
        "quantization": row["quantization"] or None,
        "dtype": row["weight_dtype"] or None,
        "enforceEager": True if row["enforce_eager"] == "True" else None,
        "engine": "vllm",
        "engineVersion": _version(row),
    }
    blocks, size = _integer(row["num_gpu_blocks"]), _integer(row["block_size"]) or 16
    tokens = _integer(row["kv_cache_tokens"])
    return Measurement(
        id=row["id"],
        question={key: value for key, value in question.items() if value is not None},
        family=_family(model),
        outcome=row["outcome"],
        complete=bool((row["gpu"] or row["gpu_total_gib"]) and row["tp"] and row["gpu_memory_utilization"]),
        weights=_number(row["weights_gib_per_gpu"]),
        activation=_number(row["activation_peak_gib"]),
        non_torch=_number(row["non_torch_gib"]),
        graphs=_number(row["cuda_graph_gib"]),
        kv_cache=_number(row["kv_cache_gib_per_gpu"]),
        kv_tokens=tokens if tokens is not None else blocks * size if blocks else None,
        tokens_are_logged=tokens is not None,
        block_size=size,
        notes=row["notes"],
    )


@cache
def _table(name: str) -> dict[str, Any]:
    table: dict[str, Any] = YAML(typ="safe", pure=True).load((HERE / name).read_text(encoding="utf-8"))
    return table


def _gpu(text: str) -> dict[str, Any] | None:
    table = _table("gpus.yaml")
    names = [name for name in table if text.startswith(name)]
    return table[max(names, key=len)] if names else None


def _version(row: dict[str, str]) -> str:
    """The version stated, or the newest of the log's date; a log of the V0 engine counts as the last that had
    no other."""
    version = _newest(row)
    later = int(version.split(".")[1]) >= 8
    return _LAST_V0 if later and re.search(r"\bV0\b(?! starts)", row["notes"]) else version


def _newest(row: dict[str, str]) -> str:
    if stated := re.match(r"\d+\.\d+(\.\d+)?", row["vllm_version"]):
        return stated[0]
    table = _table("releases.yaml")
    when = date.fromisoformat(row["date"]) if row["date"] else date(2025, 6, 1)
    return [version for version, day in table.items() if day <= when][-1]


def _family(model: str) -> str:
    """Models that share an architecture are one family, whoever published them."""
    name = model.rpartition("/")[2].lower()
    for family in (
        "qwen",
        "deepseek",
        "gemma",
        "mistral",
        "mixtral",
        "granite",
        "codellama",
        "llama",
        "kimi",
        "internvl",
        "gpt-oss",
    ):
        if family in name:
            return "qwen" if family == "deepseek" and "qwen" in name else family
    return name


def _number(text: str) -> float | None:
    return float(text) if text else None


def _integer(text: str) -> int | None:
    return int(text) if text else None
