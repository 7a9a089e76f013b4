"""Checks of one model: what it refers to, what it asks of the engine, and advice on a plan that works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from modelyard.engines import USUAL, Release, check_flags, metrics_of, newest_release, parsers_for
from modelyard.findings import Finding
from modelyard.hardware import accelerator_named
from modelyard.planning.fit import Fit, fit_warnings
from modelyard.planning.records import ModelPlan
from modelyard.planning.requests import engine_for
from modelyard.planning.serving import Serving
from modelyard.spec.environment import Environment
from modelyard.spec.model import Model


def reference_findings(model: Model, environment: Environment) -> Iterator[Finding]:
    for field, secret in (("model", "auth"), model.model.auth), (("access", "apiKey"), model.access.api_key):
        if secret and secret not in environment.secrets:
            yield Finding(
                "ENV002",
                f"secret '{secret}' is not mapped in environment {environment.name}",
                f"add it under secrets; known are {', '.join(environment.secrets) or 'none'}",
                subject=model.name,
                field=field,
            )


def stream_findings(model: Model, environment: Environment) -> Iterator[Finding]:
    """Weights in a bucket that no identity of the environment may read."""
    bucket = model.model.uri.removeprefix("s3://").partition("/")[0]
    if model.model.scheme == "s3" and bucket not in environment.readable_buckets:
        readable = environment.readable_buckets
        yield Finding(
            "S3001",
            f"environment {environment.name} lets model servers read {', '.join(readable) or 'no bucket'}, not {bucket}",
            f"add {bucket} to cache.readBuckets, or put the weights into the bucket of cache.weightsBucket",
            subject=model.name,
            field=("model",),
        )


def exposure_findings(model: Model, environment: Environment) -> Iterator[Finding]:
    """Endpoints whose exposure the environment or the model does not back."""
    exposure = model.access.exposure
    if exposure != "cluster" and getattr(environment.gateways, exposure) is None:
        yield Finding(
            "SEC004",
            f"environment {environment.name} has no {exposure} gateway",
            f"add gateways.{exposure}, or set access.exposure to cluster",
            subject=model.name,
            field=("access", "exposure"),
        )
    if exposure == "public" and model.access.api_key is None:
        yield Finding(
            "SEC004",
            "a public endpoint without an API key answers everybody",
            "name a secret under access.apiKey",
            subject=model.name,
            field=("access", "exposure"),
        )
    if model.scaling.activator == "gateway" and environment.litellm is None:
        yield Finding(
            "ZERO001",
            f"environment {environment.name} has no LiteLLM gateway that would wake the model",
            "add litellm to the environment, or give scaling.schedule",
            subject=model.name,
            field=("scaling", "activator"),
        )


def open_endpoint_findings(model: Model) -> Iterator[Finding]:
    """Settings that let whoever reaches a pod change its server."""
    if model.features.sleep:
        yield Finding(
            "SEC005",
            "sleep mode opens endpoints without a key that stop the engine",
            "leave features.sleep out; scale to zero instead",
            subject=model.name,
            field=("features", "sleep"),
        )
    if model.engine.env.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "0").lower() in ("1", "true"):
        yield Finding(
            "SEC005",
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING lets every client load adapters into one replica",
            "declare them under adapters: every replica has them",
            subject=model.name,
            field=("engine", "env", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"),
        )


def likely_release(model: Model) -> Release:
    """The release whose flags a model that cannot run is checked against, so that all problems show in one run."""
    accelerator = accelerator_named(model.accelerator.type)
    found = engine_for(model, accelerator) if accelerator else None
    return found if isinstance(found, Release) else newest_release(USUAL)


def flag_findings(model: Model, release: Release) -> Iterator[Finding]:
    for problem in check_flags(model.engine.args, release):
        yield Finding(
            problem.code,
            problem.message,
            problem.fix,
            subject=model.name,
            field=("engine", "args", problem.name),
        )


def parser_findings(model: Model, serving: Serving) -> Iterator[Finding]:
    parsers = parsers_for(serving.arch.model_id, serving.arch.model_type, serving.release.engine)
    for wanted, parser, feature in (
        (model.features.tools, parsers.tools, "tools"),
        (model.features.reasoning, parsers.reasoning, "reasoning"),
    ):
        if wanted and not parser:
            yield Finding(
                "ENG001",
                f"no {feature} parser is known for {serving.arch.model_id}",
                f"set features.{feature} to false",
                subject=model.name,
                field=("features", feature),
            )


def signal_findings(model: Model, release: Release) -> Iterator[Finding]:
    """A signal to scale by that the engine does not publish."""
    signals = metrics_of(release.engine, release.version).signals
    known = {"waiting": signals.waiting, "kv-cache": signals.kv_cache_usage}
    if model.autoscaled and known[model.scaling.metric] is None:
        other = [name for name, metric in known.items() if metric]
        yield Finding(
            "HPA001",
            f"{release.engine} {release.version} publishes no metric for {model.scaling.metric}",
            f"use {' or '.join(other)}" if other else "use a fixed number of replicas",
            subject=model.name,
            field=("scaling", "metric"),
        )


# Percent of the KV cache beyond which the engine preempts rather than reports.
_FULL_CACHE = 95


def scaling_findings(model: Model) -> Iterator[Finding]:
    """Targets that are never reached, models that nothing wakes, and schedules that ask for more than there may be."""
    scaling, replicas = model.scaling, model.replicas
    if model.autoscaled and scaling.metric == "kv-cache" and scaling.target > _FULL_CACHE:
        yield Finding(
            "HPA001",
            f"the KV cache is full at 100 percent and requests queue before: a target of {scaling.target} is not reached",
            f"use {_FULL_CACHE} or less",
            subject=model.name,
            field=("scaling", "target"),
        )
    if not replicas.min and not scaling.schedule and scaling.activator is None:
        yield Finding(
            "ZERO001",
            "nothing wakes a model without replicas: it has no metrics to scale by",
            "give scaling.schedule, or scaling.activator: gateway, or at least one replica",
            subject=model.name,
            field=("replicas",),
        )
    for number, hours in enumerate(scaling.schedule):
        if not model.autoscaled or hours.replicas > replicas.max:
            yield Finding(
                "HPA001",
                f"the schedule keeps {hours.replicas} replicas, replicas go from {replicas.min} to {replicas.max}",
                f"give replicas a range up to {hours.replicas} or more",
                subject=model.name,
                field=("scaling", "schedule", number, "replicas"),
            )


def tracing_findings(planned: ModelPlan, environment: Environment) -> Iterator[Finding]:
    """What keeps the traces that a model asks for from being sent."""
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


def advice(planned: ModelPlan) -> Iterator[Finding]:
    """Warnings about one model that can run."""
    model, placement, serving = planned.model, planned.placement, planned.serving
    for found in fit_warnings(Fit(serving.ledger, serving.max_model_len, serving.max_model_len)):
        field = ("model",) if found.field == ("model",) else ("engine", "maxModelLen")
        yield replace(found, subject=model.name, field=field)
    if model.replicas.min == 1 and model.availability is None and not model.batch:
        yield Finding(
            "AVAIL001",
            "one replica is an outage at every disruption",
            "use two replicas, or state availability: single",
            subject=model.name,
            field=("replicas",),
        )
    if planned.rollout.interrupts:
        yield Finding(
            "ROLL002",
            f"a rollout stops the only replica for about {planned.startup.cold // 60} min: pool "
            f"{placement.pool_name} has no place for another",
            f"raise its limit to {planned.rollout.surge_limit}, or run two replicas",
            subject=model.name,
            field=("replicas",),
        )
    if model.startup.budget and model.startup.budget < planned.startup.load + planned.startup.compile:
        yield Finding(
            "LOAD001",
            f"startup budget {model.startup.budget} s is below the estimate of "
            f"{planned.startup.load + planned.startup.compile} s",
            "use auto, or a longer budget",
            subject=model.name,
            field=("startup", "budget"),
        )
    if "spot" in placement.pool.capacity and "on-demand" not in placement.pool.capacity:
        yield Finding(
            "CAP007",
            f"pool {placement.pool_name} is spot alone; loading takes about {planned.startup.cold // 60} min, the "
            "notice two",
            "add on-demand to the pool's capacity",
            subject=model.name,
            field=("accelerator",),
        )
