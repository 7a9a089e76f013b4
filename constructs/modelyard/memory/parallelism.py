"""How a replica is split over accelerators, and which sizes a model's shape allows."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.checkpoints import Architecture


@dataclass(frozen=True)
class Parallelism:
    """Ranks of one replica: `tensor` × `pipeline` × `data`. `expert`: tensor × data ranks hold whole experts
    instead of slices of all (vLLM's --enable-expert-parallel)."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False

    @property
    def ranks(self) -> int:
        return self.tensor * self.pipeline * self.data

    def stages(self, layers: int) -> tuple[range, ...]:
        """Layers of each pipeline stage: even shares; the remainder goes to the stages before the last
        (vllm/distributed/utils.py, get_pp_indices)."""
        share, left = divmod(layers, self.pipeline)
        sizes = [share] * self.pipeline
        for extra in range(2, left + 2):
            sizes[-extra] += 1
        starts = [sum(sizes[:stage]) for stage in range(self.pipeline)]
        return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))


def split_problem(arch: Architecture, split: Parallelism) -> str | None:
    """Why the model cannot run on `split`, or None.

    Rules of vLLM's parallel linear layers: heads divide evenly; KV heads divide evenly or are replicated a
    whole number of times (latent attention has none); widths divide evenly; block-quantized FP8 keeps whole
    blocks on every rank.
    """
    tensor = split.tensor
    if split.pipeline > arch.layers:
        return f"{arch.layers} layers do not fill {split.pipeline} pipeline stages"
    if arch.heads % tensor:
        return f"{arch.heads} attention heads do not divide by {tensor}"
    if arch.latent is None and arch.attention_layers:
        for heads in (arch.kv_heads, arch.global_kv_heads or arch.kv_heads):
            if tensor <= heads and heads % tensor:
                return f"{heads} KV heads do not divide by {tensor}"
            if tensor > heads and tensor % heads:
                return f"{tensor} ranks are not a multiple of {heads} KV heads"
    if arch.linear and arch.linear.value_heads % tensor:
        return f"{arch.linear.value_heads} heads of the linear layers do not divide by {tensor}"
    return _width_problem(arch, split)


def _width_problem(arch: Architecture, split: Parallelism) -> str | None:
    block = arch.quantization.format.block if arch.quantization else 0
    widths = {}
    if arch.has_dense_layers:
        widths["intermediate size"] = (arch.intermediate, split.tensor)
    if arch.moe:
        if split.expert:
            if arch.moe.count < split.tensor * split.data:
                return f"{arch.moe.count} experts are fewer than {split.tensor * split.data} ranks"
        else:
            widths["intermediate size of an expert"] = (arch.moe.intermediate, split.tensor * split.data)
        if arch.moe.shared_intermediate:
            widths["intermediate size of the shared expert"] = (arch.moe.shared_intermediate, split.tensor)
    for name, (width, ranks) in widths.items():
        if width % ranks:
            return f"{name} {width} does not divide by {ranks}"
        if block and ranks > 1 and (width // ranks) % block:
            return f"{name} {width} over {ranks} ranks breaks the FP8 blocks of {block}"
    return None


def allowed_splits(arch: Architecture, most: int = 64) -> list[int]:
    """Every valid tensor-parallel size up to `most`."""
    return [size for size in range(1, most + 1) if not split_problem(arch, Parallelism(size))]
