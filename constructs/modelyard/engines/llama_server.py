"""llama.cpp's llama-server: GGUF on CPUs, or on GPUs with some or all layers."""

from __future__ import annotations

from modelyard.engines.engine import free_args
from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings

# A number of layers beyond any model's: all of them.
_ALL_LAYERS = 999


class LlamaServer:
    """Slots of equal length share the context; what is left to `-fit` differs by node, so everything is said."""

    def command(self, settings: ServeSettings) -> tuple[str, ...]:
        return ()

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        layers = _ALL_LAYERS if settings.gpu_layers is None else settings.gpu_layers
        args = [
            f"--model={settings.model_path}",
            f"--alias={','.join(settings.served_names)}",
            "--host=0.0.0.0",
            f"--port={settings.port}",
            f"--ctx-size={settings.max_model_len * settings.max_num_seqs}",
            f"--parallel={settings.max_num_seqs}",
            f"--batch-size={max(settings.max_num_batched_tokens, 2048)}",
            f"--ubatch-size={settings.max_num_batched_tokens}",
            "--metrics",
            "--no-ui",
            "--offline",
        ]
        if settings.threads:  # CPUs alone
            args += [f"--threads={settings.threads}", "--gpu-layers=0"]
        else:
            args += [f"--gpu-layers={layers}", "--flash-attn=on"]
        if settings.kv_cache_dtype == "fp8":
            args += ["--cache-type-k=q8_0", "--cache-type-v=q8_0"]
        if settings.task == "embed":
            args.append("--embeddings")
        elif settings.task == "rerank":
            args.append("--reranking")
        else:
            args.append("--jinja")
        if settings.adapters:
            args += [f"--lora={path}" for _, path in sorted(settings.adapters.items())]
        if settings.speculative:
            args += [
                f"--spec-draft-model={settings.speculative['model']}",
                f"--spec-draft-n-max={settings.speculative['num_speculative_tokens']}",
            ]
        return (*args, *free_args(settings, release))

    def env(self, settings: ServeSettings) -> dict[str, str]:
        return {}
