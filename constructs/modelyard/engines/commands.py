"""The engines by name, and the command of a server from the plan's settings."""

from __future__ import annotations

from modelyard.engines.engine import Engine
from modelyard.engines.llama_server import LlamaServer
from modelyard.engines.release import EngineName, Release
from modelyard.engines.settings import ServeSettings
from modelyard.engines.sglang import Sglang
from modelyard.engines.triton import Triton
from modelyard.engines.vllm import Vllm
from modelyard.engines.vllm_neuron import VllmNeuron

VLLM = Vllm()
ENGINES: dict[EngineName, Engine] = {
    "vllm": VLLM,
    "vllm-neuron": VllmNeuron(),
    "llama-server": LlamaServer(),
    "sglang": Sglang(),
    "triton": Triton(),
    "triton-tensorrtllm": Triton("tensorrtllm"),
}


def server_command(settings: ServeSettings, release: Release) -> tuple[str, ...]:
    """The container's command; empty for the image's entrypoint."""
    return ENGINES[release.engine].command(settings)


def server_args(settings: ServeSettings, release: Release) -> tuple[str, ...]:
    """Arguments of the server, or of the leader of several pods."""
    return ENGINES[release.engine].args(settings, release)


def server_env(settings: ServeSettings, release: Release) -> dict[str, str]:
    """Environment variables that the engine needs besides the ones for its caches."""
    return ENGINES[release.engine].env(settings)


def worker_args(settings: ServeSettings, release: Release) -> tuple[str, ...]:
    """Arguments of the pods of a replica that do not answer requests themselves."""
    return (*server_args(settings, release), "--headless")


def batch_args(settings: ServeSettings, release: Release) -> tuple[str, ...]:
    """Arguments of `vllm run-batch` beside its files."""
    return VLLM.batch_args(settings, release)
