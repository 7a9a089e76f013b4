"""llama.cpp's llama-server: GGUF on CPUs, or with some or all layers on GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modelyard.engines.engine import Engine
from modelyard.engines.host import HostLoad, HostRequest, request_of_mapped_weights
from modelyard.engines.parsers import Parsers
from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings
from modelyard.engines.signals import Signals
from modelyard.hardware import Accelerator
from modelyard.hardware.platform import StartupFacts

# More layers than any model has: all of them.
_ALL_LAYERS = 999
_PING_SECONDS = 5


class LlamaServer(Engine):
    """Slots share the context evenly. Every setting is explicit, because `-fit` would choose differently by
    node."""

    name = "llama-server"
    place = "GPUs and CPUs"
    memory = "layers"
    sequences = 4  # each has its own cache; the default serves one request at a time
    one_process = True
    reads_names = False
    forces_functions = False  # it supports only `required`
    lists_lengths = False
    signals = Signals(
        waiting="llamacpp:requests_deferred",
        running="llamacpp:requests_processing",
        prompt_tokens="llamacpp:prompt_tokens_total",
        generated_tokens="llamacpp:tokens_predicted_total",
    )

    def runs_on(self, accelerator: Accelerator) -> bool:
        return accelerator.vendor in ("nvidia", "cpu")

    def usual_for(self, accelerator: Accelerator, *, gguf: bool) -> bool:
        return gguf or accelerator.vendor == "cpu"

    def compile_seconds(self, facts: StartupFacts) -> int:
        return 0

    def host(self, load: HostLoad) -> HostRequest:
        return request_of_mapped_weights(load)

    def probe(self, url: str) -> list[str]:
        """The image has curl but no Python."""
        return ["curl", "--fail", "--silent", "--max-time", "10", url]

    def parsers(self, row: Mapping[str, str]) -> Parsers:
        """It detects parsers from the chat template."""
        return Parsers("auto", "auto")

    def given(self, flags: Mapping[str, str], files: Mapping[str, str]) -> dict[str, str]:
        slots, context = flags.get("parallel", "1"), flags.get("ctx-size", "0")
        length = int(context) // max(1, int(slots)) if context.isdigit() and slots.isdigit() else 0
        return {**flags, "max-model-len": str(length), "max-num-seqs": slots}

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
            # A stream cut off by the client ends at the next ping: a stop takes seconds instead of half a
            # minute.
            "sse-ping-interval": _PING_SECONDS,
        }
        if settings.threads:  # CPU only
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


def _free(settings: ServeSettings) -> Iterator[str]:
    """The user's flags: llama-server takes a flag and its value as two arguments."""
    for name, value in sorted(settings.extra.items()):
        yield f"--no-{name}" if value is False else f"--{name}"
        if not isinstance(value, bool):
            yield ",".join(map(str, value)) if isinstance(value, list) else str(value)
