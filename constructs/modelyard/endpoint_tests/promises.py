"""The expectations that a model's plan sets for its endpoint. Not part of the Jobs, which get the result."""

from __future__ import annotations

from collections.abc import Iterable

from modelyard.endpoint_tests.endpoint import Expectations
from modelyard.engines import engine
from modelyard.memory.throughput import RequestLengths, roofline
from modelyard.planning import ModelPlan


def expectations(plan: ModelPlan) -> Expectations:
    """Expected behaviour of the endpoint of `plan`."""
    model, served_by = plan.model, engine(plan.serving.release.engine)
    return Expectations(
        model=plan.name,
        names=plan.served_names,
        adapters=tuple(adapter.name for adapter in model.adapters),
        task=model.task,
        reads_names=served_by.reads_names,
        forces_functions=served_by.forces_functions,
        dimension=plan.serving.arch.hidden if model.task == "embed" else None,
        max_model_len=plan.serving.max_model_len if served_by.lists_lengths else None,
        tools=model.features.tools,
        reasoning=model.features.reasoning,
        needs_key=model.access.api_key is not None,
    )


def bounds(
    plan: ModelPlan, prompt_tokens: int, output_tokens: int, concurrency: Iterable[int]
) -> dict[int, float]:
    """Bound on output tokens per second of the minimum replicas together, by number of concurrent clients."""
    replicas = max(1, plan.model.replicas.min)
    work = RequestLengths(prompt_tokens, output_tokens)
    return {
        clients: replicas * roofline(plan.serving, work, at_most=-(-clients // replicas)).output_per_second
        for clients in concurrency
    }
