"""How a replica's accelerators are split into nodes, pipeline stages, data-parallel and tensor-parallel
ranks."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.checkpoints import Architecture
from modelyard.findings import Finding
from modelyard.hardware import Accelerator, types_with
from modelyard.memory.parallelism import Parallelism, allowed_splits, split_problem
from modelyard.spec.engine import ParallelismSettings
from modelyard.spec.model import Model


@dataclass(frozen=True)
class Topology:
    """Ranks of a replica and its number of nodes; all nodes have the same number of accelerators."""

    split: Parallelism
    nodes: int = 1


def topology(model: Model, arch: Architecture, accelerator: Accelerator, count: int) -> Topology | Finding:
    """The model file's parallelism for `count` accelerators, or the default: tensor parallel within a node,
    where links are fast, and pipeline parallel across nodes."""
    largest = max((t.accelerator_count for t in types_with(accelerator.name)), default=count)
    nodes = -(-count // largest)
    if count % nodes or (nodes > 1 and count != nodes * largest):
        return _impossible(
            model,
            f"{count} {accelerator.name} do not fill whole nodes of {largest}",
            f"use a count up to {largest}, or a multiple of it",
        )
    stated = model.parallelism or ParallelismSettings()
    cores = count * accelerator.cores
    pipeline = stated.pipeline or (nodes if stated.data == 1 else 1)
    tensor = stated.tensor or cores // (pipeline * stated.data)
    if tensor * pipeline * stated.data != cores:
        return _impossible(
            model,
            f"tensor {tensor} × pipeline {pipeline} × data {stated.data} is not the {cores} ranks of {count} {accelerator.name}",
            "give sizes whose product is the accelerator's count",
            ("parallelism",),
        )
    if (stated.data > 1 or stated.expert) and arch.moe is None:
        return _impossible(
            model,
            f"{arch.model_id} has no experts to share between data-parallel ranks",
            "use replicas, or tensor and pipeline parallelism",
            ("parallelism",),
        )
    if nodes > 1 and (stated.data if stated.data > 1 else pipeline) % nodes:
        return _impossible(
            model,
            f"{nodes} nodes cannot share pipeline {pipeline} × data {stated.data}: tensor parallelism would cross nodes",
            f"use pipeline {nodes}, or data-parallel ranks in a multiple of {nodes}",
            ("parallelism",),
        )
    split = Parallelism(tensor, pipeline, stated.data, stated.expert)
    if reason := split_problem(arch, split):
        return _unsplittable(model, arch, accelerator, count, cores, reason)
    return Topology(split, nodes)


def _unsplittable(
    model: Model, arch: Architecture, accelerator: Accelerator, count: int, cores: int, reason: str
) -> Finding:
    fits = [size // accelerator.cores for size in allowed_splits(arch) if size % accelerator.cores == 0]
    sold = sorted({t.accelerator_count for t in types_with(accelerator.name)})
    useful = [str(size) for size in fits if sold and size <= sold[-1]]
    ranks = "" if accelerator.cores == 1 else f" ({cores} logical cores)"
    return _impossible(
        model,
        f"{arch.model_id} cannot be split over {count} {accelerator.name}{ranks}: {reason}",
        f"use a count of {', '.join(useful)}" if useful else "use another accelerator",
    )


def _impossible(model: Model, message: str, fix: str, field: tuple[str, ...] = ("accelerator",)) -> Finding:
    return Finding("TP001", message, fix, subject=model.name, field=field)
