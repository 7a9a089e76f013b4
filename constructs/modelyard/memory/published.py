"""The parameter count computed from config.json, checked against the count that the repository publishes."""

from __future__ import annotations

from collections.abc import Mapping

from modelyard.checkpoints import Architecture
from modelyard.checkpoints.modules import draft_modules
from modelyard.findings import Finding
from modelyard.memory.weights import parameters

_TOLERANCE = 0.01
_PACKED_BELOW = 8  # bits: narrower numbers are packed, so they are not counted one by one


def parameter_findings(
    arch: Architecture, published: Mapping[str, int], *, exact: bool = False
) -> list[Finding]:
    """A warning if the counts differ by more than 1 %. `published`: stored numbers by type (safetensors).

    The published count may include multi-token prediction layers or not. Packed formats are not checked.
    `exact`: weights are counted by the tensors, so that only the rest is in doubt.
    """
    counted = sum(published.values())
    if not counted or (arch.quantization and arch.quantization.bits < _PACKED_BELOW):
        return []
    ours = parameters(arch)
    drafts = sum(module.parameters for module in draft_modules(arch))
    # Some repositories store a tied output layer as well.
    again = arch.vocab * arch.hidden if arch.tied_embeddings else 0
    possible = (ours, ours + drafts, ours + again, ours + drafts + again)
    off = min((abs(counted / each - 1), each) for each in possible)
    if off[0] <= _TOLERANCE:
        return []
    return [
        Finding(
            "MODEL003",
            f"config.json describes {off[1] / 1e9:.3f} billion parameters, the repository publishes {counted / 1e9:.3f}",
            "weights are exact by the tensors; compare KV cache and activation with the engine's start-up log"
            if exact
            else "trust neither figure before the engine's own: weights here are those that config.json describes",
            subject=arch.model_id,
        )
    ]
