"""Compiled kernels and graphs, kept in the shared cache: the second replica does not compile again.

What may be reused is what was made by the same image for the same weights, accelerator and settings; the
folder's name is a hash of these, so nothing is ever mixed or has to be deleted before an upgrade.
"""

from __future__ import annotations

from dataclasses import replace

from modelyard.engines import ServeSettings, engine, server_args
from modelyard.objects.pods.digest import digest
from modelyard.objects.serving.settings import engine_port
from modelyard.planning import OURS, ModelPlan

COMPILE_PATH = "/compile"


def compile_key(plan: ModelPlan, settings: ServeSettings) -> str:
    """The same for every replica of one version of a server, another when anything that is compiled
    changes: whatever runs the server, and so at whatever port."""
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
    """Variables that name the folders; nothing where an engine compiles nothing or there is no shared
    cache."""
    served_by = engine(plan.serving.release.engine)
    if not served_by.shares_compiled or plan.model.cache_strategy == "s3-stream":
        return {}
    return served_by.compile_variables(f"{COMPILE_PATH}/{compile_key(plan, settings)}")
