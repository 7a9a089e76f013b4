"""NVIDIA Triton behind its OpenAI frontend, with the vLLM or the TensorRT-LLM backend."""

from __future__ import annotations

import json
from collections.abc import Mapping

from modelyard.engines.engine import Engine
from modelyard.engines.parsers import Parsers
from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings
from modelyard.engines.signals import Signals
from modelyard.engines.vllm import compile_variables
from modelyard.reading import NotJson, parse_json

FRONTEND = "/opt/tritonserver/python/openai/openai_frontend/main.py"
REPOSITORY = "/repository"
"""Mount path of the model repository: generated for vLLM, prebuilt engines for TensorRT-LLM."""

_CONFIG = """\
backend: "vllm"
instance_group [{kind: KIND_MODEL}]
parameters: {
  key: "REPORT_CUSTOM_METRICS"
  value: {string_value: "true"}
}
"""


# vLLM's parser names to the OpenAI frontend's (main.py, --tool-call-parser).
_TOOL_PARSERS = {"llama3_json": "llama3", "mistral": "mistral"}


class Triton(Engine):
    """The frontend has no engine flags: engine settings are in the model repository."""

    signals = Signals(
        waiting="nv_inference_pending_request_count",
        requests="nv_inference_request_success",
        failed="nv_inference_request_failure",
    )

    def __init__(self, backend: str = "vllm") -> None:
        self.backend = backend
        self.name = "triton" if backend == "vllm" else f"triton-{backend}"
        if backend == "vllm":
            self.repository = REPOSITORY
            self.states_utilization = True
        else:
            self.prepared = "the TensorRT-LLM backend"

    @property
    def file_name(self) -> str:
        return "triton"

    @property
    def metrics_page(self) -> str:
        """Triton's own page, for every backend."""
        return "triton"

    def files(self, settings: ServeSettings) -> dict[str, str]:
        return model_repository(settings) if self.repository else {}

    def compile_variables(self, root: str | None) -> dict[str, str]:
        return compile_variables(root)

    def parsers(self, row: Mapping[str, str]) -> Parsers:
        return Parsers(tools=_TOOL_PARSERS.get(row.get("tools", "")))

    def given(self, flags: Mapping[str, str], files: Mapping[str, str]) -> dict[str, str]:
        written = next((text for path, text in files.items() if path.endswith("model.json")), "{}")
        values = _stated(written)
        return {**flags, **{name.replace("_", "-"): str(value) for name, value in values.items()}}

    def command(self, settings: ServeSettings) -> tuple[str, ...]:
        return ("python3", FRONTEND)

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        prepared = self.backend == "tensorrtllm"
        repository = f"{settings.model_path}/repository" if prepared else REPOSITORY
        args = [
            f"--model-repository={repository}",
            f"--backend={self.backend}",
            "--host=0.0.0.0",
            f"--openai-port={settings.port}",
            # The frontend's default truncates every answer after 16 tokens.
            f"--default-max-tokens={min(2048, settings.max_model_len // 2)}",
        ]
        if settings.task == "generate":
            args.append(f"--tokenizer={settings.model_path}{'/tokenizer' if prepared else ''}")
        if settings.tool_parser:
            args.append(f"--tool-call-parser={settings.tool_parser}")
        return tuple(args)

    def env(self, settings: ServeSettings) -> dict[str, str]:
        return {"TRTLLM_ORCHESTRATOR": "1"} if self.backend == "tensorrtllm" else {}


def _stated(written: object) -> dict[str, object]:
    """Settings in a model repository; empty if a patch made it invalid."""
    try:
        values = parse_json(written) if isinstance(written, str) else None
    except NotJson:
        values = None
    return values if isinstance(values, dict) else {}


def model_repository(settings: ServeSettings) -> dict[str, str]:
    """Path below the repository to content, for the vLLM backend: vLLM's engine arguments with
    underscores."""
    engine = {
        "model": settings.model_path,
        "served_model_name": list(settings.served_names),
        "tensor_parallel_size": settings.ranks.tensor,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": settings.max_num_seqs,
        "max_num_batched_tokens": settings.max_num_batched_tokens,
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "enable_prefix_caching": settings.prefix_caching,
        "disable_log_stats": False,
    }
    for name, value in (("dtype", settings.dtype), ("kv_cache_dtype", settings.kv_cache_dtype)):
        if value != "auto":
            engine[name] = value
    if settings.enforce_eager:
        engine["enforce_eager"] = True
    if settings.trust_remote_code:
        engine["trust_remote_code"] = True
    name = settings.served_names[0]
    return {
        f"{name}/config.pbtxt": _CONFIG,
        f"{name}/1/model.json": json.dumps(engine, indent=1, sort_keys=True) + "\n",
    }
