"""Base class of engines. An engine's folder holds its subclass and its dated tables.

A folder has `releases/*.json` (images, paths, flags, supported features), `metrics.json` or `metrics.yaml`,
and `memory.yaml` unless it uses another engine's memory facts. Engines in other packages register through the
entry point `modelyard.engines`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, Literal

from modelyard.engines.host import HostLoad, HostRequest, request_of_workers
from modelyard.engines.parsers import Parsers
from modelyard.engines.settings import ServeSettings
from modelyard.engines.signals import Signals
from modelyard.hardware import Accelerator
from modelyard.hardware.platform import StartupFacts

if TYPE_CHECKING:
    from modelyard.engines.release import Release

HOME = "/home/vllm"
"""Home directory of the server's user; besides `/tmp`, the only directory the server can write to."""
CACHE = f"{HOME}/.cache"

MemoryStrategy = Literal["split", "layers"]
"""`split`: each accelerator holds a slice of every layer. `layers`: each device holds whole layers, the CPU
the rest."""


class Engine:
    """An inference engine; the defaults fit a standalone OpenAI-compatible server on NVIDIA GPUs.

    Whatever differs by release is data of the `Release`. An engine overrides the methods where it differs.
    """

    name: str
    """Name of the engine in releases, findings and commands."""
    backend: str | None = None
    """`engine.backend` of a model file, where several engines share `engine.name`."""
    place: str = "NVIDIA GPUs"
    """Supported hardware, as worded in a fix."""
    memory: MemoryStrategy = "split"
    """How weights and caches are laid out, which selects the memory model."""
    sequences: int | None = None
    """Default `max_num_seqs`; None: from its memory facts."""
    fp8_cache: bool = False
    """Whether its memory model covers an fp8 KV cache."""
    states_utilization: bool = False
    """Whether it has the setting `gpu-memory-utilization`."""
    prepared: str | None = None
    """The backend that serves engines prebuilt for one accelerator, if any: length, parallelism and batch are
    fixed in the build."""
    one_process: bool = False
    """Whether it runs as one process, without workers that share memory."""
    reads_names: bool = True
    """Whether it rejects requests for an unknown model name."""
    forces_functions: bool = True
    """Whether a client can force a tool call by function name."""
    lists_lengths: bool = True
    """Whether its model list includes the maximum context length."""
    shares_compiled: bool = False
    """Whether replicas can share a compile cache."""
    repository: str | None = None
    """Mount path of the files from `files`."""
    kserve: tuple[str, ...] | None = None
    """Command of the LLMInferenceService container; None if KServe cannot start it."""
    aiconfigurator: str | None = None
    """Name of the backend in AIConfigurator's measurements."""
    service_prefix: str | None = None
    """Prefix of its environment variables, which a Service of that name would collide with."""
    signals: Signals = Signals()
    """The engine's metrics, by meaning."""

    @property
    def file_name(self) -> str:
        """`engine.name` of a model file."""
        return self.name

    @property
    def folder(self) -> Traversable:
        """The engine's own folder, with its tables."""
        return files(sys.modules[type(self).__module__].__package__ or type(self).__module__)

    @property
    def release_tables(self) -> Iterator[Traversable]:
        return (each for each in self.folder.joinpath("releases").iterdir() if each.name.endswith(".json"))

    @property
    def metrics_page(self) -> str:
        """Name of the engine whose /metrics page it shares."""
        return self.name

    def runs_on(self, accelerator: Accelerator) -> bool:
        """Whether it supports `accelerator`."""
        return accelerator.vendor == "nvidia"

    def usual_for(self, accelerator: Accelerator, *, gguf: bool) -> bool:
        """Whether it is the engine of `engine: auto`."""
        return False

    def command(self, settings: ServeSettings) -> tuple[str, ...]:
        """The container's command; empty for the image's own entrypoint."""
        return ()

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        """Arguments of the server; of the leader if a replica has several pods."""
        raise NotImplementedError

    def env(self, settings: ServeSettings) -> dict[str, str]:
        """Environment variables, except those for its caches."""
        return {}

    def addresses(self, settings: ServeSettings) -> tuple[str, ...]:
        """Environment variables that hold the pod's own address."""
        return ()

    def worker_command(self, settings: ServeSettings) -> tuple[str, ...]:
        """Command of a replica's worker pods; empty for the image's entrypoint."""
        return ()

    def worker_args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        """Arguments of the worker pods."""
        raise NotImplementedError(f"{self.name} does not run over several pods")

    def worker_env(self, settings: ServeSettings) -> dict[str, str]:
        """Environment variables of the worker pods, besides the server's."""
        return {}

    def batch_command(self) -> tuple[str, ...]:
        """Command of a batch job."""
        raise NotImplementedError(f"{self.name} runs no batches")

    def batch_args(
        self, settings: ServeSettings, release: Release, *, requests: str, answers: str
    ) -> tuple[str, ...]:
        """Arguments of a batch job; `requests` and `answers` are file paths."""
        raise NotImplementedError(f"{self.name} runs no batches")

    def files(self, settings: ServeSettings) -> dict[str, str]:
        """Files that it reads besides its command line: path below `repository` to content."""
        return {}

    def compile_variables(self, root: str | None) -> dict[str, str]:
        """Environment variables for compile cache directories: below `root`, or in the pod's own volumes."""
        return {}

    def compile_seconds(self, facts: StartupFacts) -> int:
        """Seconds of compilation and graph capture at a start without a cache."""
        return facts.compile_seconds

    def host(self, load: HostLoad) -> HostRequest:
        """CPU and memory requests of one pod."""
        return request_of_workers(load)

    def probe(self, url: str) -> list[str]:
        """Probe command inside the image that succeeds if `url` responds."""
        return ["python3", "-c", f"import urllib.request; urllib.request.urlopen('{url}', timeout=10)"]

    def parsers(self, row: Mapping[str, str]) -> Parsers:
        """Parser names of a model family; `row` has vLLM's names."""
        return Parsers(tools=row.get("tools"), reasoning=row.get("reasoning"))

    def given(self, flags: Mapping[str, str], files: Mapping[str, str]) -> dict[str, str]:
        """Settings by vLLM's flag names, parsed from a command line and from the contents of `files`."""
        return dict(flags)


def free_args(settings: ServeSettings, release: Release) -> list[str]:
    """The user's flags, in alphabetical order, in the release's syntax."""
    args: list[str] = []
    for name, value in sorted(settings.extra.items()):
        if value is True:
            args.append(f"--{name}")
        elif value is False:
            args.append(f"--no-{name}")
        elif isinstance(value, list) and name in release.flags and release.flags[name].many:
            args += [f"--{name}", *(str(item) for item in value)]
        else:
            args.append(f"--{name}={value if isinstance(value, str | int | float) else compact_json(value)}")
    return args


def compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
