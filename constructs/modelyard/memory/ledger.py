"""The memory ledger of one accelerator: the engine's start-up figures, predicted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from modelyard.checkpoints import Architecture, modules
from modelyard.engines import MemoryFacts
from modelyard.engines.expert_layouts import expert_layout
from modelyard.hardware import Accelerator, Memory
from modelyard.memory.activation import peak_activation
from modelyard.memory.kv_cache import CacheLayout, cache_layout
from modelyard.memory.parallelism import Parallelism
from modelyard.memory.weights import weights_per_accelerator

# Batch sizes that vLLM captures by default: 1, 2, 4, then every 8 to 248 and every 16 to 512 (config/vllm.py,
# _set_cudagraph_sizes); fewer when max_num_seqs is small.
_ALL_GRAPH_SIZES = 51

NOTHING = Memory(0)

# Layers that sum over ranks: each rank has a part of the inputs and all outputs.
_ROW_PARALLEL = ("o_proj", "down_proj", "out_proj")


@dataclass(frozen=True)
class MemoryRequest:
    """Settings for running a model. `split.tensor` counts logical cores on Neuron (see `Accelerator.cores`).

    `adapter_rank` and `adapter_count`: LoRA slots. `speculative_tokens`: drafted per step, by the model's own
    multi-token prediction layers if `own_drafts`. `draft`: weights of a draft model, whose cache is that of
    `draft_layers` of the model's layers. `image_limit`: images per request; None: the engine's default.
    `largest_image`: tokens of one image or, if larger, video; None: the vision tower's maximum.
    `video_limit`: videos per request. `moe_backend`: kernels of the experts.
    """

    arch: Architecture
    accelerator: Accelerator
    facts: MemoryFacts
    split: Parallelism
    gpu_memory_utilization: float
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_cache_dtype: str = "auto"
    enforce_eager: bool = False
    adapter_rank: int = 0
    adapter_count: int = 0
    speculative_tokens: int = 0
    own_drafts: bool = False
    draft: Memory = NOTHING
    draft_layers: int = 0
    image_limit: int | None = None
    largest_image: int | None = None
    video_limit: int = 0
    moe_backend: str = "auto"


@dataclass(frozen=True)
class MemoryLedger:
    """Memory of the tightest rank: a GPU, or a logical NeuronCore.

    `total` is exactly `outside` + weights + adapters + activation + non-torch + graphs within the budget + KV
    cache. `cuda_graphs`: all graphs; `graphs_in_budget`: those that the engine subtracts from the budget.
    `kv_cache` is the remainder and may be negative.
    """

    request: MemoryRequest
    total: Memory
    budget: Memory
    weights: Memory
    adapters: Memory
    activation: Memory
    non_torch: Memory
    cuda_graphs: Memory
    graphs_in_budget: Memory
    kv_cache: Memory
    layers: range

    @property
    def outside(self) -> Memory:
        """Memory beyond total × utilization, which the engine does not use."""
        return self.total - self.budget

    @cached_property
    def layout(self) -> CacheLayout:
        """How the KV cache is laid out in blocks."""
        request = self.request
        return cache_layout(
            request.arch,
            tensor_parallel=request.split.tensor,
            kv_cache_dtype=request.kv_cache_dtype,
            max_num_batched_tokens=request.max_num_batched_tokens,
            block_size=request.facts.block_size,
            pipeline=request.split.pipeline,
            layers=self.layers,
            rules=request.facts.cache,
            draft_layers=request.arch.mtp_layers if request.own_drafts else request.draft_layers,
            speculative_tokens=request.speculative_tokens,
        )

    def kv_need(self, length: int) -> Memory:
        """KV cache that one request of `length` tokens needs."""
        return self.layout.need(length)

    def holds(self, length: int, at_once: int = 1) -> bool:
        """Whether the KV cache holds `at_once` requests of `length` tokens."""
        return self.layout.holds(self.kv_cache, length, at_once)

    def concurrency(self, length: int) -> float:
        """Requests of `length` tokens that the KV cache holds at once."""
        return self.layout.concurrency(self.kv_cache, length)

    def kv_tokens(self, length: int) -> int:
        """Tokens that the KV cache holds, as vLLM logs them for requests of `length`."""
        return self.layout.tokens(self.kv_cache, length)


@lru_cache(maxsize=16384)
def memory_ledger(request: MemoryRequest) -> MemoryLedger:
    """The ledger of the pipeline stage that holds the fewest requests.

    vLLM measures weights, persistent buffers and a profiling run, and gives the rest of total × utilization
    to the KV cache (vllm/v1/worker/gpu_worker.py, determine_available_memory); each line here is one of those
    terms.
    """
    stages = request.split.stages(request.arch.layers)
    ledgers = [_stage_ledger(request, stage, layers) for stage, layers in enumerate(stages)]
    return min(ledgers, key=lambda ledger: ledger.kv_cache.in_bytes / max(1, ledger.layout.bytes_per_block))


def _stage_ledger(request: MemoryRequest, stage: int, layers: range) -> MemoryLedger:
    facts, arch, split = request.facts, request.arch, request.split
    total = request.accelerator.usable * (1 / request.accelerator.cores)
    budget = total * request.gpu_memory_utilization
    weights = request.draft + weights_per_accelerator(
        arch,
        split,
        stage,
        drafts=request.own_drafts,
        absorbed=facts.absorbed,
        layout=expert_layout(
            facts.engine, facts.version, request.accelerator.compute_capability, request.moe_backend
        ),
    )
    adapters = _adapters(request) * (1 / split.pipeline)
    if facts.kv_cap_fraction is not None:  # Neuron: the compiler plans buffers, the plugin caps the cache
        kv_cache = min(budget - weights - adapters, budget * facts.kv_cap_fraction)
        compiler = budget - weights - adapters - kv_cache
        return MemoryLedger(
            request,
            total,
            budget,
            weights,
            adapters,
            compiler,
            Memory(0),
            Memory(0),
            Memory(0),
            kv_cache,
            layers,
        )
    activation = peak_activation(
        arch,
        facts,
        split,
        batched_tokens=request.max_num_batched_tokens,
        sequences=request.max_num_seqs,
        samples=stage == split.pipeline - 1,
        image_limit=request.image_limit,
        largest_image=request.largest_image,
        video_limit=request.video_limit,
    )
    non_torch = Memory.gib(_non_torch_gib(request))
    graphs = Memory.gib(_graphs_gib(request, len(layers)))
    counted = graphs if facts.graphs_in_budget else NOTHING
    kv_cache = budget - weights - adapters - activation - non_torch - counted
    return MemoryLedger(
        request, total, budget, weights, adapters, activation, non_torch, graphs, counted, kv_cache, layers
    )


def _non_torch_gib(request: MemoryRequest) -> float:
    """Memory outside PyTorch: kernels and workspaces, and collective buffers if there are several ranks.

    Over NVLink, collectives use larger buffers; from Hopper on, fused and symmetric-memory collectives add
    their own.
    """
    facts, accelerator = request.facts, request.accelerator
    ranks = request.split.tensor
    if request.split.ranks == 1:
        return facts.non_torch_gib
    if ranks == 1 or not accelerator.has("nvlink"):
        return facts.ranks_pcie_gib
    if accelerator.has("large-collectives"):
        fused = request.split.pipeline == request.split.data == 1
        extra = facts.fused_gib + facts.fused_each_gib * (ranks - 1) if fused else 0.0
        return facts.ranks_hopper_gib + facts.ranks_hopper_each_gib * (ranks - 1) + extra
    return facts.ranks_nvlink_gib + facts.ranks_nvlink_each_gib * (ranks - 1)


def _graphs_gib(request: MemoryRequest, layers: int) -> float:
    facts = request.facts
    if request.enforce_eager:
        return 0.0
    whole = (
        facts.graphs_base_gib
        + facts.graphs_per_layer_gib * layers
        + (facts.graphs_per_layer_ranks_gib * layers if request.split.tensor > 1 else 0)
        + (facts.graphs_experts_gib if request.arch.experts else 0)
    )
    return whole * (
        _graph_sizes(request.max_num_seqs, request.speculative_tokens) / _ALL_GRAPH_SIZES
        if facts.graphs_follow_seqs
        else 1
    )


def _graph_sizes(max_num_seqs: int, speculative_tokens: int = 0) -> int:
    """Number of batch sizes captured for up to twice `max_num_seqs` sequences with their draft tokens."""
    largest = min(2 * max_num_seqs * (1 + speculative_tokens), 512)
    return len([1, 2, 4]) if largest < 8 else 3 + min(largest, 248) // 8 + max(0, largest - 240) // 16


def _adapters(request: MemoryRequest) -> Memory:
    """LoRA slots: matrices A and B for every linear layer, at the largest rank, in 16 bit.

    A column-parallel layer replicates A and splits B over the ranks, a row-parallel layer the reverse; each
    expert has its own slots (vllm/lora/layers, create_lora_weights).
    """
    if not request.adapter_count:
        return NOTHING
    tensor = request.split.tensor
    width = 0.0
    for module in modules(request.arch):
        if module.layer is None or not module.quantizable or module.kind != "text":
            continue
        split = 1 if module.split == "whole" else tensor
        rows = module.name.endswith(_ROW_PARALLEL)
        width += module.copies * (
            module.inputs / split + module.outputs if rows else module.inputs + module.outputs / split
        )
    return Memory.bytes(request.adapter_count * request.adapter_rank * width * 2)
