"""The memory ledger of one accelerator: what the engine will say at start-up, before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.engines import Release
from modelyard.hardware import Accelerator, Memory
from modelyard.planning.architecture import Architecture
from modelyard.planning.kv_cache import kv_cache_for_request
from modelyard.planning.weights import weights_per_accelerator


@dataclass(frozen=True)
class MemoryRequest:
    """One way to run a model. `tensor_parallel` counts logical cores (see `Accelerator.cores`)."""

    arch: Architecture
    accelerator: Accelerator
    release: Release
    tensor_parallel: int
    gpu_memory_utilization: float
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_cache_dtype: str = "auto"
    enforce_eager: bool = False
    adapter_rank: int = 0
    adapter_count: int = 0


@dataclass(frozen=True)
class MemoryLedger:
    """All amounts per rank: a GPU, or a logical NeuronCore. `kv_cache` is what is left for it and may be negative."""

    request: MemoryRequest
    total: Memory
    budget: Memory
    weights: Memory
    adapters: Memory
    activation: Memory
    non_torch: Memory
    cuda_graphs: Memory
    kv_cache: Memory

    def kv_need(self, length: int) -> Memory:
        """KV cache that one request of `length` tokens takes."""
        return kv_cache_for_request(
            self.request.arch,
            length=length,
            tensor_parallel=self.request.tensor_parallel,
            kv_cache_dtype=self.request.kv_cache_dtype,
            max_num_batched_tokens=self.request.max_num_batched_tokens,
            block_size=self.request.release.memory.block_size,
        )

    def concurrency(self, length: int) -> float:
        """Requests of `length` tokens that the KV cache holds at once."""
        return max(0.0, self.kv_cache.in_bytes / self.kv_need(length).in_bytes)

    def kv_tokens(self, length: int) -> int:
        """Tokens that the KV cache holds, as vLLM prints them for requests of `length`."""
        return int(self.concurrency(length) * length)


def memory_ledger(request: MemoryRequest) -> MemoryLedger:
    """Compute the ledger.

    vLLM measures weights, persistent buffers and a profiling run, and gives the rest of total × utilization to the KV
    cache (vllm/v1/worker/gpu_worker.py, determine_available_memory); each line here is one of those terms.
    """
    facts = request.release.memory
    total = request.accelerator.usable * (1 / request.accelerator.cores)
    budget = total * request.gpu_memory_utilization
    weights = weights_per_accelerator(request.arch, request.tensor_parallel)
    adapters = _adapters(request)
    if facts.kv_cap_fraction is not None:  # Neuron: the compiler plans buffers, the plugin caps the cache
        left = budget - weights - adapters
        cap = budget * facts.kv_cap_fraction
        zero = Memory(0)
        return MemoryLedger(request, total, budget, weights, adapters, zero, zero, zero, min(left, cap))
    activation = _activation(request)
    distributed = request.tensor_parallel > 1
    non_torch = Memory.gib(facts.non_torch_distributed_gib if distributed else facts.non_torch_gib)
    graphs = (
        Memory(0)
        if request.enforce_eager
        else Memory.gib(facts.cuda_graph_base_gib + facts.cuda_graph_per_layer_gib * request.arch.layers)
    )
    kv_cache = budget - weights - adapters - activation - non_torch - graphs
    return MemoryLedger(request, total, budget, weights, adapters, activation, non_torch, graphs, kv_cache)


def _activation(request: MemoryRequest) -> Memory:
    """Peak of the profiling run: the MLP of a full batch, or the sampler over the whole vocabulary."""
    arch = request.arch
    # gate, up and their product, and about four hidden states, in 16 bit
    width = arch.experts_per_token * arch.moe_intermediate if arch.experts else arch.intermediate
    mlp = request.max_num_batched_tokens * 2 * (3 * width / request.tensor_parallel + 4 * arch.hidden)
    rows = min(request.max_num_seqs, request.max_num_batched_tokens)
    logits = rows * arch.vocab * request.release.memory.logits_bytes_per_entry
    peak = max(mlp, logits)
    if arch.multimodal:
        # The encoder cache holds a batch of image tokens, and the tower's own activations stay below another.
        peak += 2 * request.max_num_batched_tokens * arch.hidden * 2
    return Memory.bytes(peak)


def _adapters(request: MemoryRequest) -> Memory:
    """LoRA slots: A and B matrices of every linear layer, at the largest rank, in 16 bit; B is split, A is not."""
    arch = request.arch
    q = arch.heads * arch.head_dim
    kv = arch.kv_heads * arch.head_dim
    inputs = 3 * arch.hidden + q + 2 * arch.hidden + arch.intermediate
    outputs = q + 2 * kv + arch.hidden + 2 * arch.intermediate + arch.hidden
    per_rank = inputs + outputs / request.tensor_parallel
    return Memory.bytes(request.adapter_count * request.adapter_rank * arch.layers * per_rank * 2)
