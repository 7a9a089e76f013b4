"""The weights that one token uses, and those that a step of a batch must read."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.checkpoints import Architecture, Module, modules
from modelyard.memory.weights import format_of


@dataclass(frozen=True)
class ActiveWeights:
    """The text model's weights by use. The vision tower is left out, and so is the input embedding: a step
    looks up only a few of its rows.

    `parameters`: multiplied for every generated token, output embedding included. `output_parameters`: the
    output embedding, which prefill computes only for a request's last token. `always_bytes`: read in every
    step. `expert_bytes`: all routed experts, of which a token uses `experts_per_token` of `experts`; 0 in a
    dense model.
    """

    parameters: float
    output_parameters: float
    always_bytes: float
    expert_bytes: float = 0.0
    experts: int = 0
    experts_per_token: int = 0

    def step_bytes(self, batch: float) -> float:
        """Minimum bytes that a step of `batch` tokens reads, if all experts are equally likely."""
        return self.always_bytes + self.expert_bytes * share_of_experts(
            self.experts, self.experts_per_token, batch
        )


def share_of_experts(experts: int, experts_per_token: int, batch: float) -> float:
    """Expected share of a layer's experts that `batch` tokens use: 1 - (1 - k/E)^batch."""
    return 1 - (1 - experts_per_token / experts) ** batch if experts else 0.0


def active_weights(arch: Architecture) -> ActiveWeights:
    """The active weights of `arch`, all ranks together."""
    experts, taken = (arch.moe.count, arch.moe.per_token) if arch.moe else (0, 0)
    parameters = output = always_bytes = expert_bytes = 0.0
    for module in modules(arch):
        if module.kind == "vision" or (module.kind == "embedding" and not arch.tied_embeddings):
            continue
        if module.split == "experts":
            parameters += module.parameters * taken / experts
            expert_bytes += _stored_bytes(arch, module)
            continue
        parameters += module.parameters
        always_bytes += _stored_bytes(arch, module)
        if module.kind in ("embedding", "head"):  # tied: the embedding is the head
            output += module.parameters
    return ActiveWeights(parameters, output, always_bytes, expert_bytes, experts, taken)


def _stored_bytes(arch: Architecture, module: Module) -> float:
    one = format_of(arch, module).bytes_of(module.inputs, module.outputs, arch.bytes_per_parameter)
    return module.copies * one
