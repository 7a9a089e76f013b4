"""The shape of a model: the facts of its `config.json` that decide memory, under one set of names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from modelyard.checkpoints.quantization import Quantization

LayerType = Literal["full", "sliding", "chunked", "linear", "mamba", "encoder", "none"]
"""What mixes tokens in a layer: attention to all, to a window, within chunks; a recurrent state; or
nothing."""


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek V2): keys and values live in `kv_rank` + `rope_dim` numbers a
    token. `query_rank` is 0 where queries are not compressed. `index_heads` of `index_dim` choose the tokens
    that sparse attention looks at (DeepSeek V3.2), 0 without."""

    kv_rank: int
    query_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    index_heads: int = 0
    index_dim: int = 0


@dataclass(frozen=True)
class LinearAttention:
    """Gated delta net (`delta`), Kimi delta attention (`kimi`) or Mamba 2 (`mamba2`): a state of fixed size a
    sequence.

    `state_bytes`: bytes of one number of the recurrent state; the convolution's state has the model's number
    format.
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
    """Routed experts. `shared_intermediate` is the summed width of the experts that every token uses, 0 for
    none; `layers` are the indices of the layers with experts. `shared_gate`: one more vector weighs the
    shared ones. `bias`: of experts and router. `latent`: width that experts work on instead of the hidden
    size, 0 for that."""

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
    """The vision tower and its projector. `tokens` is the most that one image takes of the context, `patches`
    what the tower works on for it. `cross_attention`: the language model reads images through layers of their
    own."""

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

    @property
    def parameters(self) -> int:
        return self.attention_parameters + self.mlp_parameters + self.other_parameters


@dataclass(frozen=True)
class Architecture:
    """Shape of one checkpoint.

    `layer_types` has one entry a layer; `window` is what sliding or chunked layers see, in tokens.
    `rope_bytes`: the tables of rotary embeddings, of which every rank holds all. `mlp_matrices` is 3 for
    gated MLPs and 2 otherwise; `norms_per_layer` and `final_norms` count vectors of the hidden size, poolers
    and token types of encoders among the latter. `query_key_norm`: over each head with weights for one
    (`head`), or with weights for all (`wide`). `sinks`: one more logit a head. `dense_layers`: layers with a
    plain MLP, None for all without experts. `bytes_per_parameter` is that of unquantized weights.
    `mtp_layers` are layers for multi-token prediction that an engine loads for speculative decoding only.
    `gated`: downloading needs an accepted licence and a token. `tested` is False where the family's formula
    was never held against a measurement.
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
    bytes_per_parameter: int = 2
    quantization: Quantization | None = None
    gated: bool = False
    tested: bool = True
    published_parameters: float = 0.0
    source: str = ""

    def __hash__(self) -> int:
        # Ledgers are remembered by it: a few fields tell architectures apart, all of them are slow to hash.
        return hash(
            (self.model_id, self.architecture, self.hidden, self.layers, self.vocab, self.intermediate)
        )

    @property
    def multimodal(self) -> bool:
        return self.vision is not None

    @property
    def has_dense_layers(self) -> bool:
        """Whether some layer has a plain feed-forward of `intermediate`."""
        if self.dense_layers is not None:
            return bool(self.dense_layers)
        return self.moe is None or len(self.moe.layers) < self.layers

    @property
    def encoder(self) -> bool:
        """Whether the model reads a text at once and generates nothing: no KV cache."""
        return "encoder" in self.layer_types

    @property
    def experts(self) -> int:
        """Routed experts of a layer, 0 in a dense model."""
        return self.moe.count if self.moe else 0

    @property
    def attention_layers(self) -> int:
        """Layers that keep keys and values of tokens."""
        return sum(kind in ("full", "sliding", "chunked") for kind in self.layer_types)
