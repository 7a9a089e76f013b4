"""Checks of one model file: references, access and replica counts."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.planning.checks.proposal import each_workload
from modelyard.planning.workloads import Workload
from modelyard.reading import suggestion
from modelyard.spec.environment import Environment

# Percent of KV cache usage above which the engine preempts requests instead of reporting higher usage.
_FULL_CACHE = 95


@each_workload
def references(workload: Workload, environment: Environment) -> Iterator[Finding]:
    """Secrets that the environment does not map."""
    model = workload.model
    for field, secret in (("model", "auth"), model.model.auth), (("access", "apiKey"), model.access.api_key):
        if secret and secret not in environment.secrets:
            yield Finding(
                "ENV002",
                f"secret '{secret}' is not mapped in environment {environment.name}",
                suggestion(secret, environment.secrets)
                + f"add it under secrets; known are {', '.join(environment.secrets) or 'none'}",
                subject=model.name,
                field=field,
            )


@each_workload
def streamed_weights(workload: Workload, environment: Environment) -> Iterator[Finding]:
    """Weights and adapters in a bucket that no identity of the environment can read."""
    model, readable = workload.model, environment.readable_buckets
    uris: list[tuple[tuple[str | int, ...], str]] = [
        (("model",), model.model.uri),
        *((("adapters", position, "uri"), each.uri) for position, each in enumerate(model.adapters)),
    ]
    for field, uri in uris:
        bucket = uri.removeprefix("s3://").partition("/")[0]
        if uri.startswith("s3://") and bucket not in readable:
            yield Finding(
                "S3001",
                f"environment {environment.name} lets model servers read {', '.join(readable) or 'no bucket'}, not {bucket}",
                f"add {bucket} to cache.readBuckets, or put the weights into the bucket of cache.weightsBucket",
                subject=model.name,
                field=field,
            )


@each_workload
def exposure(workload: Workload, environment: Environment) -> Iterator[Finding]:
    """Exposed endpoints without the gateway, API key or activator that they need."""
    model = workload.model
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


@each_workload
def open_endpoints(workload: Workload, environment: Environment) -> Iterator[Finding]:
    """Settings that let anyone who can reach the pod change its server."""
    model = workload.model
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


@each_workload
def scaling(workload: Workload, environment: Environment) -> Iterator[Finding]:
    """Unreachable targets, models at zero that nothing wakes, and schedules above the maximum replicas."""
    model, scaling, replicas = workload.model, workload.model.scaling, workload.model.replicas
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
