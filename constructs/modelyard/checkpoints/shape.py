"""The shape of a model: the `config.json` facts that determine memory, under one naming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from modelyard.checkpoints.quantization import Quantization

LayerType = Literal["full", "sliding", "chunked", "linear", "mamba", "encoder", "none"]
"""How a layer mixes tokens: full attention, sliding window, chunks, recurrent state, encoder attention, or
not at all."""


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek V2): keys and values take `kv_rank` + `rope_dim` numbers per
    token. `query_rank` is 0 if queries are not compressed. `index_heads` of `index_dim` select the tokens of
    sparse attention (DeepSeek V3.2); 0 without."""

    kv_rank: int
    query_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    index_heads: int = 0
    index_dim: int = 0


@dataclass(frozen=True)
class LinearAttention:
    """Gated delta net (`delta`), Kimi delta attention (`kimi`) or Mamba 2 (`mamba2`): a state of fixed size
    per sequence.

    `state_bytes`: bytes per number of recurrent state; the convolution state has the model's number format.
    """

    kind: Literal["delta", "kimi", "mamba2"]
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int
    state_bytes: int

    @property
    def conv_channels(self) -> int:
        """Channels of the short convolution."""
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim


@dataclass(frozen=True)
class Experts:
    """Routed experts. `shared_intermediate`: total width of the experts that every token uses, 0 for none.
    `layers`: indices of the layers with experts. `shared_gate`: one more vector gates the shared experts.
    `bias`: of experts and router. `latent`: the experts' input width if it is not the hidden size, else 0."""

    count: int
    per_token: int
    intermediate: int
    shared_intermediate: int
    layers: frozenset[int]
    bias: bool = False
    shared_gate: bool = False
    latent: int = 0


@dataclass(frozen=True)
class Vision:
    """The vision tower and its projector. `tokens`: maximum context tokens per image; `patches`: the tower's
    patches for such an image. `video_images`: largest images that one video counts as at start-up.
    `cross_attention`: the language model reads images through separate layers."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    attention_parameters: int
    mlp_parameters: int
    other_parameters: int
    tokens: int
    patches: int
    cross_attention: bool = False
    video_images: int = 1

    @property
    def parameters(self) -> int:
        return self.attention_parameters + self.mlp_parameters + self.other_parameters


@dataclass(frozen=True)
class StoredWeights:
    """Exact bytes of a checkpoint's tensors, unsplit, in the types in which the engine loads them. `total`:
    as stored, of all tensors. `layers`: of each layer, outside the routed experts and in them. `drafts`:
    multi-token prediction layers. `other`: tensors outside the layers that belong to nothing else."""

    total: int
    layers: tuple[tuple[int, int], ...]
    embedding: int = 0
    head: int = 0
    vision: int = 0
    drafts: int = 0
    other: int = 0


@dataclass(frozen=True)
class Architecture:
    """Shape of one checkpoint.

    `layer_types` has one entry per layer. `window`: of sliding or chunked layers, in tokens. `rope_bytes`:
    rotary embedding tables, complete on every rank. `mlp_matrices`: 3 for gated MLPs, else 2.
    `norms_per_layer` and `final_norms` count vectors of hidden size; the latter includes an encoder's pooler
    and token types. `query_key_norm`: norm weights for one head (`head`), or for all heads (`wide`). `sinks`:
    one extra logit per head. `dense_layers`: layers with a plain MLP; None: all without experts.
    `bytes_per_parameter`: of unquantized weights. `mtp_layers`: multi-token prediction layers, loaded only
    for speculative decoding. `global_kv_heads` of `global_head_dim`: the shape of full attention where that
    of sliding layers differs (Gemma 4); 0 if not. `gated`: the download needs an accepted licence and a
    token. `tested`: False if the family's formula was never checked against a measurement. `stored`: exact
    sizes, where the checkpoint's tensors are known.
    """

    model_id: str
    architecture: str
    model_type: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied_embeddings: bool
    max_position: int
    layer_types: tuple[LayerType, ...]
    window: int = 0
    mlp_matrices: int = 3
    norms_per_layer: int = 2
    final_norms: int = 1
    query_key_norm: Literal["", "head", "wide"] = ""
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    sinks: bool = False
    output_gate: bool = False
    dense_layers: frozenset[int] | None = None
    position_table: int = 0
    rope_bytes: int = 0
    latent: LatentAttention | None = None
    moe: Experts | None = None
    linear: LinearAttention | None = None
    vision: Vision | None = None
    mtp_layers: int = 0
    global_kv_heads: int = 0
    global_head_dim: int = 0
    bytes_per_parameter: int = 2
    quantization: Quantization | None = None
    gated: bool = False
    tested: bool = True
    published_parameters: float = 0.0
    source: str = ""
    stored: StoredWeights | None = None

    def __hash__(self) -> int:
        # Part of a cache key: a few fields tell architectures apart, and hashing all is slow.
        return hash(
            (self.model_id, self.architecture, self.hidden, self.layers, self.vocab, self.intermediate)
        )

    def attention_shape(self, layer: int) -> tuple[int, int]:
        """KV heads and their width in `layer`."""
        if self.global_head_dim and self.layer_types[layer] == "full":
            return self.global_kv_heads, self.global_head_dim
        return self.kv_heads, self.head_dim

    @property
    def multimodal(self) -> bool:
        return self.vision is not None

    @property
    def has_dense_layers(self) -> bool:
        """Whether any layer has a plain feed-forward of width `intermediate`."""
        if self.dense_layers is not None:
            return bool(self.dense_layers)
        return self.moe is None or len(self.moe.layers) < self.layers

    @property
    def encoder(self) -> bool:
        """Whether the model is an encoder: it reads a text in one pass and generates nothing, so it has no KV
        cache."""
        return "encoder" in self.layer_types

    @property
    def experts(self) -> int:
        """Routed experts per layer, 0 in a dense model."""
        return self.moe.count if self.moe else 0

    @property
    def attention_layers(self) -> int:
        """Number of layers with a KV cache."""
        return sum(kind in ("full", "sliding", "chunked") for kind in self.layer_types)
