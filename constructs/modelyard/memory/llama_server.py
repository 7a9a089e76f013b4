"""Memory of llama.cpp's llama-server: some layers on the GPU, and a cache allocated in full at start-up."""

from __future__ import annotations

from dataclasses import replace

from modelyard.hardware import Memory
from modelyard.memory.activation import peak_activation
from modelyard.memory.fit import longest_length
from modelyard.memory.ledger import MemoryLedger, MemoryRequest
from modelyard.memory.parallelism import Parallelism
from modelyard.memory.weights import weights_of_layers, weights_per_accelerator


def offload_ledger(request: MemoryRequest, gpu_layers: int) -> MemoryLedger:
    """Ledger of the last GPU with `gpu_layers` of the model's layers spread over `request.split.ranks` GPUs;
    -1: all layers.

    llama.cpp offloads the last layers first and gives each GPU an even share (--split-mode layer). The output
    layer is offloaded too if all layers are; embeddings stay on the CPU (src/llama-model.cpp, load_tensors).
    `max_num_seqs`: slots, each with its cache from the start. `max_num_batched_tokens`: a micro-batch.
    """
    arch, facts, gpus = request.arch, request.facts, request.split.ranks
    everything = gpu_layers < 0 or gpu_layers > arch.layers
    count = arch.layers if everything else gpu_layers
    layers = range(arch.layers - -(-count // gpus), arch.layers)
    total = request.accelerator.usable
    budget = total * request.gpu_memory_utilization
    weights = weights_of_layers(arch, layers, output=everything)
    buffers = peak_activation(
        arch,
        facts,
        Parallelism(),
        batched_tokens=request.max_num_batched_tokens,
        sequences=request.max_num_batched_tokens if everything else 0,
    )
    compute = buffers if count else Memory(0)
    other = Memory.gib(facts.non_torch_gib)
    none = Memory(0)
    left = budget - weights - compute - other
    alone = replace(request, split=Parallelism())
    return MemoryLedger(alone, total, budget, weights, none, compute, other, none, none, left, layers)


def cpu_ledger(request: MemoryRequest) -> MemoryLedger:
    """Ledger of a CPU server: host memory holds all weights, the caches of all slots and the compute
    buffers."""
    arch, facts = request.arch, request.facts
    total = request.accelerator.usable * request.split.ranks
    budget = total * request.gpu_memory_utilization
    weights = weights_per_accelerator(arch)
    buffers = peak_activation(
        arch,
        facts,
        Parallelism(),
        batched_tokens=request.max_num_batched_tokens,
        sequences=request.max_num_batched_tokens,
    )
    none = Memory(0)
    alone = replace(request, split=Parallelism())
    left = budget - weights - buffers
    layers = range(arch.layers)
    return MemoryLedger(alone, total, budget, weights, none, buffers, none, none, none, left, layers)


def longest_context(ledger: MemoryLedger, limit: int) -> int:
    """The longest context per slot, in tokens, at which the cache of all slots fits."""
    return longest_length(lambda _: ledger, limit, at_once=ledger.request.max_num_seqs)


def most_layers(request: MemoryRequest, length: int) -> int:
    """The most layers that can be offloaded with a context of `length` tokens per slot; 0 if none."""
    layers = request.arch.layers
    for count in (-1, *range(layers, 0, -1)):
        if longest_context(offload_ledger(request, count), length) >= length:
            return layers if count < 0 else count
    return 0
