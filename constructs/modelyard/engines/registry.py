"""All engines: Modelyard's own, and those of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType

from modelyard.engines.engine import Engine
from modelyard.engines.llama_server import LlamaServer
from modelyard.engines.sglang import Sglang
from modelyard.engines.triton import Triton
from modelyard.engines.vllm import Vllm
from modelyard.engines.vllm_neuron import VllmNeuron
from modelyard.failure import Failure
from modelyard.hardware import Accelerator

GROUP = "modelyard.engines"
"""Entry points of this group name an `Engine` instance or class."""

USUAL = "vllm"
"""The fallback engine where none is known."""

_OWN: tuple[Engine, ...] = (
    Vllm(),
    VllmNeuron(),
    LlamaServer(),
    Sglang(),
    Triton(),
    Triton("tensorrtllm"),
)


class UnusableEngine(Failure):
    """An entry point does not resolve to an engine; the text names it and its package."""


@cache
def engines() -> Mapping[str, Engine]:
    """Every installed engine by name, Modelyard's own first.

    Raises:
        UnusableEngine: an engine of another package cannot be loaded, or its name is taken.
    """
    found = {engine.name: engine for engine in _OWN}
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        package = point.dist.name if point.dist else "?"
        try:
            made = point.load()
            engine = made() if isinstance(made, type) else made
        except Exception as problem:
            raise UnusableEngine(
                f"engine {point.name} of package {package} cannot be loaded: {type(problem).__name__}: {problem}"
            ) from problem
        if not isinstance(engine, Engine) or engine.name in found:
            why = (
                f"the name {engine.name} is taken"
                if isinstance(engine, Engine)
                else f"{point.value} is no Engine"
            )
            raise UnusableEngine(f"engine {point.name} of package {package} cannot be used: {why}")
        found[engine.name] = engine
    return MappingProxyType(found)


def engine(name: str) -> Engine:
    """The engine called `name`.

    Raises:
        KeyError: there is none.
    """
    return engines()[name]


@cache
def file_names() -> tuple[str, ...]:
    """Valid values of `engine.name` in a model file."""
    return tuple(dict.fromkeys(each.file_name for each in engines().values()))


@cache
def backends() -> tuple[str, ...]:
    """Valid values of `engine.backend` in a model file."""
    return tuple(dict.fromkeys(each.backend for each in engines().values() if each.backend))


def has_memory_model(name: str) -> bool:
    """Whether the engine has its own memory facts."""
    found = engines().get(name)
    return found is not None and found.folder.joinpath("memory.yaml").is_file()


def memory_models() -> tuple[str, ...]:
    """The engines with their own memory facts."""
    return tuple(name for name in engines() if has_memory_model(name))


def named_engine(file_name: str, backend: str | None) -> Engine:
    """The engine named in a model file; without a backend, the first with that name.

    Raises:
        LookupError: no engine has that name and backend.
    """
    for each in engines().values():
        if each.file_name == file_name and backend in (None, each.backend):
            return each
    raise LookupError(f"no engine {file_name} has a backend {backend}")


def usual_engine(accelerator: Accelerator, *, gguf: bool) -> Engine:
    """The default engine (`auto`) on `accelerator`.

    Raises:
        LookupError: there is none.
    """
    for each in engines().values():
        if each.usual_for(accelerator, gguf=gguf):
            return each
    raise LookupError(f"no engine for {accelerator.name}")


def places() -> str:
    """Engines by hardware, as worded in a fix."""
    where: dict[str, list[str]] = {}
    for each in engines().values():
        names = where.setdefault(each.place, [])
        if each.file_name not in names:
            names.append(each.file_name)
    return ", ".join(
        f"{' or '.join(filter(None, (', '.join(names[:-1]), names[-1])))} on {place}"
        for place, names in where.items()
    )


@cache
def service_prefixes() -> tuple[str, ...]:
    """Service names whose environment variables, set by Kubernetes, an engine would read as its own
    settings."""
    return tuple(dict.fromkeys(each.service_prefix for each in engines().values() if each.service_prefix))
