"""An environment with everything that some models ask for: to judge them where none is written yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from modelyard.hardware import accelerators, instance_types
from modelyard.spec.environment import Environment
from modelyard.spec.model import Model

ANYWHERE = "any"
"""The environment's name."""

USUAL_REGION = "us-east-2"
"""The region of models that run on `auto` or on a CPU, and of those whose accelerator is offered there."""

_PLENTY = 4096
_CPU = "none"


def region_of(model: Model) -> str:
    """The region that offers most instance types with the model's accelerator, if possible the usual one."""
    offers = Counter(
        region
        for each in instance_types().values()
        if each.accelerator and each.accelerator.name == model.accelerator.type and not each.unsupported
        for region in each.offered_regions
    )
    return max((USUAL_REGION, *sorted(offers)), key=lambda region: offers[region])


def anywhere(models: Iterable[Model], region: str) -> Environment:
    """An environment with a large pool of every accelerator, with fabric, and with the pools, secrets,
    buckets, gateways and collectors that `models` refer to.

    Whatever its plan says of a model by itself is true in every environment.
    """
    asked = list(models)
    kinds = (*accelerators(), _CPU)
    pools: dict[str, Any] = {
        f"pool-{kind}": {"accelerator": kind, "limit": _PLENTY, "fabric": "none" if kind == _CPU else "efa"}
        for kind in kinds
    }
    for model in asked:
        if model.pool and model.accelerator.type in kinds:
            pools[model.pool] = pools[f"pool-{model.accelerator.type}"]
    secrets = {name for model in asked for name in (model.model.auth, model.access.api_key) if name}
    gateway = {"domain": "models.example.com", "certificate": "tls", "cidrs": ["0.0.0.0/0"]}
    return Environment.model_validate(
        {
            "name": ANYWHERE,
            "account": "000000000000",
            "region": region,
            "availabilityZones": [f"{region}{zone}" for zone in "abc"],
            "pools": pools,
            "secrets": {name: name for name in {*secrets, "tls", "llm-key", "hf-token"}},
            "gateways": {"internal": gateway, "public": gateway},
            "litellm": {"masterKey": "llm-key"},
            "monitoring": {"otlpEndpoint": "http://otel.monitoring:4317"},
            "cache": {
                "readBuckets": sorted(
                    {model.model.repository.split("/")[0] for model in asked if model.model.scheme == "s3"}
                )
            },
        }
    )
