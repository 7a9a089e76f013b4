"""Bytes of weights per rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from modelyard.checkpoints import Architecture, Format, Module, modules
from modelyard.checkpoints.modules import draft_modules
from modelyard.checkpoints.quantization import PLAIN
from modelyard.checkpoints.shape import StoredWeights
from modelyard.engines.expert_layouts import ExpertLayout
from modelyard.engines.memory_facts import Absorbed
from modelyard.hardware import Memory
from modelyard.memory.allocation import allocated
from modelyard.memory.expert_tensors import expert_bytes, in_layout
from modelyard.memory.parallelism import Parallelism

# Vocabulary rows are padded to this multiple before they are split (vLLM, DEFAULT_VOCAB_PADDING_SIZE).
_VOCAB_PADDING = 64

# Matrices that the engine fuses into one tensor (vllm/model_executor/layers/linear.py, QKVParallelLinear and
# MergedColumnParallelLinear; fused_moe, w13).
_JOINED = {
    "q_proj": "qkv",
    "k_proj": "qkv",
    "v_proj": "qkv",
    "gate_proj": "gate_up",
    "up_proj": "gate_up",
    "in_proj_qkv": "qkvz",
    "in_proj_z": "qkvz",
    "q_a_proj": "qkv_a",
    "kv_a_proj_with_mqa": "qkv_a",
}

ALONE = Parallelism()


def parameters(arch: Architecture) -> int:
    """Parameters of the model; for models in the table they match the published total."""
    return sum(module.parameters for module in modules(arch))


def weights_per_accelerator(
    arch: Architecture,
    split: Parallelism = ALONE,
    stage: int = 0,
    *,
    drafts: bool = False,
    absorbed: Absorbed = "none",
    layout: ExpertLayout | None = None,
) -> Memory:
    """Weights on each rank of pipeline `stage`, rotary tables included.

    `drafts`: including the multi-token prediction layers. `absorbed`: including the copies of latent
    attention's up-projections that vLLM keeps beside the originals (layers/attention/mla_attention.py, W_UK_T
    and W_UV). `layout`: how the engine lays experts in MXFP4 on this GPU; None: as they are stored.
    """
    copies = absorbed if arch.latent else "none"
    return _weights(arch, split, stage, drafts, copies, layout if in_layout(arch, layout) else None)


@lru_cache(maxsize=65536)
def _weights(
    arch: Architecture,
    split: Parallelism,
    stage: int,
    drafts: bool,
    absorbed: Absorbed,
    layout: ExpertLayout | None,
) -> Memory:
    layers = split.stages(arch.layers)[stage]
    first, last = stage == 0, stage == split.pipeline - 1
    outer, inner = _by_layer(arch)
    held: list[Module] = []
    for module in outer:
        here = last if module.kind == "head" or module.name == "norm" else first
        again = module.kind == "embedding" and arch.tied_embeddings and last
        held += [module] if here or again else []
    if drafts and last:
        held += draft_modules(arch)
    if arch.stored is not None:
        total = arch.rope_bytes + _stored_weights(arch, arch.stored, held, layers, split, layout)
    else:
        total = arch.rope_bytes + _tensors(arch, held, split, layout)
        # Most layers are identical, so each kind is computed once.
        for kind, times in Counter(inner[layer] for layer in layers).items():
            total += times * _tensors(arch, kind, split, layout)
    if absorbed != "none":
        latent_layers = sum(arch.layer_types[layer] == "full" for layer in layers)
        total += latent_layers * _absorbed_bytes(arch, absorbed) / split.tensor
    return Memory.bytes(total)


def _stored_weights(
    arch: Architecture,
    stored: StoredWeights,
    held: Sequence[Module],
    layers: Sequence[int],
    split: Parallelism,
    layout: ExpertLayout | None,
) -> float:
    """Exact bytes of `held` and `layers`, shared among ranks as the formula shares each part of the model."""
    outer, inner = _by_layer(arch)
    every = (*outer, *draft_modules(arch))
    total = 0.0
    for part in ("embedding", "head", "vision", "drafts", "other"):
        here = [module for module in held if _part(arch, module) == part]
        whole = sum(_whole_bytes(arch, module) for module in every if _part(arch, module) == part)
        exact = getattr(stored, part)
        if here and part == "drafts" and not exact:  # published apart, or under names that are not known
            total += _tensors(arch, here, split, layout)
        elif here:
            total += _tensors(arch, here, split, layout) * exact / whole
        elif not whole and part == "other" and 0 in layers:
            total += exact
    divided = any(experts for _, experts in stored.layers)
    for wanted in (False, True) if divided else (None,):
        share = whole = 0.0
        for kind, times in Counter(inner[layer] for layer in layers).items():
            here = [each for each in kind if wanted is None or _of_experts(each) is wanted]
            share += times * _tensors(arch, here, split, layout)
            whole += times * sum(_whole_bytes(arch, each) for each in here)
        exact = sum(sum(stored.layers[n]) if wanted is None else stored.layers[n][wanted] for n in layers)
        if wanted and layout is not None:  # a layout counts tensors, whatever the checkpoint stores
            total += share
        else:
            total += share * exact / whole if whole else exact
    return total


def _part(arch: Architecture, module: Module) -> str:
    """The part of `StoredWeights` that a module outside the layers belongs to."""
    if module.layer is not None and module.layer >= arch.layers:
        return "drafts"
    return "other" if module.kind == "text" else module.kind


def _whole_bytes(arch: Architecture, module: Module) -> float:
    form = format_of(arch, module)
    return form.bytes_of(module.inputs, module.outputs, arch.bytes_per_parameter) * module.copies


@lru_cache(maxsize=4096)
def _by_layer(arch: Architecture) -> tuple[tuple[Module, ...], tuple[tuple[Module, ...], ...]]:
    """The modules outside the layers, and the modules of each layer; identical layers share one tuple."""
    outer: list[Module] = []
    layers: list[list[Module]] = [[] for _ in range(arch.layers)]
    for module in modules(arch):
        (outer if module.layer is None else layers[module.layer]).append(module)
    kinds: dict[tuple[object, ...], tuple[Module, ...]] = {}
    of_layer = []
    for number, members in enumerate(layers):
        shape = tuple(
            (
                module.inputs,
                module.outputs,
                module.split,
                module.copies,
                module.name.partition(f".{number}.")[2],
                format_of(arch, module),
            )
            for module in members
        )
        of_layer.append(kinds.setdefault(shape, tuple(members)))
    return tuple(outer), tuple(of_layer)


def _absorbed_bytes(arch: Architecture, absorbed: Absorbed) -> float:
    """Bytes of the copies in one layer, all ranks together."""
    assert arch.latent is not None
    latent = arch.latent
    if absorbed == "projections":
        return latent.kv_rank * arch.heads * (latent.nope_dim + latent.value_dim) * arch.bytes_per_parameter
    # Products: query with key up-projection plus the rotary part, and value up-projection with output
    # projection.
    queries = (latent.query_rank or arch.hidden) * arch.heads * (latent.kv_rank + latent.rope_dim)
    size = 1 if arch.quantization and arch.quantization.format.name == "fp8" else arch.bytes_per_parameter
    return (queries + arch.heads * latent.kv_rank * arch.hidden) * size


def _tensors(
    arch: Architecture, held: Sequence[Module], split: Parallelism, layout: ExpertLayout | None
) -> float:
    """Allocated bytes of `held` on one rank: fused matrices are one tensor, scales are separate tensors."""
    payloads: dict[str, float] = {}
    scales = 0.0
    if layout is not None and any(module.split == "experts" for module in held):
        scales = expert_bytes(arch, layout, split)
        held = [module for module in held if not _of_experts(module)]
    for module in held:
        at, _, name = module.name.rpartition(".")
        key = f"{at}.{_JOINED.get(name, name)}"
        payload, scale = _bytes_on_rank(arch, module, split)
        payloads[key] = payloads.get(key, 0.0) + payload
        scales += scale
    return scales + sum(allocated(size) for size in payloads.values())


def _of_experts(module: Module) -> bool:
    return module.split == "experts" or module.name.endswith(".experts_bias")


def _bytes_on_rank(arch: Architecture, module: Module, split: Parallelism) -> tuple[float, float]:
    """Payload and scales of `module` on one rank."""
    inputs, outputs = module.inputs, module.outputs
    plain = arch.bytes_per_parameter
    form = format_of(arch, module)
    if module.split == "vocabulary":
        rows = -(-outputs // _VOCAB_PADDING) * _VOCAB_PADDING // split.tensor
        return form.payload_of(inputs, rows, plain), form.scales_of(inputs, rows)
    ranks = _ranks_that_share(arch, module, split)
    share = module.copies / ranks
    return form.payload_of(inputs, outputs, plain) * share, form.scales_of(inputs, outputs) * share


def format_of(arch: Architecture, module: Module) -> Format:
    """The format in which the engine stores `module` on the device."""
    stored = arch.quantization
    if stored is None:
        return PLAIN
    if module.split == "vocabulary":
        listed = module.kind == "head" and any(pattern == "lm_head" for pattern, _ in stored.rules)
        return stored.format_of("lm_head") if listed or stored.embeddings else PLAIN
    return stored.format_of(module.name) if module.quantizable else PLAIN


def _ranks_that_share(arch: Architecture, module: Module, split: Parallelism) -> float:
    if module.split == "ranks" or module.split == "vision":
        return split.tensor
    if module.split == "vision_attention":
        return split.tensor if arch.vision and arch.vision.heads % split.tensor == 0 else 1
    if module.split == "kv_heads":
        return min(
            split.tensor, arch.kv_heads if module.layer is None else arch.attention_shape(module.layer)[0]
        )
    if module.split == "experts":
        ranks = split.tensor * split.data
        # Whole experts: the first ranks take one more (linear placement).
        return module.copies / -(-module.copies // ranks) if split.expert else ranks
    return 1


def weights_of_layers(arch: Architecture, layers: range, *, output: bool) -> Memory:
    """Weights of `layers` on one device, plus the output layer if `output`: the offloaded part of a model."""
    if (stored := arch.stored) is not None:
        size = sum(sum(stored.layers[layer]) for layer in layers)
        last = stored.embedding if arch.tied_embeddings else stored.head
        return Memory.bytes(size + (last if output else 0))
    held = [
        module
        for module in modules(arch)
        if module.layer in layers
        or (output and (module.kind == "head" or (module.kind == "embedding" and arch.tied_embeddings)))
    ]
    return Memory.bytes(sum(sum(_bytes_on_rank(arch, module, ALONE)) for module in held))


def checkpoint_size(arch: Architecture) -> Memory:
    """Size of the checkpoint on disk: exact where its tensors are known."""
    if arch.stored is not None:
        return Memory.bytes(arch.stored.total)
    return weights_per_accelerator(arch)
