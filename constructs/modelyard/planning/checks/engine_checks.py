"""Checks of a model's settings against its engine release: flags, parsers, metrics, traces."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.engines import USUAL, Release, check_flags, metrics_of, newest_release, parsers_for
from modelyard.findings import Finding
from modelyard.hardware import accelerator_named
from modelyard.memory.release_choice import engine_for
from modelyard.planning.checks.proposal import each_plan, each_workload
from modelyard.planning.records import ModelPlan
from modelyard.planning.workloads import Workload
from modelyard.spec.environment import Environment
from modelyard.spec.model import Model


@each_workload
def flags(workload: Workload, environment: Environment) -> Iterator[Finding]:
    """Flags that the release does not know, or that the plan owns."""
    model = workload.model
    release = workload.choice.serving.release if workload.choice else _likely_release(model)
    for problem in check_flags(model.engine.args, release):
        yield Finding(
            problem.code,
            problem.message,
            problem.fix,
            subject=model.name,
            field=("engine", "args", problem.name),
        )


def _likely_release(model: Model) -> Release:
    """The release whose flags are checked for a model that cannot run, so that all problems show in one
    run."""
    accelerator = accelerator_named(model.accelerator.type)
    found = engine_for(model, accelerator) if accelerator else None
    return found if isinstance(found, Release) else newest_release(USUAL)


@each_workload
def parsers(workload: Workload, environment: Environment) -> Iterator[Finding]:
    """Features whose parser is unknown for this model."""
    if workload.choice is None:
        return
    model, serving = workload.model, workload.choice.serving
    known = parsers_for(serving.arch.model_id, serving.arch.model_type, serving.release.engine)
    for wanted, parser, feature in (
        (model.features.tools, known.tools, "tools"),
        (model.features.reasoning, known.reasoning, "reasoning"),
    ):
        if wanted and not parser:
            yield Finding(
                "ENG001",
                f"no {feature} parser is known for {serving.arch.model_id}",
                f"set features.{feature} to false",
                subject=model.name,
                field=("features", feature),
            )


@each_workload
def signals(workload: Workload, environment: Environment) -> Iterator[Finding]:
    """A scaling metric that the engine does not publish."""
    if workload.choice is None:
        return
    model, release = workload.model, workload.choice.serving.release
    published = metrics_of(release.engine, release.version).signals
    known = {"waiting": published.waiting, "kv-cache": published.kv_cache_usage}
    if model.autoscaled and known[model.scaling.metric] is None:
        other = [name for name, metric in known.items() if metric]
        yield Finding(
            "HPA001",
            f"{release.engine} {release.version} publishes no metric for {model.scaling.metric}",
            f"use {' or '.join(other)}" if other else "use a fixed number of replicas",
            subject=model.name,
            field=("scaling", "metric"),
        )


@each_plan
def traces(planned: ModelPlan, environment: Environment) -> Iterator[Finding]:
    """Requested traces that cannot be sent."""
    if not planned.model.observability.tracing:
        return
    release = planned.serving.release
    if not release.tracing:
        message = f"the image of {release.engine} {release.version} sends no traces"
        fix = "set observability.tracing to false"
    elif not environment.monitoring.otlp_endpoint:
        message = f"environment {environment.name} names no collector for traces"
        fix = "set monitoring.otlpEndpoint in it, or observability.tracing to false"
    else:
        return
    yield Finding("OTEL001", message, fix, subject=planned.model.name, field=("observability", "tracing"))
