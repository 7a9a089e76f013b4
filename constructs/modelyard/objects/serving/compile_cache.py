"""Compiled kernels and graphs, kept in the shared cache: the second replica does not compile again.

What may be reused is what was made by the same image for the same weights, accelerator and settings; the folder's name is
a hash of these, so nothing is ever mixed or has to be deleted before an upgrade.
"""

from __future__ import annotations

from modelyard.engines import ServeSettings, server_args
from modelyard.objects.pods.digest import digest
from modelyard.planning import ModelPlan

COMPILE_PATH = "/compile"

_COMPILING = ("vllm", "vllm-neuron")


def compile_key(plan: ModelPlan, settings: ServeSettings) -> str:
    """The same for every replica of one version of a server, another when anything that is compiled changes."""
    weights = plan.model.model
    return digest(
        {
            "image": plan.serving.release.image,
            "weights": [weights.uri, weights.revision],
            "accelerator": plan.serving.accelerator.name,
            "args": list(server_args(settings, plan.serving.release)),
        }
    )


def compile_cache(plan: ModelPlan, settings: ServeSettings) -> dict[str, str]:
    """Variables that name the folders; nothing where an engine compiles nothing or there is no shared cache."""
    if plan.serving.release.engine not in _COMPILING or plan.model.cache_strategy == "s3-stream":
        return {}
    root = f"{COMPILE_PATH}/{compile_key(plan, settings)}"
    variables = {
        "VLLM_CACHE_ROOT": root,
        "TORCHINDUCTOR_CACHE_DIR": f"{root}/torchinductor",
        "TRITON_CACHE_DIR": f"{root}/triton",
        "FLASHINFER_WORKSPACE_BASE": root,
    }
    if plan.serving.release.engine == "vllm-neuron":
        variables["NEURON_COMPILED_ARTIFACTS"] = f"{root}/neuron"
    return variables
