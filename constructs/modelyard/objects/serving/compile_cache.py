"""Compiled kernels and graphs in the shared cache: the second replica does not compile again.

vLLM's own hash, below its VLLM_CACHE_ROOT, covers its version, the model's configuration and its settings;
Triton, Inductor and FlashInfer beside it hash their sources and the GPU, not the image's libraries. So the
folder has engine, release and accelerator in its name and hashes image, weights, settings, environment and
patches: two servers that differ in any of them share nothing. The sweep deletes folders that are left.
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
    weights, release = plan.model.model, plan.serving.release
    settings = replace(settings, port=engine_port(replace(plan, runner=OURS)))
    hashed = digest(
        {
            "image": release.image_for(cpu=plan.serving.on_cpu),
            "weights": [weights.uri, weights.revision],
            "args": list(server_args(settings, release)),
            "env": dict(plan.model.engine.env),
            # A patch may set another image, or another variable.
            "patches": [patch.model_dump(mode="json") for patch in plan.model.patches],
        }
    )
    return f"{release.engine}-{release.version}-{plan.serving.accelerator.name}-{hashed}"


def compile_cache(plan: ModelPlan, settings: ServeSettings) -> dict[str, str]:
    """Variables with the cache folders; none if the engine compiles nothing or there is no shared cache, nor
    on CPUs: code for one is compiled with what that one can do, and replicas run on several types."""
    served_by = engine(plan.serving.release.engine)
    streamed = plan.model.cache_strategy == "s3-stream"
    if not served_by.shares_compiled or streamed or plan.serving.on_cpu:
        return {}
    return served_by.compile_variables(f"{COMPILE_PATH}/{compile_key(plan, settings)}")
