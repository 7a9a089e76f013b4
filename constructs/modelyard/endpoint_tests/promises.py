"""What the plan of a model promises to its clients. Not part of the jobs: they get the result."""

from __future__ import annotations

from collections.abc import Iterable

from modelyard.endpoint_tests.endpoint import Expectations
from modelyard.engines import engine
from modelyard.memory.throughput import RequestLengths, roofline
from modelyard.planning import ModelPlan


def expectations(plan: ModelPlan) -> Expectations:
    """What the checks of `plan` hold the endpoint to."""
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
    """Output tokens a second that the fewest replicas can give together, by clients that ask at once."""
    replicas = max(1, plan.model.replicas.min)
    work = RequestLengths(prompt_tokens, output_tokens)
    return {
        clients: replicas * roofline(plan.serving, work, at_most=-(-clients // replicas)).output_per_second
        for clients in concurrency
    }
