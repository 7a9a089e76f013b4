"""What the plan of a model promises to its clients. Not part of the jobs: they get the result."""

from __future__ import annotations

from collections.abc import Iterable

from modelyard.clients.endpoint import Expectations
from modelyard.planning import ModelPlan
from modelyard.planning.throughput import Workload, roofline


def expectations(plan: ModelPlan) -> Expectations:
    """What the checks of `plan` hold the endpoint to."""
    model, engine = plan.model, plan.serving.release.engine
    return Expectations(
        model=plan.name,
        names=plan.served_names,
        adapters=tuple(adapter.name for adapter in model.adapters),
        task=model.task,
        engine=engine,
        dimension=plan.serving.arch.hidden if model.task == "embed" else None,
        # llama-server's list of models has no lengths.
        max_model_len=None if engine == "llama-server" else plan.serving.max_model_len,
        tools=model.features.tools,
        reasoning=model.features.reasoning,
        needs_key=model.access.api_key is not None,
    )


def bounds(
    plan: ModelPlan, prompt_tokens: int, output_tokens: int, concurrency: Iterable[int]
) -> dict[int, float]:
    """Output tokens a second that the fewest replicas can give together, by clients that ask at once."""
    replicas = max(1, plan.model.replicas.min)
    work = Workload(prompt_tokens, output_tokens)
    return {
        clients: replicas * roofline(plan.serving, work, at_most=-(-clients // replicas)).output_per_second
        for clients in concurrency
    }
