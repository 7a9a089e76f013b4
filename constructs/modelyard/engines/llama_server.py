"""llama.cpp's llama-server: GGUF on CPUs, or on GPUs with some or all layers."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings

# A number of layers beyond any model's: all of them.
_ALL_LAYERS = 999
_PING_SECONDS = 5


class LlamaServer:
    """Slots of equal length share the context; what is left to `-fit` differs by node, so everything is said."""

    def command(self, settings: ServeSettings) -> tuple[str, ...]:
        return ()

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        layers = _ALL_LAYERS if settings.gpu_layers is None else settings.gpu_layers
        values: dict[str, object] = {
            "model": settings.model_path,
            "alias": ",".join(settings.served_names),
            "host": "0.0.0.0",
            "port": settings.port,
            "ctx-size": settings.max_model_len * settings.max_num_seqs,
            "parallel": settings.max_num_seqs,
            "batch-size": max(settings.max_num_batched_tokens, 2048),
            "ubatch-size": settings.max_num_batched_tokens,
            # A stream that is cut off ends with the next ping: the stop takes seconds, not half a minute.
            "sse-ping-interval": _PING_SECONDS,
        }
        if settings.threads:  # CPUs alone
            values |= {"threads": settings.threads, "gpu-layers": 0}
        else:
            values |= {"gpu-layers": layers, "flash-attn": "on"}
        if settings.kv_cache_dtype == "fp8":
            values |= {"cache-type-k": "q8_0", "cache-type-v": "q8_0"}
        mode = {"embed": "--embeddings", "rerank": "--reranking", "generate": "--jinja"}[settings.task]
        switches = ["--metrics", "--no-ui", "--offline", mode]
        return (
            *(word for name, value in values.items() for word in (f"--{name}", str(value))),
            *switches,
            *_free(settings),
        )

    def env(self, settings: ServeSettings) -> dict[str, str]:
        return {}


def _free(settings: ServeSettings) -> Iterator[str]:
    """The user's own flags: llama-server takes a flag and its value as two words."""
    for name, value in sorted(settings.extra.items()):
        yield f"--no-{name}" if value is False else f"--{name}"
        if not isinstance(value, bool):
            yield ",".join(map(str, value)) if isinstance(value, list) else str(value)
