"""The weight matrices of a model, and how tensor parallelism splits them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from modelyard.checkpoints.shape import Architecture, LinearAttention

Split = Literal["whole", "ranks", "kv_heads", "vocabulary", "experts", "vision_attention", "vision"]
"""How a matrix is split: `whole`: not at all; `ranks`: over tensor-parallel ranks; `kv_heads`: over ranks,
but no finer than KV heads; `vocabulary`: by rows (padded); `experts`: over experts or ranks;
`vision_attention`: over ranks if they divide the tower's heads; `vision`: over ranks."""


@dataclass(frozen=True)
class Module:
    """One weight matrix, or several identical ones.

    `name` follows Hugging Face from `layers` on; `layer` is None outside the layers. `quantizable` is False
    for modules that no checkpoint format quantizes: embeddings, norms, routers, convolutions. `kind` marks
    embeddings and vision towers.
    """

    name: str
    layer: int | None
    inputs: int
    outputs: int
    split: Split
    copies: int = 1
    quantizable: bool = True
    kind: Literal["text", "embedding", "head", "vision"] = "text"

    @property
    def parameters(self) -> int:
        return self.inputs * self.outputs * self.copies


@lru_cache(maxsize=1024)
def modules(arch: Architecture) -> tuple[Module, ...]:
    """Every module of `arch`, in order, without the multi-token prediction layers (`draft_modules`)."""
    found = [
        Module(
            "embed_tokens", None, arch.hidden, arch.vocab, "vocabulary", quantizable=False, kind="embedding"
        )
    ]
    if arch.position_table:
        found.append(_plain("embed_positions", None, arch.position_table * arch.hidden))
    for layer in range(arch.layers):
        found += layer_modules(arch, layer)
    if arch.final_norms:
        found.append(_plain("norm", None, arch.final_norms * arch.hidden))
    if not arch.tied_embeddings:
        found.append(
            Module("lm_head", None, arch.hidden, arch.vocab, "vocabulary", quantizable=False, kind="head")
        )
    if arch.head_bias:
        found.append(
            Module("lm_head.bias", None, 1, arch.vocab, "vocabulary", quantizable=False, kind="head")
        )
    return (*found, *_vision(arch))


@lru_cache(maxsize=1024)
def draft_modules(arch: Architecture) -> tuple[Module, ...]:
    """The multi-token prediction modules: a layer like the last one, and the projection that joins two hidden
    states."""
    found: list[Module] = []
    for number in range(arch.mtp_layers):
        index = arch.layers + number
        found += layer_modules(arch, index, like=_last_attention_layer(arch))
        found.append(Module(f"layers.{index}.eh_proj", index, 2 * arch.hidden, arch.hidden, "whole"))
    return tuple(found)


def layer_modules(arch: Architecture, layer: int, like: int | None = None) -> Iterator[Module]:
    """The modules of layer `layer`, shaped like layer `like`."""
    shape = layer if like is None else like
    prefix = f"layers.{layer}"
    kind = arch.layer_types[shape]
    if kind in ("linear", "mamba"):
        yield from _linear_attention(arch, prefix, layer)
    elif kind != "none" and arch.latent:
        yield from _latent_attention(arch, prefix, layer)
    elif kind != "none":
        yield from _attention(arch, prefix, layer, shape)
    yield from _feed_forward(arch, prefix, layer, shape)
    if arch.norms_per_layer:
        yield _plain(f"{prefix}.norms", layer, arch.norms_per_layer * arch.hidden)


def _attention(arch: Architecture, prefix: str, layer: int, shape: int) -> Iterator[Module]:
    kv_heads, width = arch.attention_shape(shape)
    queries, keys = arch.heads * width, kv_heads * width
    at = f"{prefix}.self_attn"
    gate = 2 if arch.output_gate else 1
    yield Module(f"{at}.q_proj", layer, arch.hidden, queries * gate, "ranks")
    yield Module(f"{at}.k_proj", layer, arch.hidden, keys, "kv_heads")
    yield Module(f"{at}.v_proj", layer, arch.hidden, keys, "kv_heads")
    yield Module(f"{at}.o_proj", layer, queries, arch.hidden, "ranks")
    small = (queries * gate + 2 * keys if arch.attention_bias else 0) + (
        arch.hidden if arch.output_bias else 0
    )
    small += {"": 0, "head": 2 * width, "wide": queries + keys}[arch.query_key_norm]
    small += arch.heads if arch.sinks else 0
    if small:
        yield _plain(f"{at}.vectors", layer, small)


def _latent_attention(arch: Architecture, prefix: str, layer: int) -> Iterator[Module]:
    assert arch.latent is not None
    latent, at = arch.latent, f"{prefix}.self_attn"
    width = arch.heads * (latent.nope_dim + latent.rope_dim)
    if latent.query_rank:
        yield Module(f"{at}.q_a_proj", layer, arch.hidden, latent.query_rank, "whole")
        yield Module(f"{at}.q_b_proj", layer, latent.query_rank, width, "ranks")
    else:
        yield Module(f"{at}.q_proj", layer, arch.hidden, width, "ranks")
    yield Module(f"{at}.kv_a_proj_with_mqa", layer, arch.hidden, latent.kv_rank + latent.rope_dim, "whole")
    out = arch.heads * (latent.nope_dim + latent.value_dim)
    yield Module(f"{at}.kv_b_proj", layer, latent.kv_rank, out, "ranks")
    yield Module(f"{at}.o_proj", layer, arch.heads * latent.value_dim, arch.hidden, "ranks")
    yield _plain(f"{at}.vectors", layer, latent.query_rank + latent.kv_rank + 2 * latent.index_dim)
    if latent.index_heads:  # replicated on every rank; keys and head weights are loaded in 16 bit
        index = f"{at}.indexer"
        yield Module(
            f"{index}.wq_b", layer, latent.query_rank, latent.index_heads * latent.index_dim, "whole"
        )
        yield Module(f"{index}.wk", layer, arch.hidden, latent.index_dim, "whole", quantizable=False)
        yield Module(
            f"{index}.weights_proj", layer, arch.hidden, latent.index_heads, "whole", quantizable=False
        )


