"""Parameters of a model, and the bytes that one accelerator holds of them under tensor parallelism."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.hardware import Memory
from modelyard.planning.architecture import Architecture

# Rows of the vocabulary are padded to this multiple before they are split (vLLM, DEFAULT_VOCAB_PADDING_SIZE).
_VOCAB_PADDING = 64

# Group size of 4-bit formats and the 16-bit scale plus 4-bit zero point that each group carries (AWQ, GPTQ).
_GROUP = 128
# MXFP4 packs 32 values with one 8-bit exponent (OCP Microscaling 1.0).
_MX_BLOCK = 32
# FP8 checkpoints with block scales carry one 32-bit scale per 128 by 128 weights.
_FP8_BLOCK = 128 * 128


@dataclass(frozen=True)
class Parameters:
    """Parameter counts by how they are split and stored.

    `embedding`: input and output embeddings. `attention`, `dense_mlp`: linear layers. `experts`: routed experts.
    `replicated`: norms, biases and routers, on every rank. `vision`: the vision tower, on every rank.
    """

    embedding: int
    attention_q_o: int
    attention_k_v: int
    dense_mlp: int
    experts: int
    replicated: int
    vision: int

    @property
    def total(self) -> int:
        return (
            self.embedding
            + self.attention_q_o
            + self.attention_k_v
            + self.dense_mlp
            + self.experts
            + self.replicated
            + self.vision
        )


def parameters(arch: Architecture) -> Parameters:
    """Count parameters from the architecture; for the table's models the sum meets the published total."""
    norms = arch.layers * 2 * arch.hidden + arch.hidden
    biases = arch.layers * (arch.heads + 2 * arch.kv_heads) * arch.head_dim if arch.attention_bias else 0
    router = arch.layers * arch.hidden * arch.experts
    # gpt-oss: every expert has a bias on its gate, up (2 × moe_intermediate) and down (hidden) projections.
    expert_bias = (
        arch.layers * arch.experts * (2 * arch.moe_intermediate + arch.hidden) if arch.expert_bias else 0
    )
    return Parameters(
        embedding=arch.vocab * arch.hidden * (1 if arch.tied_embeddings else 2),
        attention_q_o=arch.layers * 2 * arch.hidden * arch.heads * arch.head_dim,
        attention_k_v=arch.layers * 2 * arch.hidden * arch.kv_heads * arch.head_dim,
        # gate, up and down projections
        dense_mlp=0 if arch.experts else arch.layers * 3 * arch.hidden * arch.intermediate,
        experts=arch.layers * arch.experts * 3 * arch.hidden * arch.moe_intermediate,
        replicated=norms + biases + router + expert_bias,
        vision=arch.vision_parameters,
    )


def bytes_per_quantized_weight(method: str, bits: int) -> float:
    """Bytes a weight takes in the given format, scales and zero points included.

    Raises:
        ValueError: the method is not one that the table of formats knows.
    """
    if method in ("awq", "gptq") or (method == "compressed-tensors" and bits == 4):
        return bits / 8 + (2 + 0.5) / _GROUP
    if method == "mxfp4":
        return bits / 8 + 1 / _MX_BLOCK
    if method == "fp8":
        return 1 + 4 / _FP8_BLOCK
    if method == "compressed-tensors":
        return bits / 8
    raise ValueError(f"no byte size is known for quantization method {method}")


def weights_per_accelerator(arch: Architecture, tensor_parallel: int) -> Memory:
    """Bytes of weights on each of `tensor_parallel` ranks.

    Embeddings, norms and the vision tower stay in 16 bit; K and V projections are copied when there are more ranks
    than KV heads. gpt-oss (MXFP4) quantizes its experts only.
    """
    count = parameters(arch)
    linear = expert = 2.0
    if arch.quantization:
        packed = bytes_per_quantized_weight(arch.quantization.method, arch.quantization.bits)
        expert = packed
        linear = 2.0 if arch.quantization.method == "mxfp4" else packed
    padded = -(-arch.vocab // _VOCAB_PADDING) * _VOCAB_PADDING / arch.vocab
    return Memory.bytes(
        count.embedding * padded * 2 / tensor_parallel
        + count.attention_q_o * linear / tensor_parallel
        + count.attention_k_v * linear / min(tensor_parallel, arch.kv_heads)
        + count.dense_mlp * linear / tensor_parallel
        + count.experts * expert / tensor_parallel
        + (count.replicated + count.vision) * 2
    )


def checkpoint_size(arch: Architecture) -> Memory:
    """Size of the checkpoint on disk."""
    return weights_per_accelerator(arch, 1)
