"""What an engine says of itself. Its own folder holds the class that says it, and its dated tables.

A folder has `releases/*.json` (images, paths, flags, what is supported), `metrics.json` or `metrics.yaml`,
and `memory.yaml` where it does not use another engine's memory facts. An engine of another package is found
by the entry point `modelyard.engines`.
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
"""The home of the server's user, the only folder of a server besides `/tmp` that it may write to."""
CACHE = f"{HOME}/.cache"

MemoryStrategy = Literal["split", "layers"]
"""`split`: each accelerator has a slice of every layer. `layers`: whole layers go to each device, the rest
stays with the CPU."""


class Engine:
    """An inference engine; the defaults are those of a server of OpenAI's API for NVIDIA GPUs that shares
    nothing.

    Whatever differs by release is data of the `Release`. An engine overrides what is otherwise with it.
    """

    name: str
    """Name of the engine in releases, findings and commands."""
    backend: str | None = None
    """`engine.backend` of a model file, where several engines share `engine.name`."""
    place: str = "NVIDIA GPUs"
    """What it runs on, in the words of a fix."""
    memory: MemoryStrategy = "split"
    """How weights and caches are laid out, and which memory model predicts it."""
    sequences: int | None = None
    """Most sequences in a batch unless a file says otherwise; None: what its memory facts say."""
    fp8_cache: bool = False
    """Whether its memory model knows what an fp8 KV cache saves."""
    states_utilization: bool = False
    """Whether `gpu-memory-utilization` is among its settings."""
    prepared: str | None = None
    """What serves engines that somebody built before for one accelerator: length, split and batch stand in
    these."""
    one_process: bool = False
    """Whether it runs without workers that share memory."""
    reads_names: bool = True
    """Whether it refuses a model name that it does not serve."""
    forces_functions: bool = True
    """Whether a client can force a tool call by the function's name."""
    lists_lengths: bool = True
    """Whether its list of models says how long a context may be."""
    shares_compiled: bool = False
    """Whether replicas may use what another one compiled."""
    repository: str | None = None
    """Where the files of `files` are mounted."""
    kserve: tuple[str, ...] | None = None
    """Command of an LLMInferenceService's container; None where KServe cannot start it."""
    aiconfigurator: str | None = None
    """Name of the backend in AIConfigurator's measurements."""
    service_prefix: str | None = None
    """Prefix of its variables that Kubernetes would set as well for a Service of that name."""
    signals: Signals = Signals()
    """Which of its metrics says what."""

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
        """Name of the engine whose metrics page this one has."""
        return self.name

    def runs_on(self, accelerator: Accelerator) -> bool:
        """Whether it has code for `accelerator`."""
        return accelerator.vendor == "nvidia"

    def usual_for(self, accelerator: Accelerator, *, gguf: bool) -> bool:
        """Whether `engine: auto` means it."""
        return False

    def command(self, settings: ServeSettings) -> tuple[str, ...]:
        """The container's command; empty for the image's own entrypoint."""
        return ()

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        """Arguments of the server; of the leader where a replica has several pods."""
        raise NotImplementedError

    def env(self, settings: ServeSettings) -> dict[str, str]:
        """Environment variables that it needs besides the ones for its caches."""
        return {}

    def addresses(self, settings: ServeSettings) -> tuple[str, ...]:
        """Environment variables that hold the pod's own address."""
        return ()

    def worker_command(self, settings: ServeSettings) -> tuple[str, ...]:
        """Command of the pods of a replica that answer nobody; empty for the image's own entrypoint."""
        return ()

    def worker_args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        """Arguments of these pods."""
        raise NotImplementedError(f"{self.name} does not run over several pods")

    def worker_env(self, settings: ServeSettings) -> dict[str, str]:
        """Environment variables of these pods besides those of the server."""
        return {}

    def batch_command(self) -> tuple[str, ...]:
        """Command of a job that answers a file of requests."""
        raise NotImplementedError(f"{self.name} runs no batches")

    def batch_args(
        self, settings: ServeSettings, release: Release, *, requests: str, answers: str
    ) -> tuple[str, ...]:
        """Arguments of that job; `requests` and `answers` are paths of its files."""
        raise NotImplementedError(f"{self.name} runs no batches")

    def files(self, settings: ServeSettings) -> dict[str, str]:
        """Path below `repository` to content of what it reads besides its command line."""
        return {}

    def compile_variables(self, root: str | None) -> dict[str, str]:
        """Environment variables that say where compiled code is kept: below `root`, or in the pod's own
        volumes."""
        return {}

    def compile_seconds(self, facts: StartupFacts) -> int:
        """Seconds of compiling and capturing at a start without a cache."""
        return facts.compile_seconds

    def host(self, load: HostLoad) -> HostRequest:
        """CPU and memory of the node for one pod."""
        return request_of_workers(load)

    def probe(self, url: str) -> list[str]:
        """Command inside the image that succeeds when `url` answers."""
        return ["python3", "-c", f"import urllib.request; urllib.request.urlopen('{url}', timeout=10)"]

    def parsers(self, row: Mapping[str, str]) -> Parsers:
        """Names of the parsers of a model family, whose names in vLLM are `row`'s."""
        return Parsers(tools=row.get("tools"), reasoning=row.get("reasoning"))

    def given(self, flags: Mapping[str, str], files: Mapping[str, str]) -> dict[str, str]:
        """Settings by vLLM's names of flags, read back from a command line and the files of `files`."""
        return dict(flags)


def free_args(settings: ServeSettings, release: Release) -> list[str]:
    """The user's own flags, in alphabetical order, as the release spells them."""
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
