"""vLLM with the Neuron plugin on Trainium2: its own release line, buckets instead of CUDA graphs."""

from __future__ import annotations

from modelyard.engines.engine import compact_json, free_args
from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings
from modelyard.engines.vllm import common_args


class VllmNeuron:
    """vLLM's common flags and the buckets that the compiler builds.

    The last bucket must equal the batch limits, or requests at the limit would have no compiled graph.
    """

    def command(self, settings: ServeSettings) -> tuple[str, ...]:
        return ()

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        neuron = {
            "num_batched_tokens_buckets": [settings.max_num_batched_tokens],
            "num_seqs_buckets": [settings.max_num_seqs],
        }
        if settings.prefix_caching:  # segmented prefill: the segment is the batched-token bucket, one size
            neuron["kv_segment_size_buckets"] = [settings.max_num_batched_tokens]
        return (
            *common_args(settings),
            f"--gpu-memory-utilization={settings.gpu_memory_utilization:g}",
            "--block-size=32",
            f"--additional-config={compact_json({'neuron_config': neuron})}",
            *free_args(settings, release),
        )

    def env(self, settings: ServeSettings) -> dict[str, str]:
        """Compilation takes longer than vLLM's default waits."""
        return {
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_NEURON_COMPILATION_TIMEOUT": "1200",
            "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "1200",
            "VLLM_ENGINE_READY_TIMEOUT_S": "3600",
            "NEURON_SKIP_EFA_AFFINITY": "1",
        }
