"""SGLang on NVIDIA GPUs: `python3 -m sglang.launch_server`."""

from __future__ import annotations

from modelyard.engines.engine import free_args
from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings

_GRAMMARS = {"xgrammar": "xgrammar", "guidance": "llguidance", "outlines": "outlines"}


class Sglang:
    """SGLang states the share of memory for weights and cache together, and the rest is left for activations and graphs."""

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
        if settings.tool_parser:  # read off the chat template
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
        if settings.api_key:  # filled in by the kubelet: the value is in no file
            args.append("--api-key=$(SGLANG_API_KEY)")
        return (*args, *free_args(settings, release))

    def env(self, settings: ServeSettings) -> dict[str, str]:
        return {"NCCL_DEBUG": "WARN"} if settings.ranks.tensor > 1 else {}
