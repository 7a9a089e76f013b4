"""Compiled kernels and graphs in the shared cache: the second replica does not compile again.

The folder name is a hash of image, weights, accelerator and settings, so incompatible artifacts never mix and
an upgrade needs no cleanup.
"""

from __future__ import annotations

from dataclasses import replace

from modelyard.engines import ServeSettings, engine, server_args
from modelyard.objects.pods.digest import digest
from modelyard.objects.serving.settings import engine_port
from modelyard.planning import OURS, ModelPlan

COMPILE_PATH = "/compile"


def compile_key(plan: ModelPlan, settings: ServeSettings) -> str:
    """Cache key: the same for every replica of one version of a server, different when a compile input
    changes. Runner and port are not part of it."""
    weights = plan.model.model
    settings = replace(settings, port=engine_port(replace(plan, runner=OURS)))
    return digest(
        {
            "image": plan.serving.release.image,
            "weights": [weights.uri, weights.revision],
            "accelerator": plan.serving.accelerator.name,
            "args": list(server_args(settings, plan.serving.release)),
        }
    )


def compile_cache(plan: ModelPlan, settings: ServeSettings) -> dict[str, str]:
    """Variables with the cache folders; none if the engine compiles nothing or there is no shared cache."""
    served_by = engine(plan.serving.release.engine)
    if not served_by.shares_compiled or plan.model.cache_strategy == "s3-stream":
        return {}
    return served_by.compile_variables(f"{COMPILE_PATH}/{compile_key(plan, settings)}")
