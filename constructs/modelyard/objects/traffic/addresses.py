"""Where a model can be called, by whom, and with which key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from modelyard.objects.pods.ports import PORT, SERVICE_PORT
from modelyard.objects.traffic.litellm import NAME as LITELLM
from modelyard.planning import ModelPlan
from modelyard.spec import Environment

Way = Literal["cluster", "forward", "gateway", "litellm"]
"""From a pod, through a port-forward, through the environment's gateway, or through its LiteLLM proxy."""


@dataclass(frozen=True)
class Address:
    """One way to call a model.

    `url` ends with `/v1`; `model`: the name to ask for; `callers`: who is let in, in words; `secret`: logical
    name of the secret with the key, None without a key; `first`: a command to run before, or None.
    """

    way: Way
    url: str
    model: str
    callers: str
    secret: str | None = None
    first: str | None = None


def addresses(plan: ModelPlan, environment: Environment) -> tuple[Address, ...]:
    """Every way to call the model of `plan`, which is no batch and not the prefill half of a model."""
    return (*_own(plan, environment), *_proxied(plan, environment))


def _own(plan: ModelPlan, environment: Environment) -> Iterator[Address]:
    service, namespace, access = plan.model.name, environment.namespace, plan.model.access
    name, key = plan.served_names[0], access.api_key
    allowed = [
        f"pods of namespace {client.namespace}"
        + "".join(f" with {label}={value}" for label, value in client.pod_labels.items())
        for client in access.allow_from
    ]
    callers = ", ".join(allowed) or f"pods of namespace {namespace}"
    yield Address("cluster", f"http://{service}.{namespace}/v1", name, callers, key)
    yield Address(
        "forward",
        f"http://127.0.0.1:{PORT}/v1",
        name,
        "people who may forward ports of the cluster",
        key,
        f"kubectl -n {namespace} port-forward service/{service} {PORT}:{SERVICE_PORT} &",
    )
    if gateway := environment.gateways.of(access.exposure):
        host = access.host or f"{service}.{gateway.domain}"
        callers = _networks(access.exposure, gateway.cidrs)
        yield Address("gateway", f"https://{host}/v1", name, callers, key)


def _proxied(plan: ModelPlan, environment: Environment) -> Iterator[Address]:
    if environment.litellm is None:
        return
    settings, namespace = environment.litellm, environment.namespace
    name, key = plan.model.name, settings.master_key
    allowed = ", ".join(f"pods of namespace {client.namespace}" for client in settings.allow_from)
    callers = allowed or f"pods of namespace {namespace}"
    yield Address("litellm", f"http://{LITELLM}.{namespace}/v1", name, callers, key)
    if gateway := environment.gateways.of(settings.exposure):
        callers = _networks(settings.exposure, gateway.cidrs)
        yield Address("litellm", f"https://llm.{gateway.domain}/v1", name, callers, key)


def _networks(exposure: str, cidrs: tuple[str, ...]) -> str:
    if cidrs:
        return f"networks {', '.join(cidrs)}"
    return "everyone" if exposure == "public" else "the VPC and networks connected to it"
