"""SGLang on NVIDIA GPUs: `python3 -m sglang.launch_server`."""

from __future__ import annotations

from collections.abc import Mapping

from modelyard.engines.engine import Engine, free_args
from modelyard.engines.parsers import Parsers
from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings
from modelyard.engines.signals import Signals
from modelyard.engines.vllm import compile_variables

_GRAMMARS = {"xgrammar": "xgrammar", "guidance": "llguidance", "outlines": "outlines"}


# SGLang's flag names to vLLM's, such as --max-model-len.
_NAMES = {
    "context-length": "max-model-len",
    "tp-size": "tensor-parallel-size",
    "max-running-requests": "max-num-seqs",
    "mem-fraction-static": "gpu-memory-utilization",
}


class Sglang(Engine):
    """SGLang's memory share covers weights and KV cache together; the rest is for activations and graphs."""

    name = "sglang"
    signals = Signals(
        waiting="sglang:num_queue_reqs",
        running="sglang:num_running_reqs",
        kv_cache_usage="sglang:token_usage",
        ttft="sglang:time_to_first_token_seconds",
        itl="sglang:inter_token_latency_seconds",
        e2e="sglang:e2e_request_latency_seconds",
        prompt_tokens="sglang:prompt_tokens_total",
        generated_tokens="sglang:generation_tokens_total",
        preemptions="sglang:num_retracted_requests_total",
        requests="sglang:num_requests_total",
        failed="sglang:num_aborted_requests_total",
    )

    def compile_variables(self, root: str | None) -> dict[str, str]:
        return compile_variables(root)

    def parsers(self, row: Mapping[str, str]) -> Parsers:
        """It detects parsers from the chat template."""
        return Parsers("auto", "auto")

    def given(self, flags: Mapping[str, str], files: Mapping[str, str]) -> dict[str, str]:
        return {_NAMES.get(name, name): value for name, value in flags.items()}

    def command(self, settings: ServeSettings) -> tuple[str, ...]:
        return ("python3", "-m", "sglang.launch_server")

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        args = [
            f"--model-path={settings.model_path}",
            f"--served-model-name={settings.served_names[0]}",
            "--host=0.0.0.0",
            f"--port={settings.port}",
            f"--tp-size={settings.ranks.tensor}",
            f"--context-length={settings.max_model_len}",
            f"--max-running-requests={settings.max_num_seqs}",
            f"--chunked-prefill-size={settings.max_num_batched_tokens}",
            f"--mem-fraction-static={settings.static_share:.2f}",
            "--enable-metrics",
        ]
        if settings.ranks.expert:
            args.append(f"--ep-size={settings.ranks.tensor}")
        if settings.dtype != "auto":
            args.append(f"--dtype={settings.dtype}")
        if settings.kv_cache_dtype != "auto":
            args.append("--kv-cache-dtype=fp8_e4m3")
        if settings.quantization != "auto":
            args.append(f"--quantization={'fp8' if settings.quantization == 'fp8' else 'w8a8_int8'}")
        if settings.enforce_eager:
            args += ["--cuda-graph-backend-decode=disabled", "--cuda-graph-backend-prefill=disabled"]
        if not settings.prefix_caching:
            args.append("--disable-radix-cache")
        if settings.tool_parser:  # detected from the chat template
            args.append("--tool-call-parser=auto")
        if settings.reasoning_parser:
            args.append("--reasoning-parser=auto")
        if settings.structured_outputs != "auto":
            args.append(f"--grammar-backend={_GRAMMARS[settings.structured_outputs]}")
        if settings.task != "generate":
            args.append("--is-embedding")
        if settings.adapters:
            args += ["--enable-lora", f"--max-lora-rank={settings.max_lora_rank}", "--lora-paths"]
            args += [f"{name}={path}" for name, path in sorted(settings.adapters.items())]
            args.append(f"--max-loras-per-batch={len(settings.adapters)}")
        if settings.trust_remote_code:
            args.append("--trust-remote-code")
        if settings.api_key:  # expanded by the kubelet, so the value is in no file
            args.append("--api-key=$(SGLANG_API_KEY)")
        return (*args, *free_args(settings, release))

    def env(self, settings: ServeSettings) -> dict[str, str]:
        return {"NCCL_DEBUG": "WARN"} if settings.ranks.tensor > 1 else {}
