"""Peak activation memory in the profiling run: what a full batch needs beyond the weights."""

from __future__ import annotations

from modelyard.checkpoints import Architecture
from modelyard.engines import MemoryFacts
from modelyard.hardware import Memory
from modelyard.memory.parallelism import Parallelism

_WIDTH = 2  # bytes per activation in 16 bit
_GIB = 1 << 30
# Maximum tokens of the workspace for chunked prefill of latent attention (layers/attention/mla_attention.py,
# determine_chunked_prefill_workspace_size).
_LATENT_WORKSPACE_TOKENS = 64 * 1024
# Hidden states beside the experts' workspace: input, residual and output.
_STATES_BESIDE_EXPERTS = 3


def peak_activation(
    arch: Architecture,
    facts: MemoryFacts,
    split: Parallelism,
    *,
    batched_tokens: int,
    sequences: int,
    samples: bool = True,
    image_limit: int | None = None,
    largest_image: int | None = None,
    video_limit: int = 0,
) -> Memory:
    """Peak memory of one rank while a batch of `batched_tokens` runs and `sequences` rows are sampled.

    The forward pass and the sampler run one after the other, so the larger counts; the encoder cache and the
    experts' workspace stay allocated throughout. `samples` is False on pipeline stages before the last.
    """
    hidden = batched_tokens * arch.hidden * _WIDTH
    experts = _experts(arch, facts, split, batched_tokens)
    forward = _feed_forward(arch, facts, split, batched_tokens)
    forward = max(forward, _latent_workspace(arch, split))
    if not facts.expert_workspace:
        forward = max(forward, experts + _STATES_BESIDE_EXPERTS * hidden)
    image = arch.vision.tokens if arch.vision and largest_image is None else largest_image or 0
    rows = min(sequences, batched_tokens)
    if facts.images_limit_rows and arch.vision:
        rows = max(1, min(rows, batched_tokens // arch.vision.tokens))
    sampler = rows * arch.vocab * facts.sampler_bytes + hidden + facts.fixed_gib * _GIB
    peak = max(forward, sampler if samples else 0.0) * facts.reserved
    if facts.expert_workspace:
        peak += experts
    if facts.cross_attention_rows and arch.vision and arch.vision.cross_attention:
        image_limit, batched_tokens = 1, image * sequences
    if image_limit == 0 and video_limit:
        image_limit = video_limit
    cache, encoder = _encoder(arch, split, batched_tokens, sequences, image, image_limit)
    return Memory.bytes(max(peak, encoder) + (cache if facts.encoder_cache else 0.0))


def _feed_forward(arch: Architecture, facts: MemoryFacts, split: Parallelism, tokens: int) -> float:
    """Gate, up and product of the widest dense feed-forward layer, plus its hidden states.

    Formats with quantized activations copy the product in 8 bit for the down projection.
    """
    moe = arch.moe
    width = (
        arch.intermediate if arch.has_dense_layers else moe.shared_intermediate if moe else 0
    ) / split.tensor
    stored = arch.quantization.format.name if arch.quantization else ""
    copied = (width + arch.hidden) / _WIDTH if stored == "int8" else 0.0
    return tokens * _WIDTH * (facts.mlp_widths * width + facts.hidden_widths * arch.hidden + copied)


def _experts(arch: Architecture, facts: MemoryFacts, split: Parallelism, tokens: int) -> float:
    """The two workspaces of the fused experts: tokens × experts per token × max(hidden, product) and ×
    max(hidden, gate and up) (fused_moe/experts/triton_moe.py, workspace_shapes)."""
    if arch.moe is None:
        return 0.0
    ranks = 1 if split.expert else split.tensor * split.data
    width = arch.moe.intermediate / ranks
    wide = max(2 * width, arch.hidden) + max(width, arch.hidden)
    return min(tokens, facts.expert_chunk) * arch.moe.per_token * wide * _WIDTH


def _latent_workspace(arch: Architecture, split: Parallelism) -> float:
    if arch.latent is None:
        return 0.0
    heads = arch.heads / split.tensor
    return _LATENT_WORKSPACE_TOKENS * heads * (arch.latent.nope_dim + arch.latent.value_dim) * _WIDTH


def largest_image(arch: Architecture, max_model_len: int, videos: int = 0) -> int | None:
    """Tokens of the largest image, capped at the prompt length where images are part of the prompt; None for
    a text-only model.

    With `videos` in a prompt, start-up profiles the kind that has more tokens, for some models a video
    (multimodal/encoder_budget.py, get_modality_with_max_tokens).
    """
    tower = arch.vision
    if tower is None:
        return None
    if tower.cross_attention:
        return tower.tokens
    times = min(tower.video_images, max_model_len // tower.tokens) if videos else 1
    return min(max(1, times) * tower.tokens, max_model_len)


def _encoder(
    arch: Architecture, split: Parallelism, tokens: int, sequences: int, image: int, image_limit: int | None
) -> tuple[float, float]:
    """Encoder cache, and peak of the vision tower while it encodes as many of the largest images as fit a
    batch.

    The cache holds a batch of embeddings or one largest image, whichever is larger
    (v1/core/encoder_cache_manager.py, compute_mm_encoder_budget).
    """
    tower = arch.vision
    if tower is None or image_limit == 0:
        return 0.0, 0.0
    budget = max(tokens, image)
    items = max(1, min(budget // image, sequences * (image_limit or sequences)))
    patches = items * image * tower.patches / tower.tokens
    heads = split.tensor if tower.heads % split.tensor == 0 else 1
    peak = (
        patches
        * _WIDTH
        * (2 * tower.intermediate / split.tensor + 4 * tower.hidden / heads + 2 * tower.hidden)
    )
    return budget * arch.hidden * _WIDTH, peak