def _linear_attention(arch: Architecture, prefix: str, layer: int) -> Iterator[Module]:
    assert arch.linear is not None
    state = arch.linear
    keys, values = state.key_heads * state.key_dim, state.value_heads * state.value_dim
    if state.kind == "mamba2":
        at = f"{prefix}.mamba"
        yield Module(f"{at}.in_proj", layer, arch.hidden, 2 * values + 2 * keys + state.value_heads, "ranks")
    elif state.kind == "kimi":
        at = f"{prefix}.self_attn"
        for name in ("q_proj", "k_proj", "v_proj"):
            yield Module(f"{at}.{name}", layer, arch.hidden, values, "ranks")
        for name in ("f", "g"):  # low-rank decay and output gates
            yield Module(f"{at}.{name}_a_proj", layer, arch.hidden, state.value_dim, "whole")
            yield Module(f"{at}.{name}_b_proj", layer, state.value_dim, values, "ranks")
        yield Module(f"{at}.b_proj", layer, arch.hidden, state.value_heads, "ranks")
    else:
        at = f"{prefix}.linear_attn"
        yield Module(f"{at}.in_proj_qkv", layer, arch.hidden, 2 * keys + values, "ranks")
        yield Module(f"{at}.in_proj_z", layer, arch.hidden, values, "ranks")
        # Quantized checkpoints of the family keep these two small projections in 16 bit.
        ba = Module(f"{at}.in_proj_ba", layer, arch.hidden, 2 * state.value_heads, "ranks", quantizable=False)
        yield ba
    name = "o_proj" if state.kind == "kimi" else "out_proj"
    yield Module(f"{at}.{name}", layer, values, arch.hidden, "ranks")
    conv = Module(f"{at}.conv1d", layer, state.conv_kernel, state.conv_channels, "ranks", quantizable=False)
    yield conv
    yield _plain(f"{at}.vectors", layer, _state_vectors(state))


def _state_vectors(state: LinearAttention) -> int:
    """Decay, step bias and the norm before the output; Mamba 2 also has a skip weight and a convolution
    bias."""
    if state.kind == "mamba2":
        return 3 * state.value_heads + state.value_heads * state.value_dim + state.conv_channels
    steps = state.value_heads * (state.value_dim if state.kind == "kimi" else 1)
    return state.value_heads + steps + state.value_dim


def _feed_forward(arch: Architecture, prefix: str, layer: int, shape: int) -> Iterator[Module]:
    at = f"{prefix}.mlp"
    moe = arch.moe
    if moe is None or shape not in moe.layers:
        if arch.dense_layers is None or shape in arch.dense_layers:
            yield from _mlp(arch, at, layer, arch.intermediate)
        return
    inner = moe.latent or arch.hidden
    yield Module(f"{at}.gate", layer, arch.hidden, moe.count, "whole", quantizable=False)
    yield from _mlp(arch, f"{at}.experts.0", layer, moe.intermediate, copies=moe.count, hidden=inner)
    if moe.latent:
        yield Module(f"{at}.fc1_latent_proj", layer, arch.hidden, inner, "whole")
        yield Module(f"{at}.fc2_latent_proj", layer, inner, arch.hidden, "whole")
    if moe.shared_intermediate:
        yield from _mlp(arch, f"{at}.shared_expert", layer, moe.shared_intermediate)
    if moe.shared_gate:
        yield _plain(f"{at}.shared_expert_gate", layer, arch.hidden)
    if moe.bias:
        yield _plain(f"{at}.experts_bias", layer, moe.count * (2 * moe.intermediate + arch.hidden + 1))


def _mlp(
    arch: Architecture, at: str, layer: int, width: int, copies: int = 1, hidden: int = 0
) -> Iterator[Module]:
    if not width:
        return
    inner = hidden or arch.hidden
    split: Split = "experts" if copies > 1 else "ranks"
    names = ("gate_proj", "up_proj") if arch.mlp_matrices == 3 else ("up_proj",)
    for name in names:
        yield Module(f"{at}.{name}", layer, inner, width, split, copies)
    yield Module(f"{at}.down_proj", layer, width, inner, split, copies)
    if arch.mlp_bias:
        yield _plain(f"{at}.biases", layer, len(names) * width + inner)


def _vision(arch: Architecture) -> Iterator[Module]:
    if tower := arch.vision:
        sizes: tuple[tuple[str, int, Split], ...] = (
            ("attention", tower.attention_parameters, "vision_attention"),
            ("mlp", tower.mlp_parameters, "vision"),
            ("other", tower.other_parameters, "whole"),
        )
        for name, size, split in sizes:
            yield Module(f"vision_tower.{name}", None, 1, size, split, quantizable=False, kind="vision")


def _plain(name: str, layer: int | None, size: int) -> Module:
    return Module(name, layer, 1, size, "whole", quantizable=False)


def _last_attention_layer(arch: Architecture) -> int:
    return max((i for i, kind in enumerate(arch.layer_types) if kind == "full"), default=arch.layers - 1)
