"""Memory of speculative decoding: the draft's weights and its share of the KV cache."""

from __future__ import annotations

from modelyard.checkpoints import Architecture
from modelyard.checkpoints.modules import layer_modules
from modelyard.hardware import Memory
from modelyard.memory.kv_cache import kv_bytes_per_token_and_layer
from modelyard.memory.parallelism import Parallelism
from modelyard.memory.weights import weights_per_accelerator


def draft_memory(arch: Architecture, draft: Architecture, split: Parallelism) -> tuple[Memory, int]:
    """Weights of a draft model on one rank, and its KV cache in equivalent layers of `arch`.

    vLLM uses the model's tensor parallelism for the draft (config/speculative.py,
    draft_tensor_parallel_size).
    """
    alone = Parallelism(split.tensor)
    mine = kv_bytes_per_token_and_layer(arch, split.tensor, "auto")
    other = kv_bytes_per_token_and_layer(draft, split.tensor, "auto")
    return weights_per_accelerator(draft, alone), -(-draft.layers * other // max(1, mine))


def draft_head(arch: Architecture, split: Parallelism) -> Memory:
    """Weights of an EAGLE head on one rank: one model layer in 16 bit, the projection of three hidden states
    to one, and its own output layer (vllm/model_executor/models/llama_eagle3.py)."""
    layer = sum(m.inputs * m.outputs for m in layer_modules(arch, 0) if m.copies == 1)
    projection = 3 * arch.hidden * arch.hidden
    return Memory.bytes(2 * (layer / split.tensor + projection + arch.hidden * arch.vocab / split.tensor))
