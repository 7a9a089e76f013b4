"""vLLM on NVIDIA GPUs: `vllm serve`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from modelyard.engines.release import Release

if TYPE_CHECKING:
    from modelyard.engines.commands import ServeSettings


def server_args(settings: ServeSettings, release: Release) -> tuple[str, ...]:
    """The model path first, as the entrypoint wants it, then full flag names: abbreviations resolve in silence."""
    args = [*common_args(settings), f"--gpu-memory-utilization={settings.gpu_memory_utilization:g}"]
    if settings.dtype != "auto":
        args.append(f"--dtype={settings.dtype}")
    if settings.kv_cache_dtype != "auto":
        args.append(f"--kv-cache-dtype={settings.kv_cache_dtype}")
    if settings.enforce_eager:
        args.append("--enforce-eager")
    args.append(f"--safetensors-load-strategy={settings.load_strategy}")
    if settings.images_per_prompt is not None:
        args.append(f"--limit-mm-per-prompt={_json({'image': settings.images_per_prompt, 'video': 0})}")
    if settings.adapters:
        args += [
            "--enable-lora",
            f"--max-loras={len(settings.adapters)}",
            f"--max-lora-rank={settings.max_lora_rank}",
            "--lora-modules",
            *(f"{name}={path}" for name, path in sorted(settings.adapters.items())),
        ]
    if settings.speculative:
        args.append(f"--speculative-config={_json(settings.speculative)}")
    return (*args, *extra_args(settings, release))


def server_env(settings: ServeSettings) -> dict[str, str]:
    env = {"VLLM_NO_USAGE_STATS": "1"}
    if settings.tensor_parallel > 1:
        env["NCCL_DEBUG"] = "WARN"
    return env


def common_args(settings: ServeSettings) -> list[str]:
    """What every build of vLLM understands."""
    args = [
        settings.model_path,
        "--served-model-name",
        *settings.served_names,
        "--host=0.0.0.0",
        f"--port={settings.port}",
        f"--tensor-parallel-size={settings.tensor_parallel}",
        f"--max-model-len={settings.max_model_len}",
        f"--max-num-seqs={settings.max_num_seqs}",
        f"--max-num-batched-tokens={settings.max_num_batched_tokens}",
        "--enable-prefix-caching" if settings.prefix_caching else "--no-enable-prefix-caching",
        f"--shutdown-timeout={settings.drain_seconds}",
        "--disable-access-log-for-endpoints=/health,/metrics",
    ]
    if settings.tool_parser:
        args += ["--enable-auto-tool-choice", f"--tool-call-parser={settings.tool_parser}"]
    if settings.reasoning_parser:
        args.append(f"--reasoning-parser={settings.reasoning_parser}")
    if settings.otlp_endpoint:
        args.append(f"--otlp-traces-endpoint={settings.otlp_endpoint}")
    if settings.trust_remote_code:
        args.append("--trust-remote-code")
    return args


def extra_args(settings: ServeSettings, release: Release) -> list[str]:
    """The user's own flags, in alphabetical order."""
    args: list[str] = []
    for name, value in sorted(settings.extra.items()):
        if value is True:
            args.append(f"--{name}")
        elif value is False:
            # The only spelling of a negation that 0.32 and 0.33 both accept.
            args.append(f"--no-{name}")
        elif isinstance(value, list) and name in release.flags and release.flags[name].many:
            args += [f"--{name}", *(str(item) for item in value)]
        else:
            args.append(f"--{name}={value if isinstance(value, str | int | float) else _json(value)}")
    return args


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
