"""vLLM with the Neuron plugin on Trainium2: a separate release line, buckets instead of CUDA graphs."""

from __future__ import annotations

from modelyard.engines.engine import Engine, compact_json, free_args
from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings
from modelyard.engines.signals import Signals
from modelyard.engines.vllm import Vllm, common_args, compile_variables
from modelyard.hardware import Accelerator
from modelyard.hardware.platform import StartupFacts

_SIGNALS = Signals(
    **{name: metric.replace("vllm:", "vllm_neuron:") for name, metric in vars(Vllm.signals).items() if metric}
)


class VllmNeuron(Engine):
    """vLLM's common flags, plus the buckets that the compiler builds.

    The last bucket must equal the batch limits; otherwise requests at the limit have no compiled graph.
    """

    name = "vllm-neuron"
    place = "trn2"
    states_utilization = True
    shares_compiled = True
    kserve = ("vllm", "serve")
    service_prefix = "vllm"
    signals = _SIGNALS

    def runs_on(self, accelerator: Accelerator) -> bool:
        return accelerator.name == "trn2"

    def usual_for(self, accelerator: Accelerator, *, gguf: bool) -> bool:
        return accelerator.vendor == "aws" and not gguf

    def compile_seconds(self, facts: StartupFacts) -> int:
        return facts.neuron_compile_seconds

    def compile_variables(self, root: str | None) -> dict[str, str]:
        kept = {"NEURON_COMPILED_ARTIFACTS": f"{root}/neuron"} if root else {}
        return compile_variables(root) | kept

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        neuron = {
            "num_batched_tokens_buckets": [settings.max_num_batched_tokens],
            "num_seqs_buckets": [settings.max_num_seqs],
        }
        if settings.prefix_caching:  # segmented prefill: one segment size, the batched-token bucket
            neuron["kv_segment_size_buckets"] = [settings.max_num_batched_tokens]
        return (
            *common_args(settings),
            f"--gpu-memory-utilization={settings.gpu_memory_utilization:g}",
            "--block-size=32",
            f"--additional-config={compact_json({'neuron_config': neuron})}",
            *free_args(settings, release),
        )

    def env(self, settings: ServeSettings) -> dict[str, str]:
        """Compilation takes longer than vLLM's default timeouts."""
        return {
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_NEURON_COMPILATION_TIMEOUT": "1200",
            "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "1200",
            "VLLM_ENGINE_READY_TIMEOUT_S": "3600",
            "NEURON_SKIP_EFA_AFFINITY": "1",
        }
